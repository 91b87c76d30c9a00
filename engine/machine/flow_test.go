package machine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// This file builds workflows in Go, as the linker would from HCL, for the
// other tests.

// A spec is a step before its name is resolved to a number.
type spec struct {
	*dsl.Step
	after    []string
	settings dsl.Settings
	undo     dsl.Settings
}

type option func(*spec)

// do makes a step with an action that is not idempotent and an undo that is
// and that needs the output.
func do(name string, options ...option) *spec {
	s := &spec{
		Step: &dsl.Step{
			Name: name, Where: name + ".hcl:1",
			Do:        &dsl.Action{Agent: "shop", Name: name, Output: anyOutput},
			Retryable: func(code string) bool { return code == "flaky" },
		},
		settings: dsl.Settings{Timeout: 30 * time.Second, Retry: retry(1)},
		undo:     dsl.Settings{Timeout: 30 * time.Second, Retry: retry(dsl.Unbounded)},
	}
	s.undo.Retry.MaxInterval = 5 * time.Minute
	s.Undo = &dsl.Undo{
		Do:       &dsl.Action{Agent: "shop", Name: "un" + name, Idempotent: true, Output: anyOutput},
		UsesSelf: true,
		Retryable: func(code string) bool {
			return code == "flaky"
		},
		Input: func(sc *dsl.Scope) (dsl.Value, error) {
			if sc.Self == nil || sc.Failure == nil {
				return dsl.Value{}, errors.New("self and failure must be set")
			}
			all := ""
			if sc.Self.Collected != nil {
				all = fmt.Sprintf(`,"all":%s`, sc.Self.Collected().JSON())
			}
			return js(fmt.Sprintf(`{"undo":%q,"of":%s%s}`, name, sc.Self.Output.JSON(), all)), nil
		},
	}
	s.Settings = func(*dsl.Scope) (*dsl.Settings, error) { return &s.settings, nil }
	s.Undo.Settings = func(*dsl.Scope) (*dsl.Settings, error) { return &s.undo, nil }
	for _, o := range options {
		o(s)
	}
	return s
}

func retry(attempts int) dsl.Retry {
	return dsl.Retry{
		MaxAttempts: attempts, Strategy: dsl.Exponential,
		InitialInterval: time.Second, Multiplier: 2, MaxInterval: 30 * time.Second,
		CoolDown: 15 * time.Minute, CoolDowns: 3,
	}
}

func anyOutput(data []byte) (dsl.Value, error) {
	if string(data) == `"bad"` {
		return dsl.Value{}, errors.New("not what the schema says")
	}
	return dsl.NewValue(data, nil, nil), nil
}

func js(text string) dsl.Value { return dsl.NewValue([]byte(text), nil, nil) }

func after(steps ...string) option { return func(s *spec) { s.after = append(s.after, steps...) } }
func idempotent(s *spec)           { s.Do.Idempotent = true; s.settings.Retry.MaxAttempts = 3 }
func readOnly(s *spec) {
	s.Do.ReadOnly, s.Do.Idempotent = true, true
	s.settings.Retry.MaxAttempts = 3
	s.Undo, s.NoUndo = nil, true
}
func lookup(s *spec)        { s.Do.Lookup = true }
func cancellable(s *spec)   { s.Do.Cancellable = true }
func undoByKey(s *spec)     { s.Undo.Do.ByKey = true }
func undoBlind(s *spec)     { s.Undo.UsesSelf = false }
func undoOnce(s *spec)      { s.Undo.Do.Idempotent = false }
func undoLookup(s *spec)    { s.Undo.Do.Lookup = true }
func noUndo(s *spec)        { s.Undo, s.NoUndo = nil, true }
func pivot(s *spec)         { s.Pivot = true }
func agent(a string) option { return func(s *spec) { s.Do.Agent = a } }

func tries(n int) option                  { return func(s *spec) { s.settings.Retry.MaxAttempts = n } }
func on(codes ...string) option           { return func(s *spec) { s.settings.Retry.On = codes } }
func notOn(codes ...string) option        { return func(s *spec) { s.settings.Retry.NotOn = codes } }
func exhausted(e dsl.Exhausted) option    { return func(s *spec) { s.settings.Retry.OnExhausted = e } }
func timeout(d time.Duration) option      { return func(s *spec) { s.settings.Timeout = d } }
func deadline(d time.Duration) option     { return func(s *spec) { s.settings.Deadline.After = d } }
func undoDeadline(d time.Duration) option { return func(s *spec) { s.undo.Deadline.After = d } }
func parallel(n int) option               { return func(s *spec) { s.settings.MaxParallel = n } }
func undoTries(n int) option              { return func(s *spec) { s.undo.Retry.MaxAttempts = n } }

func maxFailures(n int) option {
	return func(s *spec) { s.settings.MaxFailures = func(int) int { return n } }
}

func when(yes bool) option {
	return func(s *spec) { s.When = func(*dsl.Scope) (bool, error) { return yes, nil } }
}

func whenKey(keys ...string) option {
	return func(s *spec) {
		s.WhenEach = func(sc *dsl.Scope) (bool, error) { return slices.Contains(keys, sc.Each.Key), nil }
	}
}

func each(keys ...string) option {
	return func(s *spec) {
		s.ForEach = func(*dsl.Scope) (dsl.Each, error) {
			e := dsl.Each{Keys: keys}
			for _, k := range keys {
				e.Values = append(e.Values, js(fmt.Sprintf("%q", k)))
			}
			return e, nil
		}
	}
}

func catch(output string, codes ...string) option {
	return func(s *spec) {
		s.Catch = &dsl.Catch{Errors: func(*dsl.Scope) ([]string, error) { return codes, nil }}
		if output != "" {
			s.Catch.Output = func(*dsl.Scope) (dsl.Value, error) { return js(output), nil }
		}
	}
}

func condition(ok func(*dsl.Scope) (bool, error), code string) dsl.Condition {
	return dsl.Condition{
		Check:   ok,
		Code:    func(*dsl.Scope) (string, error) { return code, nil },
		Message: func(*dsl.Scope) (string, error) { return "it does not hold", nil },
	}
}

func pre(ok bool) option {
	return func(s *spec) {
		s.Pre = append(s.Pre, condition(func(*dsl.Scope) (bool, error) { return ok, nil }, "precondition_failed"))
	}
}

// post fails for outputs that hold the word "poor".
func post(s *spec) {
	s.Post = append(s.Post, condition(func(sc *dsl.Scope) (bool, error) {
		return !strings.Contains(string(sc.Self.Output.JSON()), `"poor"`), nil
	}, "postcondition_failed"))
}

var errBroken = errors.New("attribute of null")

// A tweak changes a workflow as a whole.
type tweak func(*dsl.Workflow)

func runDeadline(d time.Duration) tweak {
	return func(wf *dsl.Workflow) {
		wf.Deadline = func(*dsl.Scope) (dsl.Limit, error) { return dsl.Limit{After: d}, nil }
	}
}

func compensationDeadline(d time.Duration) tweak {
	return func(wf *dsl.Workflow) {
		wf.CompensationDeadline = func(*dsl.Scope) (dsl.Limit, error) { return dsl.Limit{After: d}, nil }
	}
}

func manual(wf *dsl.Workflow) { wf.CompensationMode = dsl.ModeManual }

// flow links steps to a workflow. Items are *spec and tweak.
func flow(items ...any) *dsl.Workflow {
	wf := &dsl.Workflow{Name: "order", Pivot: -1, CompensationMode: dsl.ModeAutomatic, Shortest: time.Second}
	number := map[string]int{}
	var specs []*spec
	for _, it := range items {
		if s, ok := it.(*spec); ok {
			number[s.Name] = len(specs)
			specs = append(specs, s)
		}
	}
	for i, s := range specs {
		s.Index = i
		for _, name := range s.after {
			j, ok := number[name]
			if !ok || j == i {
				panic("unknown step " + name)
			}
			if !slices.Contains(s.After, j) {
				s.After = append(s.After, j)
				specs[j].Before = append(specs[j].Before, i)
			}
		}
		slices.Sort(s.After)
		if s.Pivot {
			wf.Pivot = i
		}
		if s.Input == nil {
			s.Input = inputOf(s)
		}
		wf.Steps = append(wf.Steps, s.Step)
	}
	for _, s := range specs {
		slices.Sort(s.Before)
	}
	wf.Order = topological(wf)
	for _, it := range items {
		switch f := it.(type) {
		case tweak:
			f(wf)
		case func(*dsl.Workflow):
			f(wf)
		}
	}
	return wf
}

// inputOf is an input that reads the outputs of all dependencies.
func inputOf(s *spec) func(*dsl.Scope) (dsl.Value, error) {
	return func(sc *dsl.Scope) (dsl.Value, error) {
		text := fmt.Sprintf(`{"step":%q`, s.Name)
		if sc.Self != nil {
			text += fmt.Sprintf(`,"previous":%s`, sc.Self.Previous.JSON())
		}
		if sc.Each != nil {
			text += fmt.Sprintf(`,"key":%q`, sc.Each.Key)
		}
		for _, i := range s.After {
			r := sc.Step(i)
			text += fmt.Sprintf(`,"in%d":`, i)
			if !r.Each {
				text += string(r.One.Output.JSON())
				continue
			}
			text += "["
			for k, one := range r.Instances {
				if k > 0 {
					text += ","
				}
				text += string(one.Output.JSON())
			}
			text += "]"
		}
		return js(text + "}"), nil
	}
}

func topological(wf *dsl.Workflow) []int {
	var order []int
	open := make([]int, len(wf.Steps))
	var ready []int
	for i, s := range wf.Steps {
		if open[i] = len(s.After); open[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		i := ready[0]
		ready = ready[1:]
		order = append(order, i)
		for _, j := range wf.Steps[i].Before {
			if open[j]--; open[j] == 0 {
				ready = append(ready, j)
			}
		}
	}
	if len(order) != len(wf.Steps) {
		panic("cycle")
	}
	return order
}
