package main

import (
	"context"
	"os/user"
	"sort"
	"time"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// tickEvery is how often a view's clock moves.
const tickEvery = 250 * time.Millisecond

// A feed gives a view the facts of a run. One goroutine alone, which reads updates,
// calls the view: others send it functions.
type feed struct {
	view    render.View
	updates chan func()
	seen    int // number of the last fact shown
}

func newFeed(view render.View, seen int) *feed {
	return &feed{view: view, updates: make(chan func()), seen: seen}
}

// followed is how following a run ended.
type followed struct {
	state *machine.State
	err   error
}

// follow shows the run's facts until it has ended or needs a human. A store
// that does not answer is asked again.
func (w *work) follow(ctx context.Context, s *session, node *engine.Node, run status.RunID) followed {
	return w.following(ctx, s, func(ctx context.Context, from int, fn func(int, []story.Fact), o journal.FollowOptions) (*machine.State, error) {
		return node.Follow(ctx, run, from, fn, o)
	})
}

type followFunc func(ctx context.Context, from int, fn func(int, []story.Fact), o journal.FollowOptions) (*machine.State, error)

func (w *feed) following(ctx context.Context, s *session, fn followFunc) followed {
	state, err := fn(ctx, w.seen+1, func(first int, facts []story.Fact) {
		w.do(ctx, func() {
			w.view.Facts(first, facts)
			w.seen = first + len(facts) - 1
		})
	}, journal.FollowOptions{Unanswered: func(err error) {
		w.do(ctx, func() {
			w.view.Note("The state does not answer; trying again. The run is kept. " + s.wrap("read", err).Error())
		})
	}})
	return followed{state, err}
}

// do has the loop call fn, and waits until it has.
func (w *feed) do(ctx context.Context, fn func()) {
	done := make(chan struct{})
	select {
	case w.updates <- func() { fn(); close(done) }:
		<-done
	case <-ctx.Done():
	}
}

// circuitObserver tells the loop about circuit breakers.
type circuitObserver struct{ to chan<- render.Circuit }

// CircuitChanged passes the change on, unless nobody listens.
func (o circuitObserver) CircuitChanged(c agents.CircuitChange) {
	select {
	case o.to <- render.Circuit{Agent: c.Agent, State: string(c.To), Failures: c.Failures, Until: c.Until, At: time.Now()}:
	default:
	}
}

// ProcessStarted does nothing.
func (circuitObserver) ProcessStarted(agents.ProcessInfo) {}

// ProcessEnded does nothing.
func (circuitObserver) ProcessEnded(agents.ProcessInfo, error) {}

var _ agents.Observer = circuitObserver{}

// userName is who started the command, for people.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

func sortedNames[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
