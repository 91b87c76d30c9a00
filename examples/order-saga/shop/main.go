// Command shop is the remote side of the order example: inventory, payment,
// shipping and mail behind one HTTP server, with a SQLite file of its own.
//
//	shop serve  --addr 127.0.0.1:0 --db shop.db --ready-file addr.txt
//	shop ledger --db shop.db --order o-1001
//
// It keeps the promise that a workflow engine needs from a remote service: a
// call that carries an Idempotency-Key has one effect however often it
// arrives, and after an undo that comes before its call, the late call is refused. It
// fails on request, so that a reader can watch how the engine reacts.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: shop serve  --db FILE [--addr HOST:PORT] [--ready-file FILE] [--fault KIND:SETTINGS]… [--no-carrier COUNTRY] [--card-limit CENTS] [--stock N] [--with-stdin]
       shop ledger --db FILE [--order ID] [--expect ID=done|undone]…
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main with its surroundings as arguments. Exit codes: 0 done, 1 could
// not do it or an expectation failed, 2 usage.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	var err error
	switch args[0] {
	case "serve":
		err = serve(ctx, args[1:], stdin, stderr)
	case "ledger":
		err = printLedger(ctx, args[1:], stdout, stderr)
	default:
		fmt.Fprint(stderr, usage)
		return 2
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp), errors.Is(err, errUsage):
		fmt.Fprint(stderr, usage)
		return 2
	}
	fmt.Fprintln(stderr, "shop:", err)
	return 1
}

// errUsage is wrapped by errors about the command line; the flag package has
// said what is wrong by then.
var errUsage = errors.New("wrong usage")

// parse reads flags that are all optional for the flag package; need names
// those that must not be empty.
func parse(fs *flag.FlagSet, args []string, stderr io.Writer, need ...string) error {
	fs.SetOutput(stderr)
	fs.Usage = func() {}
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "unexpected argument %q\n", fs.Arg(0))
		return errUsage
	}
	for _, name := range need {
		if fs.Lookup(name).Value.String() == "" {
			fmt.Fprintf(stderr, "--%s is missing\n", name)
			return errUsage
		}
	}
	return nil
}
