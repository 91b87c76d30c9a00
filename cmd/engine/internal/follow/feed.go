package follow

import (
	"context"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// TickEvery is the pause between two calls of a view's Tick.
const TickEvery = 250 * time.Millisecond

// A Feed gives a view the facts of a run. Only the goroutine that reads Updates calls the
// view. Other goroutines use Do to send functions to that goroutine.
type Feed struct {
	View    render.View
	Updates chan func()
	Seen    int // number of the last fact that the view has shown; 0 = none
}

// NewFeed makes a feed for a view. The view shows only facts with a larger number than the
// parameter `seen`; with 0 it shows all facts.
func NewFeed(view render.View, seen int) *Feed {
	return &Feed{View: view, Updates: make(chan func()), Seen: seen}
}

// Following calls fn to read the facts that the view has not shown yet, and shows them. It returns
// the result of fn.
func (w *Feed) Following(ctx context.Context, s *session.Session, fn followFunc) Followed {
	var f Followed
	f.State, f.Err = fn(ctx, w.Seen+1, func(first int, facts []story.Fact) {
		w.Do(ctx, func() {
			w.View.Facts(first, facts)
			w.Seen = first + len(facts) - 1
		})
	}, journal.FollowOptions{Unanswered: func(err error) {
		w.Do(ctx, func() {
			w.View.Note("The state does not answer; trying again. The run is kept. " + s.Wrap("read", err).Error())
		})
	}, Through: func(child store.RunRow) { f.Through = child }})
	return f
}

// A followFunc reads the facts of a run and calls fn with them. The parameter `from` is the number
// of the first fact that it reads. When the run has ended or needs a human, it returns the run's
// state.
type followFunc func(ctx context.Context, from int, fn func(int, []story.Fact), o journal.FollowOptions) (*machine.State, error)

// Followed is the result of a followFunc.
type Followed struct {
	State *machine.State
	Err   error
	// Through is the child run, at any depth, because of which the run needs a human. If
	// Through.Run is 0, there is no such child run.
	Through store.RunRow
}

// Outcome returns the Outcome of the run with this name.
func (f Followed) Outcome(name string) Outcome {
	return Outcome{Run: name, State: f.State, Through: f.Through.Name}
}

// Do sends fn to the goroutine that reads Updates, and waits until that goroutine has called fn.
// If ctx ends before the goroutine has received fn, Do returns, and fn is never called.
func (w *Feed) Do(ctx context.Context, fn func()) {
	done := make(chan struct{})
	select {
	case w.Updates <- func() { fn(); close(done) }:
		<-done
	case <-ctx.Done():
	}
}
