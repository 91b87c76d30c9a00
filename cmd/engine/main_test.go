package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/postgres"
	"github.com/saga-engine/engine/engine/store/sqlite"
	"github.com/saga-engine/engine/engine/story"
)

func TestExitRun(t *testing.T) {
	for _, c := range []struct {
		state status.RunState
		left  int
		want  int
	}{
		{status.RunSucceeded, 0, exitOK},
		{status.RunSucceeded, 1, exitHuman},
		{status.RunFailed, 0, exitClean},
		{status.RunCompensated, 0, exitClean},
		{status.RunCompensated, 2, exitHuman},
		{status.RunCancelled, 0, exitClean},
		{status.RunCancelled, 1, exitHuman},
		{status.RunParked, 0, exitHuman},
		{status.RunCompensationFailed, 0, exitHuman},
		{status.RunRunning, 0, exitOpen},
		{status.RunCompensating, 1, exitOpen},
		{status.RunPaused, 0, exitOpen},
		{status.RunQueued, 0, exitOpen},
	} {
		if got := exitRun(c.state, c.left); got != c.want {
			t.Errorf("exitRun(%s, %d) = %d, want %d", c.state, c.left, got, c.want)
		}
	}
}

func TestWithoutPassword(t *testing.T) {
	for _, c := range []struct{ dsn, want string }{
		{"postgres://joe:hunter2@db/x?sslmode=disable", "postgres://joe:xxxxx@db/x?sslmode=disable"},
		{"postgres://db/x?user=joe&password=hunter2", "postgres://db/x?password=xxxxx&user=joe"},
		{"postgres://db/x?sslkey=k.pem&sslpassword=hunter2", "postgres://db/x?sslkey=k.pem&sslpassword=xxxxx"},
		{"postgres://joe:hunter2@db:port/x", "the database of --dsn"},
		{"postgres://db/x", "postgres://db/x"},
	} {
		if got := withoutPassword(c.dsn); got != c.want {
			t.Errorf("withoutPassword(%s) = %s, want %s", c.dsn, got, c.want)
		}
	}
}

// An output is hidden where its declaration says so, and where a part of its value
// is sensitive.
func TestPrintOutputsHides(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	err := a.printOutputs([]story.NamedValue{
		{Name: "open", Value: dsl.NewValue([]byte(`"shown"`), nil, nil)},
		{Name: "declared", Sensitive: true, Value: dsl.NewValue([]byte(`"hunter2"`), nil, nil)},
		{Name: "part", Value: dsl.NewValue([]byte(`{"a":"hunter2"}`), []string{"/a"}, nil)},
	})
	if text := out.String(); err != nil || !strings.Contains(text, "shown") || strings.Contains(text, "hunter2") || strings.Count(text, "(sensitive)") != 2 {
		t.Errorf("%s, %v; want two of three hidden", text, err)
	}
}

func TestDidYouMean(t *testing.T) {
	names := []string{"apply", "plan", "list"}
	for _, c := range []struct{ name, want string }{
		{"aply", ` Did you mean "apply"?`},
		{"lst", ` Did you mean "list"?`},
		{"frobnicate", ""},
		{"", ""},
	} {
		if got := diag.DidYouMean(c.name, names); got != c.want {
			t.Errorf("diag.DidYouMean(%q) = %q, want %q", c.name, got, c.want)
		}
	}
}

func TestPause(t *testing.T) {
	exponential := dsl.Retry{Strategy: dsl.Exponential, InitialInterval: time.Second, Multiplier: 2, MaxInterval: 5 * time.Second}
	linear := dsl.Retry{Strategy: dsl.Linear, InitialInterval: time.Second, MaxInterval: 5 * time.Second}
	constant := dsl.Retry{Strategy: dsl.Constant, InitialInterval: time.Second, MaxInterval: 5 * time.Second}
	for _, c := range []struct {
		name string
		r    dsl.Retry
		want [4]time.Duration // after attempts 1, 2, 3 and 60
	}{
		{"exponential", exponential, [4]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second}},
		{"linear", linear, [4]time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second}},
		{"constant", constant, [4]time.Duration{time.Second, time.Second, time.Second, time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, n := range []int{1, 2, 3, 60} {
				if got := pause(c.r, n); got != c.want[i] {
					t.Errorf("pause after attempt %d = %s, want %s", n, got, c.want[i])
				}
			}
		})
	}
}

func TestSecret(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "big"), bytes.Repeat([]byte("x"), maxSecret+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "own.key"), []byte("k3y"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("own.key", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"TOKEN": "t0ken", "ENGINE_ENCRYPTION_KEY": "k3y", "EMPTY": ""}
	a := &app{chdir: dir, private: []string{filepath.Join(dir, "own.key")}, lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	for _, c := range []struct{ ref, want, err string }{
		{"env:TOKEN", "t0ken", ""},
		{"env:EMPTY", "", ""},
		{"env:NONE", "", "is not set"},
		{"env:ENGINE_ENCRYPTION_KEY", "", "do not get them"},
		{"env:ENGINE_DSN", "", "do not get them"},
		{"env:PGPASSWORD", "", "do not get them"},
		{"env:engine_dsn", "", "do not get them"},
		{"file:token", "s3cret", ""},
		{"file:none", "", "no such file"},
		{"file:own.key", "", "state and its key are not for workflows"},
		{"file:link", "", "state and its key are not for workflows"},
		{"file:/dev/zero", "", "not a regular file"},
		{"file:big", "", "larger than"},
		{"vault:x", "", "env:NAME or file:PATH"},
		{"env:", "", "env:NAME or file:PATH"},
	} {
		t.Run(c.ref, func(t *testing.T) {
			got, err := a.opener().secret(c.ref)
			if got != c.want {
				t.Errorf("secret = %q, want %q", got, c.want)
			}
			switch {
			case c.err == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("error %v, want one with %q", err, c.err)
			case err != nil && strings.Contains(err.Error(), "k3y"):
				t.Error("the error tells a value")
			}
		})
	}
}

// Every error that a store may give names what to do.
func TestDiagnose(t *testing.T) {
	for _, c := range []struct {
		name            string
		err             error
		summary, detail string
	}{
		{"locked", &sqlite.LockedError{Path: "s.db", Holder: "process 7"}, "State file is in use", "s.db is held by process 7."},
		{"no schema", &store.SchemaError{Want: 2, Hint: "run it"}, "Database has no engine schema", "Run it."},
		{"older", &store.SchemaError{Have: 1, Want: 2, Hint: "run it"}, "Database must be migrated", "Its schema has version 1, this engine needs 2. Run it."},
		{"newer", &store.SchemaError{Have: 3, Want: 2, Hint: "use it"}, "Database is newer than this engine", "Its schema has version 3, this engine knows 2. Use it."},
		{"key", &crypt.KeyError{Hint: "make one"}, "Encryption key needed", "make one."},
		{"another key", &crypt.KeyError{ID: "aaaa", Given: "bbbb", Hint: "set it"}, "Wrong encryption key", "encryption key aaaa, and the key given is bbbb: set it."},
		{"store", &storeError{doing: "open the state", err: errors.New("sqlite: open x: full")}, "Cannot open the state", "Open x: full."},
		{"store, asking", &storeError{doing: "open the state", err: errors.New("postgres: refused: is it running?")}, "Cannot open the state", "Refused: is it running?"},
		{"loss", &storeError{doing: "serve", err: &store.LossError{Store: "postgres", From: 1, To: 2, Known: "0/5", Switch: "0/4"}}, "Committed work is lost", "0/5"},
		{"former primary", &postgres.WrongServerError{Store: "postgres", Reason: "it is a former primary", Have: 1, Seen: 2}, "Not the server that holds the state", "former primary"},
		{"other", errors.New("something else"), "Something else", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := diagnose(c.err)
			if len(d) != 1 || d[0].Severity != diag.SeverityError || d[0].Summary != c.summary || !strings.Contains(d[0].Detail, c.detail) || strings.Contains(d[0].Detail, "?.") {
				t.Errorf("diagnose = %+v, want %s: %s", d, c.summary, c.detail)
			}
		})
	}
}

// Every command accepts --json, and a failure is one object with diagnostics.
func TestJSONFailures(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range []string{
		"init --lockfile=x", "validate nowhere", "fmt nowhere", "plan nowhere", "list", "show x", "graph nowhere",
		"explain x", "watch x --from-seq 0", "logs x", "cancel x", "pause x", "resume x", "retry x", "compensate x", "settle x --step y",
		"doctor",
		"agents list --plugin-dir nowhere", "supervise", "supervise --once", "apply nowhere --detach", "agents schema nope", "db migrate", "db status", "version extra", "nothing",
	} {
		t.Run(args, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), append(strings.Fields(args), "--json"), strings.NewReader(""), &out, &errs)
			if code != exitFailed {
				t.Errorf("exit code %d, want %d", code, exitFailed)
			}
			var doc struct {
				Version     string            `json:"format_version"`
				Diagnostics []json.RawMessage `json:"diagnostics"`
			}
			dec := json.NewDecoder(&out)
			if err := dec.Decode(&doc); err != nil {
				t.Fatalf("not an object: %v; stderr: %s", err, &errs)
			}
			if doc.Version != formatVersion || len(doc.Diagnostics) == 0 {
				t.Errorf("format_version %q and %d diagnostics", doc.Version, len(doc.Diagnostics))
			}
			if dec.More() {
				t.Error("more than one object")
			}
		})
	}
}
