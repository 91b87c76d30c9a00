package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
)

// judge compares what every run says of itself with the ledger of the far side.
func (w *world) judge(ctx context.Context, accepted map[string]machine.RunID) {
	defs := engine.NewDefinitions(w.store, nil)
	for _, name := range slices.Sorted(maps.Keys(accepted)) {
		run := accepted[name]
		wf, state, records, err := engine.LoadRun(ctx, w.store, nil, defs, run)
		if err != nil {
			w.fault("%s: an accepted run is lost: %v (I1)", name, err)
			continue
		}
		status := state.Status()
		if !status.Final() && !status.NeedsHuman() {
			w.fault("%s is %v after everything healed: stuck (I8)", name, status)
		}
		w.judgeStory(name, run, state, len(records))
		for _, key := range slices.Sorted(maps.Keys(w.remote.keys)) {
			if e := w.remote.keys[key]; e.run == name {
				w.judgeEffect(name, status, e, state, wf)
			}
		}
		if status == machine.RunCompensated {
			w.judgeOrder(name)
		}
	}
}

// judgeStory checks that the journal, read again from its beginning, says what
// its rows said as they landed (I10).
func (w *world) judgeStory(name string, run machine.RunID, state *machine.State, records int) {
	s := w.stories[run]
	switch {
	case s == nil:
		w.fault("%s: no row of it has landed, and yet it is there (I1)", name)
	case s.state.Status() != state.Status() || len(s.records) != records:
		w.fault("%s: %d records say %v, but %d said %v as they landed (I10)", name, records, state.Status(), len(s.records), s.state.Status())
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
