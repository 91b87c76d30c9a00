package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/saga-engine/engine/sdk/client"
)

// commands are what scripts have beside the predefined ones.
var commands = map[string]func(*testscript.TestScript, bool, []string){
	"await":   await,
	"until":   until,
	"effects": effects,
	"exits":   exits,
	"screen":  screen,
	"repeat":  repeat,
	"launch":  launch,
	"signal":  signalJob,
	"freeze":  freeze,
	"inbox":   inbox,
	"ended":   ended,
	"sql":     runSQL,
	"submit":  runSubmit,
	"sqlfile": runSQLFile,
	"nobody":  nobody,
	"sink":    sink,
	"replies": takeReplies,
	"cutting": cutting,
	"keep":    keep,
}

// patience is how long scripts wait for something that must happen.
const patience = 60 * time.Second

// await FILE REGEXP waits until a line of the file matches.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await FILE REGEXP")
	}
	want := regexp.MustCompile("(?m)" + args[1])
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(patience); ; <-ticker.C {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && want.Match(data) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s does not match %q; it holds:\n%s", args[0], args[1], data)
		}
	}
}

// until REGEXP COMMAND… runs a command again and again until a line of what it
// prints matches, whatever its exit code.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until REGEXP COMMAND…")
	}
	want := regexp.MustCompile("(?m)" + args[0])
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(patience); ; <-ticker.C {
		_ = ts.Exec(args[1], args[2:]...) // what it prints decides
		out := ts.ReadFile("stdout")
		if want.MatchString(out) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%v never printed %q; it prints:\n%s", args[1:], args[0], out)
		}
	}
}

// inbox N waits until the runs of the state have N messages together. It asks the state
// itself, because `engine show` can take seconds on a busy machine, and a verb waits only
// 10 s for its answer.
func inbox(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: inbox N")
	}
	driver, dsn, query := "postgres", ts.Getenv("ENGINE_DSN"), "SELECT count(*) FROM engine.inbox"
	if file, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, dsn, query = "sqlite", file, "SELECT count(*) FROM inbox"
	}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(patience); ; <-ticker.C {
		n, err := count(context.Background(), driver, dsn, query)
		if err == nil && strconv.Itoa(n) == args[0] {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("there are %d messages (%v), want %s", n, err, args[0])
		}
	}
}

// effects STEP N checks the mock agent's ledger: how many times the step took
// effect (S26 S32). With "undo" in front of STEP: how many effects were undone.
func effects(ts *testscript.TestScript, neg bool, args []string) {
	purpose := "do"
	if len(args) == 3 && args[0] == "undo" {
		purpose, args = args[0], args[1:]
	}
	if neg || len(args) != 2 {
		ts.Fatalf("usage: effects [undo] STEP N")
	}
	f, err := os.Open(ts.Getenv("LEDGER"))
	if err != nil && !os.IsNotExist(err) {
		ts.Fatalf("%v", err)
	}
	n := 0
	if err == nil {
		defer f.Close()
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var e struct {
				Kind, Purpose, Step string
				Applied             bool
			}
			ts.Check(json.Unmarshal(lines.Bytes(), &e))
			if e.Kind == "applied" && e.Applied && e.Purpose == purpose && e.Step == args[0] {
				n++
			}
		}
		ts.Check(lines.Err())
	}
	if strconv.Itoa(n) != args[1] {
		data, _ := os.ReadFile(ts.Getenv("LEDGER"))
		ts.Fatalf("step %s has %d effects (%s), want %s; the ledger:\n%s", args[0], n, purpose, args[1], data)
	}
}

// exits CODE COMMAND… runs a command and checks its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := err.(*exec.ExitError)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// repeat TEXT N FILE writes TEXT N times.
func repeat(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: repeat TEXT N FILE")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	f, err := os.OpenFile(ts.MkAbs(args[2]), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	ts.Check(err)
	_, err = f.WriteString(strings.Repeat(args[0], n))
	ts.Check(err)
	ts.Check(f.Close())
}

// sql TEXT runs a statement in the script's database.
func runSQL(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] sql TEXT")
	}
	err := execSQL(context.Background(), "postgres", ts.Getenv("ENGINE_DSN"), args[0])
	if !neg {
		ts.Check(err)
		return
	}
	if err == nil {
		ts.Fatalf("the statement succeeded")
	}
	ts.Check(os.WriteFile(ts.MkAbs("sql.err"), []byte(err.Error()), 0o600))
}

// submit WORKFLOW INPUT RUN [OPTIONS] submits a run as a Go program does, in a transaction of its own.
// OPTIONS are more client.Options, as JSON. `! submit` expects an error and writes it to the file
// submit.err.
func runSubmit(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 && len(args) != 4 {
		ts.Fatalf("usage: submit WORKFLOW INPUT RUN [OPTIONS]")
	}
	var o client.Options
	if len(args) == 4 {
		ts.Check(json.Unmarshal([]byte(args[3]), &o))
	}
	o.Run = args[2]
	db, err := sql.Open("postgres", ts.Getenv("ENGINE_DSN"))
	ts.Check(err)
	defer db.Close()
	ctx := context.Background()
	tx, err := db.BeginTx(ctx, nil)
	ts.Check(err)
	run, err := client.Submit(ctx, tx, args[0], json.RawMessage(args[1]), o)
	if neg {
		if err == nil {
			ts.Fatalf("the submission succeeded")
		}
		ts.Check(tx.Rollback())
		ts.Check(os.WriteFile(ts.MkAbs("submit.err"), []byte(err.Error()), 0o600))
		return
	}
	if err != nil || run != args[2] {
		ts.Fatalf("run %q, %v", run, errors.Join(err, tx.Rollback()))
	}
	ts.Check(tx.Commit())
}

// sqlfile FILE TEXT runs a statement in an embedded state file.
func runSQLFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sqlfile FILE TEXT")
	}
	ts.Check(execSQL(context.Background(), "sqlite", ts.MkAbs(args[0]), args[1]))
}

// keep NAME REGEXP sets a variable to what the group of the expression matches in
// the last output.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: keep NAME REGEXP")
	}
	m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) != 2 {
		ts.Fatalf("the output does not match %q once", args[1])
	}
	ts.Setenv(args[0], m[1])
}

// nobody COMMAND… runs a command as a user whom permissions bind: root is
// above them. It must fail with exit code 1; its stderr is in the file
// nobody.err.
func nobody(ts *testscript.TestScript, neg bool, args []string) {
	path := lookPath(ts, args[0])
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = []string{"HOME=/nonexistent"}
	for _, name := range []string{"PATH", "ENGINE_PLUGIN_DIR", "TMPDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	if os.Getuid() == 0 {
		for _, p := range []string{path, cmd.Dir} {
			for ; len(p) > len(os.TempDir()); p = filepath.Dir(p) {
				info, err := os.Stat(p)
				ts.Check(err)
				ts.Check(os.Chmod(p, info.Mode().Perm()|0o055))
			}
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	ts.Check(os.WriteFile(ts.MkAbs("nobody.err"), out, 0o644))
	exit, failed := err.(*exec.ExitError)
	switch {
	case err != nil && !failed:
		ts.Fatalf("%v", err)
	case failed && exit.ExitCode() != 1:
		ts.Fatalf("exit code %d, want 1:\n%s", exit.ExitCode(), out)
	case !failed && !neg:
		return
	case !failed:
		ts.Fatalf("succeeded:\n%s", out)
	case !neg:
		ts.Fatalf("failed:\n%s", out)
	}
}

// lookPath finds a command in the script's PATH.
func lookPath(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if p := filepath.Join(dir, name); executable(p) {
			return p
		}
	}
	ts.Fatalf("no command %s", name)
	return ""
}

func executable(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
