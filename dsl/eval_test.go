package dsl

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// linked links one file, and fails the test if it cannot.
func linked(t testing.TB, src string) *Definition {
	t.Helper()
	def, diags := parseAndLink(fstest.MapFS{"main.hcl": &fstest.MapFile{Data: []byte(src)}})
	if def == nil {
		t.Fatalf("link: %v", diags.Err())
	}
	return def
}

// orderText reads the example of the language's second section.
func orderText(t testing.TB) string {
	t.Helper()
	return archiveText(t, "testdata/valid/order.txtar")
}

func bindAll(t testing.TB, wf *Workflow, pairs ...string) Value {
	t.Helper()
	var list []Assignment
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, Assignment{Name: pairs[i], Text: pairs[i+1], Source: "--var"})
	}
	v, diags := wf.Bind(list)
	if diags.HasErrors() {
		t.Fatalf("bind: %v", diags.Err())
	}
	return v
}

func stepNamed(t testing.TB, wf *Workflow, name string) *Step {
	t.Helper()
	for _, s := range wf.Steps {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no step %q", name)
	return nil
}

func jsonValue(s string) Value { return NewValue([]byte(s), nil, nil) }

// TestOrderExample evaluates the example of the language as a run does.
func TestOrderExample(t *testing.T) {
	wf := linked(t, orderText(t)).Workflow("order")
	vars := bindAll(t, wf, "order_id", "o-1042", "email", "ann@example.com",
		"items", `{ mug = { qty = 2, price = 7.5 }, tee = { qty = 1, price = 19.99 } }`)
	if got := strings.Join(vars.Sensitive(), " "); got != "/email" {
		t.Errorf("sensitive variables: %q", got)
	}
	scope := &Scope{Run: RunInfo{ID: "r1"}, Vars: vars, Memo: &Memo{}}
	if key, err := wf.UniqueKey(scope); err != nil || key != "o-1042" {
		t.Errorf("unique key %q, %v", key, err)
	}
	reserve := stepNamed(t, wf, "reserve")
	each, err := reserve.ForEach(scope)
	if err != nil || fmt.Sprint(each.Keys) != "[mug tee]" {
		t.Fatalf("for_each: %v, %v", each.Keys, err)
	}
	scope.Each = &EachItem{Key: each.Keys[0], Value: each.Values[0]}
	wantInput(t, reserve, scope, `{"qty":2,"sku":"mug"}`)
	scope.Each = nil

	results := map[string]StepResult{
		"reserve": {Each: true, Final: true, Instances: []InstanceResult{
			{Key: "mug", Status: "succeeded", Output: jsonValue(`{"reservation_id":"r-1"}`)},
			{Key: "tee", Status: "succeeded", Output: jsonValue(`{"reservation_id":"r-2"}`)},
		}},
		"charge": {Final: true, One: InstanceResult{Status: "succeeded", Output: jsonValue(`{"charge_id":"c-9"}`)}},
	}
	scope.Step = func(i int) StepResult { return results[wf.Steps[i].Name] }
	charge := stepNamed(t, wf, "charge")
	in := wantInput(t, charge, scope, `{"amount":34.99,"currency":"eur","email":"ann@example.com"}`)
	if fmt.Sprint(in.Sensitive()) != "[/email]" {
		t.Errorf("sensitive input: %v", in.Sensitive())
	}
	wantInput(t, stepNamed(t, wf, "book"), scope, `{"parcels":["r-1","r-2"],"reference":"c-9"}`)

	scope.Self = &Self{Input: in, Output: jsonValue(`{"charge_id":"c-9"}`), OutputKnown: true, Key: "k"}
	scope.Failure = &Failure{Step: "book", Code: "no_carrier"}
	undo, err := charge.Undo.Input(scope)
	if err != nil || string(undo.JSON()) != `{"charge_id":"c-9","reason":"order o-1042 rolled back: no_carrier"}` {
		t.Errorf("undo input %s, %v", undo.JSON(), err)
	}
	if !charge.Undo.UsesSelf || charge.Undo.Declared || !reserve.Undo.Declared {
		t.Errorf("undo sources: %+v %+v", charge.Undo, reserve.Undo)
	}
	if st, err := charge.Settings(scope); err != nil || st.Retry.MaxAttempts != 5 || st.Timeout.String() != "10s" {
		t.Errorf("settings %+v, %v", st, err)
	}
}

// Variables that are sensitive as a whole, as a program may give them, are so in
// each part.
func TestAllVariablesSensitive(t *testing.T) {
	wf := linked(t, orderText(t)).Workflow("order")
	vars := bindAll(t, wf, "order_id", "o-1042", "email", "ann@example.com", "items", `{ mug = { qty = 2, price = 7.5 } }`)
	scope := &Scope{Run: RunInfo{ID: "r1"}, Vars: NewValue(vars.JSON(), []string{""}, nil), Memo: &Memo{}}
	scope.Each = &EachItem{Key: "mug", Value: jsonValue(`{"price":7.5,"qty":2}`)}
	wantInput(t, stepNamed(t, wf, "reserve"), scope, `{"qty":2,"sku":"mug"}`)
	scope.Each = nil
	scope.Step = func(int) StepResult { return StepResult{Each: true, Final: true} }
	in := wantInput(t, stepNamed(t, wf, "charge"), scope, `{"amount":15,"currency":"eur","email":"ann@example.com"}`)
	if got := fmt.Sprint(in.Sensitive()); got != "[/amount /email]" {
		t.Errorf("sensitive input: %s", got)
	}
	if _, err := wf.UniqueKey(scope); err == nil {
		t.Error("a key that is sensitive is taken")
	}
}

func wantInput(t *testing.T, s *Step, scope *Scope, want string) Value {
	t.Helper()
	v, err := s.Input(scope)
	if err != nil || string(v.JSON()) != want {
		t.Errorf("input of %s: %s, %v; want %s", s.Name, v.JSON(), err, want)
	}
	return v
}
