package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/sqlite"
)

// S28: a late answer changes nothing by itself; settle --from-late-reply makes
// it count, as far as it says what happened.
func TestSettleFromLateReply(t *testing.T) {
	const flow = `
workflow "pay" {
  deadline = "5m"
  step "pay" {
    action = agent.mock.call_once
    input {
      value = 1
      fail  = { code = "lost", unknown = true }
    }
    compensate {
      action = agent.mock.call
      input { value = self.output.value }
    }
  }
  output "paid" { value = step.pay.output.value }
}
`
	value := func(s string) dsl.Value { return dsl.NewValue([]byte(s), nil, nil) }
	pay := machine.AttemptID{Node: 0, Call: 1}
	for _, c := range []struct {
		name   string
		late   []machine.Event
		want   string // in the answer, or in the error if it begins with "!"
		status string
	}{
		{"it had succeeded", []machine.Event{machine.AttemptOK{Attempt: pay, Output: value(`{"value":5}`)}}, "Settle of run p is recorded", "succeeded"},
		{"the same twice", []machine.Event{
			machine.AttemptOK{Attempt: pay, Output: value(`{"value":5}`)}, machine.AttemptUnknown{Attempt: pay, Code: "lost"},
		}, "Settle of run p is recorded", "succeeded"},
		{"they differ", []machine.Event{
			machine.AttemptOK{Attempt: pay, Output: value(`{"value":5}`)}, machine.AttemptOK{Attempt: pay, Output: value(`{"value":6}`)},
		}, "!Late answers differ", ""},
		{"it had failed", []machine.Event{machine.AttemptFailed{Attempt: pay, Code: "no"}}, "Settle of run p is recorded", "parked"},
		{"it does not know either", []machine.Event{machine.AttemptUnknown{Attempt: pay, Code: "lost"}}, "!Late answers do not tell", ""},
		{"not what the action gives", []machine.Event{machine.AttemptOK{Attempt: pay, Output: value(`{"amount":5}`)}}, "!Cannot settle run p", ""},
		{"none", nil, "!No late answer", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.hcl"), []byte(flow), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("ENGINE_PLUGIN_DIR", os.Getenv(envAgents))
			t.Setenv("ENGINE_DSN", "")
			if code, _, errs := command(t, "--chdir", dir, "apply", ".", "--run-id", "p"); code != exit.Human {
				t.Fatalf("apply: exit code %d\n%s", code, errs)
			}
			keepLate(t, filepath.Join(dir, filepath.FromSlash(session.File)), "p", c.late)
			if len(c.late) > 0 {
				_, out, _ := command(t, "--chdir", dir, "show", "p")
				if !strings.Contains(out, "Late ") {
					t.Errorf("show tells of no late answer:\n%s", out)
				}
			}
			code, out, errs := command(t, "--chdir", dir, "settle", "p", "--step", "pay", "--from-late-reply", "--reason", "test")
			if text, refused := strings.CutPrefix(c.want, "!"); refused {
				if code != exit.Failed || !strings.Contains(errs, text) {
					t.Errorf("exit code %d, want 1 and %q:\n%s", code, text, errs)
				}
				return
			}
			if code != exit.OK || !strings.Contains(out, c.want) {
				t.Fatalf("exit code %d, want 0 and %q:\n%s%s", code, c.want, out, errs)
			}
			if _, out, _ := command(t, "--chdir", dir, "explain", "p"); !strings.Contains(out, "--from-late-reply") {
				t.Errorf("explain does not offer the late answer:\n%s", out)
			}
			if code, _, errs := command(t, "--chdir", dir, "supervise", "--once"); code != exit.OK {
				t.Fatalf("supervise: exit code %d\n%s", code, errs)
			}
			_, out, _ = command(t, "--chdir", dir, "list", "--json")
			if !strings.Contains(out, `"status": "`+c.status+`"`) {
				t.Errorf("the run is not %s:\n%s", c.status, out)
			}
		})
	}
}

// command runs one command line in this process.
func command(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// keepLate keeps late answers of a run's step "pay" as an engine does.
func keepLate(t *testing.T, path, name string, events []machine.Event) {
	t.Helper()
	ctx := context.Background()
	st, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	row, err := store.Complete(st).Find(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range events {
		outcome := map[bool]string{true: "ok", false: "failed"}[i == 0]
		data, err := journal.EncodeMessage(nil, row.Run, e)
		if err == nil {
			err = st.KeepLate(ctx, store.LateReply{Run: row.Run, Node: 0, Call: 1, Step: "pay", At: time.Now(), Outcome: outcome, Data: data})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// S85: every view and verb gives programs one object.
func TestVerbsJSON(t *testing.T) {
	dir := t.TempDir()
	const flow = `
workflow "w" {
  deadline = "5m"
  compensation { mode = "manual" }
  step "s" {
    action       = agent.mock.call
    compensation = "none"
    input {
      fail = { code = "no", permanent = true }
    }
  }
}
`
	if err := os.WriteFile(filepath.Join(dir, "a.hcl"), []byte(flow), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ENGINE_PLUGIN_DIR", os.Getenv(envAgents))
	t.Setenv("ENGINE_DSN", "")
	if code, _, errs := command(t, "--chdir", dir, "apply", ".", "--run-id", "r"); code != exit.Human {
		t.Fatalf("apply: exit code %d\n%s", code, errs)
	}
	for _, c := range []struct {
		args string
		code int
		want []string // fields
	}{
		{"explain r", exit.OK, []string{"run", "status", "text", "sentences", "needs_human", "remedies", "engines_alive", "messages_waiting", "owner"}},
		{"show r", exit.OK, []string{"owner", "messages_waiting", "late_replies", "alerts", "steps"}},
		{"list --alerts", exit.OK, []string{"alerts"}},
		{"list --status attention", exit.OK, []string{"runs"}},
		{"logs r", exit.OK, []string{"run", "logs"}},
		{"doctor", exit.OK, []string{"findings", "error_count", "warning_count"}},
		{"retry r", exit.OK, []string{"run", "verb", "message", "recorded", "answered", "engine_alive", "status"}},
		{"compensate r", exit.OK, []string{"run", "verb", "recorded"}},
		{"pause r", exit.Failed, []string{"diagnostics"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, out, errs := command(t, append([]string{"--chdir", dir, "--json"}, strings.Fields(c.args)...)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d: %s", code, c.code, errs)
			}
			var doc map[string]any
			if err := json.Unmarshal([]byte(out), &doc); err != nil {
				t.Fatalf("not one object: %v\n%s", err, out)
			}
			for _, name := range append(c.want, "format_version") {
				if _, ok := doc[name]; !ok {
					t.Errorf("no field %q in:\n%s", name, out)
				}
			}
		})
	}
}
