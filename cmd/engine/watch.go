package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// follower follows runs until they end: watch, and apply where another engine runs.
type follower struct{ *app }

func watchCommand(a *app) *cobra.Command {
	var from int
	cmd := &cobra.Command{
		Use:   "watch RUN",
		Short: "Show a run's progress until it has ended",
		Long: `Shows the whole history of a run, and then what happens in it, as apply does.
It only reads. The engine that works on the run is not disturbed, and Ctrl-C
leaves the run as it is.

--from-seq N begins with the N-th event; with --json each event says its seq, so
that a program can go on where it was cut off.

Exit code as for apply: 0 succeeded, 4 ended otherwise and undid all that the
workflow lets it undo, 5 needs a human, 6 interrupted.`,
		Args: wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.follower().watch(cmd.Context(), args[0], from) },
	}
	cmd.Flags().IntVar(&from, "from-seq", 1, "number of the first event to show")
	return cmd
}

func (a follower) watch(ctx context.Context, name string, from int) error {
	if from < 1 {
		return failed("Invalid flag", "--from-seq must be at least 1, not %d.", from)
	}
	s, err := a.opener().openReader(ctx, ".", ".")
	if err != nil {
		return err
	}
	defer s.close()
	row, err := a.findRun(ctx, s, name)
	if err != nil {
		return err
	}
	return a.look(ctx, s, row, from, nil)
}

// untilEnded waits for the answer to a verb, and then shows what happens until the run has
// ended. With --json it prints one object, in the end.
func (a follower) untilEnded(ctx context.Context, s *session, op *operator.Operator, y saying) error {
	answered := func(ctx context.Context) error {
		if y.answer {
			return nil
		}
		return op.Answer(ctx, y.row.Run, y.message)
	}
	if a.json {
		end, err := a.lookAt(ctx, s, y.row, silent{}, 1, answered)
		if err != nil {
			return y.problem(ctx, a.app, s, y.row, err)
		}
		y.now, y.answer = end.state.Status(), true
		if err := y.print(a.app); err != nil {
			return err
		}
		return asExit(end.state)
	}
	a.note("%s", y.text())
	y.row.State = y.now
	if err := a.look(ctx, s, y.row, y.seen+1, answered); err != nil {
		return y.problem(ctx, a.app, s, y.row, err)
	}
	return nil
}

// look shows a run from its from-th event on, and ends with its exit code. It
// calls first, if there is such a thing to wait for, before it follows.
func (a follower) look(ctx context.Context, s *session, row store.RunRow, from int, first func(context.Context) error) error {
	wf, err := s.defs.Workflow(ctx, row.Workflow)
	if err != nil {
		return s.wrap("read the definition", err)
	}
	view := a.runner().newView()
	a.runs.follow(row)
	told := storyOf(wf, row, true)
	told.Past = from == 1
	view.Begin(told)
	if live, err := s.store.Live(ctx); err == nil && len(live) == 0 && !row.State.Final() && !row.State.NeedsHuman() {
		view.Note("No engine is alive to go on with this run. Start one with `engine serve`, or `engine apply PATH` with its workflow.")
	}
	end, err := a.lookAt(ctx, s, row, view, from, first)
	view.End()
	a.runner().restoreLog()
	if err != nil {
		return err
	}
	return a.ended(row, end.state)
}

// lookAt follows a run until it has ended, needs a human, or a signal comes.
func (a follower) lookAt(ctx context.Context, s *session, row store.RunRow, view render.View, from int, first func(context.Context) error) (outcome, error) {
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE) // a reader that goes away ends nothing halfway
	defer signal.Stop(pipes)
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(stops)
	defer a.endOnSecondSignal(syscall.SIGHUP)()
	w := newFeed(view, from-1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan followed, 1)
	go func() {
		if first != nil {
			if err := first(ctx); err != nil {
				ends <- followed{err: err}
				return
			}
		}
		ends <- w.following(ctx, s, func(ctx context.Context, from int, fn func(int, []story.Fact), o journal.FollowOptions) (*machine.State, error) {
			o.Poll = 500 * time.Millisecond
			return journal.Follow(ctx, s.store, s.sealer, s.defs, row.Run, from, fn, o)
		})
	}()
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case fn := <-w.updates:
			fn()
		case f := <-ends:
			if f.err != nil {
				return outcome{}, f.err
			}
			return outcome{run: row.Name, state: f.state}, nil
		case <-stops:
			r, err := s.people().fold(ctx, row)
			if err != nil {
				return outcome{}, errors.Join(exitError(exitOpen), err)
			}
			return outcome{run: row.Name, state: r.state}, nil
		case <-ticker.C:
			view.Tick(a.now())
		}
	}
}

// ended prints what a run gave and turns it into the exit code.
func (a follower) ended(row store.RunRow, state *machine.State) error {
	name := render.Clean(row.Name)
	if !a.json {
		if err := a.printOutputs(story.Outputs(state)); err != nil {
			return err
		}
		switch exitRun(state.Status(), int(state.Run().Left)) {
		case exitOpen:
			a.note("Run %s is %s; it goes on without this command.", name, state.Status())
		case exitHuman:
			a.note("%s", humanNote(name, state, "engine explain "+quoteArg(name)))
		}
	}
	return asExit(state)
}

// asExit is the exit code of a run as an error; nil = 0.
func asExit(state *machine.State) error {
	if code := exitRun(state.Status(), int(state.Run().Left)); code != exitOK {
		return exitError(code)
	}
	return nil
}

// silent is a view that shows nothing.
type silent struct{}

var _ render.View = silent{}

// Begin does nothing.
func (silent) Begin(render.Story) {}

// Facts does nothing.
func (silent) Facts(int, []story.Fact) {}

// Circuit does nothing.
func (silent) Circuit(render.Circuit) {}

// Note does nothing.
func (silent) Note(string) {}

// Tick does nothing.
func (silent) Tick(time.Time) {}

// End does nothing.
func (silent) End() {}
