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

// PagesAhead is how many pages of runs are taken over at the same time. While one page
// waits for its commit, the next one is folded and another one is read.
const PagesAhead = 4

// A HandKeeper keeps the store's list of the runs that this membership has in hand, which
// means that it reads or decides them (store.Hands). If an engine dies, the list shows
// which runs may have caused it. Several goroutines may hold runs at the same time. Changes
// that are requested during a write go into the next write.
type HandKeeper struct {
	n      *Shared
	engine store.EngineID
	ctx    context.Context // ends with the membership; only its Done and cause are used
	hint   chan struct{}

	// A suspect is a run that may have ended an engine. It is taken over while no other
	// takeover is running: if an engine dies then, it is clear which run was the cause.
	// Other runs are taken over together.
	turn  chan struct{} // holds a value while a takeover waits for its seats
	seats chan struct{} // holds one value for each taken seat: a takeover takes one, that of a suspect all

	mu      sync.Mutex           // protects following fields
	runs    map[status.RunID]int // for each run in hand, how many goroutines hold it
	wanted  uint64               // number of the latest change; every change raises it
	written uint64               // number of the latest change that the store has recorded
	waiting []handWait
}

// A handWait belongs to a goroutine that waits until the store has recorded a change.
type handWait struct {
	change uint64
	done   chan struct{} // closed once the store has recorded the change
}

// newHandKeeper returns a HandKeeper without runs. ctx must end with the membership.
func newHandKeeper(n *Shared, en store.EngineID, ctx context.Context) *HandKeeper {
	return &HandKeeper{
		n: n, engine: en, ctx: ctx, hint: make(chan struct{}, 1), runs: map[status.RunID]int{},
		turn: make(chan struct{}, 1), seats: make(chan struct{}, 2*PagesAhead),
	}
}

// Together begins a takeover that may run at the same time as others. It waits until no
// takeover of a suspect is running. A suspect is a run that may have ended an engine. The
// caller must call leave at the end of the takeover. If ctx ends before the takeover can
// begin, Together returns the error of ctx.
func (k *HandKeeper) Together(ctx context.Context) (leave func(), err error) {
	return k.enter(ctx, 1)
}

// Alone begins the takeover of a suspect, a run that may have ended an engine. It waits
// until no other takeover is running. No other takeover begins before the caller calls
// leave. If ctx ends before the takeover can begin, Alone returns the error of ctx.
func (k *HandKeeper) Alone(ctx context.Context) (leave func(), err error) {
	return k.enter(ctx, cap(k.seats))
}

// enter waits until no other goroutine is taking seats. Then it takes the given number of
// seats, one by one, as they become free. leave frees them again.
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

// Hold takes runs in hand. It returns once the store has recorded that. The caller must
// call LetGo, even after an error.
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

// LetGo takes back one call of Hold. A run is in hand until LetGo was called as often as
// Hold; then the next write removes it from the store's list. After the end of the
// membership LetGo does nothing, because one of these runs may have caused that end.
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

// Run writes the list of runs in hand to the store after each change, until ctx ends. It
// returns ErrFenced if this engine was declared dead.
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

// told is called after the store has recorded a change and all earlier ones. It wakes the
// goroutines that wait for one of these changes.
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

// letGoOf calls LetGo for a run if the run's shard has it in hand.
func (k *HandKeeper) letGoOf(r *ownedRun) {
	if r.inHand {
		r.inHand = false
		k.LetGo(r.id)
	}
}
