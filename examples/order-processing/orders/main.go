// Command orders is the order application of the example. It keeps orders in its own tables,
// in the same PostgreSQL database as the engines. It has no connection to an engine: it
// submits a run in the transaction that stores the order, and reads the replies of the run
// from its own queue.
//
//	orders init  --dsn DSN
//	orders serve --dsn DSN --ready-file addr.txt
//	orders place --dsn DSN --id o-1 --amount 3400
//	orders list  --dsn DSN
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"

	_ "github.com/lib/pq" // the driver
)

const usage = `usage: orders init  --dsn DSN
       orders serve --dsn DSN [--ready-file FILE] [--with-stdin]
       orders place --dsn DSN --id ID --amount CENTS [--item NAME] [--country CODE] [--fail]
       orders list  --dsn DSN
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// errUsage says that the command line is wrong. If a flag is wrong, the flag package has printed
// the details.
var errUsage = errors.New("wrong usage")

// run does the work of main, and returns the exit code: 0 = success; 1 = an error; 2 = wrong usage.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := errUsage
	if len(args) > 0 {
		err = command(ctx, args[0], args[1:], stdin, stdout, stderr)
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp), errors.Is(err, errUsage):
		fmt.Fprint(stderr, usage)
		return 2
	}
	fmt.Fprintln(stderr, "orders:", err)
	return 1
}

func command(ctx context.Context, name string, args []string, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(stderr)
	dsn := fs.String("dsn", "", "PostgreSQL database of the application and of the engines")
	var o order
	var s server
	fail := false
	switch name {
	case "place":
		fs.StringVar(&o.ID, "id", "", "id of the order")
		fs.StringVar(&o.Item, "item", "mug", "article")
		fs.IntVar(&o.Amount, "amount", 0, "price in cents")
		fs.StringVar(&o.Country, "country", "DE", "country to deliver to")
		fs.BoolVar(&fail, "fail", false, "fail at the end of the transaction, to see that nothing is left")
	case "serve":
		fs.StringVar(&s.ready, "ready-file", "", "file to write the address to")
		fs.BoolVar(&s.withStdin, "with-stdin", false, "stop when standard input ends")
	case "init", "list":
	default:
		return errUsage
	}
	if err := fs.Parse(args); err != nil || *dsn == "" || fs.NArg() > 0 {
		return errUsage
	}
	db, err := sql.Open("postgres", *dsn)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	switch name {
	case "init":
		return create(ctx, db)
	case "place":
		return place(ctx, db, o, fail)
	case "serve":
		s.db, s.stdin = db, stdin
		return s.run(ctx)
	}
	return list(ctx, db, stdout)
}

// list prints all orders with their status.
func list(ctx context.Context, db *sql.DB, stdout io.Writer) error {
	all, err := orders(ctx, db)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ORDER\tITEM\tAMOUNT\tCOUNTRY\tRUN\tSTATUS\tREPLIES")
	for _, o := range all {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", o.ID, o.Item, o.Amount, o.Country, o.Run, o.Status, o.Replies)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the orders: %w", err)
	}
	return nil
}
