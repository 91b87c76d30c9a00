package machine

import (
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/moving"
)

// Kept says what remains of the effects of a child run that has ended. The engine answers the calls
// for child runs, and sends a Kept with its answer: without it, the run of the parent would not know
// which effects nobody can undo any more.
type Kept = model.Kept

// KeptBy returns what remains of the effects of a run that has ended. The effects that the run can
// still undo for its parent do not count.
func KeptBy(s *State) Kept {
	r, kept := s.Run(), Kept(0)
	if r.Left > 0 {
		kept |= model.KeptLeft
	}
	if r.Undeclared > 0 {
		kept |= model.KeptDeclared
	}
	if kept != 0 && moving.InDoubt(s.Nodes(), r.State == status.RunSucceeded) {
		kept |= model.KeptInDoubt
	}
	if r.Passed && r.State != status.RunSucceeded {
		kept |= model.KeptPivot
	}
	if kept != 0 && r.Undone > 0 {
		kept |= model.KeptUndone
	}
	return kept
}

// KeptOf returns the field Kept of an answer; 0 = the event has none.
func KeptOf(e Event) Kept {
	switch ev := e.(type) {
	case AttemptOK:
		return ev.Kept
	case AttemptFailed:
		return ev.Kept
	}
	return 0
}

// WithKept returns a copy of an answer with the given field Kept. It returns every other event
// unchanged: a call for a child run has no other answers.
func WithKept(e Event, kept Kept) Event {
	switch ev := e.(type) {
	case AttemptOK:
		ev.Kept = kept
		return ev
	case AttemptFailed:
		ev.Kept = kept
		return ev
	}
	return e
}

// keep records in node i what remains of the effects of a child run of this node. It counts the node
// as one effect that a person left, and as one that stays by declaration. The same child run may
// answer twice, for the call that started it and for its undo, so each element counts only once.
func (d answers) keep(i int, kept Kept) {
	if fresh := kept.OfNode() &^ d.get(i).Kept; fresh != 0 {
		n := d.edit(i)
		n.Kept |= fresh
		d.countKept(fresh)
	}
	if kept.Has(model.KeptPivot) && i == d.wf.Pivot && d.run.Phase == model.PhaseForward {
		d.pivotKept()
	}
}

// countKept counts a node whose child runs keep effects.
func (d *decider) countKept(fresh Kept) {
	if fresh.Has(model.KeptLeft) {
		d.run.Left++
	}
	if fresh.Has(model.KeptDeclared) {
		d.run.Undeclared++
	}
}

// pivotKept is called when the child run of the pivot has failed after its own pivot. The effect of
// the pivot stays, so the run is not undone any more. If the run was cancelled without compensation,
// it still ends.
func (d answers) pivotKept() {
	if d.run.Turning && d.run.NoUndo {
		d.run.Passed = true
		return
	}
	d.undoing().pivotPassed()
}
