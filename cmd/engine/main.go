// Command engine runs durable workflows written in HCL.
//
// main.go and root.go are the frame, wire.go puts the concrete parts together,
// and each command is in a file of its own name.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/saga-engine/engine/cmd/internal/procs"
	"github.com/saga-engine/engine/dsl/diag"
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
		go heap.Pace(ctx, heap.EngineRoom)
	} else {
		go heap.Pace(ctx, heap.CommandRoom)
		go heap.Hold(ctx, heap.CommandLimit)
	}
	os.Exit(runIn(ctx, env, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line with the environment of the process.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return runIn(ctx, environment{}, args, stdin, stdout, stderr)
}

// runIn executes one command line and returns its exit code. Everything else it
// takes from the process is its signals, for apply and serve.
func runIn(ctx context.Context, env environment, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{
		stdin: stdin, stdout: stdout, stderr: stderr,
		lookup: env.lookup, environ: os.Environ, now: time.Now, exit: os.Exit,
	}
	a.json = wantsJSON(args)
	cmd := a.root()
	cmd.SetArgs(args)
	cmd.SetIn(stdin)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	return a.finish(cmd.ExecuteContext(ctx))
}

// An app is one invocation of the command.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookup         func(string) (string, bool) // environment
	environ        func() []string
	now            func() time.Time
	exit           func(code int) // ends the process at once

	private []string // files that open the state, which no secret may name

	chdir   string
	dsn     string
	noColor bool
	json    bool
	log     string

	slog *slog.Logger // see logger
	runs *shownRuns   // what log lines know of runs; made with slog
	logs *sink

	// stream is set by a command whose JSON output is a stream: failures are
	// written to it.
	stream interface{ Diagnostics(diag.Diagnostics) }
}

// The parts of an app. Each is the same app with what one group of commands does.

func (a *app) opener() opener     { return opener{a} }
func (a *app) author() author     { return author{a} }
func (a *app) planner() planner   { return planner{a} }
func (a *app) runner() runner     { return runner{a} }
func (a *app) follower() follower { return follower{a} }
func (a *app) reader() reader     { return reader{a} }
func (a *app) viewer() viewer     { return viewer{a} }
func (a *app) speaker() speaker   { return speaker{a} }
func (a *app) keeper() keeper     { return keeper{a} }

// finish reports what went wrong, once, and returns the exit code.
func (a *app) finish(err error) int {
	if err == nil {
		return exitOK
	}
	var code exitError
	if errors.As(err, &code) {
		return int(code)
	}
	a.report(diagnose(err))
	var unsure *unsureError
	if errors.As(err, &unsure) {
		return exitUnsure
	}
	return exitFailed
}

// wantsJSON reports whether --json is among the arguments, for errors that are
// found before the flags are parsed.
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

// worksOnRuns reports whether a command works on runs. It then may have a lot of
// garbage before it is collected. One that only reads may not, so that a file made
// to harm takes little memory.
func worksOnRuns(args []string) bool {
	return slices.Contains(args, "serve") || slices.Contains(args, "apply")
}
