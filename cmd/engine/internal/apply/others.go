package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/story"
)

// others records which other runs an apply command works on. It holds the runs that the engine
// has taken over, but that the view has not shown yet. It also holds all calls of agents in flight.
// It holds no calls that start or undo a child run: an engine that stops does not wait for them.
type others struct {
	engine.NoObserver

	mu    sync.Mutex // protects the fields `taken` and `calls`
	taken []status.RunID
	// Complete-by of each call of an agent in flight, also of the calls of the command's own run.
	calls map[otherCall]time.Time
	// The names of the actions that start and undo child runs begin with this text: the name of
	// their agent and a dot.
	children string
}

// An otherCall identifies a call in flight.
type otherCall struct {
	run          status.RunID
	step, action string
	undo         bool
}

func newOthers(wf *dsl.Workflow) *others {
	return &others{calls: map[otherCall]time.Time{}, children: wf.ChildAgent() + "."}
}

// FactKinds returns the kinds of facts that the method Facts reads.
func (o *others) FactKinds() story.FactKinds {
	return story.NewFactKinds(story.FactRunTakenOver, story.FactAttemptStarted, story.FactAttemptFinished)
}

// Facts records which runs were taken over, and which calls are in flight. It ignores calls that
// start child runs.
func (o *others) Facts(run status.RunID, _ int, facts []story.Fact) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range facts {
		f := &facts[i]
		call := otherCall{run: run, step: f.Step, action: f.Action, undo: f.Undo}
		switch f.Kind {
		case story.FactRunTakenOver:
			o.taken = append(o.taken, run)
		case story.FactAttemptStarted:
			if !strings.HasPrefix(f.Action, o.children) {
				o.calls[call] = f.CompleteBy
			}
		case story.FactAttemptFinished:
			delete(o.calls, call)
		}
	}
}

// fresh returns the runs that were taken over since the last call of fresh. The parameter `own` is
// the run that this CLI command started; fresh leaves it out.
func (o *others) fresh(own status.RunID) []status.RunID {
	o.mu.Lock()
	defer o.mu.Unlock()
	runs := slices.DeleteFunc(o.taken, func(run status.RunID) bool { return run == own })
	o.taken = nil
	return runs
}

// out returns the calls in flight of all runs except the command's own run, the parameter
// `own`. The calls are sorted by their complete-by, latest first. The result `until` is the
// complete-by of the first of them; zero = there are no calls.
func (o *others) out(own status.RunID) (calls []otherCall, until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c, by := range o.calls {
		if c.run != own {
			calls = append(calls, c)
			until = latest(until, by)
		}
	}
	slices.SortFunc(calls, func(a, b otherCall) int {
		return cmp.Or(o.calls[b].Compare(o.calls[a]), cmp.Compare(a.run, b.run), strings.Compare(a.step, b.step))
	})
	return calls, until
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// mostNamed is the highest number of runs, steps or calls that a text names one by one.
const mostNamed = 8

// showTaken shows the runs that were taken over since the last call of showTaken, and the
// current steps of each run. The parameter `own` is the command's run; 0 = not known yet.
func (w *work) showTaken(ctx context.Context, s *session.Session, own status.RunID) {
	runs := w.others.fresh(own)
	for _, run := range runs[:min(len(runs), mostNamed)] {
		w.View.Note("Continuing " + w.takenText(ctx, s, run))
	}
	if more := len(runs) - mostNamed; more > 0 {
		w.View.Note(fmt.Sprintf("Continuing %s more that no engine owned. `engine list --status open` names them.", render.Count(more, "open run")))
	}
}

// takenText returns a text about a run that was taken over: its name, its key and its current
// steps. It leaves out what it cannot read, because the run continues without this text.
func (w *work) takenText(ctx context.Context, s *session.Session, run status.RunID) string {
	row, err := s.Store.Find(ctx, strconv.FormatInt(int64(run), 10))
	if err != nil {
		w.a.Logger().Debug("look up the name of a run", "run", naming.RunName(run), "error", err)
		return fmt.Sprintf("run %s, which no engine owned.", naming.RunName(run))
	}
	w.a.Runs.Name(row)
	key := ""
	if row.Key != "" {
		key = ", key " + render.Clean(row.Key)
	}
	text := fmt.Sprintf("run %s of workflow %s%s, which no engine owned", render.Clean(row.Name), render.Clean(row.WorkflowName), key)
	steps, err := s.Store.StepRows(ctx, run)
	if err != nil {
		w.a.Logger().Debug("look up the steps of a run", "run", row.Name, "error", err)
		return text + "."
	}
	if at := currentSteps(steps); at != "" {
		text += "; it stood at " + at
	}
	return text + ". --only leaves such runs alone."
}

// currentSteps returns the names of a run's current steps: the steps that have begun and not ended.
// Of a for_each step it returns the instances. If there is no current step, it returns the first
// step that has not begun; "" = all steps have ended.
func currentSteps(steps []store.StepView) string {
	var begun []string
	next := ""
	repeated := map[string]bool{} // names of the for_each steps with instances
	for _, s := range steps {
		if name, _, ok := strings.Cut(s.Name, "["); ok {
			repeated[name] = true
		}
	}
	for _, s := range steps {
		switch s.State {
		case status.StepPending:
			next = cmp.Or(next, s.Name)
		case status.StepRunning, status.StepHeld, status.StepBackoff, status.StepWaiting, status.StepUndoing:
			if repeated[s.Name] {
				continue
			}
			begun = append(begun, render.Clean(s.Name)+" ("+s.State.String()+")")
		}
	}
	switch {
	case len(begun) > mostNamed:
		return fmt.Sprintf("%s and %d more", strings.Join(begun[:mostNamed], ", "), len(begun)-mostNamed)
	case len(begun) > 0:
		return strings.Join(begun, ", ")
	case next != "":
		return render.Clean(next) + " (not begun)"
	}
	return ""
}

// waitingFor returns a text that says for which calls of other runs the command still waits, and
// how long at most. It returns "" if there are no such calls. It looks up the public name of a run
// in the store. If it cannot read the name, the text has the id of the run, which commands accept, too.
func (w *work) waitingFor(ctx context.Context, s *session.Session, own status.RunID) string {
	calls, until := w.others.out(own)
	if len(calls) == 0 {
		return ""
	}
	var names []string
	for _, c := range calls[:min(len(calls), mostNamed)] {
		what := c.step
		if c.undo {
			what = "the undo of " + c.step
		}
		names = append(names, fmt.Sprintf("%s (%s) of run %s", render.Clean(what), render.Clean(c.action), w.nameOf(ctx, s, c.run)))
	}
	text := strings.Join(names, ", ")
	if more := len(calls) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("Nothing more is started. Waiting for %s, until %s at the latest; then what is open is handed back. Ctrl-C leaves now.",
		text, render.Clock(until, w.a.Now()))
}

// nameOf returns the public name of a run, or its id if the store does not answer. When the store
// has answered once, nameOf does not ask it again about the run.
func (w *work) nameOf(ctx context.Context, s *session.Session, run status.RunID) string {
	if w.a.Runs.Knows(run) {
		return w.a.Runs.NameOf(run)
	}
	row, err := s.Store.Find(ctx, strconv.FormatInt(int64(run), 10))
	if err != nil {
		w.a.Logger().Debug("look up the name of a run", "run", naming.RunName(run), "error", err)
	} else {
		w.a.Runs.Name(row)
	}
	return w.a.Runs.NameOf(run)
}
