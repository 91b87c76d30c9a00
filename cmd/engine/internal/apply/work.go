package apply

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/follow"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// work holds the state of one apply command. Only one goroutine calls the view. This goroutine
// reads functions from the channel `Updates` and calls them. The other goroutines send functions to
// this channel.
type work struct {
	*follow.Feed
	a        *cli.App
	r        *module.Request
	o        Options
	path     string
	stops    <-chan os.Signal
	circuits chan render.Circuit

	begun bool // true = the method `begin` was called, so the view knows which run it shows

	own    status.RunID // the command's run; 0 = not known yet
	others *others      // the other runs that this process works on
}

// starting shows the text, which says that agents are starting. Without this text, the user would
// see nothing for some tenths of a second. With --json, starting does nothing.
func (w *work) starting(text string) {
	if !w.a.JSON {
		w.View.Note(text)
	}
}

// timeout returns a channel that receives a value when --wait-timeout has passed, and a function
// that stops the timer. The channel is nil if the flag is not given.
func (w *work) timeout() (<-chan time.Time, func()) {
	if w.o.Wait == 0 {
		return nil, func() {}
	}
	timer := time.NewTimer(w.o.Wait)
	return timer.C, func() { timer.Stop() }
}

// timedOut shows a note that the run is still open after --wait-timeout.
func (w *work) timedOut() {
	w.View.Note(fmt.Sprintf("The run is still open after %s.", w.o.Wait))
}

// last is the method that shows the facts that the view has not shown yet. For example, they were
// recorded while the node was stopping. It returns the run's state.
func (w *work) last(ctx context.Context, s *session.Session, run store.RunRow) (follow.Outcome, error) {
	read, err := journal.Load(ctx, s.Store, s.Sealer, s.Defs, run.Run)
	if err != nil {
		return follow.Outcome{}, s.Wrap("read the run", err)
	}
	if facts := history.Facts(read.Flow, read.Records); len(facts) > w.Seen {
		w.View.Facts(w.Seen+1, facts[w.Seen:])
		w.Seen = len(facts)
	}
	return follow.Outcome{Run: run.Name, State: read.State}, nil
}

// begin tells the view which run it shows. Later calls do nothing.
func (w *work) begin(row store.RunRow, attached bool) {
	if w.begun {
		return
	}
	w.begun = true
	w.a.Runs.Follow(row)
	w.View.Begin(follow.StoryOf(w.r.Workflow, row, attached))
}
