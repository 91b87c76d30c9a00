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

// PagesAhead is the largest number of full pages that one scan takes over at the same time. The
// last page of the scan does not count. A page is a list of runs that the store returned for one
// query. While one page waits for its commit, the engine computes the states of the next page and
// reads another page.
const PagesAhead = 4

// A HandKeeper writes the store's list of the runs that this membership has in hand. A run is in
// hand while the engine reads or decides it (store.Hands). If the engine dies, the list shows
// which runs may have crashed it. Several goroutines may hold runs at the same time. Changes that
// are requested during a write go into the next write.
type HandKeeper struct {
	n      *Shared
	engine store.EngineID
	ctx    context.Context // ends with the membership; used only to notice the end and its reason
	hint   chan struct{}   // channel of capacity 1; it receives a value when the list has changed

	// A suspect is a run that may have crashed an engine: according to the store, an engine died
	// with the run in hand, or another engine has it in hand. The engine takes over a suspect only
	// while no other takeover is running: if the engine dies then, it is clear which run was the
	// cause. All other takeovers may run at the same time. So the takeover of a suspect fills the
	// whole channel `reservations`, and every other takeover puts only one value into it.
	turn         chan struct{} // holds a value while a goroutine fills the channel `reservations`
	reservations chan struct{} // one value for each running takeover; full during the takeover of a suspect

	mu      sync.Mutex           // protects the fields below
	runs    map[status.RunID]int // for each run in hand, how many goroutines hold it
	wanted  uint64               // number of the latest change; every change raises it
	written uint64               // number of the latest change that the store has recorded
	waiting []handWait           // one entry for each goroutine that waits in the method PutInHand
}

// A handWait belongs to a goroutine that waits until the store has recorded a change.
type handWait struct {
	change uint64
	done   chan struct{} // closed once the store has recorded the change
}

// newHandKeeper returns a HandKeeper with no run in hand. ctx must end with the membership.
func newHandKeeper(n *Shared, en store.EngineID, ctx context.Context) *HandKeeper {
	return &HandKeeper{
		n: n, engine: en, ctx: ctx, hint: make(chan struct{}, 1), runs: map[status.RunID]int{},
		turn: make(chan struct{}, 1), reservations: make(chan struct{}, 2*PagesAhead),
	}
}

// Enter begins a takeover that may run at the same time as others. It waits until no takeover of a
// suspect is running, and fewer than two times PagesAhead other takeovers are running. A suspect is
// a run that may have crashed an engine. The caller must call leave at the end of the takeover. If
// ctx ends before the takeover can begin, Enter returns the error of ctx.
func (k *HandKeeper) Enter(ctx context.Context) (leave func(), err error) {
	return k.enter(ctx, 1)
}

// EnterSuspect begins the takeover of a suspect, a run that may have crashed an engine. It waits
// until no other takeover is running. No other takeover begins before the caller calls leave. If
// ctx ends before the takeover can begin, EnterSuspect returns the error of ctx.
func (k *HandKeeper) EnterSuspect(ctx context.Context) (leave func(), err error) {
	return k.enter(ctx, cap(k.reservations))
}

// enter begins a takeover: it puts n values into the channel `reservations`, and waits until there
// is space for all of them. If n is 1, other takeovers may be in progress at the same time. If n is
// the capacity of the channel, this is the only takeover. Only one goroutine at a time puts values
// in. The result `leave` is a function that removes the values. If ctx ends first, enter removes
// its values and returns the error of ctx.
func (k *HandKeeper) enter(ctx context.Context, n int) (leave func(), err error) {
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-k.turn }()
	taken := 0
	leave = func() {
		for range taken {
			<-k.reservations
		}
	}
	for range n {
		select {
		case k.reservations <- struct{}{}:
			taken++
		case <-ctx.Done():
			leave()
			return nil, ctx.Err()
		}
	}
	return leave, nil
}

// PutInHand takes runs in hand. It waits until the store has recorded this, and returns nil. If ctx
// or the membership ends first, it returns an error. The caller must call LetGo, even after an
// error.
func (k *HandKeeper) PutInHand(ctx context.Context, runs ...status.RunID) error {
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

// LetGo reverts one call of PutInHand for each of the given runs. If no goroutine holds one of
// these runs any more, the HandKeeper removes this run from the store's list. After the end of the
// membership LetGo does nothing: the list must keep the runs, because one of them may have caused
// the end.
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

// Run writes the list of runs in hand to the store after each change, until ctx ends. While
// the store does not answer, Run tries again. It returns ErrFenced if this engine was
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
		err := k.n.cfg.Store.PutInHand(ctx, k.engine, runs)
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
		k.recorded(change)
	}
}

// recorded is called after the store has recorded all changes up to the change with the given
// number. It wakes the goroutines that wait for one of these changes.
func (k *HandKeeper) recorded(change uint64) {
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

// letGoOf calls LetGo for a run if the run's shard has the run in hand.
func (k *HandKeeper) letGoOf(r *ownedRun) {
	if r.inHand {
		r.inHand = false
		k.LetGo(r.id)
	}
}
