package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
)

// jobs are a script's processes in the background.
type jobs struct{ byName map[string]*job }

type job struct {
	cmd  *exec.Cmd
	done chan error
}

type jobsKey struct{}

// addJobs gives a script a place for its processes, and ends what is left of
// them with the script.
func addJobs(env *testscript.Env) {
	all := &jobs{byName: map[string]*job{}}
	env.Values[jobsKey{}] = all
	env.Defer(func() {
		for _, j := range all.byName {
			_ = j.cmd.Process.Kill() // it may have ended
			<-j.done
		}
	})
}

func jobNamed(ts *testscript.TestScript, name string) *job {
	j := ts.Value(jobsKey{}).(*jobs).byName[name]
	if j == nil {
		ts.Fatalf("no process %q was launched", name)
	}
	return j
}

// launch NAME COMMAND… starts a command; what it prints goes to NAME.out and
// NAME.err.
func launch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: launch NAME COMMAND…")
	}
	path := lookPath(ts, args[1])
	out, err := os.Create(ts.MkAbs(args[0] + ".out"))
	ts.Check(err)
	defer out.Close()
	errs, err := os.Create(ts.MkAbs(args[0] + ".err"))
	ts.Check(err)
	defer errs.Close()
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), out, errs
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "LEDGER", "ENGINE_DSN", "ENGINE_PLUGIN_DIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	if key := ts.Getenv(cli.KeyVariable); key != "" {
		cmd.Env = append(cmd.Env, cli.KeyVariable+"="+key)
	}
	ts.Check(cmd.Start())
	j := &job{cmd: cmd, done: make(chan error, 1)}
	go func() { j.done <- cmd.Wait() }()
	ts.Value(jobsKey{}).(*jobs).byName[args[0]] = j
}

// signal NAME SIGNAL sends a signal to a launched process.
func signalJob(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL,
		"CONT": syscall.SIGCONT,
	}
	if neg || len(args) != 2 || signals[args[1]] == 0 {
		ts.Fatalf("usage: signal NAME INT|TERM|KILL|CONT")
	}
	ts.Check(jobNamed(ts, args[0]).cmd.Process.Signal(signals[args[1]]))
}

// freeze NAME stops a launched process as SIGSTOP does, at a moment at which it has no
// transaction open. A process that is stopped in a transaction keeps others from writing to
// the state. SIGCONT lets the process go on.
func freeze(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeze NAME")
	}
	process := jobNamed(ts, args[0]).cmd.Process
	for end := time.Now().Add(patience); ; {
		ts.Check(process.Signal(syscall.SIGSTOP))
		idle, err := idleState(context.Background(), ts.Getenv("ENGINE_DSN"))
		ts.Check(err)
		if idle {
			return
		}
		ts.Check(process.Signal(syscall.SIGCONT))
		if time.Now().After(end) {
			ts.Fatalf("%s always has a transaction open", args[0])
		}
	}
}

// idleState reports whether no process has a transaction open that could lock the state.
func idleState(ctx context.Context, dsn string) (idle bool, err error) {
	if file, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		return execSQL(ctx, "sqlite", file, "BEGIN IMMEDIATE; ROLLBACK") == nil, nil
	}
	open, err := count(ctx, "postgres", dsn, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL`)
	return open == 0, err
}

// count returns the number that a query gives.
func count(ctx context.Context, driver, dsn, query string) (n int, err error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}

// ended NAME CODE waits for a launched process and checks its exit code;
// "killed" is that of one that was killed.
func ended(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ended NAME CODE|killed")
	}
	j := jobNamed(ts, args[0])
	var err error
	select {
	case err = <-j.done:
		j.done <- err
	case <-time.After(patience):
		ts.Fatalf("%s still runs; its stderr:\n%s", args[0], ts.ReadFile(args[0]+".err"))
	}
	got := "0"
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		got = strconv.Itoa(exit.ExitCode())
	case errors.As(err, &exit):
		got = "killed"
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != args[1] {
		ts.Fatalf("%s ended with %s, want %s; its stderr:\n%s", args[0], got, args[1], ts.ReadFile(args[0]+".err"))
	}
}
