// Package examples_test runs every example with real processes: the engine's
// binary, the agents' and the shop.
package examples_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/saga-engine/engine/engine/store/postgres" // brings the driver
)

// envDSN names the server that `pgtest run` has started.
const envDSN = "ENGINE_TEST_DSN"

// bin is the directory of the binaries. It is set once, before any test.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "engine-examples-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if os.Getenv(envDSN) == "" { // begin again with a server
		return again(dir)
	}
	for _, args := range [][]string{
		{"build", "-o", dir + "/", "../cmd/engine", "../plugins/...", "./order-saga/shop", "./order-processing/orders", "./order-processing/demo"},
		{"build", "-C", "own-agent", "-o", filepath.Join(dir, "own", "engine-agent-theatre"), "."},
	} {
		cmd := exec.Command("go", args...)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "go %s: %v\n", strings.Join(args, " "), err)
			return 1
		}
	}
	bin = dir
	return m.Run()
}

// again runs this test binary again, with a private PostgreSQL.
func again(dir string) int {
	pgtest := filepath.Join(dir, "pgtest")
	build := exec.Command("go", "build", "-o", pgtest, "../engine/internal/pgtest/cmd/pgtest")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build pgtest:", err)
		return 1
	}
	cmd := exec.Command(pgtest, append([]string{"run", "--"}, os.Args...)...)
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

// stores are where an example may keep its state.
var stores = map[string]func(t *testing.T) string{
	"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "state.db") },
	"postgres": postgresDSN,
}

// postgresDSN makes a migrated database, which is dropped when the test ends.
func postgresDSN(t *testing.T) string {
	t.Helper()
	server := os.Getenv(envDSN)
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s is not a URL", envDSN)
	}
	db, err := sql.Open("postgres", server)
	if err != nil {
		t.Fatal(err)
	}
	name := "examples_" + strings.ToLower(rand.Text()[:12])
	if _, err := db.ExecContext(t.Context(), `CREATE DATABASE `+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := db.ExecContext(context.Background(), `DROP DATABASE `+name+` WITH (FORCE)`)
		if err := errors.Join(err, db.Close()); err != nil {
			t.Error(err)
		}
	})
	u.Path = "/" + name
	dsn := u.String()
	if r := engine(t, "db", "migrate", "--dsn", dsn); r.code != 0 {
		t.Fatalf("db migrate = %d\n%s", r.code, r.stderr)
	}
	return dsn
}

// A ran is the result of a command.
type ran struct {
	code           int
	stdout, stderr string
}

// patience bounds every command of a test.
const patience = 2 * time.Minute

// command prepares a binary; its environment holds no setting of ours but an
// encryption key, which PostgreSQL needs for sensitive values.
func command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH"), "ENGINE_ENCRYPTION_KEY=" + strings.Repeat("5a", 32)}
	return cmd
}

func runCommand(t *testing.T, name string, args ...string) ran {
	t.Helper()
	cmd := command(t, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() < 0) {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return ran{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func engine(t *testing.T, args ...string) ran {
	t.Helper()
	return runCommand(t, "engine", args...)
}

// A message is one line of `apply --json`.
type message struct {
	Type     string `json:"type"`
	Step     string `json:"step"`
	Attempt  int    `json:"attempt"`
	Status   string `json:"status"`
	ExitCode int    `json:"exit_code"`
	Code     string `json:"code"`
	Undone   int    `json:"undone"`
	Outputs  map[string]struct {
		Value     json.RawMessage `json:"value"`
		Sensitive bool            `json:"sensitive"`
	} `json:"outputs"`
}

// apply applies an example and returns its messages; the exit code must be
// code, and the last message must say so too.
func apply(t *testing.T, code int, args ...string) []message {
	t.Helper()
	return told(t, code, engine(t, append([]string{"apply", "--json"}, args...)...), args...)
}

// told reads what `apply --json` has printed. The exit code must be code, and the last message
// must say so too. args are shown if it is not.
func told(t *testing.T, code int, r ran, args ...string) []message {
	t.Helper()
	if r.code != code {
		t.Fatalf("apply %s = %d, want %d\n%s%s", strings.Join(args, " "), r.code, code, r.stdout, r.stderr)
	}
	var out []message
	d := json.NewDecoder(strings.NewReader(r.stdout))
	for d.More() {
		var m message
		if err := d.Decode(&m); err != nil {
			t.Fatalf("apply printed no JSON: %v\n%s", err, r.stdout)
		}
		out = append(out, m)
	}
	end := last(t, out, "run_finished")
	if end.ExitCode != code {
		t.Errorf("run_finished says exit code %d, want %d", end.ExitCode, code)
	}
	return out
}

// last returns the last message of a type.
func last(t *testing.T, messages []message, kind string) message {
	t.Helper()
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Type == kind {
			return messages[i]
		}
	}
	t.Fatalf("no message %s in %+v", kind, messages)
	return message{}
}

// outputs compares a run's outputs, as JSON.
func outputs(t *testing.T, messages []message, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for name, o := range last(t, messages, "run_finished").Outputs {
		got[name] = string(o.Value)
	}
	for name, w := range want {
		if got[name] != w {
			t.Errorf("output %s = %s, want %s", name, got[name], w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("outputs = %v, want %v", got, want)
	}
}
