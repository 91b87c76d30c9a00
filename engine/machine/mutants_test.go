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
	{"answers of closed attempts count", "answer.go",
		"return a != nil && a.Status == model.AttemptOpen", "return a != nil", nil},
	{"undo in forward order", "undo.go",
		"return int(d.get(n.Of()).Back) == len(d.wf.Steps[n.Step].Before)", "return true",
		[]mutant{{file: "turn.go", old: "if len(step.Before) == 0 && !step.Instance {", new: "if len(step.Name) > 0 {"}}},
	{"a lost attempt is forgotten", "attempt.go",
		"n.Tally(a.Kind)\n\tif a.Kind == model.CallDo", "if a.Kind == model.CallDo {\n\t\tn.Doubt = max(0, n.Doubt-1)\n\t}\n\tn.Tally(a.Kind)\n\tif a.Kind == model.CallDo", nil},
	{"unknown is treated as failed", "answer.go",
		"d.ended(ev.Attempt.Node, int(a.Call), a.Kind, model.Miss{Kind: model.MissUnknown, Code: ev.Code, Message: ev.Message})",
		"n.Doubt = max(0, n.Doubt-1)\n\td.ended(ev.Attempt.Node, int(a.Call), a.Kind, model.Miss{Kind: model.MissFailed, Code: ev.Code, Message: ev.Message})", nil},
	{"no grace before an undo", "undo.go",
		"case n.MayWorkUntil > d.at:\n\t\td.edit(i).Und.Kind", "case false:\n\t\td.edit(i).Und.Kind", nil},
	{"failures are counted twice", "answer.go",
		"n.Tally(a.Kind)\n\tif (a.Kind == model.CallDo", "n.Tally(a.Kind)\n\tn.Tally(a.Kind)\n\tif (a.Kind == model.CallDo", nil},
	{"max_failures is ignored", "retry.go",
		"if (a.Bad > d.tolerated(n.Of()) || late) && !a.Ended() {", "if false {", nil},
	{"a deadline ends the call for a child run that is open", "expire.go",
		"if d.caller().outlast(i) {\n\t\treturn\n\t}\n\tn := d.edit(i)", "n := d.edit(i)", nil},
	{"the effect of a caught step is not undone", "undo.go",
		"case n.OwnEffect() == status.EffectNone:", "case n.OwnEffect() == status.EffectNone, n.State == status.StepCaught:", nil},
	{"questions of an undo about the forward call have no numbers", "dispatch.go",
		"number = int32(n.Fwd.Lookups) + 1 //", "number = int32(t.Lookups) + 1 //", nil},
	{"a for_each step is held while its instances run", "slots.go",
		"case n.Expanded && n.Active > 0:", "case false:", nil},
	{"an unknown outcome is repeated though not idempotent", "retry.go",
		"case model.MissUnknown:\n\t\treturn idempotent", "case model.MissUnknown:\n\t\treturn true", nil},
	{"the key holds the attempt number", "scope.go",
		"\"do\", int(n.Loop.Iteration), int(n.Gen))", "\"do\", int(n.Loop.Iteration), int(n.Gen+n.Fwd.Total))", nil},
	{"the key forgets each.key", "scope.go",
		"return idempotencyKey(run, step, n.Key, \"undo\", 0, int(n.Gen))",
		"return idempotencyKey(run, step, \"\", \"undo\", 0, int(n.Gen))", nil},
	{"deadlines are slept through", "dispatch.go",
		"case kind == model.CallDo:\n\t\tby = model.Earliest(by, d.forward().forwardBound(i))", "", nil},
	{"the run's deadline does nothing", "turn.go",
		"if d.run.DeadlineRuns() && r.Deadline <= d.at {", "if false {", nil},
	{"undo after the pivot", "retry.go",
		"case d.run.Passed, d.pivotOpen(), d.anyHopeless(step, i):", "case d.pivotOpen(), d.anyHopeless(step, i):", nil},
	{"an unknown pivot is compensated", "decider.go",
		"return n.OwnEffect() == status.EffectMaybe && n.Undo == model.UndoNone", "return n == nil", nil},
	{"a paused run dispatches", "slots.go",
		"return d.run.Held() || d.run.Finished != 0", "return d.run.Finished != 0", nil},
	{"a run that engines died with dispatches", "../internal/model/run.go",
		"return r.Paused || r.Lost()", "return r.Paused", nil},
	{"what parks a run without its state hides that from the run", "ending.go",
		"Mask: model.RunLostBit, To: model.Run{", "Mask: 0 & model.RunLostBit, To: model.Run{", nil},
	{"attempts beyond the limit", "retry.go",
		"int(t.Attempt) < r.MaxAttempts", "int(t.Attempt) <= r.MaxAttempts", nil},
	{"cool-downs beyond the limit", "retry.go",
		"int(n.Fwd.Rounds) >= r.CoolDowns", "int(n.Fwd.Rounds) > r.CoolDowns", nil},
	{"a step starts before all dependencies are done", "nodeend.go",
		"if b.Deps++; int(b.Deps) == len(d.wf.Steps[j].After) {", "if b.Deps++; b.Deps == 1 {", nil},
	{"max_parallel is ignored", "forward.go",
		"limit = settings.MaxParallel", "limit = 0 * settings.MaxParallel", nil},
	{"a takeover repeats what is not idempotent", "verbs.go",
		"!step.Do.Idempotent && !step.Do.ReadOnly || ", "", nil},
	{"a takeover repeats an undo that is not idempotent", "verbs.go",
		"if !step.Undo.Do.Idempotent || !attemptsLeft", "if !attemptsLeft", nil},
	{"not done is taken for done", "answer.go",
		"n.Doubt = 0\n\t\tn.Fwd.Lookups = 0", "n.Done = true\n\t\tn.Fwd.Lookups = 0", nil},
	{"the turn does not wait for attempts in flight", "undo.go",
		"if n.Open() || !n.Ended() {", "if false {", nil},
	{"a deferral spends an attempt and leaves doubt", "answer.go",
		"n.Fwd.Attempt, n.Fwd.Total = n.Fwd.Attempt-1, n.Fwd.Total-1\n\t\tn.Doubt = max(0, n.Doubt-1)\n\tcase model.CallLearn:",
		"\tcase model.CallLearn:", nil},
	{"nobody is alarmed", "decider.go",
		"d.commands = append(d.commands, Alert{", "_ = append(d.commands, Alert{", nil},
	{"a backoff is never due", "state.go",
		"at = model.Earliest(at, s.wakes.top())", "", nil},
	{"a record forgets when an attempt must be complete", "../internal/wire/table.go",
		"momentCodec(model.AttemptCompleteByBit, func(a *model.Attempt) *model.Instant { return &a.CompleteBy }),", "momentCodec(model.AttemptCompleteByBit, func(a *model.Attempt) *model.Instant { return new(model.Instant) }),", nil},
	{"a failed undo is passed through", "nodeend.go",
		"n.Undo = model.UndoFailed\n\tn.Und.Blame(m)", "d.passed.push(i)\n\tn.Undo = model.UndoFailed\n\tn.Und.Blame(m)", nil},
	{"a checkpoint is lost", "answer.go",
		"n.Point, n.Blob = ev.Number, ev.Blob", "n.Point, n.Blob = ev.Number-1, ev.Blob", nil},
	{"a rerun does not get the checkpoint", "dispatch.go",
		"case (kind == model.CallDo || kind == model.CallLearn) && n.Marked():", "case kind == model.CallLearn && n.Marked():", nil},
	{"a definite failure takes away what a checkpoint says", "answer.go",
		"(a.Kind == model.CallDo || a.Kind == model.CallLearn) && !n.Marked()", "(a.Kind == model.CallDo || a.Kind == model.CallLearn) && n.Doubt > 0", nil},
	{"undo_first is ignored", "undo.go",
		"return step.OnRerun == dsl.RerunUndoFirst && step.Undo != nil && n.OwnEffect() != status.EffectNone", "return step == nil", nil},
	{"what was undone is done again under its key", "undo.go",
		"d.edit(i).Wipe(true)", "d.edit(i).Wipe(false)", nil},
	{"the undo before another attempt does not wait", "undo.go",
		"case n.MayWorkUntil > d.at:\n\t\td.caller().pause(i, n.MayWorkUntil)\n\tdefault:\n\t\tn.Clearing = true", "default:\n\t\tn.Clearing = true", nil},
	{"an undo in doubt is called once more", "undo.go",
		"twice := n.UndoDoubt > 0 && !undo.Idempotent", "twice := false", nil},
	{"silence goes unnoticed", "../internal/model/attempt.go",
		"return Earliest(a.CompleteBy, a.Silent)", "return a.CompleteBy", nil},
	{"a heartbeat is not heard", "answer.go",
		"d.caller().restartSilence(n, a)", "", nil},
	{"what is silent is taken for dead", "attempt.go",
		"n.MayWorkUntil = max(n.MayWorkUntil, a.CompleteBy.Add(grace))", "n.MayWorkUntil = max(n.MayWorkUntil, d.at.Add(grace))", nil},
	{"the agent's wish to be left alone is ignored", "answer.go",
		"t.Rest = max(t.Rest, d.at.Add(after))", "t.Rest = max(t.Rest, 0*d.at.Add(after))", nil},
	{"who asked in vain gets no answer", "verbs.go",
		"By: by, Ask: ask}", "By: by, Ask: 0 * ask}", nil},
	{"a late answer to an ended run is no evidence", "decide.go",
		"r.late = true", "", nil},
	{"nobody is told what to do", "../story/explain.go",
		"|| !x.accepted(ev) {", "|| x.accepted(ev) {", nil},
	{"calls that may not be interrupted are told to stop", "attempt.go",
		"!do.ReadOnly && !do.Cancellable {", "false && do.ReadOnly {", nil},
	{"deciding changes the state", "../internal/model/nodechange.go",
		"b.Attempts = append(b.one[:0], n.Attempts...)", "", nil},
	{"an output the run had is written as the answer's", "../internal/wire/template.go",
		"case model.NodeOutputBit:\n\t\treturn stepEndsKnown", "case model.NodeOutputBit:\n\t\treturn stepEnds", nil},
	{"a signal stays after a wait has taken it", "signal.go",
		"list, _ = s.without(inOrder", "_, _ = s.without(inOrder", nil},
	{"a wait does not look for early signals", "waits.go",
		"for _, s := range d.early() {", "for _, s := range d.early()[:0] {", nil},
	{"a repeated signal counts again", "signal.go",
		"return id != \"\" && s.ids[id]", "return false", nil},
	{"a timer does not ring", "../internal/model/nodeview.go",
		"n.Fwd.Act == Waiting && n.Fwd.Until != 0:", "false:", nil},
	{"steps that wait are not counted", "waits.go",
		"if e.now.Waits() {", "if false {", nil},
	{"a signal of the wrong type ends a wait", "waits.go",
		"s.Payload.JSON()); err != nil {", "s.Payload.JSON()); false && err != nil {", nil},
	{"a wait that has ended takes signals", "waits.go",
		"if !n.Waits() || ", "if ", nil},
	{"a signal is written without its id", "../internal/wire/event.go",
		"e.string(ev.ID)", "e.string(ev.ID[:0])", nil},
	{"on_timeout is ignored", "waits.go",
		"if !w.Continue {", "if w.Continue || n == nil {", nil},
	{"a refusal in a reply counts as done", "answer.go",
		"d.refusal(i, ev.Output, kind); refused {", "d.refusal(i, ev.Output, kind); false && refused {", nil},
	{"a loop forgets the effects of earlier iterations", "loop.go",
		"Past: n.OwnEffect() != status.EffectNone}", "Past: n.OwnEffect() > status.EffectDone}", nil},
	{"iterations share a key", "scope.go",
		"\"do\", int(n.Loop.Iteration), int(n.Gen))", "\"do\", 0*int(n.Loop.Iteration), int(n.Gen))", nil},
	{"an iteration begins as done", "loop.go",
		"n.Doubt, n.Done, n.Known, n.Output = 0, false, false, model.StoredValue{}", "n.Doubt, n.Known, n.Output = 0, false, model.StoredValue{}", nil},
	{"an iteration begins with the doubt of the one before", "loop.go",
		"n.Doubt, n.Done, n.Known, n.Output = 0, false, false, model.StoredValue{}", "n.Done, n.Known, n.Output = false, false, model.StoredValue{}", nil},
	{"an iteration begins with the checkpoint of the one before", "loop.go",
		"n.Point, n.Blob = 0, nil\n\tn.Fwd", "n.Fwd", nil},
	{"an iteration has no attempts of its own", "loop.go",
		"n.Fwd.Attempt, n.Fwd.Rounds, n.Fwd.Lookups = 0, 0, 0", "n.Fwd.Attempt++", nil},
	{"a loop goes on though until is true", "loop.go",
		"\tcase over:\n", "\tcase over:\n\t\td.plan(i)\n\t\treturn\n", nil},
	{"iterations beyond the limit", "loop.go",
		"int(n.Loop.Iteration)+1 < settings.MaxIterations:", "int(n.Loop.Iteration)+1 <= settings.MaxIterations:", nil},
	{"a value is collected twice", "loop.go",
		"n.Collected.Len() <= n.Loop.Iteration", "n != nil", nil},
	{"what comes after the turn is not collected", "undo.go",
		"loops(d).gatherLast(i)\n", "", nil},
	{"the interval of a loop is not slept", "loop.go",
		"until = d.at.Add(pause)", "until = d.at.Add(0 * pause)", nil},
	{"a loop is undone without the output of a call in doubt", "undo.go",
		"n.Known || n.Present() == status.EffectNone\n", "n.Known || n.Present() != status.EffectDone\n", nil},
	{"an iteration that was not done leaves the others", "settle.go",
		"if n.Loop.Past { // earlier", "if false { // earlier", nil},
	{"the journal forgets collected values", "../internal/wire/table.go",
		"known := int32(count - fresh)", "known := int32(0 * (count - fresh))", nil},
	{"a wait takes two signals in one record", "loop.go",
		"signals := step.Wait != nil && len(d.waits().early()) > 0", "signals := false", nil},
	{"groups get no early signals", "handover.go",
		"h.Signals = append(h.Signals, s.Number)\n\t\td.take", "d.take", nil},
	{"two groups that start together get the same signal", "handover.go",
		"\n\t\td.take(s.Number)", "", nil},
	{"a step behind a group keeps the signals that the group needs to end", "handover.go",
		"own = d.takers(behind)", "own = d.takers(nil)", nil},
	{"a signal for a group loses its id", "signal.go",
		"ID: e.ID, ", "", nil},
	{"a takeover sends the call for a group without its signals", "dispatch.go",
		"if kind == model.CallDo {\n\t\tinv.Signals", "if kind == model.CallDo && d.run.Owner == d.s.run.Owner {\n\t\tinv.Signals", nil},
	{"the signals of a former run go to the next run of a group", "handover.go",
		"if n.Handed.Absent { //", "if len(n.Handed.Signals) > 0 { //", nil},
	{"the signals of a group that has no run are lost", "signal.go",
		"case now.Handed.Absent:", "case false:", nil},
	{"a takeover forgets child runs", "verbs.go",
		"&& !d.caller().attach(i) {", "{", nil},
	{"a child run is not stopped after a takeover", "attempt.go",
		"if any && turned {", "if false && turned {", nil},
	{"the request to stop does not say that the run was cancelled without compensation", "attempt.go",
		"if r := &d.run; r.NoUndo {", "if r := &d.run; r.NoUndo && r.Owner < 0 {", nil},
	{"a child run has as little time as a call of an agent", "dispatch.go",
		"return childTimeout", "return defaultTimeout", nil},
	{"a retry starts the child run again that has failed", "verbs.go",
		"if newKey || d.step(n).Child != nil && n.OwnEffect() == status.EffectNone {", "if newKey {", nil},
	{"an ended child run is not undone", "../internal/model/run.go",
		"return r.State == status.RunSucceeded && r.Parent.Run != 0", "return r.State == status.RunFailed && r.Parent.Run != 0", nil},
	{"a child run that must begin no step begins", "forward.go",
		"if ev.Void {", "if ev.Void && ev.Until.IsZero() && d.wf == nil {", nil},
	{"a child run does not know until when its parent waits", "forward.go",
		"bounds(d).set(r.Deadline, model.ToInstant(ev.Until))", "bounds(d).set(r.Deadline, 0)", nil},
	{"the journal forgets the parent", "../internal/wire/table.go",
		"e.parent(r.Parent)", "e.parent(model.Parent{})", nil},
	{"a child run is undone under the key of the undo", "dispatch.go",
		"inv.ForwardKey, inv.IdempotencyKey = inv.IdempotencyKey, d.undoKey(n)", "inv.ForwardKey, inv.IdempotencyKey = d.undoKey(n), d.undoKey(n)", nil},
	{"the effects that a child run keeps are forgotten", "answer.go",
		"n.Kept |= fresh", "n.Kept |= 0 & fresh", nil},
	{"what a child run keeps by declaration is not counted", "../internal/model/kept.go",
		"\t\tr.Undeclared++\n", "", nil},
	{"an effect that a child run keeps is counted twice", "nodeend.go",
		"case how == model.UndoLeft && !n.Kept.Has(status.KeptLeft):", "case how == model.UndoLeft:", nil},
	{"a child run that has undone nothing counts as undone", "answer.go",
		"d.undoing().endUndo(i, model.UndoAfter(ev.Kept, model.UndoDone))", "d.undoing().endUndo(i, model.UndoDone)", nil},
	{"the journal forgets what a child run keeps", "../internal/wire/table.go",
		"e.uint(uint64(n.Kept))", "e.uint(0)", nil},
	{"a step that starts is written without its start", "../internal/wire/template.go",
		"n.Fwd.Began = at", "n.Fwd.Began = 0", nil},
	{"a loop keeps the arguments of its first call", "dispatch.go",
		"if !n.Given.V.IsNull() || !given.IsNull() {", "if n.Given.V.IsNull() {", nil},
	{"compensate sees no stored arguments", "scope.go",
		"Given: n.Given.V, ", "", nil},
	{"self.previous is lost if the input has the key", "dispatch.go",
		"self = *scope.Self //", "_ = *scope.Self //", nil},
	{"the journal forgets stored arguments", "../internal/wire/table.go",
		"n.Given = d.stored()\n", "_ = d.stored()\n", nil},
}

// T30: TestMutants plants the faults one by one and runs the random worlds against
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
			if all || k%20 == 1 {
				hunt(t, overlay, "^TestPromises$")
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
func hunt(t *testing.T, overlay, tests string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-overlay", overlay, "-run", tests, ".")
	cmd.Env = append(os.Environ(), "SIM_SEEDS=16000", "SIM_FROM=0", "SIM_SEED=", "SIM_BRIEF=1")
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		t.Error("the mutant survives")
	case !strings.Contains(string(out), "--- FAIL: Test"):
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
