package follow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/graph"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// An Outcome holds the name of a run, and the state that the run had when the command stopped
// showing the run.
type Outcome struct {
	Run   string
	State *machine.State
	// Through is the name of the child run, at any depth, because of which the run needs a human;
	// "" = there is no such child run.
	Through string
}

// Code returns the exit code of the run.
func (o Outcome) Code() int {
	if o.Through != "" {
		return exit.Human
	}
	return exit.OfRun(o.State.Status(), int(o.State.Run().Left))
}

// AsExit returns the exit code of the run as an error; nil means exit code 0.
func (o Outcome) AsExit() error {
	if code := o.Code(); code != exit.OK {
		return exit.Code(code)
	}
	return nil
}

// Show shows a run until the run has ended or needs a human. It returns the run's exit code as an
// error. The parameter `from` is the number of the first fact to show. The parameter `first` is a
// function that Show calls before it follows the run; nil = none.
func Show(ctx context.Context, a *cli.App, s *session.Session, row store.RunRow, from int, first func(context.Context) error) error {
	// Only the journal says which definition the run has now, because a person may have moved
	// it to another definition.
	read, err := journal.Load(ctx, s.Store, s.Sealer, s.Defs, row.Run)
	if err != nil {
		return s.Wrap("read the run", err)
	}
	wf := read.Flow
	view := NewView(a)
	a.Runs.Follow(row)
	head := StoryOf(wf, row, true)
	head.Past = from == 1
	view.Begin(head)
	if abandoned(ctx, s, row) {
		view.Note("No engine is alive that could continue this run. Start one with `engine serve`, or `engine apply PATH` with its workflow.")
	}
	end, err := Follow(ctx, a, s, row, view, from, first)
	if j, ok := view.(*render.JSON); ok && err == nil && end.Through != "" {
		j.NeedsPerson(end.humanNote(), end.Through, end.Code())
	}
	view.End()
	RestoreLog(a)
	if err != nil {
		return err
	}
	return ended(a, end)
}

// abandoned reports whether a run is open and no engine is alive that could continue it. An engine
// may end right after it has finished the run: the engine of `engine apply` does so. So if
// abandoned finds no engine, it reads the run again.
func abandoned(ctx context.Context, s *session.Session, row store.RunRow) bool {
	if row.State.Final() || row.State.NeedsHuman() {
		return false
	}
	if live, err := s.Store.Live(ctx); err != nil || len(live) > 0 {
		return false
	}
	now, err := s.Store.Find(ctx, row.Name)
	return err == nil && !now.State.Final() && !now.State.NeedsHuman()
}

// StoryOf returns what a view must know about a run before it shows the run's facts.
func StoryOf(wf *dsl.Workflow, row store.RunRow, attached bool) render.Story {
	s := render.Story{Run: row.Name, Workflow: wf.Name, Key: row.Key, Attached: attached}
	if attached {
		s.Status, s.Past = row.State.String(), !row.State.Final()
		if row.State.Final() {
			s.Ended = row.FinishedAt
		}
	}
	for _, step := range wf.Steps {
		if step.Gone {
			continue
		}
		info := render.StepInfo{Name: step.Name, Action: graph.Does(step), Undo: graph.UndoneBy(wf, step)}
		for _, i := range step.After {
			info.After = append(info.After, wf.Steps[i].Name)
		}
		s.Steps = append(s.Steps, info)
	}
	return s
}

// Follow shows a run on the view until the run has ended or needs a human, or until Ctrl-C.
// The parameter `first` is a function that Follow calls before it shows facts; nil = none. The
// parameter `from` is the number of the first fact to show.
func Follow(ctx context.Context, a *cli.App, s *session.Session, row store.RunRow, view render.View, from int, first func(context.Context) error) (Outcome, error) {
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE) // a closed pipe must not end the process
	defer signal.Stop(pipes)
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(stops)
	defer a.EndOnSecondSignal(syscall.SIGHUP)()
	w := NewFeed(view, from-1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan Followed, 1)
	go func() {
		if first != nil {
			if err := first(ctx); err != nil {
				ends <- Followed{Err: err}
				return
			}
		}
		ends <- w.Following(ctx, s, func(ctx context.Context, from int, fn func(int, []story.Fact), o journal.FollowOptions) (*machine.State, error) {
			o.Poll = 500 * time.Millisecond
			return journal.Reader{Store: s.Store, Sealer: s.Sealer, Defs: s.Defs}.Follow(ctx, row.Run, from, fn, o)
		})
	}()
	ticker := time.NewTicker(TickEvery)
	defer ticker.Stop()
	for {
		select {
		case fn := <-w.Updates:
			fn()
		case f := <-ends:
			if f.Err != nil {
				return Outcome{}, f.Err
			}
			return f.Outcome(row.Name), nil
		case <-stops:
			r, err := history.Read(ctx, s, row)
			if err != nil {
				return Outcome{}, errors.Join(exit.Code(exit.Open), err)
			}
			return Outcome{Run: row.Name, State: r.State}, nil
		case <-ticker.C:
			view.Tick(a.Now())
		}
	}
}

// ended prints the outputs of a run and returns its exit code as an error.
func ended(a *cli.App, end Outcome) error {
	if !a.JSON {
		if err := a.PrintOutputs(story.Outputs(end.State)); err != nil {
			return err
		}
		switch end.Code() {
		case exit.Open:
			a.Note("Run %s is %s; it continues without this command.", render.Clean(end.Run), end.State.Status())
		case exit.Human:
			a.Note("%s", end.humanNote())
		}
	}
	return end.AsExit()
}

func (o Outcome) humanNote() string {
	return o.HumanNote(func(run string) string { return "engine explain " + words.Quote(run) })
}

// HumanNote returns a note that says why the exit code of the run is exit.Human. The function
// `explain` returns the command line that tells the user more about a run.
func (o Outcome) HumanNote(explain func(run string) string) string {
	name := render.Clean(o.Run)
	switch {
	case o.Through != "":
		return fmt.Sprintf("Run %s needs a human through its child %s. What to do: %s", name, render.Clean(o.Through), explain(o.Through))
	case o.State.Status().Final():
		return fmt.Sprintf("Run %s has ended, with %s left in place by an operator.", name, render.Count(int(o.State.Run().Left), "effect"))
	}
	return fmt.Sprintf("Run %s needs a human. What to do: %s", name, explain(o.Run))
}
