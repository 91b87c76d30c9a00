package machine_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/moving"
)

// past returns the run of a play, as a new run takes it over.
func (p *play) past() *moving.Past {
	return &moving.Past{Run: p.s.Run(), Nodes: p.s.Nodes(), Flow: p.wf}
}

// restart starts a new run from a step of the run of a play.
func (p *play) restart(next *dsl.Workflow, from moving.From, want ...string) *play {
	p.t.Helper()
	from.Run = p.s.Run().ID
	q := newPlay(p.t, next, p.slots)
	q.now, q.past0 = p.now, p.past()
	q.event(machine.Started{RunID: from.Run + 1, Name: p.s.Run().Name + "-next", Vars: js(`{"x":1}`), Trigger: "manual", StartedBy: "bob", From: from}, want...)
	q.past0 = nil
	return q
}

// refusals returns why a run cannot be restarted.
func (p *play) refusals(next *dsl.Workflow, from moving.From) string {
	var all []string
	for _, why := range p.past().Succession(next, from).Refusals {
		all = append(all, why.String())
	}
	return strings.Join(all, "\n")
}

func sequence() *dsl.Workflow { return flow(do("a"), do("b", after("a")), do("c", after("b"))) }

// kept plays a run that was cancelled without an undo after a and b had taken effect.
func kept(t *testing.T, wf *dsl.Workflow) *play {
	p := start(t, wf, "do a")
	p.ok("a", "do b").ok("b", "do c")
	p.event(machine.CancelRequested{NoCompensate: true, By: "ann"})
	return p.fail("c", "no").is("cancelled")
}

func TestRestartTakesOverResultsAndTheDutyToUndoThem(t *testing.T) {
	old := kept(t, sequence())
	p := old.restart(sequence(), moving.From{Step: "c", Reason: "fixed"}, "do c").state("a succeeded", "b succeeded", "c running")
	if in := string(p.call("c", 0).Input.JSON()); in != `{"step":"c","in1":{"id":"b-1"}}` {
		t.Errorf("step c is called with %s", in)
	}
	p.fail("c", "declined", "undo b")
	for k, name := range []string{"a", "b"} {
		work, undo := machine.Keys(p.wf, p.s.Run(), p.s.Nodes()[k])
		oldWork, oldUndo := machine.Keys(old.wf, old.s.Run(), old.s.Nodes()[k])
		if work != oldWork || undo != oldUndo {
			t.Errorf("step %s has other keys than in the old run", name)
		}
	}
	if got, want := p.call("b", 0).ForwardKey, old.call("b", 1).IdempotencyKey; got != want {
		t.Errorf("the undo of b names the forward key %s, want %s", got, want)
	}
	p.ok("b", "undo a").ok("a").is("compensated")
}

func TestRestartOfAHeirKeepsTheFirstKeys(t *testing.T) {
	first := kept(t, sequence())
	second := first.restart(sequence(), moving.From{Step: "b", Again: true}, "do b").ok("b", "do c")
	second.event(machine.CancelRequested{NoCompensate: true, By: "ann"}).fail("c", "no").is("cancelled")
	third := second.restart(sequence(), moving.From{Step: "c"}, "do c").fail("c", "no", "undo b")
	if got, want := third.call("b", 0).ForwardKey, second.call("b", 1).IdempotencyKey; got != want {
		t.Errorf("the undo of b names %s, want the key of the second run %s", got, want)
	}
	third.ok("b", "undo a")
	if got, want := third.call("a", 0).ForwardKey, first.call("a", 1).IdempotencyKey; got != want {
		t.Errorf("the undo of a names %s, want the key of the first run %s", got, want)
	}
	third.ok("a").is("compensated")
	if n := len(third.s.Run().Ancestors); n != 2 {
		t.Errorf("%d ancestors, want 2", n)
	}
}

// An expression of an undo sees the run in which the effect was made, not the new run.
func TestRestartUndoSeesTheOldRun(t *testing.T) {
	wf := sequence()
	wf.Steps[0].Undo.Input = func(sc *dsl.Scope) (dsl.Value, error) { return js(`{"order":"` + sc.Run.ID + `"}`), nil }
	p := kept(t, wf).restart(wf, moving.From{Step: "b", Again: true}, "do b").fail("b", "no", "undo a")
	if in := string(p.call("a", 0).Input.JSON()); in != `{"order":"o-42"}` {
		t.Errorf("the undo gets %s, want the name of the old run", in)
	}
}

func TestRestartTakesOverInstances(t *testing.T) {
	wf := func() *dsl.Workflow { return flow(do("a", each("k", "l")), do("b", after("a"))) }
	p := start(t, wf(), "do a[k]", "do a[l]").ok("a[k]").ok("a[l]", "do b")
	p.event(machine.CancelRequested{NoCompensate: true, By: "ann"}).fail("b", "no").is("cancelled")
	q := p.restart(wf(), moving.From{Step: "b"}, "do b").fail("b", "no", "undo a[k]", "undo a[l]")
	q.ok("a[k]").ok("a[l]").is("compensated")
}

func TestRestartBehindThePivotIsNotUndone(t *testing.T) {
	wf := func() *dsl.Workflow { return flow(do("a"), do("p", after("a"), pivot), do("c", after("p"), readOnly)) }
	p := start(t, wf(), "do a").ok("a", "do p").ok("p", "do c").ok("c").is("succeeded")
	q := p.restart(wf(), moving.From{Step: "c"}, "do c")
	if !q.s.Run().Passed {
		t.Error("the new run does not know that the pivot has succeeded")
	}
	q.ok("c").is("succeeded")
	if got := p.refusals(wf(), moving.From{Step: "a", Again: true}); !strings.Contains(got, "the pivot has succeeded, and the new run would not take it over; restart from a step after the pivot") {
		t.Errorf("refused with %q", got)
	}
}

// A parallel branch that the old run has undone runs again; a step before the chosen one does not.
func TestRestartRunsAnUndoneBranchAgain(t *testing.T) {
	wf := func() *dsl.Workflow { return flow(do("a", readOnly), do("b", after("a")), do("c", after("a"))) }
	p := start(t, wf(), "do a").ok("a", "do b", "do c").ok("b").fail("c", "no", "undo b").ok("b").is("compensated")
	p.restart(wf(), moving.From{Step: "c"}, "do b", "do c").ok("b").ok("c").is("succeeded")
}

func TestRestartRefusals(t *testing.T) {
	undone := start(t, sequence(), "do a").ok("a", "do b").ok("b", "do c").fail("c", "no", "undo b").ok("b", "undo a").ok("a").is("compensated")
	other := func(f func(wf *dsl.Workflow)) *dsl.Workflow {
		wf := sequence()
		f(wf)
		wf.Digest = "next"
		return wf
	}
	doubt := start(t, sequence(), "do a").ok("a", "do b").unknown("b", "lost", "alert parked")
	doubt.event(machine.CancelRequested{NoCompensate: true, By: "ann"})
	open := start(t, sequence(), "do a")
	for name, c := range map[string]struct {
		p    *play
		next *dsl.Workflow
		from moving.From
		want string
	}{
		"open":     {open, sequence(), moving.From{Step: "a"}, "the run has not ended; `engine explain o-42` shows what it accepts now"},
		"undone":   {undone, sequence(), moving.From{Step: "c"}, "the run has undone step a, so there is nothing left that the new run could build on; restart from step a or from an earlier one"},
		"no step":  {undone, sequence(), moving.From{Step: "z"}, `workflow order has no step "z"; its steps are a, b, c`},
		"again":    {kept(t, sequence()), sequence(), moving.From{Step: "b"}, "step b has taken effect, and nothing has undone it: in the new run it would take effect a second time; restart from a later step"},
		"doubt":    {doubt, sequence(), moving.From{Step: "b"}, "nobody knows whether step b has an effect"},
		"action":   {kept(t, sequence()), other(func(wf *dsl.Workflow) { wf.Steps[0].Do.Name = "x" }), moving.From{Step: "c"}, "step a has finished (succeeded), and its action has changed"},
		"undo":     {kept(t, sequence()), other(func(wf *dsl.Workflow) { wf.Steps[1].Undo.Do.Name = "x" }), moving.From{Step: "c"}, "step b has finished (succeeded), and its undo has changed"},
		"workflow": {kept(t, sequence()), other(func(wf *dsl.Workflow) { wf.Name = "x" }), moving.From{Step: "c"}, `the run is of workflow "order", not of workflow "x"`},
		"gone":     {kept(t, sequence()), flow(do("b"), do("c", after("b"))), moving.From{Step: "c"}, "step a has finished (succeeded), and the new definition does not have it"},
	} {
		t.Run(name, func(t *testing.T) {
			c.from.Run = c.p.s.Run().ID
			if got := c.p.refusals(c.next, c.from); !strings.Contains(got, c.want) {
				t.Errorf("refused with %q, want %q", got, c.want)
			}
			in := machine.Input{At: noon, Event: machine.Started{RunID: 77, From: c.from}, Past: c.p.past()}
			if rec := machine.Decide(c.next, machine.NewState(), in); !rec.Empty() {
				t.Error("a refused restart makes a record")
			}
		})
	}
}

// A child of another run and a run that is not at hand cannot be restarted.
func TestRestartNeedsTheOldRun(t *testing.T) {
	ev := machine.Started{RunID: 77, From: moving.From{Run: 42, Step: "a"}}
	if rec := machine.Decide(sequence(), machine.NewState(), machine.Input{At: noon, Event: ev}); !rec.Empty() {
		t.Error("a restart without the old run makes a record")
	}
	child := newPlay(t, sequence(), nil)
	child.event(machine.Started{RunID: 42, Name: "k", Parent: 7, ParentName: "dad", ParentStep: "s"}, "do a")
	refused := func(state string) {
		t.Helper()
		if got := child.refusals(sequence(), moving.From{Run: 42, Step: "a"}); !strings.Contains(got, "the run is a child of run dad, which depends on it; restart the parent") {
			t.Errorf("a child that %s is refused with %q", state, got)
		}
	}
	refused("has not ended")
	child.fail("a", "no").is("failed")
	refused("has ended")
}

// The journal keeps all of a restart.
func TestRestartIsRecorded(t *testing.T) {
	p := kept(t, sequence()).restart(sequence(), moving.From{Step: "c", Reason: "fixed"}, "do c")
	recs, err := wire.Decode(p.j.rows[0])
	if err != nil {
		t.Fatal(err)
	}
	ev, _ := recs[0].Event().(machine.Started)
	if want := (moving.From{Run: 42, Step: "c", Reason: "fixed"}); ev.From != want {
		t.Errorf("the event says %+v, want %+v", ev.From, want)
	}
	from := p.s.Run().Origin()
	if from == nil || from.Run != 42 || from.Name != "o-42" || from.From != "c" || from.Reason != "fixed" || len(from.Steps) != 2 {
		t.Errorf("the run comes from %+v", from)
	}
	if !slices.Contains([]status.RunState{status.RunRunning}, p.s.Status()) {
		t.Errorf("the run is %s", p.s.Status())
	}
}

// The steps that are taken over have ended in the old run, so the new run does not tell their end.
func TestRestartTellsOnlyWhatTheNewRunDoes(t *testing.T) {
	p := kept(t, sequence()).restart(sequence(), moving.From{Step: "c", Reason: "fixed"}, "do c")
	for _, f := range p.facts {
		if f.Step == "a" || f.Step == "b" {
			t.Errorf("the new run tells %s of step %s", f.Kind, f.Step)
		}
	}
}

var updateRestart = flag.Bool("update-restart", false, "write the golden journal of a restarted run anew")

// A journal of a restarted run, as the first engine that knew it wrote it, folds to the same states
// for ever.
func TestRestartGoldenJournal(t *testing.T) {
	path := filepath.Join("testdata", "journal-v3-restart.txt")
	if *updateRestart {
		wf := flow(do("a", each("k", "l")), do("b", after("a")), do("c", after("b")), do("d", after("c")), do("f", after("d")), do("e", after("f")))
		old := start(t, wf, "do a[k]", "do a[l]").ok("a[k]").ok("a[l]", "do b").ok("b", "do c")
		old.event(machine.CancelRequested{NoCompensate: true, By: "ann"}).fail("c", "no").is("cancelled")
		p := old.restart(wf, moving.From{Step: "c", Reason: "fixed"}, "do c").ok("c", "do d").ok("d", "do f").ok("f", "do e")
		p.fail("e", "no", "undo f").ok("f", "undo d").ok("d", "undo c").ok("c", "undo b")
		p.ok("b", "undo a[k]", "undo a[l]").ok("a[l]").ok("a[k]").is("compensated")
		if err := os.WriteFile(path, []byte(p.golden()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	foldGolden(t, path, 3)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(data[bytes.Index(data, []byte("row ")):]), "\n")
	raw, err := hex.DecodeString(strings.TrimPrefix(line, "row "))
	if err != nil {
		t.Fatal(err)
	}
	s := machine.NewState()
	if err := foldRow(s, raw); err != nil {
		t.Fatal(err)
	}
	want := []model.Ancestor{{
		Run: 42, Name: "o-42", Key: "k", Trigger: "manual", Started: model.ToInstant(noon), From: "c", Reason: "fixed",
		Steps: []model.Legacy{{Step: 0, KeyName: "a"}, {Step: 1, KeyName: "b"}},
	}}
	if got := s.Run().Ancestors; !reflect.DeepEqual(got, want) {
		t.Errorf("ancestors %+v, want %+v", got, want)
	}
}
