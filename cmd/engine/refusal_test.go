package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine/machine/status"
)

// refusedFlow has one workflow for each status that a run can rest in.
const refusedFlow = `
agent "mock" {}
workflow "running" {
  deadline = "5h"
  step "first" {
    action  = agent.mock.do
    timeout = "2h"
    input {
      value   = 1
      latency = "1h"
    }
  }
}
workflow "parked" {
  deadline = "5h"
  compensation { mode = "manual" }
  step "first" {
    action = agent.mock.do
    input {
      value = 1
      fail  = { code = "no", permanent = true }
    }
  }
}
workflow "unknown" {
  deadline = "5h"
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
}
workflow "compensating" {
  deadline = "5h"
  step "first" {
    action = agent.mock.do
    input {
      value = 1
      undo  = { latency = "1h" }
    }
  }
  step "second" {
    depends_on = [step.first]
    action     = agent.mock.do
    input {
      value = 2
      fail  = { code = "no", permanent = true }
    }
  }
}
workflow "stuck" {
  deadline = "5h"
  step "first" {
    action = agent.mock.do
    input {
      value = 1
      undo  = { fail = { code = "no", permanent = true } }
    }
  }
  step "second" {
    depends_on = [step.first]
    action     = agent.mock.do
    input {
      value = 2
      fail  = { code = "no", permanent = true }
    }
  }
}
workflow "succeeded" {
  deadline = "5h"
  step "first" {
    action = agent.mock.do
    input { value = 1 }
  }
}
workflow "failed" {
  deadline = "5h"
  step "first" {
    action = agent.mock.do
    input {
      value = 1
      fail  = { code = "no", permanent = true }
    }
  }
}
workflow "compensated" {
  deadline = "5h"
  step "first" {
    action = agent.mock.do
    input { value = 1 }
  }
  step "second" {
    depends_on = [step.first]
    action     = agent.mock.do
    input {
      value = 2
      fail  = { code = "no", permanent = true }
    }
  }
}
`

// emptyName matches the place in a sentence where a name is missing.
var emptyName = regexp.MustCompile(`[a-z,.:]  +[a-z]`)

// Every verb on a run in every status is accepted, or refused with the status and
// a command that would be accepted. No engine lives while they are tried: what is
// accepted is recorded and changes nothing.
func TestRefusalsNameStatusAndNextCommand(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.hcl"), []byte(refusedFlow), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ENGINE_PLUGIN_DIR", os.Getenv(envAgents))
	t.Setenv("ENGINE_DSN", "")
	runs := map[string]string{ // status by run
		"running": "running", "paused": "paused", "compensating": "compensating", "parked": "parked", "unknown": "compensation_failed",
		"stuck": "compensation_failed", "succeeded": "succeeded", "failed": "failed", "compensated": "compensated",
	}
	engine := exec.Command("engine", "--chdir", dir, "serve")
	log, err := os.Create(filepath.Join(dir, "serve.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	engine.Stderr = log
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			_ = engine.Process.Kill() // it may have ended
			_ = engine.Wait()
		}
	}
	defer stop()
	submit := func(run string) {
		t.Helper()
		workflow := run
		switch run {
		case "paused", "cancelled", "queued":
			workflow = "running"
		}
		if code, _, errs := command(t, "--chdir", dir, "apply", ".", "--workflow", workflow, "--run-id", run, "--detach"); code != exit.OK {
			t.Fatalf("apply: exit code %d\n%s", code, errs)
		}
	}
	await := func(run string, done func(status string) bool) string {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			status := statusOf(t, dir, run)
			if done(status) {
				return status
			}
			if time.Now().After(end) {
				data, _ := os.ReadFile(log.Name())
				t.Fatalf("run %s is %s\n%s", run, status, data)
			}
		}
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) { // the engine makes the state
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(session.File))); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the engine does not start")
		}
	}
	for run := range runs {
		submit(run)
	}
	await("paused", func(s string) bool { return s == "running" })
	if code, _, errs := command(t, "--chdir", dir, "pause", "paused"); code != exit.OK {
		t.Fatalf("pause: exit code %d\n%s", code, errs)
	}
	for run, status := range runs {
		if run == "unknown" { // parked or compensation_failed: both are for a person
			runs[run] = await(run, func(s string) bool { return s == "parked" || s == "compensation_failed" })
			continue
		}
		await(run, func(s string) bool { return s == status })
	}
	stop()
	submit("queued")
	runs["queued"] = statusOf(t, dir, "queued")

	verbs := []string{
		"cancel RUN", "cancel RUN --no-compensate --reason x", "pause RUN", "resume RUN", "resume RUN --extend 1h",
		"retry RUN", "retry RUN --step first", "retry RUN --new-key", "compensate RUN", "compensate RUN --retry", "compensate RUN --skip --reason x",
		"compensate RUN --retry --step first", "settle RUN --step first --not-done --reason x", "settle RUN --step first --undone --reason x",
		"settle RUN --step first --succeeded --output {} --reason x", "settle RUN --step first --from-late-reply --reason x", "retry RUN --step nothing",
	}
	accepted := map[string]bool{} // by command line
	refused := 0
	for run, status := range runs {
		for _, v := range verbs {
			args := strings.Fields(strings.Replace(v, "RUN", run, 1))
			code, _, errs := command(t, append([]string{"--chdir", dir}, args...)...)
			if code == exit.OK {
				continue
			}
			refused++
			if code != exit.Failed || !strings.Contains(errs, status) {
				t.Errorf("%s on a %s run: exit code %d, its refusal does not name the status:\n%s", v, status, code, errs)
			}
			text := strings.Join(strings.Fields(errs), " ")
			next := regexp.MustCompile("`(engine [^`]+)`").FindAllStringSubmatch(text, -1)
			if len(next) == 0 {
				t.Errorf("%s on a %s run: no next command:\n%s", v, status, errs)
			}
			if emptyName.MatchString(errs) || strings.Contains(text, "undo .") || strings.Contains(text, "step .") {
				t.Errorf("%s on a %s run: an empty name:\n%s", v, status, errs)
			}
			for _, m := range next {
				if line := m[1]; !accepted[line] {
					args := strings.Fields(strings.NewReplacer("TEXT", "x", "JSON", `{"value":1}`, "'", "").Replace(line))[1:]
					if code, _, errs := command(t, append([]string{"--chdir", dir}, args...)...); code != exit.OK {
						t.Errorf("%s on a %s run offers %q, which is refused:\n%s", v, status, line, errs)
					}
					accepted[line] = true
				}
			}
		}
	}
	if refused < 60 {
		t.Errorf("%d refusals, want most of %d", refused, len(runs)*len(verbs))
	}
}

// statusOf asks for a run's status; "" = there is no such run.
func statusOf(t *testing.T, dir, run string) string {
	t.Helper()
	code, out, errs := command(t, "--chdir", dir, "list", "--json")
	if code != exit.OK {
		t.Fatalf("list: exit code %d\n%s%s", code, out, errs)
	}
	var doc struct {
		Runs []struct{ Run, Status string }
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	for _, r := range doc.Runs {
		if _, known := status.ParseRunState(r.Status); r.Run == run && known {
			return r.Status
		}
	}
	return ""
}
