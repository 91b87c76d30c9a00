package machine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// S9: every state has a name of its own that reads back.
func TestStatesHaveNames(t *testing.T) {
	for s := status.RunState(0); s < 20; s++ {
		if back, ok := status.ParseRunState(s.String()); ok && back != s {
			t.Errorf("%d reads back as %d", s, back)
		}
	}
	if status.RunInvalid.String() != "RunState(0)" || status.StepInvalid.String() != "StepState(0)" || status.Effect(9).String() != "Effect(9)" {
		t.Error("invalid values must show as such")
	}
	if _, ok := status.ParseRunState("RunState(0)"); ok {
		t.Error("an invalid name must not parse")
	}
}

func TestStatesFailedAndCompensated(t *testing.T) {
	p := start(t, flow(do("a")), "do a")
	p.fail("a", "declined").is("failed") // nothing to undo
	p = start(t, flow(do("a", lookup), do("b")), "do a", "do b")
	p.fail("b", "declined")
	p.unknown("a", "agent_lost", "lookup a")
	p.notDone("a").is("failed") // it turned out that there was nothing to undo
}

// Promise 3: final states absorb.
func TestStatesFinalAbsorb(t *testing.T) {
	p := start(t, flow(do("a")), "do a")
	id := p.call("a", 0).Attempt
	p.ok("a").is("succeeded")
	for _, ev := range []machine.Event{
		machine.TimePassed{}, machine.SlotsFreed{}, machine.TakenOver{By: 3}, machine.AttemptOK{Attempt: id}, machine.AttemptUnknown{Attempt: id}, machine.CancelRequested{},
		machine.PauseRequested{}, machine.ResumeRequested{}, machine.RetryRequested{}, machine.CompensateRequested{}, machine.SettleRequested{}, machine.Started{RunID: 3}, nil,
	} {
		p.event(ev).nothing().is("succeeded")
	}
}

func TestStatesNothingBeforeStarted(t *testing.T) {
	wf := flow(do("a"))
	for _, ev := range []machine.Event{machine.TimePassed{}, machine.TakenOver{By: 1}, machine.AttemptOK{}, machine.CancelRequested{}, machine.Started{}} {
		rec := machine.Decide(wf, machine.NewState(), machine.Input{At: noon, Event: ev})
		if rec.Delta().Run != nil || len(rec.Delta().Nodes) > 0 || len(rec.Commands()) > 0 {
			t.Errorf("%T did something to a run that does not exist", ev)
		}
	}
}

// Before dispatch an expression that fails fails the step, not the machine.
func TestExpressionErrorsBeforeDispatch(t *testing.T) {
	broken := map[string]option{
		"when":            func(s *spec) { s.When = func(*dsl.Scope) (bool, error) { return false, errBroken } },
		"for_each":        func(s *spec) { s.ForEach = func(*dsl.Scope) (dsl.Each, error) { return dsl.Each{}, errBroken } },
		"input":           func(s *spec) { s.Input = func(*dsl.Scope) (dsl.Value, error) { return dsl.Value{}, errBroken } },
		"idempotency_key": func(s *spec) { s.IdempotencyKey = func(*dsl.Scope) (string, error) { return "", errBroken } },
		"settings":        func(s *spec) { s.Settings = func(*dsl.Scope) (*dsl.Settings, error) { return nil, errBroken } },
		"precondition": func(s *spec) {
			s.Pre = []dsl.Condition{{Check: func(*dsl.Scope) (bool, error) { return false, errBroken }}}
		},
	}
	for name, breaks := range broken {
		t.Run(name, func(t *testing.T) {
			p := start(t, flow(do("a", tries(5), on("expression_error"), breaks)))
			p.is("failed").failure("a expression_error").effects("a none")
			p = start(t, flow(do("a", catch("", "expression_error"), breaks), do("b", after("a"))), "do b")
			p.state("a caught")
		})
	}
}

func TestExpressionErrorsOfConditions(t *testing.T) {
	p := start(t, flow(do("a", pre(false))))
	p.is("failed").failure("a precondition_failed")
	a := do("a")
	a.Post = []dsl.Condition{{Check: func(*dsl.Scope) (bool, error) { return false, errBroken }}}
	p = start(t, flow(a), "do a")
	p.ok("a", "undo a").failure("a postcondition_failed")
}

func TestExpressionErrorsInPreconditionAreBounded(t *testing.T) {
	p := start(t, flow(do("a", pre(false), tries(3), on("precondition_failed"))))
	p.wait(second(1)).wait(second(2)).is("failed")
}

func TestExpressionErrorsInCatchOutput(t *testing.T) {
	a := do("a", catch("", "declined"))
	a.Catch.Output = func(*dsl.Scope) (dsl.Value, error) { return dsl.Value{}, errBroken }
	p := start(t, flow(a), "do a")
	p.fail("a", "declined").is("failed").failure("a declined") // the original failure stands
}

func TestExpressionErrorsInCompensate(t *testing.T) {
	a := do("a")
	a.Undo.Input = func(*dsl.Scope) (dsl.Value, error) { return dsl.Value{}, errBroken }
	p := start(t, flow(a, do("b", after("a"))), "do a")
	p.ok("a", "do b")
	p.fail("b", "declined", "alert compensation_failed").state("a undo_failed")
	if v := p.view("a"); v.UndoCode != machine.CodeExpression {
		t.Errorf("got %q", v.UndoCode)
	}
}

func TestExpressionErrorsInDeadlines(t *testing.T) {
	wf := flow(do("a"))
	wf.Deadline = func(*dsl.Scope) (dsl.Limit, error) { return dsl.Limit{}, errBroken }
	start(t, wf).is("failed").failure("expression_error")
	wf = flow(do("a"), do("b", after("a")))
	wf.CompensationDeadline = func(*dsl.Scope) (dsl.Limit, error) { return dsl.Limit{}, errBroken }
	p := start(t, wf, "do a")
	p.ok("a", "do b")
	p.fail("b", "declined", "undo a")
	if got := p.s.Run().UndoDeadline.Time().Sub(noon); got != machine.DefaultCompensation {
		t.Errorf("got %v, want the default", got)
	}
}

// S87: the story of a run, told from its records.
func TestFactsTellTheStory(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"), tries(2))), "do a")
	p.ok("a", "do b")
	p.fail("b", "flaky")
	p.wait(second(1), "do b")
	p.permanent("b", "declined", "undo a")
	p.ok("a")
	var got []string
	for _, f := range p.facts {
		got = append(got, fmt.Sprintf("%s %s %d/%d %s %s", f.Kind, f.Step, f.Attempt, f.Of, f.Status, f.Code))
	}
	want := []string{
		"run_created  0/0  ",
		"attempt_started a 1/1  ",
		"attempt_finished a 1/1 ok ",
		"step_finished a 1/0 succeeded ",
		"attempt_started b 1/2  ",
		"attempt_finished b 1/2 failed flaky",
		"retry_scheduled b 2/2  flaky",
		"attempt_started b 2/2  ",
		"attempt_finished b 2/2 failed declined",
		"step_finished b 2/0 failed declined",
		"run_turned b 0/0  declined",
		"undo_started a 0/0  ",
		"attempt_started a 1/-1  ",
		"attempt_finished a 1/-1 ok ",
		"undo_finished a 1/0 undone ",
		"run_finished b 0/0 compensated declined",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// The same story is told from the journal's bytes.
func TestFactsFromTheJournal(t *testing.T) {
	p := start(t, flow(do("a", each("k", "l")), do("b", after("a"))), "do a[k]", "do a[l]")
	p.ok("a[k]")
	p.ok("a[l]", "do b")
	p.event(machine.CancelRequested{By: "ann"})
	p.fail("b", "aborted", "undo a[k]", "undo a[l]")
	s := machine.NewState()
	var told []story.Fact
	for _, row := range p.j.rows {
		records, err := wire.Decode(row)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			told = append(told, story.Facts(p.wf, s, r)...)
			s.Apply(r)
		}
	}
	if a, b := fmt.Sprint(told), fmt.Sprint(p.facts); a != b {
		t.Errorf("got %s\nwant %s", a, b)
	}
}

func TestRecordRows(t *testing.T) {
	wf := flow(do("a", each("k", "l")))
	s := machine.NewState()
	rec := machine.Decide(wf, s, machine.Input{At: noon, Event: machine.Started{RunID: 1, Name: "r"}})
	names := rec.NewNodes()
	if len(names) != 2 || names[0] != (model.InstanceName{Node: 1, Step: 0, Name: `a["k"]`}) {
		t.Errorf("got %+v", names)
	}
	rows := rec.Steps(s)
	if len(rows) != 3 || rows[0].State != status.StepWaiting || rows[1] != (machine.StepRow{Node: 1, State: status.StepRunning, Attempt: 1, CompleteBy: noon.Add(second(30))}) {
		t.Errorf("got %+v", rows) // S10: what runs has a complete-by
	}
	if st, changed := rec.RunState(); !changed || st != status.RunRunning {
		t.Errorf("got %v %v", st, changed)
	}
}

func TestRecordSensitive(t *testing.T) {
	marked := dsl.NewValue([]byte(`{"email":"ann@example.org"}`), []string{"/email"}, nil)
	secret := dsl.NewValue([]byte(`{"h":null}`), nil, []dsl.Secret{{Path: "/h", Parts: []dsl.SecretPart{{Text: "Bearer "}, {Ref: "env:T"}}}})
	ref := dsl.NewValue([]byte(`{"h":null}`), nil, []dsl.Secret{{Path: "/h", Parts: []dsl.SecretPart{{Ref: "env:T"}}}})
	for _, tc := range []struct {
		v    dsl.Value
		want bool
	}{{marked, true}, {secret, true}, {ref, false}, {js(`{"a":1}`), false}} {
		a := do("a")
		a.Input = func(*dsl.Scope) (dsl.Value, error) { return tc.v, nil }
		rec := machine.Decide(flow(a), machine.NewState(), machine.Input{At: noon, Event: machine.Started{RunID: 1, Name: "r"}})
		if got := rec.Sensitive(); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.v.JSON(), got, tc.want)
		}
	}
}
