// Command engine runs durable workflows written in HCL.
//
// main.go makes the process ready, and root.go lists the commands. Each command is in a file below
// internal/commands. The other directories of internal are packages that the commands share: see
// docs/decisions/0031-rooms-of-the-command-line.md.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/internal/procs"
	"github.com/saga-engine/engine/sdk/heap"
	"github.com/saga-engine/engine/sdk/private"
)

func main() {
	if err := private.Keep(); err != nil {
		fmt.Fprintf(os.Stderr, "Warning: %v. Other processes of this user can read this one's environment.\n", err)
	}
	env := takeEnvironment()
	procs.Spare()
	ctx := context.Background()
	if worksOnRuns(os.Args[1:]) {
		go heap.Pace(ctx, heap.EngineGrowth)
	} else {
		go heap.Pace(ctx, heap.CommandGrowth)
		go heap.Hold(ctx, heap.CommandLimit)
	}
	os.Exit(runIn(ctx, env, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line with the environment of the process, and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return runIn(ctx, environment{}, args, stdin, stdout, stderr)
}

// runIn executes one command line and returns the exit code. It also uses the signals that the
// operating system sends to the process, because some commands wait for such a signal.
func runIn(ctx context.Context, env environment, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &cli.App{
		Stdin: stdin, Stdout: stdout, Stderr: stderr,
		Lookup: env.lookup, Environ: os.Environ, Now: time.Now, Exit: os.Exit,
	}
	a.JSON = wantsJSON(args)
	cmd := root(a)
	cmd.SetArgs(args)
	cmd.SetIn(stdin)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	return a.Finish(cmd.ExecuteContext(ctx))
}

// wantsJSON reports whether --json is among the arguments. It is needed for errors that occur
// before the flags are parsed.
func wantsJSON(args []string) bool {
	for _, s := range args {
		switch s {
		case "--json", "--json=true":
			return true
		case "--":
			return false
		}
	}
	return false
}

// worksOnRuns reports whether the command line may name a command that works on runs. Such a
// command may use much memory before Go collects the garbage. All other commands must use little
// memory, even if they read a file that an attacker wrote.
func worksOnRuns(args []string) bool {
	return slices.Contains(args, "serve") || slices.Contains(args, "apply")
}
