package owner

import (
	"context"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// reopens reports whether the event makes a run that has ended turn back.
func reopens(state *machine.State, e machine.Event) bool {
	_, undo := e.(machine.UndoRequested)
	return undo && state.Undoable()
}

// reopen reads a run that has ended, because a message asks for its undo. Then the messages of the
// run are decided. If no living engine owns the run, this engine takes it over first.
func (sh *shard) reopen(ctx context.Context, id status.RunID) {
	r := sh.runs[id]
	if r == nil {
		r = &ownedRun{id: id, phase: phaseLoading, reopening: true}
		sh.runs[id] = r
		sh.load(ctx, r)
	}
}

// reopened continues a run that the method reopen has read, and that was owned by the engine in
// the parameter owner when it ended.
func (sh *shard) reopened(ctx context.Context, r *ownedRun, owner store.EngineID) {
	r.reopening = false
	if r.owned {
		r.inbox.wanted = true
		sh.readInbox(ctx, r)
		return
	}
	a := Adoption{From: owner, Done: func(error) {}}
	r.adopts = append(r.adopts, a)
	sh.takeOver(ctx, r, a)
}
