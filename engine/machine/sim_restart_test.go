package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/moving"
)

// A rebirth says what the run of a world has taken over from an earlier run of the same world.
type rebirth struct {
	past     *moving.Past // the earlier run; nil = the run is the first one
	taken    map[int]bool // steps that were taken over, by number
	foreign  map[string]account
	undoable bool // an effect was taken over that can be undone
	done     bool
	refused  bool
}

// TestPromisesOfARestartedRun lets random runs end, and restarts them from random steps. Every promise
// of the core holds in the second run, too: what was taken over is undone at most once and under the
// keys of the first run, nothing that was taken over is lost, and the second run leaves alone what it
// has not taken over.
func TestPromisesOfARestartedRun(t *testing.T) {
	done, refused, undone := 0, 0, 0
	for seed := uint64(1); seed <= 2500; seed++ {
		w, err := runRestartedWorld(newChooser(seed), false)
		if err != nil {
			w, err = runRestartedWorld(newChooser(seed), true)
			t.Fatalf("seed %d: %v\n%s", seed, err, w.report())
		}
		if w.reborn.done {
			done++
		}
		if w.reborn.refused {
			refused++
		}
		for _, n := range w.s.Nodes() {
			if w.reborn.taken[int(n.Step)] && n.Undo == model.UndoDone {
				undone++
				break
			}
		}
	}
	t.Logf("%d restarts, %d refused, %d with an undo", done, refused, undone)
	if done < 600 || refused < 500 || undone < 25 {
		t.Errorf("%d restarts, %d refusals and %d undos: the simulation is void", done, refused, undone)
	}
}

func runRestartedWorld(c *chooser, trace bool) (w *world, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	w = newWorld(c)
	w.trace, w.deep = trace, trace
	if err := w.live(); err != nil {
		return w, err
	}
	c.calm = false
	return w, w.rebirth()
}

// rebirth starts a second run from a random step of the first one, and lets it live.
func (w *world) rebirth() error {
	if len(w.wf.Steps) == 0 {
		return nil
	}
	past := &moving.Past{Run: w.s.Run(), Nodes: w.s.Nodes(), Flow: w.wf}
	from, plan := w.succession(past)
	if w.reborn.refused = len(plan.Refusals) > 0; w.reborn.refused {
		w.note("restart from %s is refused: %v", from.Step, plan.Refusals)
		return nil
	}
	w.note("RESTART from %s", from.Step)
	old := w.s
	w.reborn.past, w.reborn.done, w.reborn.taken = past, true, map[int]bool{}
	w.reborn.undoable = undoable(w.wf, past, plan)
	w.s, w.j, w.calls, w.old = machine.NewState(), journal{}, nil, nil
	w.keys, w.misses, w.wishes, w.rests = map[string]string{}, map[machine.AttemptID]bool{}, map[int]time.Time{}, map[int]resting{}
	for _, of := range w.kids { // their signals have numbers of the first run
		of.signals = nil
	}
	w.absent, w.ended = nil, nil
	w.taken, w.sent, w.slots, w.ceilings = map[string]bool{}, nil, nil, machine.Ceilings{}
	w.turns, w.alerts, w.asked, w.kept = 0, 0, 0, nil

	// The nodes of the second run: first its steps, and then the instances that it takes over.
	number, next := map[int]int{}, len(w.wf.Steps)
	for _, h := range plan.Steps {
		if !h.Taken {
			continue
		}
		w.reborn.taken[h.Step] = true
		number[h.Node] = h.Step
		if n := old.Nodes()[h.Node]; n.Expanded {
			for k := range n.Count {
				number[n.First+k] = next
				next++
			}
		}
	}
	for was, is := range number {
		for k := range int(old.Nodes()[was].Fwd.Failures) {
			w.misses[machine.AttemptID{Node: is, Call: -1 - k}] = true
		}
	}
	w.reborn.foreign = map[string]account{}
	for key, e := range w.ledger {
		if is, taken := number[e.node]; taken {
			e.node = is
			continue
		}
		e.node = -1
		w.reborn.foreign[key] = *e
	}
	if err := w.lead(machine.Started{RunID: simStart + 1, Name: "sim2", Vars: w.start.Vars, From: from}); err != nil {
		return err
	}
	for key, was := range w.reborn.foreign {
		if *w.ledger[key] != was {
			return fmt.Errorf("the new run has touched an effect that it has not taken over: %+v, was %+v", *w.ledger[key], was)
		}
	}
	return nil
}

// succession chooses the step to restart from. In half of the worlds it looks for a step whose
// choice takes over an effect that can be undone, because a step at random rarely does.
func (w *world) succession(past *moving.Past) (moving.From, moving.Succession) {
	from := moving.From{Run: w.s.Run().ID, Again: w.c.chance(60)}
	first, look := w.c.n(len(w.wf.Steps)), w.c.chance(50)
	for k := range w.wf.Steps {
		from.Step = w.wf.Steps[(first+k)%len(w.wf.Steps)].Name
		plan := past.Succession(w.wf, from)
		if !look || undoable(w.wf, past, plan) {
			return from, plan
		}
	}
	from.Step = w.wf.Steps[first].Name
	return from, past.Succession(w.wf, from)
}

// undoable reports whether a plan takes over an effect that can be undone.
func undoable(wf *dsl.Workflow, past *moving.Past, plan moving.Succession) bool {
	if len(plan.Refusals) > 0 {
		return false
	}
	for _, h := range plan.Steps {
		if h.Taken && past.Nodes[h.Node].Done && wf.Steps[h.Step].Undo != nil {
			return true
		}
	}
	return false
}

// idOf returns the id of the run that makes the calls of a step.
func (w *world) idOf(step int) status.RunID {
	if w.reborn.past == nil || w.reborn.taken[step] {
		return simStart
	}
	return simStart + 1
}
