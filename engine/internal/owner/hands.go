package owner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// PagesAhead is how many pages of runs are taken over at once: while one waits
// for its commit, the next is folded and another is read.
const PagesAhead = 4

// A HandKeeper keeps the store's list of what this membership has in hand (store.Hands).
// Many may hold runs at once: what they ask for while a write is on its way goes
// with the next one.
type HandKeeper struct {
	n      *Shared
	engine store.EngineID
	ctx    context.Context // ends with the membership; only its Done and cause are used
	hint   chan struct{}

	// Runs against which nothing is known are taken over together, and suspects one
	// by one while nothing else is: only so is it clear what an engine died of.
	turn  chan struct{} // full = a takeover takes seats
	seats chan struct{} // full = no other takeover is under way

	mu      sync.Mutex           // protects following fields
	runs    map[status.RunID]int // in hand: how many hold each
	wanted  uint64               // raised by every change
	written uint64               // the change that the store knows of
	waiting []handWait
}

// A handWait waits until the store knows of a change.
type handWait struct {
	change uint64
	done   chan struct{}
}

// newHandKeeper returns a keeper with nothing in hand. ctx ends with the membership.
func newHandKeeper(n *Shared, en store.EngineID, ctx context.Context) *HandKeeper {
	return &HandKeeper{
		n: n, engine: en, ctx: ctx, hint: make(chan struct{}, 1), runs: map[status.RunID]int{},
		turn: make(chan struct{}, 1), seats: make(chan struct{}, 2*PagesAhead),
	}
}

// Together waits until no suspect is taken over. Then it begins a takeover; others may run
// at the same time. leave ends it. Returns ctx's error.
func (k *HandKeeper) Together(ctx context.Context) (leave func(), err error) {
	return k.enter(ctx, 1)
}

// Alone waits until no takeover is under way. Then it begins one; no other runs at the same
// time.
func (k *HandKeeper) Alone(ctx context.Context) (leave func(), err error) {
	return k.enter(ctx, cap(k.seats))
}

// enter waits for its turn, and then takes seats one after the other.
func (k *HandKeeper) enter(ctx context.Context, seats int) (leave func(), err error) {
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-k.turn }()
	taken := 0
	leave = func() {
		for range taken {
			<-k.seats
		}
	}
	for range seats {
		select {
		case k.seats <- struct{}{}:
			taken++
		case <-ctx.Done():
			leave()
			return nil, ctx.Err()
		}
	}
	return leave, nil
}

// Hold takes runs in hand and returns once the store knows. The caller calls letGo,
// also after an error.
func (k *HandKeeper) Hold(ctx context.Context, runs ...status.RunID) error {
	k.mu.Lock()
	for _, run := range runs {
		k.runs[run]++
	}
	k.wanted++
	w := handWait{k.wanted, make(chan struct{})}
	k.waiting = append(k.waiting, w)
	k.mu.Unlock()
	wait.Wake(k.hint)
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-k.ctx.Done():
		return fmt.Errorf("take runs in hand: %w", context.Cause(k.ctx))
	}
}

// LetGo takes runs out of the hand. The store learns it with the next write. It does
// nothing once the membership is over: what ended it may be what it had in hand.
func (k *HandKeeper) LetGo(runs ...status.RunID) {
	if k.ctx.Err() != nil {
		return
	}
	k.mu.Lock()
	changed := false
	for _, run := range runs {
		if k.runs[run]--; k.runs[run] <= 0 {
			delete(k.runs, run)
			changed = true
		}
	}
	if changed {
		k.wanted++
	}
	k.mu.Unlock()
	if changed {
		wait.Wake(k.hint)
	}
}

const doingHands = "note which runs are in hand"

// Run writes what changes until ctx ends. Returns ErrFenced if this engine was
// declared dead.
func (k *HandKeeper) Run(ctx context.Context) error {
	pause := 20 * time.Millisecond
	for {
		select {
		case <-k.hint:
		case <-ctx.Done():
			return ctx.Err()
		}
		k.mu.Lock()
		change, runs := k.wanted, slices.Sorted(maps.Keys(k.runs))
		k.mu.Unlock()
		if change == k.written {
			continue
		}
		err := k.n.cfg.Store.Hold(ctx, k.engine, runs)
		switch {
		case errors.Is(err, store.ErrFenced):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			k.n.Outage.Failed(doingHands, err)
			if err := wait.For(ctx, pause); err != nil {
				return err
			}
			pause = min(2*pause, k.n.cfg.Options.RetryStore)
			wait.Wake(k.hint)
			continue
		}
		k.n.Outage.Worked(doingHands, time.Time{})
		pause = 20 * time.Millisecond
		k.told(change)
	}
}

// told releases those who waited for a change that the store knows of now.
func (k *HandKeeper) told(change uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.written = change
	k.waiting = slices.DeleteFunc(k.waiting, func(w handWait) bool {
		if w.change > change {
			return false
		}
		close(w.done)
		return true
	})
}

// letGoOf takes a run out of the hand, if its shard has taken it there.
func (k *HandKeeper) letGoOf(r *ownedRun) {
	if r.inHand {
		r.inHand = false
		k.LetGo(r.id)
	}
}
