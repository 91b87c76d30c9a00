package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/storekit"
)

var errLost = errors.New("sim: the store's answer was lost")

// A wire connects one engine process to the store. It can delay calls to the store. It can lose a
// call before the store has seen it. It can also lose the answer of a call that the store has
// done. While the engine is frozen, calls wait in the wire.
type wire struct {
	store.Full
	world *world
	node  *node
}

// A caller is the component of an engine that calls the store. Calls of callerMembers can be frozen
// while the other calls continue.
type caller int

const (
	callerOther   caller = iota
	callerMembers        // calls of the Supervisor
)

// away handles one message between an engine and the store. It waits while the message is delayed
// or the engine is frozen. It returns an error if the message is lost, or if ctx ends.
func (w *wire) away(ctx context.Context, c caller) error {
	if err := ctx.Err(); err != nil { // as database/sql does before it sends anything
		return err
	}
	if d := w.world.latency(); d > 0 {
		if err := wait.For(ctx, d); err != nil {
			return err
		}
	}
	if err := w.world.frozen[w.node.n].wait(ctx); err != nil {
		return err
	}
	if c == callerMembers {
		if err := w.world.still[w.node.n].wait(ctx); err != nil {
			return err
		}
	}
	if w.world.draws(w.world.conditions.lose) {
		return errLost
	}
	return nil
}

// over calls f, which calls the store, and adds a line to the trace. The message to the store and
// the answer can be delayed or lost. The parameter `what` is the name of the call in the trace.
func over[T any](ctx context.Context, w *wire, c caller, what string, f func() (T, error)) (T, error) {
	var none T
	if err := w.away(ctx, c); err != nil {
		return none, err
	}
	v, err := f()
	w.world.trace("e%d %s %v", w.node.n, what, err)
	if lost := w.away(ctx, c); lost != nil {
		return none, lost
	}
	return v, err
}

type nothing struct{}

func (w *wire) Join(ctx context.Context, address string, lease time.Duration, writers int) (store.EngineID, error) {
	return over(ctx, w, callerMembers, "join", func() (store.EngineID, error) {
		e, err := w.Full.Join(ctx, address, lease, writers)
		if w.world.kin != nil && err == nil {
			w.world.kin.moves(e, w.node)
		}
		return e, err
	})
}

// Tick passes the call to the store. It records when the engine's lease ends; the lease begins when
// the request is sent. It also records how long the answer took, because the engine's estimate of
// the store's time is late by this duration.
func (w *wire) Tick(ctx context.Context, e store.EngineID, lease time.Duration, limit int) (store.Tick, error) {
	asked, read := time.Now(), time.Time{}
	tick, err := over(ctx, w, callerMembers, "tick", func() (store.Tick, error) {
		read = time.Now()
		return w.Full.Tick(ctx, e, lease, limit)
	})
	if err == nil {
		w.world.registry().leased(w.node, asked.Add(lease), time.Since(read))
	}
	return tick, err
}

// Fence passes the call to the store, and records which engine the store has declared dead. No
// row of that engine may be committed afterwards.
func (w *wire) Fence(ctx context.Context, dead store.EngineID) (bool, error) {
	return over(ctx, w, callerMembers, fmt.Sprintf("fence %d", dead), func() (bool, error) {
		ok, err := w.Full.Fence(ctx, dead)
		if ok && err == nil {
			w.world.registry().bury(dead)
		}
		return ok, err
	})
}

func (w *wire) Leave(ctx context.Context, e store.EngineID) error {
	_, err := over(ctx, w, callerMembers, "leave", func() (nothing, error) {
		err := w.Full.Leave(ctx, e)
		if err == nil {
			w.world.registry().bury(e)
		}
		return nothing{}, err
	})
	return err
}

// Runs passes a search for runs to the store. A search for runs to take over may be delayed or
// lost. If an engine searches for overdue runs, Runs checks that the method Pass has permitted
// this search.
func (w *wire) Runs(ctx context.Context, f store.RunFilter) ([]store.RunRow, error) {
	kind, err := storekit.KindOf(f)
	if err != nil {
		return nil, err
	}
	var name string
	switch kind {
	case storekit.KindOrphans:
		name = "orphans"
		if f.Owners == store.OwnerDead {
			name = "abandoned"
		}
	case storekit.KindOverdue:
		if !w.world.registry().permit(w.node, false) {
			w.world.fault("engine %d looks for what is overdue out of turn (S45)", w.node.n)
		}
		name = "overdue"
	default:
		return w.Full.Runs(ctx, f)
	}
	return over(ctx, w, callerMembers, name, func() ([]store.RunRow, error) { return w.Full.Runs(ctx, f) })
}

// Pass passes the call to the store, and records whether the engine may now scan the runs of
// other engines. The store permits such a scan to one engine in each period (S45).
func (w *wire) Pass(ctx context.Context, name string, period time.Duration) (bool, error) {
	may, err := over(ctx, w, callerMembers, "pass "+name, func() (bool, error) { return w.Full.Pass(ctx, name, period) })
	if may && err == nil {
		w.world.registry().permit(w.node, true)
	}
	return may, err
}

// leased records when an engine's lease ends, and how far the engine's estimate of the store's time
// is behind the store's clock.
func (w registry) leased(n *node, until time.Time, lag time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n.lease, n.lag = until, lag+2*time.Microsecond // 2 µs more, because a store rounds a time to whole microseconds
}

func (w registry) bury(e store.EngineID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buried[e] = true
}

func (w registry) isBuried(e store.EngineID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buried[e]
}

// permit records whether an engine may scan the runs of other engines now. It returns the value
// that it has recorded the last time.
func (w registry) permit(n *node, may bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := n.permit
	n.permit = may
	return was
}

func (w *wire) Load(ctx context.Context, runs ...status.RunID) ([]store.Loaded, error) {
	name := "load many"
	if len(runs) == 1 {
		name = "load"
	}
	return over(ctx, w, callerOther, name, func() ([]store.Loaded, error) { return w.Full.Load(ctx, runs...) })
}

func (w *wire) PutInHand(ctx context.Context, e store.EngineID, runs []status.RunID) error {
	_, err := over(ctx, w, callerOther, fmt.Sprintf("hold %v", runs), func() (nothing, error) { return nothing{}, w.Full.PutInHand(ctx, e, runs) })
	return err
}

func (w *wire) Suspects(ctx context.Context, self store.EngineID, runs []status.RunID) (map[status.RunID]store.Suspicion, error) {
	return over(ctx, w, callerOther, "suspects", func() (map[status.RunID]store.Suspicion, error) { return w.Full.Suspects(ctx, self, runs) })
}

func (w *wire) Absolve(ctx context.Context, runs ...status.RunID) error {
	_, err := over(ctx, w, callerOther, fmt.Sprintf("absolve %v", runs), func() (nothing, error) { return nothing{}, w.Full.Absolve(ctx, runs...) })
	return err
}

func (w *wire) Messages(ctx context.Context, run status.RunID, after store.MessageID, limit int) ([]store.Message, error) {
	return over(ctx, w, callerOther, "messages", func() ([]store.Message, error) { return w.Full.Messages(ctx, run, after, limit) })
}

func (w *wire) Post(ctx context.Context, m store.Message) (store.MessageID, error) {
	return over(ctx, w, callerOther, "post", func() (store.MessageID, error) {
		id, err := w.Full.Post(ctx, m)
		if w.world.kin != nil && err == nil {
			w.world.kin.posted(id, m)
		}
		return id, err
	})
}

func (w *wire) Discard(ctx context.Context, run status.RunID, ids []store.MessageID) error {
	_, err := over(ctx, w, callerOther, "discard", func() (nothing, error) { return nothing{}, w.Full.Discard(ctx, run, ids) })
	return err
}

func (w *wire) KeepLate(ctx context.Context, l store.LateReply) error {
	_, err := over(ctx, w, callerOther, "keep late", func() (nothing, error) {
		w.world.registry().late()
		return nothing{}, w.Full.KeepLate(ctx, l)
	})
	return err
}

func (w registry) late() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lates++
}

// Wakes returns the channel with the store's hints. If the fault plan has no hints, the channel
// receives none.
func (w *wire) Wakes(ctx context.Context) <-chan struct{} {
	if w.world.conditions.hints {
		return w.world.store.Wakes(ctx)
	}
	none := make(chan struct{})
	context.AfterFunc(ctx, func() { close(none) })
	return none
}

func (w *wire) OpenWriter(ctx context.Context, e store.EngineID, n int) (store.Writer, error) {
	writer, err := w.Full.OpenWriter(ctx, e, n)
	if err != nil {
		return nil, err
	}
	return &wireWriter{writer, w, e}, nil
}

type wireWriter struct {
	store.Writer
	wire   *wire
	engine store.EngineID
}

func (w *wireWriter) Commit(ctx context.Context, batch []store.Transition) ([]store.Outcome, error) {
	out, err := over(ctx, w.wire, callerOther, what(w.engine, batch), func() ([]store.Outcome, error) {
		dead := w.wire.world.registry().isBuried(w.engine)
		waiting := w.wire.world.registry().waiting(ctx, batch)
		out, err := w.Writer.Commit(ctx, batch)
		for i, o := range out {
			if err == nil && o.Landed {
				w.wire.world.registry().claimed(batch[i], waiting[batch[i].Run])
				w.wire.world.landed(ctx, w.engine, dead, batch[i].Run, batch[i].Seq)
			}
		}
		return out, err
	})
	if errors.Is(err, errLost) {
		for i := range batch {
			w.wire.world.kin.hitRun("store lost", batch[i].Run)
		}
	}
	return out, err
}

// what returns a text for the trace: the engine, and the runs and rows of a batch.
func what(e store.EngineID, batch []store.Transition) string {
	var b strings.Builder
	fmt.Fprintf(&b, "as %d commits", e)
	for _, t := range batch {
		fmt.Fprintf(&b, " %d/%d", t.Run, t.Seq)
	}
	return b.String()
}
