package machine_test

import (
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

func TestViewOfARun(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a")), runDeadline(second(600))), "do a")
	s := p.s
	if s.RunID() != 42 || s.Name() != "o-42" || s.Run().Key != "k" || s.Run().Workflow != "order" || s.Run().StartedBy != "ann" || string(s.Vars().JSON()) != `{"x":1}` {
		t.Errorf("got %d %s %s %s %s %s", s.RunID(), s.Name(), s.Run().Key, s.Run().Workflow, s.Run().StartedBy, s.Vars().JSON())
	}
	if !s.Run().Started.Time().Equal(noon) || !s.Run().Deadline.Time().Equal(noon.Add(second(600))) || !s.Run().Finished.Time().IsZero() || int(s.Run().Records) != 1 || s.NodeCount() != 2 {
		t.Errorf("got %v %v %v %d %d", s.Run().Started.Time(), s.Run().Deadline.Time(), s.Run().Finished.Time(), int(s.Run().Records), s.NodeCount())
	}
	open := s.OpenAttempts(p.wf)
	if len(open) != 1 || open[0].Node != 0 || open[0].Call != 1 || open[0].Agent != "shop" || !open[0].CompleteBy.Equal(noon.Add(second(30))) {
		t.Errorf("got %+v", open)
	}
	if s.Status().Final() {
		t.Errorf("got %s", s.Status())
	}
	p.ok("a", "do b")
	p.event(machine.TakenOver{By: 7, From: 1})
	if s.Run().Owner != 7 {
		t.Errorf("got owner %d", s.Run().Owner)
	}
	p.now = p.now.Add(second(3))
	p.ok("b").is("succeeded")
	if s.Status() != status.RunSucceeded || !s.Run().Finished.Time().Equal(noon.Add(second(3))) {
		t.Errorf("got %s at %v", s.Status(), s.Run().Finished.Time())
	}
}

func TestViewOfANode(t *testing.T) {
	p := start(t, flow(do("a", each("k", "l")), do("b", after("a"))), "do a[k]", "do a[l]")
	a := p.view("a")
	if !a.Each || a.Count != 2 || a.Action != "shop.a" || a.UndoAction != "shop.una" || a.State != status.StepWaiting {
		t.Errorf("got %+v", a)
	}
	k := p.view("a[k]")
	if k.Key != "k" || k.Node != 2 || k.Step != 0 || k.Attempts != 1 || !k.CompleteBy.Equal(noon.Add(second(30))) || k.IdempotencyKey != p.call("a[k]", 0).IdempotencyKey {
		t.Errorf("got %+v", k)
	}
	if len(k.Calls) != 1 || k.Calls[0].Status != "open" || k.Calls[0].Purpose != story.PurposeDo {
		t.Errorf("got %+v", k.Calls)
	}
	for name, want := range map[string]int{"a": 0, "b": 1, `a["l"]`: 3} {
		if got, ok := p.s.FindNode(p.wf, name); !ok || got != want {
			t.Errorf("%s: got %d", name, got)
		}
	}
	if _, ok := p.s.FindNode(p.wf, "zzz"); ok {
		t.Error("found a node that is not there")
	}
	if v := story.Node(p.s, p.wf, 99); v.Name != "" {
		t.Errorf("got %+v", v)
	}
	if v := story.Node(p.s, nil, 2); v.Name != `#0["k"]` {
		t.Errorf("without a definition: got %s", v.Name)
	}
}

// S82: a checkpoint is kept with the step; a heartbeat changes nothing.
func TestProgressIsKept(t *testing.T) {
	p := start(t, flow(do("a")), "do a")
	id := p.call("a", 0).Attempt
	p.event(machine.AttemptProgress{Attempt: id, Number: 1, Note: "on its way"}).nothing()
	p.event(machine.AttemptProgress{Attempt: id, Number: 2, Note: "half", Blob: []byte("at 50")})
	if n := p.s.Nodes()[0]; n.Point != 2 || string(n.Blob) != "at 50" {
		t.Errorf("got %d %q", n.Point, n.Blob)
	}
	if f := p.facts[len(p.facts)-1]; f.Kind != story.FactAttemptProgress || f.Step != "a" || f.Message != "half" {
		t.Errorf("got %+v", f)
	}
	p.event(machine.AttemptProgress{Attempt: machine.AttemptID{Node: 0, Call: 9}, Blob: []byte("x")}).nothing()
}

// A value the run has already is stored as a reference, which keeps its
// meaning whatever comes later.
func TestValuesAreStoredOnce(t *testing.T) {
	long := strings.Repeat("x", 500)
	from := func(i int) option {
		return func(s *spec) {
			s.Input = func(sc *dsl.Scope) (dsl.Value, error) { return sc.Step(i).One.Output, nil }
		}
	}
	vars := func(s *spec) { s.Input = func(sc *dsl.Scope) (dsl.Value, error) { return sc.Vars, nil } }
	wf := flow(do("a"), do("b", after("a")), do("c", after("a", "b"), from(0)), do("d", after("c"), vars))
	wf.Outputs = []dsl.Output{{Name: "first", Value: func(sc *dsl.Scope) (dsl.Value, error) { return sc.Step(0).One.Output, nil }}}
	p := &play{t: t, wf: wf, s: machine.NewState(), twin: machine.NewState(), plain: machine.NewState(), now: noon}
	secret := dsl.NewValue([]byte(`{"email":"`+long+`"}`), []string{"/email"}, nil)
	p.event(machine.Started{RunID: 42, Name: "o-42", Vars: secret}, "do a")
	if !p.last.Sensitive() {
		t.Error("the record that holds the variables must be sensitive")
	}
	p.okWith("a", `{"out":"`+long+`"}`, "do b")
	p.okWith("b", `{"n":1}`, "do c")
	if n := len(p.j.rows[len(p.j.rows)-1]); n > 150 {
		t.Errorf("the record holds %d bytes although c's input is a's output", n)
	}
	if in := string(p.call("c", 0).Input.JSON()); in != `{"out":"`+long+`"}` {
		t.Errorf("got input of %d bytes", len(in))
	}
	p.okWith("c", `{"n":2}`, "do d")
	if n := len(p.j.rows[len(p.j.rows)-1]); n > 150 {
		t.Errorf("the record holds %d bytes although d's input are the variables", n)
	}
	if p.last.Sensitive() {
		t.Error("a reference is not sensitive by itself")
	}
	if got := p.call("d", 0).Input.Sensitive(); len(got) != 1 || got[0] != "/email" {
		t.Errorf("got marks %v", got)
	}
	p.okWith("d", `{"n":3}`).is("succeeded")
	if got := string(story.Outputs(p.twin)[0].Value.JSON()); got != `{"out":"`+long+`"}` {
		t.Errorf("got an output of %d bytes from the journal", len(got))
	}
}

// Values of a set's elements need no bytes; odd keys survive all the same.
func TestValuesOfSets(t *testing.T) {
	p := start(t, flow(do("a", each("plain", "q\"uote", "ünï", "<tag>", ""))), "do a[plain]", `do a[q"uote]`, "do a[ünï]", "do a[<tag>]", "do a")
	for i, want := range []string{`"plain"`, `"q\"uote"`, `"ünï"`, `"<tag>"`, `""`} {
		if got := string(p.twin.Nodes()[1+i].Each.V.JSON()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// The state shared between two decisions is never shared between two states.
func TestCloneIsIndependent(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"))), "do a")
	c := p.s.Clone()
	before := string(snapshot(c))
	p.ok("a", "do b")
	p.ok("b").is("succeeded")
	if string(snapshot(c)) != before {
		t.Error("the clone has changed")
	}
}

// Cached results of a record that never landed must not be seen later.
func TestDecisionsThatNeverLandLeaveNoTrace(t *testing.T) {
	wf := flow(do("a", each("k")), do("b", after("a")))
	p := start(t, wf, "do a[k]")
	id := p.call("a[k]", 0).Attempt
	machine.Decide(wf, p.s, machine.Input{At: noon, Event: machine.AttemptOK{Attempt: id, Output: js(`{"id":"lost"}`)}})
	foldOnly := machine.Decide(wf, p.s.Clone(), machine.Input{At: noon, Event: machine.TakenOver{By: 2}})
	machine.Decide(wf, p.s, machine.Input{At: noon, Event: machine.AttemptOK{Attempt: id, Output: js(`{"id":"lost"}`)}})
	p.s.Apply(foldOnly) // somebody else's record came first
	p.twin.Apply(foldOnly)
	p.plain.Apply(foldOnly)
	p.okWith("a[k]", `{"id":"kept"}`, "do b")
	if in := string(p.call("b", 0).Input.JSON()); in != `{"step":"b","in0":[{"id":"kept"}]}` {
		t.Errorf("got %s", in)
	}
}
