package owner

import (
	"context"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// nextFlow returns the workflow to which an event moves a run (engine migrate). It returns nil for
// every other event. It returns nil, too, if this engine cannot read the definition: then the
// decision refuses the event.
func nextFlow(ctx context.Context, n *Shared, e machine.Event) (*dsl.Workflow, error) {
	ev, ok := e.(machine.Migrated)
	if !ok {
		return nil, nil
	}
	wf, err := n.Defs.Workflow(ctx, store.WorkflowID(ev.Workflow))
	if err != nil && journal.Permanent(err) {
		n.cfg.Logger.Error("the new definition of a run cannot be read", "workflow", ev.Workflow, "digest", ev.Digest, "error", err)
		return nil, nil
	}
	return wf, err
}

// reload reads a run again after it was moved to another definition. This brings the agents of that
// definition. The row that moved the run has started no call, so the first event after the reload
// lets the steps start.
func reload(ctx context.Context, sh *shard, r *ownedRun) {
	r.phase, r.specs, r.moved = phaseLoading, nil, true
	r.pending = append(r.pending, begun(sh.s.n.Clock.Now()))
	sh.s.Timers.set(r.id, time.Time{}, false)
	sh.s.n.Followers.Tell(r.id)
	sh.load(ctx, r)
}

// giveUp commits a row that removes the owner of a run, so that another engine can claim the run: at
// once, or when it is due or a person sends a verb.
func giveUp(ctx context.Context, sh *shard, r *ownedRun) {
	n := sh.s.n
	at := n.Clock.Now()
	if last := r.state.Last(); at.Before(last) {
		at = last
	}
	data, _, err := journal.EncodeRow(n.cfg.Sealer, &sh.decide.rows, r.link, r.id, r.seq, at, nil)
	if err != nil {
		n.cfg.Logger.Error("hand a run back", "run", r.name(), "error", err)
		return
	}
	nobody, check := store.EngineID(0), at // any engine may continue the run at once
	switch due, ok := r.state.NextDue(); {
	case ok && (due.Before(at) || !Moves(r.state.Status())):
		check = due // next_check must never be later than the due time
	case !ok && !Moves(r.state.Status()):
		check = store.Never // the run waits for a person
	}
	t := store.Transition{Run: r.id, Seq: r.seq, At: at, Owner: &nobody, NextCheck: check.Truncate(time.Microsecond), Data: data}
	r.phase = phaseLoading // nothing is decided until the store has answered
	sh.s.Timers.set(r.id, time.Time{}, false)
	// If this membership ends before the store answers, the run becomes free without this row.
	sh.out.commitRow(ctx, t, func(l commit.Landing) {
		if l.Err != nil {
			// Another engine wrote a row with this number, or this membership is over. The
			// journal shows which.
			sh.load(ctx, r)
			return
		}
		sh.drop(r, call.ErrNotOwner, nil)
	})
}
