package machine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A movings says whether the run of a world is moved to other definitions, and counts how often it
// was.
type movings struct {
	wanted  int           // migrations that are still to come
	base    *dsl.Workflow // the definition of the run with the numbers of the linker
	next    *dsl.Workflow // the definition of the migration that is being decided
	done    int
	refused int
}

// TestPromisesOfAMovedRun moves random runs to other definitions at random moments: a step is added,
// removed or gets another name, or another action. Every promise of the core holds afterwards, too:
// each effect is undone at most once and under its own key, no key changes, and every run ends.
func TestPromisesOfAMovedRun(t *testing.T) {
	done, refused := 0, 0
	for seed := uint64(1); seed <= 3000; seed++ {
		w, err := runMovedWorld(newChooser(seed), false)
		if err != nil {
			w, err = runMovedWorld(newChooser(seed), true)
			t.Fatalf("seed %d: %v\n%s", seed, err, w.report())
		}
		done, refused = done+w.moves.done, refused+w.moves.refused
	}
	t.Logf("%d migrations, %d refused", done, refused)
	if done < 500 || refused < 200 {
		t.Errorf("%d migrations and %d refusals: the simulation is void", done, refused)
	}
}

func runMovedWorld(c *chooser, trace bool) (w *world, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	w = newWorld(c)
	w.trace, w.deep = trace, trace
	w.moves = movings{wanted: 1 + c.n(2), base: w.wf}
	w.wf.Digest = "0"
	return w, w.live()
}

// migrate moves the run now and then.
func (w *world) migrate() error {
	if w.moves.wanted == 0 || w.s.Status() == status.RunInvalid || w.c.calm || !w.c.chance(25) {
		return nil
	}
	w.moves.wanted--
	w.moves.next = w.variant()
	before := w.wf
	if err := w.deliver(machine.Migrated{Workflow: int32(7 + w.moves.done), By: "op"}); err != nil {
		return fmt.Errorf("migration: %w", err)
	}
	if w.wf == before {
		w.moves.refused++
	} else {
		w.moves.done, w.moves.base = w.moves.done+1, w.moves.next
	}
	return nil
}

// variant returns the definition of the run with a few changes.
func (w *world) variant() *dsl.Workflow {
	next := *w.moves.base
	next.Digest = fmt.Sprint(w.moves.done + 1)
	next.Moved = nil
	next.Steps = nil
	for _, s := range w.moves.base.Steps {
		own := *s
		own.After, own.Before = slices.Clone(s.After), slices.Clone(s.Before)
		next.Steps = append(next.Steps, &own)
	}
	k := w.c.n(len(next.Steps))
	s := next.Steps[k]
	switch w.c.n(4) {
	case 0:
		next.Moved = map[string]string{s.Name: s.Name + "_moved"}
		s.Name += "_moved"
	case 1:
		if s.Calls() {
			do := *s.Do
			do.Name += "2"
			s.Do = &do
		}
	case 2: // the last step is removed, if nothing depends on it
		last := next.Steps[len(next.Steps)-1]
		if len(last.Before) == 0 && len(next.Steps) > 1 && !last.Pivot {
			next.Steps = next.Steps[:len(next.Steps)-1]
			for _, j := range last.After {
				b := next.Steps[j]
				b.Before = slices.DeleteFunc(b.Before, func(i int) bool { return i == last.Index })
			}
		}
	}
	extra := do("extra" + fmt.Sprint(w.moves.done)).Step
	extra.Index = len(next.Steps)
	extra.Input = func(*dsl.Scope) (dsl.Value, error) { return js(`{}`), nil }
	if w.wf.Pivot >= 0 { // after a pivot only such steps may follow
		extra.Undo, extra.NoUndo = nil, true
		own := *extra.Do
		own.ReadOnly = true
		extra.Do = &own
	}
	if j := w.c.n(len(next.Steps)); w.c.chance(70) {
		extra.After = []int{j}
		next.Steps[j].Before = append(next.Steps[j].Before, extra.Index)
	}
	next.Steps = append(next.Steps, extra)
	next.Order = topological(&next)
	return &next
}
