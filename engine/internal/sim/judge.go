package sim

import (
	"context"
	"fmt"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
)

// landed checks a run after each commit: its row is what its journal says, and
// its bound is no later than what is due (I10, promise 13).
func (w *world) landed(ctx context.Context, run machine.RunID) {
	ctx = context.WithoutCancel(ctx)
	head, rows, err := w.store.Load(ctx, run)
	if err != nil {
		w.fault("load run %d: %v", run, err)
		return
	}
	_, state, _, err := engine.LoadRun(ctx, w.store, nil, engine.NewDefinitions(w.store, nil), run)
	if err != nil {
		w.fault("replay run %d: %v", run, err)
		return
	}
	if state.Records() > 0 && len(rows) > 0 && state.Status() != head.State {
		// Another engine may have appended between the two reads.
		if again, _, err := w.store.Load(ctx, run); err == nil && again.State == head.State && again.NextCheck.Equal(head.NextCheck) && again.Owner == head.Owner {
			w.fault("run %d: replay says %v, the row says %v (I10)", run, state.Status(), head.State)
		}
	}
	if due, ok := state.NextDue(); ok && !head.State.Final() && head.NextCheck.After(due) {
		if again, now, err := w.store.Load(ctx, run); err == nil && len(now) == len(rows) && again.NextCheck.Equal(head.NextCheck) {
			w.fault("run %d: bound %v is later than what is due at %v (promise 13)", run, head.NextCheck, due)
		}
	}
}

// judge compares what every run says of itself with the ledger of the far side.
func (w *world) judge(ctx context.Context, accepted map[string]machine.RunID) {
	for name, run := range accepted {
		defs := engine.NewDefinitions(w.store, nil)
		wf, state, records, err := engine.LoadRun(ctx, w.store, nil, defs, run)
		if err != nil {
			w.fault("%s: an accepted run is lost: %v (I1)", name, err)
			continue
		}
		w.tell(name, wf, records)
		status := state.Status()
		if !status.Final() && !status.NeedsHuman() {
			w.fault("%s is %v after everything healed: stuck (I8)", name, status)
		}
		w.judgeCalls(name, wf, records)
		for _, e := range w.remote.keys {
			if e.run == name {
				w.judgeEffect(name, status, e, state, wf)
			}
		}
		if status == machine.RunCompensated {
			w.judgeOrder(name)
		}
	}
}

// tell writes a run's story into the journal.
func (w *world) tell(name string, wf *dsl.Workflow, records []machine.Record) {
	state := machine.NewState()
	for _, rec := range records {
		for _, f := range rec.Facts(wf, state) {
			w.journal = append(w.journal, fmt.Sprintf("%s %s: %s %s #%d undo=%t %s %s %s", f.At.Format("04:05.000"), name, f.Kind, f.Step, f.Attempt, f.Undo, f.Status, f.Code, f.Message))
		}
		state.Apply(rec)
	}
}

// judgeCalls checks that no call was made that the journal does not know (I4).
func (w *world) judgeCalls(name string, wf *dsl.Workflow, records []machine.Record) {
	started := map[string]int{}
	state := machine.NewState()
	for _, rec := range records {
		for _, f := range rec.Facts(wf, state) {
			if f.Kind == machine.FactAttemptStarted {
				started[f.Step]++
			}
		}
		state.Apply(rec)
	}
	for i := range state.NodeCount() {
		step := state.Node(wf, i).Name
		if sent := w.sent[name+" "+step]; sent > started[step] {
			w.fault("%s: %s was called %d times, the journal knows %d (I4)", name, step, sent, started[step])
		}
	}
}

// judgeEffect checks one key of the ledger against the run's end.
func (w *world) judgeEffect(name string, status machine.RunState, e *effect, state *machine.State, wf *dsl.Workflow) {
	i, ok := state.FindNode(wf, e.name)
	if !ok {
		w.fault("%s: the far side knows a step %s that the run does not have", name, e.name)
		return
	}
	view := state.Node(wf, i)
	if e.applied > 1 {
		w.fault("%s: %s took effect %d times (I4)", name, e.name, e.applied)
	}
	standing := e.applied > 0 && e.undone == 0
	switch status {
	case machine.RunSucceeded:
		if e.applied > 0 && e.undone > 0 {
			w.fault("%s succeeded, but %s was undone (I5)", name, e.name)
		}
		if view.Forward == machine.StepSucceeded && view.Action != "" && e.applied == 0 && e.calls > 0 && !isUndoKey(e) {
			w.fault("%s succeeded, but %s took no effect (I5)", name, e.name)
		}
	case machine.RunCompensated, machine.RunFailed, machine.RunCancelled:
		if standing && !w.keeps(e.name) {
			w.fault("%s is %v, but the effect of %s stands (I6)", name, status, e.name)
		}
	}
}

// isUndoKey reports whether the key is that of an undo or a lookup, which have
// no effect of their own.
func isUndoKey(e *effect) bool { return e.when == 0 && e.undone == 0 }

// keeps reports whether nothing undoes the step, by declaration.
func (w *world) keeps(step string) bool {
	for _, s := range w.plan.steps {
		if s.none && (s.name == step || len(step) > len(s.name) && step[:len(s.name)+1] == s.name+"[") {
			return true
		}
	}
	return false
}

// judgeOrder checks that what was done after something else was undone before
// it, where the graph orders the two (I6).
func (w *world) judgeOrder(name string) {
	effects := map[string]*effect{}
	for _, e := range w.remote.keys {
		if e.run == name && e.applied > 0 && e.undone > 0 {
			effects[e.name] = e
		}
	}
	for _, s := range w.plan.steps {
		for _, j := range s.after {
			for _, later := range names(s) {
				for _, earlier := range names(w.plan.steps[j]) {
					a, b := effects[earlier], effects[later]
					if a != nil && b != nil && a.undone < b.undone {
						w.fault("%s: %s was undone before %s, which depends on it (I6)", name, earlier, later)
					}
				}
			}
		}
	}
}

// names returns the names of a step's nodes as agents see them.
func names(s planStep) []string {
	if s.keys == nil {
		return []string{s.name}
	}
	var all []string
	for _, k := range s.keys {
		all = append(all, fmt.Sprintf("%s[%q]", s.name, k))
	}
	return all
}
