// Command shop is the remote service of the order example: inventory, payment, shipping and mail
// behind one HTTP server. The shop stores its data in a SQLite file of its own.
//
//	shop serve  --addr 127.0.0.1:0 --db shop.db --ready-file addr.txt
//	shop ledger --db shop.db --order o-1001
//
// The shop keeps the two promises that an engine needs from a remote service. First, a call
// that carries an Idempotency-Key has only one effect, however often it arrives. Second, if
// the undo of a call arrives before the call itself, the shop refuses the call. A user can
// make the shop fail, to watch how the engine reacts.
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

// run does the work of main with the given arguments and streams, and returns the exit code. 0
// = success; 1 = an error, or an order is not in the state that --expect names; 2 = wrong
// usage.
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

// errUsage is part of every error about the command line. The flag package or the function parse
// has already printed the details.
var errUsage = errors.New("wrong usage")

// parse parses the flags. The parameter `need` has the names of required flags. If one of
// these is empty, parse returns an error. The flag package itself treats all flags as
// optional.
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
