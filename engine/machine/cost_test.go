package machine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

// A course is a run on which one event after the other costs what it costs.
type course struct {
	wf   *dsl.Workflow
	s    *machine.State
	now  time.Time
	next func(*course) machine.Event

	scratch machine.Scratch
	encoder wire.Encoder
	rows    []machine.StepRow
	records []machine.Record
	row     []byte
}

// event does with the next event what an engine does with it.
func (c *course) event() {
	c.now = c.now.Add(time.Millisecond)
	if due, ok := c.s.NextDue(); ok && due.After(c.now) && c.next == nil {
		c.now = due
	}
	var ev machine.Event = machine.TimePassed{}
	if c.next != nil {
		ev = c.next(c)
	}
	rec := machine.Decide(c.wf, c.s, machine.Input{At: c.now, Event: ev, Scratch: &c.scratch})
	c.rows = rec.AppendSteps(c.rows[:0], c.s)
	countFacts(c.wf, c.s, rec)
	rec.Sensitive()
	c.s.Apply(rec)
	c.s.Status()
	c.s.NextDue()
	c.s.Held()
	c.s.InFlight()
	c.s.ExpiredAttempts(c.wf, c.now)
	c.records = append(c.records[:0], rec)
	row, err := c.encoder.Append(c.row[:0], c.records)
	if err != nil {
		panic(err)
	}
	c.row = row
}

// answers are prepared, so that only the machine's own memory is counted.
func answers(first, n int) []machine.Event {
	events := make([]machine.Event, n)
	for i := range events {
		events[i] = machine.AttemptOK{Attempt: machine.AttemptID{Node: first + i, Call: 1}, Output: payload(first + i)}
	}
	return events
}

func inTurn(events []machine.Event) func(*course) machine.Event {
	return func(*course) machine.Event {
		ev := events[0]
		events = events[1:]
		return ev
	}
}

// constant makes the steps' inputs cost nothing: expressions are not counted.
func constant(wf *dsl.Workflow) *dsl.Workflow {
	in := js(`{"x":1}`)
	for _, s := range wf.Steps {
		s.Input = func(*dsl.Scope) (dsl.Value, error) { return in, nil }
	}
	return wf
}

// wideCourse answers the calls of n instances one after the other.
func wideCourse(tb testing.TB, n, parallel int) *course {
	tb.Helper()
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%05d", i)
	}
	c := &course{wf: constant(flow(do("a", each(keys...), tries(3), parallelism(parallel)), do("b", after("a")))), s: machine.NewState(), now: noon}
	c.s.Apply(machine.Decide(c.wf, c.s, machine.Input{At: noon, Event: machine.Started{RunID: 1, Name: "wide"}}))
	c.next = inTurn(answers(2, n))
	return c
}

func parallelism(n int) option {
	if n == 0 {
		return func(*spec) {}
	}
	return parallel(n)
}

// longCourse goes along a chain of n steps, from the middle.
func longCourse(tb testing.TB, n int) *course {
	tb.Helper()
	c := &course{wf: constant(chain(n)), s: machine.NewState(), now: noon}
	c.s.Apply(machine.Decide(c.wf, c.s, machine.Input{At: noon, Event: machine.Started{RunID: 1, Name: "long"}}))
	c.next = inTurn(answers(0, n))
	for range n/2 - 1 {
		c.event()
	}
	return c
}

// stubbornCourse fails a step n times, and then goes on; an event is a failure or
// the end of a pause.
func stubbornCourse(tb testing.TB, n int) *course {
	tb.Helper()
	c := &course{wf: constant(flow(do("a", tries(dsl.Unbounded)), do("b", after("a")))), s: machine.NewState(), now: noon}
	c.s.Apply(machine.Decide(c.wf, c.s, machine.Input{At: noon, Event: machine.Started{RunID: 1, Name: "stubborn"}}))
	failures := make([]machine.Event, n+1000)
	for i := range failures {
		failures[i] = machine.AttemptFailed{Attempt: machine.AttemptID{Node: 0, Call: i + 1}, Code: "unavailable", Message: "no"}
	}
	var paused machine.Event = machine.TimePassed{}
	c.next = func(c *course) machine.Event {
		if due, ok := c.s.NextDue(); !c.s.InFlight() && ok {
			c.now = due
			return paused
		}
		ev := failures[0]
		failures = failures[1:]
		return ev
	}
	for range 2 * n {
		c.event()
	}
	return c
}

// An event of a run with 10,000 instances, 10,000 steps in a row or 10,000
// attempts costs what one of a small run does, and both cost little. The bounds
// leave two for the growth of what is kept.
func TestEventsCostTheSameInLargeRuns(t *testing.T) {
	for _, tt := range []struct {
		name   string
		make   func(testing.TB, int) *course
		small  int
		events int // of the small run
		most   float64
	}{
		{"instances", func(tb testing.TB, n int) *course { return wideCourse(tb, n, 0) }, 10, 8, 6},
		{"instances, five at a time", func(tb testing.TB, n int) *course { return wideCourse(tb, n, 5) }, 20, 12, 11},
		{"steps in a row", longCourse, 20, 8, 7},
		{"attempts", stubbornCourse, 20, 100, 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cost := func(n, events int) float64 {
				c := tt.make(t, n)
				return testing.AllocsPerRun(events, c.event)
			}
			small, large := cost(tt.small, tt.events), cost(10_000, 400)
			if small > tt.most || large > tt.most || large > 1.5*small {
				t.Errorf("%.0f allocations an event in a small run, %.0f in a large one; at most %.0f", small, large, tt.most)
			}
			t.Logf("%.0f allocations an event in a small run, %.0f in a large one", small, large)
		})
	}
}

// Counting facts costs no memory, nor does asking what the hot path asks.
func TestQuestionsCostNothing(t *testing.T) {
	wf, s, in := wide(t, 1000)
	rec := machine.Decide(wf, s, in)
	facts := story.Facts(wf, s, rec)
	rows := make([]machine.StepRow, 0, 4)
	for name, ask := range map[string]func(){
		"facts counted": func() {
			if n := countFacts(wf, s, rec); n != len(facts) || n == 0 {
				t.Errorf("%d facts counted, %d told", n, len(facts))
			}
		},
		"steps": func() {
			if rows = rec.AppendSteps(rows[:0], s); len(rows) != 1 || !slices.Equal(rows, rec.Steps(s)[:1]) {
				t.Errorf("got %d rows", len(rows))
			}
		},
		"status": func() { s.Status() }, "next due": func() { s.NextDue() }, "held": func() { s.Held() },
		"in flight": func() { s.InFlight() }, "expired": func() { s.ExpiredAttempts(wf, noon) }, "sensitive": func() { rec.Sensitive() },
	} {
		most := 0.0
		if name == "steps" {
			most = 1 // of Steps itself, which it is compared with
		}
		if got := testing.AllocsPerRun(100, ask); got > most {
			t.Errorf("%s: %.0f allocations", name, got)
		}
	}
}

// A fold asks for memory only for what the state keeps.
func TestFoldCosts(t *testing.T) {
	wf := chain(5)
	rows := chainRows(t, wf, 3)
	var scratch wire.Reader
	got := testing.AllocsPerRun(100, func() { foldPlain(t, &scratch, wf, rows) })
	if got > 30 {
		t.Errorf("%.0f allocations for four rows", got)
	}
	for _, n := range []int{10, 10_000} {
		wf, s, in := wide(t, n)
		row, err := wire.Encode([]machine.Record{machine.Decide(wf, s, in)})
		if err != nil {
			t.Fatal(err)
		}
		var scratch wire.Reader
		if got := testing.AllocsPerRun(100, func() {
			if _, err := foldCounted(&scratch, s, wf, row, nil); err != nil {
				t.Fatal(err)
			}
		}); got > 6 {
			t.Errorf("%.0f allocations to fold a row of a run of %d instances", got, n)
		}
	}
}

// What is asked for one call is found as among all.
func TestOpenAttempts(t *testing.T) {
	wf, s, _ := wide(t, 10)
	all := s.OpenAttempts(wf)
	if len(all) != 10 || !s.InFlight() {
		t.Fatalf("%d attempts are open", len(all))
	}
	for _, want := range all {
		if got, ok := s.OpenAttempt(wf, machine.AttemptID{Node: want.Node, Call: want.Call}); !ok || got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	for _, id := range []machine.AttemptID{{Node: -1}, {Node: 0, Call: 1}, {Node: 3, Call: 2}, {Node: 99, Call: 1}} {
		if _, ok := s.OpenAttempt(wf, id); ok {
			t.Errorf("%+v is found", id)
		}
	}
	by := all[0].CompleteBy
	if got := s.ExpiredAttempts(wf, by.Add(-time.Microsecond)); len(got) != 0 {
		t.Errorf("%d attempts are past their complete-by too early", len(got))
	}
	if got := s.ExpiredAttempts(wf, by); !slices.Equal(got, all) {
		t.Errorf("%d attempts are past their complete-by, want all", len(got))
	}
}

// Nothing is evaluated twice for an attempt.
func TestEvaluatedOnce(t *testing.T) {
	asked := map[string]int{}
	count := func(s *spec) {
		settings, input := s.Settings, s.Input
		s.Settings = func(sc *dsl.Scope) (*dsl.Settings, error) { asked[s.Name+" settings"]++; return settings(sc) }
		if input == nil {
			input = func(*dsl.Scope) (dsl.Value, error) { return js(`{"x":1}`), nil }
		}
		s.Input = func(sc *dsl.Scope) (dsl.Value, error) { asked[s.Name+" input"]++; return input(sc) }
		s.When = func(*dsl.Scope) (bool, error) { asked[s.Name+" when"]++; return true, nil }
		s.Pre = []dsl.Condition{condition(func(*dsl.Scope) (bool, error) { asked[s.Name+" pre"]++; return true, nil }, "x")}
		s.Post = []dsl.Condition{condition(func(*dsl.Scope) (bool, error) { asked[s.Name+" post"]++; return true, nil }, "x")}
		s.IdempotencyKey = func(*dsl.Scope) (string, error) { asked[s.Name+" key"]++; return "key-" + s.Name, nil }
		undo := s.Undo.Settings
		s.Undo.Settings = func(sc *dsl.Scope) (*dsl.Settings, error) { asked[s.Name+" undo settings"]++; return undo(sc) }
	}
	wf := flow(do("a", idempotent, heartbeat(second(25)), count), do("b", after("a"), tries(2), count))
	s := machine.NewState()
	now := noon
	expect := func(ev machine.Event, want map[string]int) {
		t.Helper()
		clear(asked)
		rec := machine.Decide(wf, s, machine.Input{At: now, Event: ev})
		s.Apply(rec)
		for name, n := range asked {
			if n > want[name] {
				t.Errorf("%T: %s evaluated %d times, want %d", ev, name, n, want[name])
			}
		}
		for name, n := range want {
			if asked[name] != n {
				t.Errorf("%T: %s evaluated %d times, want %d", ev, name, asked[name], n)
			}
		}
	}
	begins := func(name string) map[string]int {
		return map[string]int{name + " settings": 1, name + " input": 1, name + " when": 1, name + " pre": 1, name + " key": 1}
	}
	expect(machine.Started{RunID: 1, Name: "once"}, begins("a"))
	b := begins("b")
	b["a post"] = 1
	expect(machine.AttemptOK{Attempt: machine.AttemptID{Node: 0, Call: 1}, Output: js(`{"id":"1"}`)}, b)
	expect(machine.AttemptFailed{Attempt: machine.AttemptID{Node: 1, Call: 1}, Code: "unavailable"}, map[string]int{"b settings": 1})
	now, _ = s.NextDue()
	expect(machine.TimePassed{}, map[string]int{"b settings": 1})
	expect(machine.AttemptFailed{Attempt: machine.AttemptID{Node: 1, Call: 2}, Code: "gone", Permanent: true}, map[string]int{"b settings": 1, "a undo settings": 1})
}
