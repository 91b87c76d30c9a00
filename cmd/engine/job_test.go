package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
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
		"STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
	}
	if neg || len(args) != 2 || signals[args[1]] == 0 {
		ts.Fatalf("usage: signal NAME INT|TERM|KILL|STOP|CONT")
	}
	ts.Check(jobNamed(ts, args[0]).cmd.Process.Signal(signals[args[1]]))
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
