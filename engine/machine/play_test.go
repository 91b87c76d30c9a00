package machine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/moving"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// A play is a run told as a transcript: each line is an event and the commands
// that it must lead to, no more and no fewer. Commands are written "do a",
// "do a[k]", "undo a", "lookup a", "stop a" and "alert KIND". Every record goes
// through the codec into a second state on the way.
type play struct {
	t     *testing.T
	wf    *dsl.Workflow
	s     *machine.State
	twin  *machine.State // folded from bytes, record by record
	plain *machine.State // folded from bytes alone
	mem   wire.Reader
	j     journal
	now   time.Time
	slots map[string]machine.Slot
	last  machine.Record
	past0 *moving.Past // the run from which the run is restarted; only for its first event

	ceilings machine.Ceilings
	stored   int64
	calls    []machine.Invoke
	facts    []story.Fact
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// start accepts a run at noon.
func start(t *testing.T, wf *dsl.Workflow, want ...string) *play {
	t.Helper()
	return startWith(t, wf, nil, want...)
}

func startWith(t *testing.T, wf *dsl.Workflow, slots map[string]machine.Slot, want ...string) *play {
	t.Helper()
	p := newPlay(t, wf, slots)
	p.event(machine.Started{RunID: 42, Name: "o-42", Key: "k", Vars: js(`{"x":1}`), Trigger: "manual", StartedBy: "ann"}, want...)
	return p
}

// newPlay returns a play of a run that is not accepted yet.
func newPlay(t *testing.T, wf *dsl.Workflow, slots map[string]machine.Slot) *play {
	return &play{t: t, wf: wf, s: machine.NewState(), twin: machine.NewState(), plain: machine.NewState(), now: noon, slots: slots}
}

// event delivers an event now.
func (p *play) event(e machine.Event, want ...string) *play {
	p.t.Helper()
	rec, err := decideTwice(p.wf, p.s, machine.Input{At: p.now, Event: e, Slots: p.slots, Ceilings: p.ceilings, Journal: p.stored, Past: p.past0})
	if err != nil {
		p.t.Fatal(err)
	}
	p.last = rec
	p.facts = append(p.facts, story.Facts(p.wf, p.s, rec)...)
	var got []string
	for _, c := range rec.Commands() {
		switch c := c.(type) {
		case machine.Invoke:
			p.calls = append(p.calls, c)
			got = append(got, verb(c.Purpose)+" "+p.node(c))
		case machine.Stop:
			how := "stop "
			if c.NoCompensate {
				how = "leave "
			}
			got = append(got, how+p.nameOf(c.Attempt.Node))
		case machine.PauseChild:
			how := "resume "
			if c.On {
				how = "pause "
			}
			got = append(got, how+p.nameOf(c.Attempt.Node))
		case machine.Alert:
			got = append(got, "alert "+c.Kind)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		p.t.Fatalf("%s %T: got commands %q, want %q\n%s", p.now.Format("15:04:05"), e, got, want, p.dump())
	}
	if rec.Empty() {
		return p
	}
	if err := p.j.append(rec); err != nil {
		p.t.Fatal(err)
	}
	p.s.Apply(rec)
	if err := foldRow(p.twin, p.j.rows[len(p.j.rows)-1]); err != nil {
		p.t.Fatal(err)
	}
	if _, err := foldCounted(&p.mem, p.plain, p.wf, p.j.rows[len(p.j.rows)-1], nil); err != nil {
		p.t.Fatal(err)
	}
	for _, twin := range []*machine.State{p.twin, p.plain} {
		if err := sameFold(p.s, twin); err != nil {
			p.t.Fatal(err)
		}
	}
	return p
}

func verb(p sdk.Purpose) string {
	return map[sdk.Purpose]string{sdk.PurposeDo: "do", sdk.PurposeUndo: "undo", sdk.PurposeLookup: "lookup"}[p]
}

func (p *play) node(c machine.Invoke) string {
	name := p.wf.Steps[c.Step].Name
	if c.Key != "" {
		name += "[" + c.Key + "]"
	}
	return name
}

func (p *play) nameOf(i int) string {
	return strings.ReplaceAll(story.Node(p.s, p.wf, i).Name, `"`, "")
}

// call returns the newest call of a node that the machine still waits for, or
// with a number the call of that number.
func (p *play) call(node string, number int) machine.Invoke {
	p.t.Helper()
	for k := len(p.calls) - 1; k >= 0; k-- {
		c := p.calls[k]
		if p.node(c) != node || number != 0 && c.Attempt.Call != number {
			continue
		}
		if a := p.s.Nodes()[c.Attempt.Node].Find(c.Attempt.Call); number != 0 || a != nil && a.Status == model.AttemptOpen {
			return c
		}
	}
	p.t.Fatalf("no call of %s is in flight\n%s", node, p.dump())
	return machine.Invoke{}
}

func (p *play) ok(node string, want ...string) *play {
	p.t.Helper()
	return p.okWith(node, fmt.Sprintf(`{"id":"%s-1"}`, node), want...)
}

func (p *play) okWith(node, output string, want ...string) *play {
	p.t.Helper()
	return p.event(machine.AttemptOK{Attempt: p.call(node, 0).Attempt, Output: js(output)}, want...)
}

func (p *play) fail(node, code string, want ...string) *play {
	p.t.Helper()
	return p.event(machine.AttemptFailed{Attempt: p.call(node, 0).Attempt, Code: code, Message: "the agent says " + code}, want...)
}

func (p *play) permanent(node, code string, want ...string) *play {
	p.t.Helper()
	return p.event(machine.AttemptFailed{Attempt: p.call(node, 0).Attempt, Code: code, Permanent: true}, want...)
}

func (p *play) unknown(node, code string, want ...string) *play {
	p.t.Helper()
	return p.event(machine.AttemptUnknown{Attempt: p.call(node, 0).Attempt, Code: code}, want...)
}

func (p *play) notDone(node string, want ...string) *play {
	p.t.Helper()
	return p.event(machine.AttemptNotDone{Attempt: p.call(node, 0).Attempt}, want...)
}

// wait lets time pass, as the Supervisor would say it: every due time on the
// way is delivered.
func (p *play) wait(d time.Duration, want ...string) *play {
	p.t.Helper()
	end := p.now.Add(d)
	for {
		due, ok := p.s.NextDue()
		if !ok || due.After(end) {
			break
		}
		if due.Before(p.now) {
			due = p.now
		}
		p.now = due
		if due.Equal(end) {
			break
		}
		p.event(machine.TimePassed{}) // nothing may be commanded before the end
	}
	p.now = end
	return p.event(machine.TimePassed{}, want...)
}

// state checks the states of nodes, written "a succeeded".
func (p *play) state(want ...string) *play {
	p.t.Helper()
	for _, w := range want {
		name, state, _ := strings.Cut(w, " ")
		i := p.find(name)
		if got := story.Node(p.s, p.wf, i).State.String(); got != state {
			p.t.Fatalf("%s: got state %s, want %s\n%s", name, got, state, p.dump())
		}
	}
	return p
}

// effects checks the effects of nodes, written "a maybe".
func (p *play) effects(want ...string) *play {
	p.t.Helper()
	for _, w := range want {
		name, effect, _ := strings.Cut(w, " ")
		if got := story.Node(p.s, p.wf, p.find(name)).Effect.String(); got != effect {
			p.t.Fatalf("%s: got effect %s, want %s", name, got, effect)
		}
	}
	return p
}

func (p *play) find(name string) int {
	p.t.Helper()
	for i := range p.s.Nodes() {
		if p.nameOf(i) == name {
			return i
		}
	}
	p.t.Fatalf("no node %s", name)
	return -1
}

// view returns the view of a node.
func (p *play) view(name string) story.NodeView {
	p.t.Helper()
	return story.Node(p.s, p.wf, p.find(name))
}

// is checks the state of the run.
func (p *play) is(want string) *play {
	p.t.Helper()
	if got := p.s.Status().String(); got != want {
		p.t.Fatalf("got run %s, want %s\n%s", got, want, p.dump())
	}
	return p
}

// failure checks what turned the run, written "step code".
func (p *play) failure(want string) *play {
	p.t.Helper()
	f := p.s.Failure()
	if got := strings.TrimSpace(f.Step + " " + f.Code); got != want {
		p.t.Fatalf("got failure %q, want %q", got, want)
	}
	return p
}

// refused checks that the last event was refused with a reason that contains
// the text, and that nothing changed.
func (p *play) refused(text string) *play {
	p.t.Helper()
	r, ok := p.last.Refused()
	if !ok || !strings.Contains(r.Reason, text) {
		p.t.Fatalf("got %+v, want a refusal with %q", p.last.Event(), text)
	}
	if p.last.Delta().Run != nil || len(p.last.Delta().Nodes) > 0 {
		p.t.Fatalf("a refused verb changed something")
	}
	return p
}

// nothing checks that the last event changed nothing.
func (p *play) nothing() *play {
	p.t.Helper()
	if !p.last.Empty() {
		p.t.Fatalf("%T changed something", p.last.Event())
	}
	return p
}

func (p *play) dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s failure %+v\n", p.s.Status(), p.s.Failure())
	for v := range story.Nodes(p.s, p.wf) {
		fmt.Fprintf(&b, "  %-14s %-12s effect %-5s code %q undo %q until %v\n", v.Name, v.State, v.Effect, v.Code, v.UndoCode, v.Until)
	}
	return b.String()
}
