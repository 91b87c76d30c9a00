package machine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// repeat makes a step repeat, at most most times; 0 = without a limit.
func repeat(r dsl.Repeat, most int) option {
	return func(s *spec) { s.Repeat, s.settings.MaxIterations = &r, most }
}

// collected returns the values that a loop has collected.
func collected(sc *dsl.Scope) string { return string(sc.Self.Collected().JSON()) }

// count returns how many values a loop has collected; each is an object or null.
func count(sc *dsl.Scope) int {
	text := collected(sc)
	if text == "[]" {
		return 0
	}
	depth, n := 0, 1
	for _, r := range text {
		switch r {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			n += b2i(depth == 1)
		}
	}
	return n
}

// output is collect = self.output.
func output(sc *dsl.Scope) (dsl.Value, error) { return sc.Self.Output, nil }

// every is a constant interval.
func every(d time.Duration) func(*dsl.Scope) (time.Duration, error) {
	return func(*dsl.Scope) (time.Duration, error) { return d, nil }
}

// gathered is until = length(self.collected) >= n.
func gathered(n int) func(*dsl.Scope) (bool, error) {
	return func(sc *dsl.Scope) (bool, error) { return count(sc) >= n, nil }
}

// randomLoop makes a step repeat for a while, in every way that the language has.
func randomLoop(c *chooser) option {
	r := dsl.Repeat{}
	n := 1 + c.n(4)
	most := n
	if c.chance(70) {
		r.Collect = output
		switch c.n(3) {
		case 0:
			r.Until, most = gathered(n), 0
		case 1:
			r.Until, most = gathered(n), max(1, n-1+c.n(3))
		}
	} else if c.chance(50) {
		r.Until = func(sc *dsl.Scope) (bool, error) { return !sc.Self.Previous.IsNull(), nil }
	}
	if c.chance(40) {
		r.Interval = every(time.Duration(1+c.n(6000)) * time.Millisecond)
	}
	if r.Until != nil && c.chance(4) {
		r.Until = func(*dsl.Scope) (bool, error) { return false, errBroken }
	}
	stop := 0
	if r.Collect != nil && c.chance(15) {
		stop = c.n(4)
	}
	return func(s *spec) {
		repeat(r, most)(s)
		if stop == 0 {
			return
		}
		fewer := func(sc *dsl.Scope) (bool, error) { return count(sc) < stop, nil }
		if s.ForEach != nil {
			s.WhenEach = fewer
		} else {
			s.When = fewer
		}
	}
}

// looping reports whether the calls of a node belong to a loop.
func (w *world) looping(i int) bool { return w.wf.Steps[w.s.Nodes()[i].Step].Repeat != nil }

// left returns how many effects of a node are still there, and how many there were. Each
// iteration of a loop has an account of its own.
func (w *world) left(i int) (left, applied int) {
	for _, e := range w.ledger {
		if e.node == i {
			left, applied = left+e.applied-e.undone, applied+e.applied
		}
	}
	return left, applied
}

// undoLoop lets the undo of a loop happen. It undoes what the list of collected values names: the
// keys of calls are in their outputs. Without such a list it undoes everything.
func (w *world) undoLoop(k *call) {
	step := w.wf.Steps[k.inv.Step]
	for key, e := range w.ledger {
		_, all, _ := strings.Cut(string(k.inv.Input.JSON()), `"all":`)
		named := step.Repeat.Collect == nil || !step.Undo.UsesSelf || strings.Contains(all, key)
		if e.node == k.node && e.applied > e.undone && named {
			e.undone = e.applied
			w.note("    UNDONE an iteration of node %d", k.node)
		}
	}
}

// checkLoop looks at how far a loop has come.
func (w *world) checkLoop(i int, n *model.Node) error {
	step := w.wf.Steps[n.Step]
	if step.Repeat == nil {
		if n.Loop != (model.Loop{}) || n.Collected != nil || !n.Last.V.IsNull() {
			return fmt.Errorf("a step without repeat has a loop: %+v", n.Loop)
		}
		return nil
	}
	set, err := step.Settings(&dsl.Scope{})
	if err != nil {
		return err
	}
	if want := argumentsFor(n.Input.V); step.Given != nil && string(n.Given.V.JSON()) != string(want.JSON()) {
		return fmt.Errorf("the stored arguments are %s, want %s", n.Given.V.JSON(), want.JSON())
	}
	made := int(n.Loop.Iteration) + 1
	if set.MaxIterations > 0 && (made > set.MaxIterations || made == set.MaxIterations && n.Loop.Between) {
		return fmt.Errorf("iteration %d of at most %d, another planned: %v", made, set.MaxIterations, n.Loop.Between)
	}
	if got := int(n.Collected.Len()); got > made || step.Repeat.Collect == nil && got > 0 {
		return fmt.Errorf("%d values were collected in %d iterations", got, made)
	}
	if step.Repeat.Collect != nil && step.Repeat.Until != nil && n.Loop.Between && !n.Ended() {
		sc := &dsl.Scope{Self: &dsl.Self{Collected: n.Collected.List, Previous: n.Last.V}}
		if over, err := step.Repeat.Until(sc); over || err != nil {
			return fmt.Errorf("another iteration is planned, and until is %v (%v)", over, err)
		}
	}
	if n.State == status.StepSucceeded && !n.Expanded && !step.Do.ReadOnly && n.Effect() != status.EffectDone {
		return errors.New("a loop that changed something has succeeded, and its effect is " + n.Effect().String())
	}
	if made := n.Calls - n.Loop.Calls; n.Doubt > made {
		return fmt.Errorf("%d attempts are in doubt, and the iteration has made %d calls", n.Doubt, made)
	}
	ok := func(a model.Attempt) bool { return a.Call > n.Loop.Calls && a.Status == model.AttemptOK }
	if n.Done && n.Undo == model.UndoNone && n.Manual == "" && !w.reborn.taken[int(n.Step)] && !slices.ContainsFunc(n.Attempts, ok) {
		return errors.New("an iteration is done, and none of its calls has succeeded")
	}
	if e, _ := w.left(i); e > 0 && n.Loop.Past && n.Effect() == status.EffectNone {
		return errors.New("promise 9: the effects of earlier iterations are forgotten")
	}
	return w.checkInterval(i, n)
}

// checkInterval holds that the next iteration waits for the interval after the one before.
func (w *world) checkInterval(i int, n *model.Node) error {
	r := w.wf.Steps[n.Step].Repeat
	if r.Interval == nil {
		return nil
	}
	pause, err := r.Interval(&dsl.Scope{})
	if err != nil {
		return err
	}
	if n.Loop.Between && n.Undo == model.UndoNone && !n.Ended() {
		if w.rests[i].iteration != n.Loop.Iteration+1 {
			w.rests[i] = resting{n.Loop.Iteration + 1, w.now.Add(pause)}
		}
		return nil
	}
	if until := w.rests[i].until; n.Loop.Iteration == w.rests[i].iteration && until.After(w.now) && !n.Ended() {
		return fmt.Errorf("iteration %d begins before %v, when the interval ends", n.Loop.Iteration+1, until)
	}
	return nil
}

// A resting iteration of a node may not begin before a time.
type resting struct {
	iteration int32
	until     time.Time
}

// auditLoop compares the end of a loop with the ledger.
func (w *world) auditLoop(i int, n *model.Node, name string) error {
	left, applied := w.left(i)
	for _, e := range w.ledger {
		if e.node == i && (e.applied > 1 || e.undone > e.applied) {
			return fmt.Errorf("%s: an iteration took effect %d times and was undone %d times", name, e.applied, e.undone)
		}
	}
	step := w.wf.Steps[n.Step]
	if w.s.Status() == status.RunSucceeded {
		if left != applied {
			return fmt.Errorf("I5: %s was undone in a run that succeeded", name)
		}
		if n.State == status.StepSucceeded && step.Calls() && !step.Do.ReadOnly && applied != int(n.Loop.Iteration)+1 {
			return fmt.Errorf("I5: %s succeeded after %d iterations and took effect %d times", name, n.Loop.Iteration+1, applied)
		}
		return nil
	}
	if left > 0 && step.Undo != nil && n.Undo != model.UndoLeft {
		return fmt.Errorf("I6: the run is %s, but %d effects of %s are still there", w.s.Status(), left, name)
	}
	return nil
}
