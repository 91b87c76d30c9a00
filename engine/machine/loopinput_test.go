package machine_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
)

// storesArguments makes the action of a loop a declared action whose arguments depend on
// self.previous: they are the input of the plugin's action in an object. The undo reads self.input.
// Its value is wrong if the engine gives the expression another input than the last call had.
func storesArguments(s *spec) {
	arguments := func(sc *dsl.Scope) (dsl.Value, error) {
		in, err := s.Input(sc)
		return argumentsFor(in), err
	}
	s.Given, s.Do.Keyed = arguments, true
	if s.Undo == nil {
		return
	}
	undo := s.Undo.Input
	s.Undo.Input = func(sc *dsl.Scope) (dsl.Value, error) {
		if got, want := string(sc.Self.Given.JSON()), string(argumentsFor(sc.Self.Input).JSON()); got != want {
			panic(fmt.Sprintf("step %s: self.input in compensate is %s, and the arguments of the last call were %s", s.Name, got, want))
		}
		return undo(sc)
	}
}

// argumentsFor returns the arguments of a declared action that made this input of the plugin's action.
func argumentsFor(input dsl.Value) dsl.Value {
	if input.IsNull() {
		return input
	}
	return js(`{"arguments":` + string(input.JSON()) + `}`)
}

// The undo of a loop reads self.input of the last call. When the undo is evaluated, self.previous and
// self.collected have other values than before this call, so the run must store the arguments.
func TestUndoOfALoopSeesTheLastArguments(t *testing.T) {
	shown := func(s *spec) {
		storesArguments(s)
		checked := s.Undo.Input
		s.Undo.Input = func(sc *dsl.Scope) (dsl.Value, error) {
			if _, err := checked(sc); err != nil {
				return dsl.Value{}, err
			}
			return sc.Self.Given, nil
		}
	}
	const first, second = `{"arguments":{"step":"a","previous":null}}`, `{"arguments":{"step":"a","previous":{"n":1}}}`
	loop := repeat(dsl.Repeat{Collect: output}, 2)
	paused := repeat(dsl.Repeat{Collect: output, Interval: every(time.Minute)}, 3)
	for _, tt := range []struct {
		name string
		play func() *play
		want string
	}{
		{"the loop has ended", func() *play {
			p := start(t, flow(do("a", loop, shown), do("b", after("a"))), "do a")
			return p.okWith("a", `{"n":1}`, "do a").okWith("a", `{"n":2}`, "do b").permanent("b", "declined", "undo a")
		}, second},
		{"the run turns back in the first iteration", func() *play {
			p := start(t, flow(do("a", loop, shown)), "do a")
			return p.event(machine.CancelRequested{}).okWith("a", `{"n":1}`, "undo a")
		}, first},
		{"the run turns back between two iterations", func() *play {
			p := start(t, flow(do("a", paused, shown)), "do a")
			p.okWith("a", `{"n":1}`).wait(time.Minute, "do a").okWith("a", `{"n":2}`)
			return p.event(machine.CancelRequested{}, "undo a")
		}, second},
		{"the next iteration made no call", func() *play {
			s := do("a", loop, shown)
			s.Pre = append(s.Pre, condition(func(sc *dsl.Scope) (bool, error) { return sc.Self.Previous.IsNull(), nil }, "precondition_failed"))
			return start(t, flow(s), "do a").okWith("a", `{"n":1}`, "undo a")
		}, first},
		{"the loop ended because of when", func() *play {
			s := do("a", paused, shown)
			s.When = func(sc *dsl.Scope) (bool, error) { return count(sc) < 2, nil }
			p := start(t, flow(s, do("b", after("a"))), "do a").okWith("a", `{"n":1}`).wait(time.Minute, "do a").okWith("a", `{"n":2}`)
			return p.wait(time.Minute, "do b").permanent("b", "declined", "undo a")
		}, second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := tt.play()
			if got := string(p.call("a", 0).Input.JSON()); got != tt.want {
				t.Errorf("self.input of the undo is %s, want %s", got, tt.want)
			}
		})
	}
}

// The record of the next iteration has the arguments again. A reader of the journal still finds them,
// although the node from whose output they were shared has another output now.
func TestStoredArgumentsOutliveTheNodeTheyWereSharedFrom(t *testing.T) {
	s := do("a", readOnly, each("k", "l"), repeat(dsl.Repeat{Collect: output, Interval: every(15 * time.Second)}, 3))
	s.Given = func(sc *dsl.Scope) (dsl.Value, error) { return sc.Self.Previous, nil }
	long := `"a text that is worth sharing"`
	p := start(t, flow(s), "do a[k]", "do a[l]")
	p.okWith("a[k]", long).okWith("a[l]", long)
	p.wait(15*time.Second, "do a[k]", "do a[l]")
	p.okWith("a[k]", `"another text that is worth sharing"`).okWith("a[l]", `"the last text"`)
	if got := string(p.nodeOf("a[l]").Given.V.JSON()); got != long {
		t.Errorf("the arguments are %s, want %s", got, long)
	}
}

var updateArguments = flag.Bool("update-arguments", false, "write the golden journal of stored arguments anew")

// A journal with stored arguments, as the first engine that knew them wrote it, folds to the same states
// for ever.
func TestStoredArgumentsGoldenJournal(t *testing.T) {
	path := filepath.Join("testdata", "journal-v3-arguments.txt")
	if *updateArguments {
		loop := repeat(dsl.Repeat{Collect: output, Interval: every(15 * time.Second)}, 3)
		p := start(t, flow(do("a", each("k", "l"), loop, storesArguments), do("b")), "do a[k]", "do a[l]", "do b")
		long := `{"n":"a text that is worth sharing"}`
		p.okWith("a[k]", long).okWith("a[l]", long).event(machine.PauseRequested{By: "ann"}).event(machine.ResumeRequested{By: "ann"}).wait(15*time.Second, "do a[k]", "do a[l]")
		p.okWith("a[k]", `{"n":2}`).fail("b", "declined", "undo a[k]")
		p.ok("a[k]").okWith("a[l]", `{"n":3}`, "undo a[l]").ok("a[l]").is("compensated")
		if err := os.WriteFile(path, []byte(p.golden()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	foldGolden(t, path, 3)
}

// The arguments count for the ceiling of values, as the input does.
func TestStoredArgumentsCountAsValues(t *testing.T) {
	s := do("a", repeat(dsl.Repeat{}, 2))
	s.Given = func(*dsl.Scope) (dsl.Value, error) { return js(`"` + strings.Repeat("x", 1000) + `"`), nil }
	wf := flow(s)
	p := start(t, wf, "do a")
	if n := p.nodeOf("a"); n.Weight() < 1000 {
		t.Errorf("the node has %d bytes, and its arguments alone have 1000", n.Weight())
	}
	s.Given = func(*dsl.Scope) (dsl.Value, error) { return dsl.Value{}, errBroken }
	start(t, wf).is("failed").failure("a expression_error")
}

// The input of a declared action may use self.key together with self.previous and self.collected.
func TestInputWithAKeyInALoop(t *testing.T) {
	s := do("a", declared, repeat(dsl.Repeat{Collect: output}, 2))
	s.Input = func(sc *dsl.Scope) (dsl.Value, error) {
		return js(fmt.Sprintf(`[%q,%s,%s]`, sc.Self.Key, sc.Self.Previous.JSON(), collected(sc))), nil
	}
	p := start(t, flow(s), "do a").okWith("a", `{"id":1}`, "do a")
	if got, want := string(p.call("a", 0).Input.JSON()), fmt.Sprintf(`[%q,{"id":1},[{"id":1}]]`, p.key("a")); got != want {
		t.Errorf("the second input is %s, want %s", got, want)
	}
}

// self.signal is the name of the signal that ended this iteration of a wait.
func TestSignalOfAnIteration(t *testing.T) {
	seen := map[string]bool{} // a play makes each decision several times
	note := func(sc *dsl.Scope) { seen[fmt.Sprintf("%q %t", sc.Self.Signal, sc.Self.TimedOut)] = true }
	s := await("w", "vote end", goesOn, deadline(time.Hour), repeat(dsl.Repeat{
		Until:   func(sc *dsl.Scope) (bool, error) { return sc.Self.Signal == "end", nil },
		Collect: func(sc *dsl.Scope) (dsl.Value, error) { return js(`"` + sc.Self.Signal + `"`), nil },
	}, 0))
	s.Post = append(s.Post, condition(func(sc *dsl.Scope) (bool, error) { note(sc); return true, nil }, "postcondition_failed"))
	p := start(t, flow(s, do("b", after("w"))))
	p.signal("vote", `1`).state("w waiting").signal("end", `2`, "do b")
	if got, want := string(p.nodeOf("w").Collected.List().JSON()), `["vote","end"]`; got != want {
		t.Errorf("collected is %s, want %s", got, want)
	}
	p = start(t, flow(s, do("b", after("w"))))
	p.signal("vote", `1`).wait(time.Hour, "do b")
	if v := p.view("w"); v.Signal != "" {
		t.Errorf("the deadline has ended the wait, and the view says signal %q", v.Signal)
	}
	if want := map[string]bool{`"vote" false`: true, `"end" false`: true, `"" true`: true}; !maps.Equal(seen, want) {
		t.Errorf("the iterations saw %v, want %v", seen, want)
	}
}
