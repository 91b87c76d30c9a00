package machine

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A mutant is a deliberate fault: a piece of source replaced by another. It
// must be noticed by the random worlds of TestPromises alone.
type mutant struct {
	name, file, old, new string
	also                 []mutant // further pieces, in other files
}

var mutants = []mutant{
	{"answers of closed attempts count", "decide.go",
		"return a != nil && a.status == attemptOpen", "return a != nil", nil},
	{"undo in forward order", "undo.go",
		"return int(d.get(n.of()).back) == len(d.wf.Steps[n.step].Before)", "return true",
		[]mutant{{file: "saga.go", old: "if len(step.Before) == 0 {", new: "if len(step.Name) > 0 {"}}},
	{"a lost attempt is forgotten", "expire.go",
		"n.tally(a.kind)\n\tif a.kind == callDo", "if a.kind == callDo {\n\t\tn.doubt = max(0, n.doubt-1)\n\t}\n\tn.tally(a.kind)\n\tif a.kind == callDo", nil},
	{"unknown is treated as failed", "attempt.go",
		"d.ended(ev.Attempt.Node, int(a.call), a.kind, miss{missUnknown, ev.Code, ev.Message})",
		"n.doubt = max(0, n.doubt-1)\n\td.ended(ev.Attempt.Node, int(a.call), a.kind, miss{missFailed, ev.Code, ev.Message})", nil},
	{"no grace before an undo", "undo.go",
		"case n.quiet > d.at:", "case false:", nil},
	{"failures are counted twice", "attempt.go",
		"n.tally(a.kind)\n\tif (a.kind == callDo", "n.tally(a.kind)\n\tn.tally(a.kind)\n\tif (a.kind == callDo", nil},
	{"max_failures is ignored", "forward.go",
		"if a.bad > d.tolerated(n.of()) && !a.ended() {", "if false {", nil},
	{"the effect of a caught step is not undone", "undo.go",
		"case n.effect() == EffectNone:", "case n.effect() == EffectNone, n.state == StepCaught:", nil},
	{"an unknown outcome is repeated though not idempotent", "retry.go",
		"case missUnknown:\n\t\treturn idempotent", "case missUnknown:\n\t\treturn true", nil},
	{"the key holds the attempt number", "key.go",
		"return idempotencyKey(d.run.id, d.step(n).Name, n.key, \"do\", int(n.gen))",
		"return idempotencyKey(d.run.id, d.step(n).Name, n.key, \"do\", int(n.gen+n.fwd.total))", nil},
	{"the key forgets each.key", "key.go",
		"return idempotencyKey(d.run.id, d.step(n).Name, n.key, \"undo\", int(n.gen))",
		"return idempotencyKey(d.run.id, d.step(n).Name, \"\", \"undo\", int(n.gen))", nil},
	{"deadlines are slept through", "dispatch.go",
		"case kind == callDo:\n\t\tby = earliest(by, d.forwardBound(i))", "", nil},
	{"the run's deadline does nothing", "expire.go",
		"if d.deadlineRuns() && r.deadline <= d.at {", "if false {", nil},
	{"undo after the pivot", "forward.go",
		"case d.run.passed, d.pivotOpen(), d.anyHopeless(step, i):", "case d.pivotOpen(), d.anyHopeless(step, i):", nil},
	{"an unknown pivot is compensated", "saga.go",
		"return n.effect() == EffectMaybe && n.undo == undoNone", "return n == nil", nil},
	{"a paused run dispatches", "dispatch.go",
		"return d.run.held() || d.run.finished != 0", "return d.run.finished != 0", nil},
	{"a run that engines died with dispatches", "lost.go",
		"return r.paused || r.lost()", "return r.paused", nil},
	{"what parks a run without its state hides that from the run", "lost.go",
		"mask: runLostBit, to: run{", "mask: 0 & runLostBit, to: run{", nil},
	{"attempts beyond the limit", "retry.go",
		"int(t.attempt) < r.MaxAttempts", "int(t.attempt) <= r.MaxAttempts", nil},
	{"cool-downs beyond the limit", "retry.go",
		"int(n.fwd.rounds) >= r.CoolDowns", "int(n.fwd.rounds) > r.CoolDowns", nil},
	{"a step starts before all dependencies are done", "forward.go",
		"if b.deps++; int(b.deps) == len(d.wf.Steps[j].After) {", "if b.deps++; b.deps == 1 {", nil},
	{"max_parallel is ignored", "forward.go",
		"limit = settings.MaxParallel", "limit = 0 * settings.MaxParallel", nil},
	{"a takeover repeats what is not idempotent", "verbs.go",
		"!step.Do.Idempotent && !step.Do.ReadOnly || ", "", nil},
	{"a takeover repeats an undo that is not idempotent", "verbs.go",
		"if !step.Undo.Do.Idempotent || !attemptsLeft", "if !attemptsLeft", nil},
	{"not done is taken for done", "attempt.go",
		"n.doubt = 0\n\t\tn.fwd.lookups = 0", "n.done = true\n\t\tn.fwd.lookups = 0", nil},
	{"the turn does not wait for attempts in flight", "undo.go",
		"if n.open() || !n.ended() {", "if false {", nil},
	{"a deferral spends an attempt and leaves doubt", "attempt.go",
		"n.fwd.attempt, n.fwd.total = n.fwd.attempt-1, n.fwd.total-1\n\t\tn.doubt = max(0, n.doubt-1)\n\tcase callLearn:",
		"\tcase callLearn:", nil},
	{"nobody is alarmed", "saga.go",
		"d.commands = append(d.commands, Alert{", "_ = append(d.commands, Alert{", nil},
	{"a backoff is never due", "view.go",
		"at = earliest(at, s.wakes.top())", "", nil},
	{"a record forgets when an attempt must be complete", "fields.go",
		"moment(attemptCompleteByBit, func(a *attempt) *instant { return &a.completeBy }),", "moment(attemptCompleteByBit, func(a *attempt) *instant { return new(instant) }),", nil},
	{"a failed undo is passed through", "undo.go",
		"n.undo = undoFailed\n\tn.und.blame(m)", "d.passed.push(i)\n\tn.undo = undoFailed\n\tn.und.blame(m)", nil},
	{"a checkpoint is lost", "attempt.go",
		"n.point, n.blob = ev.Number, ev.Blob", "n.point, n.blob = ev.Number-1, ev.Blob", nil},
	{"a rerun does not get the checkpoint", "dispatch.go",
		"case (kind == callDo || kind == callLearn) && n.marked():", "case kind == callLearn && n.marked():", nil},
	{"a definite failure takes away what a checkpoint says", "attempt.go",
		"(a.kind == callDo || a.kind == callLearn) && !n.marked()", "(a.kind == callDo || a.kind == callLearn) && n.doubt > 0", nil},
	{"undo_first is ignored", "rerun.go",
		"return step.OnRerun == dsl.RerunUndoFirst && step.Undo != nil && n.effect() != EffectNone", "return step == nil", nil},
	{"what was undone is done again under its key", "rerun.go",
		"d.edit(i).wipe(true)", "d.edit(i).wipe(false)", nil},
	{"the undo before another attempt does not wait", "rerun.go",
		"case n.quiet > d.at:\n\t\td.pause(i, n.quiet)\n\tdefault:\n\t\tn.clearing = true", "default:\n\t\tn.clearing = true", nil},
	{"an undo in doubt is called once more", "undo.go",
		"twice := n.undoDoubt > 0 && !undo.Idempotent", "twice := false", nil},
	{"silence goes unnoticed", "state.go",
		"return earliest(a.completeBy, a.silent)", "return a.completeBy", nil},
	{"a heartbeat is not heard", "attempt.go",
		"d.hear(n, a)", "", nil},
	{"what is silent is taken for dead", "expire.go",
		"n.quiet = max(n.quiet, a.completeBy.add(grace))", "n.quiet = max(n.quiet, d.at.add(grace))", nil},
	{"the agent's wish to be left alone is ignored", "attempt.go",
		"t.rest = max(t.rest, d.at.add(after))", "t.rest = max(t.rest, 0*d.at.add(after))", nil},
	{"who asked in vain gets no answer", "verbs.go",
		"By: by, Ask: ask}", "By: by, Ask: 0 * ask}", nil},
	{"a late answer to an ended run is no evidence", "decide.go",
		"r.late = true", "", nil},
	{"nobody is told what to do", "explain.go",
		"|| !x.accepted(ev) {", "|| x.accepted(ev) {", nil},
	{"calls that may not be interrupted are told to stop", "saga.go",
		"!do.ReadOnly && !do.Cancellable {", "false && do.ReadOnly {", nil},
	{"deciding changes the state", "state.go",
		"b.attempts = append(b.one[:0], n.attempts...)", "", nil},
	{"an output the run had is written as the answer's", "usual.go",
		"case nodeOutputBit:\n\t\treturn usualEndKnown", "case nodeOutputBit:\n\t\treturn usualEnd", nil},
	{"a step that starts is written without its start", "usual.go",
		"n.fwd.began = at", "n.fwd.began = 0", nil},
}

// TestMutants plants the faults one by one and runs the random worlds against
// each. MUTANTS=all plants all of them; without it only a few are planted, and
// the list is checked to fit the source.
func TestMutants(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	all := os.Getenv("MUTANTS") == "all"
	work := t.TempDir()
	for k, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			overlay := plant(t, m, dir, work, k)
			if all || k%10 == 1 {
				hunt(t, overlay)
			}
		})
	}
}

// plant writes the changed sources and returns the overlay that puts them in
// the place of the real ones.
func plant(t *testing.T, m mutant, dir, work string, k int) (overlay string) {
	t.Helper()
	replace := map[string]string{}
	for j, e := range append([]mutant{m}, m.also...) {
		path := filepath.Join(dir, e.file)
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), e.old); n != 1 {
			t.Fatalf("the piece to replace occurs %d times in %s", n, e.file)
		}
		replace[path] = filepath.Join(work, fmt.Sprintf("m%d_%d.go", k, j))
		if err := os.WriteFile(replace[path], []byte(strings.Replace(string(source), e.old, e.new, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	overlay = filepath.Join(work, fmt.Sprintf("m%d.json", k))
	plan, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, plan, 0o644); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// hunt runs the random worlds over the changed source; they must fail.
func hunt(t *testing.T, overlay string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-overlay", overlay, "-run", "^TestPromises$", ".")
	cmd.Env = append(os.Environ(), "SIM_SEEDS=8000", "SIM_FROM=0", "SIM_SEED=", "SIM_BRIEF=1")
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		t.Error("the mutant survives")
	case !strings.Contains(string(out), "--- FAIL: TestPromises"):
		t.Errorf("the mutant was not tried:\n%s", out)
	default:
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "seed ") {
				t.Log(strings.TrimSpace(line))
				return
			}
		}
	}
}
