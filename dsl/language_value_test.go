package dsl_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
)

// TestReplyTypes: a reply of an agent is taken as the schema says, or it is a bad reply.
// What is left out is null where that is allowed.
func TestReplyTypes(t *testing.T) {
	wf := linkedWorkflow(t, "step \"s\" {\n action = agent.kinds.call\n}\n")
	for _, tt := range []struct{ field, in, want string }{
		{"text", `"a"`, `"a"`}, {"text", `""`, `""`}, {"text", `"grüße 世界 🎉"`, `"grüße 世界 🎉"`}, {"text", `"\u0041\n\t\"\\\/"`, `"A\n\t\"\\/"`}, {"text", `"\ud83c\udf89"`, `"🎉"`}, {"text", `"e\u0301"`, `"é"`}, {"text", `"\u0000\u001f\u007f"`, "\"\\u0000\\u001f\u007f\""},
		{"text", `"\u2028<&>"`, `"\u2028<&>"`}, {"text", `5`, "error: text: must be a string, not a number"}, {"text", `null`, `null`}, {"text", `["a"]`, "error: must be a string"}, {"text", `true`, "error: must be a string"},
		{"number", `5`, "5"}, {"number", `-0`, "0"}, {"number", `1.50`, "1.5"}, {"number", `1e2`, "100"}, {"number", `1E-2`, "0.01"}, {"number", `9007199254740993`, "9007199254740993"}, {"number", `"5"`, "error: number: must be a number, not a string"}, {"number", `true`, "error: must be a number"},
		{"truth", `true`, "true"}, {"truth", `false`, "false"}, {"truth", `"true"`, "error: truth: must be a boolean, not a string"}, {"truth", `0`, "error: truth: must be a boolean, not a number"},
		{"any", `[1,"a",null,{"b":[]}]`, `[1,"a",null,{"b":[]}]`}, {"any", `{"b":1,"a":2}`, `{"a":2,"b":1}`}, {"any", `{"a":{"d":1,"c":2}}`, `{"a":{"c":2,"d":1}}`}, {"any", `"x"`, `"x"`}, {"any", ` [ 1 , 2 ] `, `[1,2]`}, {"any", `{}`, `{}`}, {"any", `[]`, `[]`},
		{"list", `["b","a"]`, `["b","a"]`}, {"list", `[]`, `[]`}, {"list", `[1]`, "error: list[0]: must be a string"}, {"list", `{"a":"b"}`, "error: list: must be a list"}, {"list", `"a"`, "error: must be a list"},
		{"set", `["b","a","b"]`, `["a","b"]`}, {"set", `[]`, `[]`},
		{"map", `{"b":1,"a":2.50}`, `{"a":2.5,"b":1}`}, {"map", `{"a":"1"}`, `error: map["a"]: must be a number, not a string`}, {"map", `[1]`, "error: map: must be a map, not a list"},
		{"row", `{"id":"a","n":1}`, `{"id":"a","n":1}`}, {"row", `{"n":1,"id":"a"}`, `{"id":"a","n":1}`}, {"row", `{"id":"a"}`, `{"id":"a","n":null}`}, {"row", `{"id":"a","n":null}`, `{"id":"a","n":null}`},
		{"row", `{"n":1}`, "error: row.id: is missing"}, {"row", `{"id":null}`, "error: id"}, {"row", `{"id":"a","x":1}`, "error: x"}, {"row", `[]`, "error: row: must be an object"},
		{"rows", `[{"id":"b"},{"id":"a","n":2}]`, `[{"id":"b","n":null},{"id":"a","n":2}]`}, {"rows", `[{"n":2}]`, "error: rows[0].id: is missing"},
		{"open", `[1,"a",null]`, `[1,"a",null]`},
		{"level", `"low"`, `"low"`}, {"level", `"mid"`, "error: level: must be one of"}, {"level", `null`, "null"}, {"step", `2.5`, "2.5"}, {"step", `2.50`, "2.5"}, {"step", `2`, "error: step: must be one of"},
	} {
		t.Run(tt.field+" "+tt.in, func(t *testing.T) {
			v, err := wf.Steps[0].Do.Output([]byte(`{"` + tt.field + `": ` + tt.in + `}`))
			if part, fails := strings.CutPrefix(tt.want, "error: "); fails {
				wantError(t, err, "reply: ")
				wantError(t, err, part)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var all map[string]json.RawMessage
			if err := json.Unmarshal(v.JSON(), &all); err != nil {
				t.Fatal(err)
			}
			if got := string(all[tt.field]); got != tt.want || len(all) != len(kindFields()) {
				t.Errorf("got  %s\nwant %s, and %d fields", got, tt.want, len(kindFields()))
			}
			for name, raw := range all {
				if name != tt.field && string(raw) != "null" {
					t.Errorf("%s was left out and is %s", name, raw)
				}
			}
		})
	}
	for reply, want := range map[string]string{"": "", "null": "", "{}": "", " { } ": "", `{"a":1}`: "error", `[1]`: "error", `"x"`: "error", `{"text":"a"`: "error", `{"text":"a"} {}`: "error", `{"text":"\x"}`: "error", `{"number":01}`: "error"} {
		_, err := wf.Steps[0].Do.Output([]byte(reply))
		if (err != nil) != (want == "error") {
			t.Errorf("%q: %v", reply, err)
		}
	}
}

// TestDepthOfValues: a value is nested at most 200 deep.
func TestDepthOfValues(t *testing.T) {
	wf := linkedWorkflow(t, step("s", "input { value = var.v }")+"variable \"v\" {\n type = any\n}\noutput \"o\" { value = jsondecode(jsonencode(var.v)) }\n")
	nested := func(n int) string { return strings.Repeat("[", n) + "1" + strings.Repeat("]", n) }
	if _, err := wf.Steps[0].Do.Output([]byte(`{"value":` + nested(199) + `}`)); err != nil {
		t.Errorf("a reply of 200: %v", err)
	}
	_, err := wf.Steps[0].Do.Output([]byte(`{"value":` + nested(200) + `}`))
	wantError(t, err, "the value is nested more than 200 deep")
	if _, err := wf.Outputs[0].Value(scopeOf(document(`{"v":` + nested(199) + `}`))); err != nil {
		t.Errorf("a variable of 200: %v", err)
	}
	_, err = wf.Steps[0].Input(scopeOf(document(`{"v":` + nested(200) + `}`)))
	wantError(t, err, "nested more than 200 deep")
}

// TestValues: a Value is JSON with marks; two are equal if both are.
func TestValues(t *testing.T) {
	zero := dsl.Value{}
	if string(zero.JSON()) != "null" || !zero.IsNull() || zero.Sensitive() != nil || zero.Secrets() != nil || !zero.Equal(document("null")) || !document("null").IsNull() || document("0").IsNull() {
		t.Error("the zero Value is null without marks")
	}
	if v := dsl.NewValue(nil, nil, nil); !v.IsNull() || !v.Equal(zero) {
		t.Error("a Value of nothing is null")
	}
	secret := func(ref string) []dsl.Secret { return []dsl.Secret{{Path: "/a", Parts: []dsl.SecretPart{{Ref: ref}}}} }
	list := []dsl.Value{
		zero, document("1"), document("2"), document(`{"a":null}`), dsl.NewValue([]byte(`{"a":null}`), []string{"/a"}, nil), dsl.NewValue([]byte(`{"a":null}`), []string{""}, nil),
		dsl.NewValue([]byte(`{"a":null}`), nil, secret("env:A")), dsl.NewValue([]byte(`{"a":null}`), nil, secret("env:B")), dsl.NewValue([]byte(`{"a":null}`), []string{"/a"}, secret("env:A")),
		dsl.NewValue([]byte(`{"a":null}`), nil, []dsl.Secret{{Path: "/b", Parts: []dsl.SecretPart{{Ref: "env:A"}}}}), dsl.NewValue([]byte(`{"a":null}`), nil, []dsl.Secret{{Path: "/a", Parts: []dsl.SecretPart{{Text: "env:A"}}}}),
	}
	for i, a := range list {
		for j, b := range list {
			if a.Equal(b) != (i == j) {
				t.Errorf("%d equals %d: %t", i, j, a.Equal(b))
			}
		}
		if again := dsl.NewValue(a.JSON(), a.Sensitive(), a.Secrets()); !again.Equal(a) {
			t.Errorf("%d is not what it was made of", i)
		}
	}
	a, b := zero.JSON(), zero.JSON()
	a[0] = 'X'
	if string(b) != "null" || string(zero.JSON()) != "null" {
		t.Error("two null values share their bytes")
	}
}

// TestResultsOfSteps: what an expression sees of a step that has a result.
func TestResultsOfSteps(t *testing.T) {
	for _, tt := range []struct {
		name, expr, want string
		result           dsl.InstanceResult
	}{
		{"an output", "step.s.output.value", "[1]", dsl.InstanceResult{Output: document(`{"value":[1]}`)}},
		{"no output", "step.s.output", "null", dsl.InstanceResult{Status: "skipped"}},
		{"an attribute of no output", "step.s.output.value", "error: Attempt to get attribute from null value", dsl.InstanceResult{Status: "skipped"}},
		{"an attribute of no output, tried", "try(step.s.output.value, \"none\")", `"none"`, dsl.InstanceResult{Status: "skipped"}},
		{"a status", "step.s.status", `"caught"`, dsl.InstanceResult{Status: "caught"}},
		{"attempts", "step.s.attempts", "3", dsl.InstanceResult{Attempts: 3}},
		{"attempts in arithmetic", "step.s.attempts * 2", "6", dsl.InstanceResult{Attempts: 3}},
		{"an error", "step.s.error", `{"code":"timeout","data":null,"message":"too slow"}`, dsl.InstanceResult{ErrorCode: "timeout", ErrorText: "too slow"}},
		{"a code", "step.s.error.code", `"timeout"`, dsl.InstanceResult{ErrorCode: "timeout"}},
		{"a message that is empty", "step.s.error.message", `""`, dsl.InstanceResult{ErrorCode: "timeout"}},
		{"no error", "step.s.error", "null", dsl.InstanceResult{ErrorText: "ignored"}},
		{"a code of no error", "step.s.error.code", "error: Attempt to get attribute from null value", dsl.InstanceResult{}},
		{"timed out", "step.s.timed_out", "true", dsl.InstanceResult{TimedOut: true}},
		{"not timed out", "step.s.timed_out ? 1 : 2", "2", dsl.InstanceResult{}},
		{"not started", "step.s.started_at", "null", dsl.InstanceResult{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wf := linkedWorkflow(t, step("s", "")+"output \"o\" { value = "+tt.expr+" }\noutput \"t\" { value = [\"x\", "+tt.expr+"] }\n")
			scope := &dsl.Scope{Step: func(int) dsl.StepResult { return dsl.StepResult{One: tt.result} }}
			v, err := wf.Outputs[0].Value(scope)
			whole, err2 := wf.Outputs[1].Value(scope)
			if part, fails := strings.CutPrefix(tt.want, "error: "); fails {
				wantError(t, err, part)
				wantError(t, err2, part)
				return
			}
			wantValue(t, v, err, tt.want)
			wantValue(t, whole, err2, `["x",`+tt.want+`]`)
		})
	}
	wf := linkedWorkflow(t, step("s", "")+"output \"o\" { value = step.s.status }\n")
	if _, err := wf.Outputs[0].Value(&dsl.Scope{}); err == nil {
		t.Error("a step is seen by a scope that shows none")
	}
	if _, err := wf.Outputs[0].Value(nil); err == nil {
		t.Error("a step is seen without a scope")
	}
}

// TestRunsInExpressions: run.* is what is known of the run. There is no tick and no key
// where a run has none.
func TestRunsInExpressions(t *testing.T) {
	wf := linkedWorkflow(t, "output \"o\" { value = [run.id, run.workflow, run.key, run.started_at, run.tick] }\noutput \"text\" { value = \"${run.id}/${run.started_at}\" }\noutput \"is\" { value = run.key == null }\n"+step("s", ""))
	started := instant(t, "2030-01-31T18:00:00.5+02:00")
	for _, tt := range []struct {
		run  dsl.RunInfo
		want []string
	}{
		{dsl.RunInfo{ID: "r-1", Workflow: "w", Key: "k", StartedAt: started}, []string{`["r-1","w","k","2030-01-31T16:00:00.5Z",null]`, `"r-1/2030-01-31T16:00:00.5Z"`, "false"}},
		{dsl.RunInfo{ID: "r-2", Workflow: "w"}, []string{`["r-2","w",null,null,null]`, "error: Cannot include a null value in a string template", "true"}},
	} {
		for i, want := range tt.want {
			v, err := wf.Outputs[i].Value(&dsl.Scope{Run: tt.run})
			if part, fails := strings.CutPrefix(want, "error: "); fails {
				wantError(t, err, part)
				continue
			}
			wantValue(t, v, err, want)
		}
	}
}

// TestDeadlinesFromAStart: a limit is relative to a start, absolute, or none.
func TestDeadlinesFromAStart(t *testing.T) {
	start, at := instant(t, "2030-01-01T00:00:00Z"), instant(t, "2029-01-01T00:00:00Z")
	for _, tt := range []struct {
		limit dsl.Limit
		want  string
	}{
		{dsl.Limit{}, "none"}, {dsl.Limit{After: 1}, "2030-01-01T00:00:00.000000001Z"}, {dsl.Limit{At: at}, "2029-01-01T00:00:00Z"}, {dsl.Limit{At: at, After: 5}, "2029-01-01T00:00:00Z"}, {dsl.Limit{After: -1}, "none"},
	} {
		got := "none"
		if end, ok := tt.limit.From(start); ok {
			got = end.Format("2006-01-02T15:04:05.999999999Z07:00")
		}
		if got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.limit, got, tt.want)
		}
	}
}

// TestMemoKeepsFinalResults: a Memo asks for the result of a finished step once, and again
// for one that may change. Two workflows do not share one.
func TestMemoKeepsFinalResults(t *testing.T) {
	def := linked(t, files{"main.hcl": workflow("locals { l = [step.s.output.value] }\n"+step("s", "")+step("m", "for_each = toset([\"k\"])")+
		"output \"a\" { value = [1, step.s.output.value] }\noutput \"b\" { value = [for x in local.l : x] }\noutput \"c\" { value = [for k, x in step.m : x.output.value] }\n") +
		strings.Replace(workflow(step("s", "")+"output \"a\" { value = [2, step.s.output.value] }\n"), `"w"`, `"x"`, 1)})
	wf := def.Workflow("w")
	asked, n, final := 0, 0, false
	scope := scopeOf(bound(t, wf))
	scope.Step = func(i int) dsl.StepResult {
		asked++
		n++
		one := dsl.InstanceResult{Key: "k", Status: "succeeded", Output: document(fmt.Sprintf(`{"value":%d}`, n))}
		if wf.Steps[i].Name == "m" {
			return dsl.StepResult{Each: true, Instances: []dsl.InstanceResult{one}, Final: final}
		}
		return dsl.StepResult{One: one, Final: final}
	}
	value := func(w *dsl.Workflow, i int) string {
		t.Helper()
		v, err := w.Outputs[i].Value(scope)
		if err != nil {
			t.Fatal(err)
		}
		return string(v.JSON())
	}
	for i, want := range []string{"[1,%d]", "[%d]", "[%d]"} {
		n = 10 * i
		if got := value(wf, i); got != fmt.Sprintf(want, 10*i+1) {
			t.Errorf("output %d: %s", i, got)
		}
		if got := value(wf, i); got != fmt.Sprintf(want, 10*i+2) {
			t.Errorf("output %d of a result that has changed: %s", i, got)
		}
	}
	final, n = true, 100
	first := value(wf, 1)
	asked = 0
	if again := value(wf, 1); again != first || asked != 0 {
		t.Errorf("of a final result: %s, then %s; asked %d times", first, again, asked)
	}
	if first, again := value(wf, 2), value(wf, 2); again != first {
		t.Errorf("of final instances: %s, then %s", first, again)
	}
	if got := value(def.Workflow("x"), 0); got == "[2,101]" || !strings.HasPrefix(got, "[2,") {
		t.Errorf("another workflow sees %s", got)
	}
}
