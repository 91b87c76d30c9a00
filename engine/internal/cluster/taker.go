package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A takeoverScope says which runs a takeover may take.
type takeoverScope struct {
	// The function in the field `from` gets the Head of a run, and reports whether the run may be
	// taken over.
	from func(h store.Head) bool
	// passed is true if the owners of the runs are alive, but the runs are overdue.
	passed bool
	// owned is true if the takeover must leave out runs without an owner.
	owned bool
	// due is true if the takeover takes only runs that are due or have a message.
	due bool
	// woken is the number that backoffSet.Woken returned before the runs were read. If Woken
	// returns a higher number later, a run was woken in the meantime. The method `takeTogether`
	// sets this field.
	woken uint64
}

// A taker takes runs over for one membership.
type taker struct {
	n         *Local
	engine    store.EngineID
	runs      *owner.Scheduler
	unstaffed *unstaffed
	ctx       context.Context // ends with the membership; used only to notice the end and its reason

	mu sync.Mutex // protects the fields below
	// others holds the runs that this engine leaves to other engines, which have these runs in
	// hand. The value is the time at which this engine first left the run, by this process's clock.
	others map[status.RunID]time.Time
	again  bool // this engine has left a run to another engine, so the next scan must come soon
}

// leaves reports whether this engine leaves a run to another engine that has the run in hand. It
// returns true until Lease plus MaxScan have passed since `leaves` was first called for the run.
// The next call after that time returns false: by then, the other engine has taken the run over,
// was declared dead, or is stuck. This call also forgets the run, so the time starts again with a
// later call.
func (t *taker) leaves(run status.RunID) bool {
	o := t.n.cfg.Options
	t.mu.Lock()
	defer t.mu.Unlock()
	since, known := t.others[run]
	switch {
	case !known:
		if t.others == nil || len(t.others) >= owner.MaxLeft {
			t.others = map[status.RunID]time.Time{}
		}
		t.others[run] = time.Now()
	case time.Since(since) > o.Lease+o.MaxScan:
		delete(t.others, run)
		return false
	}
	t.again = true
	return true
}

// scansAgain reports whether this engine has left a run to another engine since the last
// call of scansAgain. If so, another scan should follow soon.
func (t *taker) scansAgain() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	again := t.again
	t.again = false
	return again
}

// lostWhy returns the text that says why a run is parked after engines died with it in hand.
func lostWhy(deaths int) string {
	return fmt.Sprintf("%d engines ended one after the other while they had this run in hand: look at their logs for what ended them", deaths)
}

// park parks a run after too many engines died with the run in hand. It does not decode the
// records of the run, because decoding them may have ended these engines. If there is
// nothing to park, or if the run is damaged and cannot be parked, park also returns nil.
func (t *taker) park(ctx context.Context, run status.RunID, deaths int, how takeoverScope) error {
	head, rows, err := store.LoadRun(ctx, t.n.cfg.Store, run)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("park run %s: %w", naming.RunName(run), err)
	case head.State.Final() || !how.from(head) || len(rows) == 0:
		return nil
	}
	before, err := journal.LinkOf(t.n.cfg.Sealer, head, rows)
	var broken *journal.RunError
	if errors.As(err, &broken) {
		t.n.backOff(run, broken)
		return nil
	}
	at := t.n.shared.Clock.Now()
	if last := rows[len(rows)-1].At; at.Before(last) {
		at = last
	}
	event := machine.EngineLost{Deaths: deaths, Why: lostWhy(deaths)}
	answer := make(chan error, 1)
	lost := owner.LostRun{Head: head, Seq: int32(len(rows)), Before: before, At: at, Event: event}
	if !t.runs.ParkLost(lost, func(err error) { answer <- err }) {
		return call.ErrNotOwner
	}
	select {
	case err = <-answer:
	case <-t.ctx.Done():
		return fmt.Errorf("park run %s: %w", naming.RunName(run), context.Cause(t.ctx))
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case errors.Is(err, store.ErrStale):
		return nil // another engine was faster
	case err != nil:
		return fmt.Errorf("park run %s: %w", naming.RunName(run), err)
	}
	return nil
}

// hasMemory reports whether this engine has memory for more runs (Options.MaxRunMemory). If it has
// no more memory, this engine takes over no more runs, and other engines can take them over. When
// the result of hasMemory changes, hasMemory logs this.
func (t *taker) hasMemory() bool {
	n, memory := t.n, t.runs.Memory()
	full := memory >= n.cfg.Options.MaxRunMemory
	if n.full.Swap(full) != full {
		if full {
			n.cfg.Logger.Warn("the runs in memory use all allowed memory; the engine takes over no more runs", "bytes", memory, "ceiling", n.cfg.Options.MaxRunMemory)
		} else {
			n.cfg.Logger.Info("there is memory for more runs again", "bytes", memory, "ceiling", n.cfg.Options.MaxRunMemory)
		}
	}
	return !full
}

// fits returns how many more runs fit into the allowed memory, at least 1. It assumes that
// these runs have the average size of the present runs.
func (t *taker) fits() int {
	memory, runs := t.runs.Memory(), int64(t.runs.Size())
	if memory <= 0 || runs <= 0 {
		return math.MaxInt32
	}
	left := t.n.cfg.Options.MaxRunMemory - memory
	return int(min(max(1, left*runs/memory), math.MaxInt32))
}
