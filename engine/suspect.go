package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/machine"
)

// MaxDeaths is how many engines may end with a run in hand. Then no engine touches
// the run until a person says how it goes on.
const MaxDeaths = 3

// Hands keeps which runs engines have in hand: those that an engine is about to
// read or to decide, and of which it cannot be sure that it outlives that. It is
// written before the run is touched. Without it the next engine could not know why
// the last one ended, and would end the same way.
type Hands interface {
	// Hold replaces the list of runs that an engine has in hand. Returns ErrFenced
	// if the engine was declared dead.
	Hold(ctx context.Context, engine EngineID, runs []machine.RunID) error
	// Suspects returns what is known against the given runs. Runs against which
	// nothing is known, and that no other engine than self has in hand, are missing.
	Suspects(ctx context.Context, self EngineID, runs []machine.RunID) (map[machine.RunID]Suspicion, error)
	// Absolve forgets what is known against runs: they got on, or a person has said
	// how they go on. It is harmless for any run.
	Absolve(ctx context.Context, runs ...machine.RunID) error
}

// A Suspicion is what is known against a run.
type Suspicion struct {
	Deaths int // engines that had it in hand when they were declared dead (Fence)
	// Held: another engine that was not declared dead has it in hand. It may be
	// about to take the run over, or have died of it a moment ago.
	Held bool
}

// lostWhy says for people why a run is parked with which engines died.
func lostWhy(deaths int) string {
	return fmt.Sprintf("%d engines ended one after the other while they had this run in hand: look at their logs for what ended them", deaths)
}

// park parks a run with which too many engines died, without reading what its
// journal says: the number of its rows and the time of the last one are all that is
// needed.
func (t *term) park(ctx context.Context, run machine.RunID, deaths int, how taking) error {
	head, rows, err := t.n.cfg.Store.Load(ctx, run)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("park run %s: %w", RunName(run), err)
	case head.State.Final() || !how.from(head) || len(rows) == 0:
		return nil
	}
	before, err := linkOf(t.n.cfg.Sealer, head, rows)
	var broken *RunError
	if errors.As(err, &broken) {
		t.n.leaveAlone(run, broken)
		return nil
	}
	at := t.n.clock.now()
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
		return fmt.Errorf("park run %s: %w", RunName(run), context.Cause(t.ctx))
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case errors.Is(err, ErrStale):
		return nil // another engine was faster
	case err != nil:
		return fmt.Errorf("park run %s: %w", RunName(run), err)
	}
	return nil
}

// parkLost commits the row that parks a run, and makes this engine its owner. done
// is told what became of it.
func (sh *shard) parkLost(ctx context.Context, head Head, seq int32, before link, at time.Time, event machine.EngineLost, done func(error)) {
	n := sh.s.n
	if sh.runs[head.Run] != nil { // it is being worked on here
		done(nil)
		return
	}
	rec := machine.Lost(at, event, head.State)
	t := Transition{Run: head.Run, Seq: seq, At: at, Owner: &sh.s.engine, NextCheck: Never}
	t.add(rec, machine.NewState())
	data, _, err := encodeRow(n.cfg.Sealer, &sh.scratch, before, head.Run, seq, at, []machine.Record{rec})
	if err != nil {
		done(err)
		return
	}
	t.Data = data
	sh.flights++
	failpoint.HitEvent("record.before", event)
	err = sh.s.committer.commit(ctx, &commit{t: t, sh: sh, done: func(l landing) {
		sh.flights--
		if l.err == nil {
			failpoint.HitEvent("record.after", event)
			n.cfg.Logger.Error("run is parked: engines ended with it in hand", "run", head.Name, "code", machine.CodeEngineLost, "deaths", event.Deaths, "message", event.Why)
			n.troubles.gone(head.Run)
			n.followers.tell(head.Run)
		}
		done(l.err)
	}})
	if err != nil { // this incarnation ends
		sh.flights--
		done(err)
	}
}
