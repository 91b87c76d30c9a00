package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// lostWhy says for people why a run is parked with which engines died.
func lostWhy(deaths int) string {
	return fmt.Sprintf("%d engines ended one after the other while they had this run in hand: look at their logs for what ended them", deaths)
}

// park parks a run with which too many engines died, without reading what its
// journal says: the number of its rows and the time of the last one are all that is
// needed.
func (t *membership) park(ctx context.Context, run machine.RunID, deaths int, how takeoverScope) error {
	head, rows, err := t.n.cfg.Store.Load(ctx, run)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("park run %s: %w", store.RunName(run), err)
	case head.State.Final() || !how.from(head) || len(rows) == 0:
		return nil
	}
	before, err := journal.LinkOf(t.n.cfg.Sealer, head, rows)
	var broken *journal.RunError
	if errors.As(err, &broken) {
		t.n.backOff(run, broken)
		return nil
	}
	at := t.n.clock.Now()
	if last := rows[len(rows)-1].At; at.Before(last) {
		at = last
	}
	event := machine.EngineLost{Deaths: deaths, Why: lostWhy(deaths)}
	answer := make(chan error, 1)
	sh := t.scheduler.shard(run)
	taken := sh.give(task{run: run, fn: func(ctx context.Context) {
		sh.parkLost(ctx, head, int32(len(rows)), before, at, event, func(err error) { answer <- err })
	}})
	if !taken {
		return ErrNotOwner
	}
	select {
	case err = <-answer:
	case <-t.ctx.Done():
		return fmt.Errorf("park run %s: %w", store.RunName(run), context.Cause(t.ctx))
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case errors.Is(err, store.ErrStale):
		return nil // another engine was faster
	case err != nil:
		return fmt.Errorf("park run %s: %w", store.RunName(run), err)
	}
	return nil
}

// parkLost commits the row that parks a run, and makes this engine its owner. done
// is told what became of it.
func (sh *shard) parkLost(ctx context.Context, head store.Head, seq int32, before journal.Link, at time.Time, event machine.EngineLost, done func(error)) {
	n := sh.s.n
	if sh.runs[head.Run] != nil { // it is being worked on here
		done(nil)
		return
	}
	rec := machine.Lost(at, event, head.State)
	t := store.Transition{Run: head.Run, Seq: seq, At: at, Owner: &sh.s.engine, NextCheck: store.Never}
	addRecord(&t, rec, machine.NewState())
	data, _, err := journal.EncodeRow(n.cfg.Sealer, &sh.scratch, before, head.Run, seq, at, []machine.Record{rec})
	if err != nil {
		done(err)
		return
	}
	t.Data = data
	failpoint.HitEvent("record.before", event)
	ok := sh.commitRow(ctx, t, func(l commit.Landing) {
		if l.Err == nil {
			failpoint.HitEvent("record.after", event)
			n.cfg.Logger.Error("run is parked: engines ended with it in hand", "run", head.Name, "code", machine.CodeEngineLost, "deaths", event.Deaths, "message", event.Why)
			n.quarantined.gone(head.Run)
			n.followers.tell(head.Run)
		}
		done(l.Err)
	})
	if !ok { // this incarnation ends
		done(ErrNotOwner)
	}
}
