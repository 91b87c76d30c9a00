// Command pgtest runs another command with a private, temporary PostgreSQL server. The other
// command finds the server's DSN in ENGINE_TEST_DSN:
//
//	pgtest run -- go test ./...
//	pgtest check
//
// `pgtest check` exits with 0 if there are server binaries. Otherwise it prints what to install
// and exits with 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/saga-engine/engine/engine/internal/pgtest"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	switch {
	case len(args) == 1 && args[0] == "check":
		if err := pgtest.Check(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			return 1
		}
		return 0
	case len(args) > 2 && args[0] == "run" && args[1] == "--":
		return pgtest.WithCluster(context.Background(), func(ctx context.Context) int { return command(ctx, args[2:]) })
	}
	fmt.Fprintln(os.Stderr, "usage: pgtest run -- COMMAND… | pgtest check")
	return 2
}

func command(ctx context.Context, args []string) int {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	}
	fmt.Fprintln(os.Stderr, "pgtest:", err)
	return 1
}
