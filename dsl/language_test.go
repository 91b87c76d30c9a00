package dsl_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/sdk/schema"
)

// The tests in files language_*_test.go hold the sentences of docs/language.md. They use
// only what the package exports, so they stay valid when its inside changes.

// files are the files of a module, by name.
type files map[string]string

func (f files) fs() fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range f {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// workflow is a file with one workflow named w. Its deadline keeps the warning about a
// missing one away.
func workflow(body string) string {
	return "workflow \"w\" {\n  deadline = \"1h\"\n" + body + "\n}\n"
}

// step is a step that calls an idempotent action and is never undone.
func step(name, body string) string {
	return "step \"" + name + "\" {\n  action       = agent.echo.call\n  compensation = \"none\"\n" + body + "\n}\n"
}

// environment is what env() finds in tests.
func environment(name string) (string, bool) {
	v, ok := map[string]string{"REGION": "eu", "PORT": "8080", "EMPTY": ""}[name]
	return v, ok
}

// check parses and links files and returns everything that was found.
func check(f files) (*dsl.Definition, diag.Diagnostics) {
	return checkWith(f, dsl.ParseOptions{Env: environment, EngineVersion: "0.3.0"}, agents())
}

func checkWith(f files, o dsl.ParseOptions, bins map[string]dsl.AgentBinary) (*dsl.Definition, diag.Diagnostics) {
	m, diags := dsl.Parse(f.fs(), o)
	used := map[string]dsl.AgentBinary{}
	for _, a := range m.Agents() {
		if bin, ok := bins[a.Plugin]; ok {
			used[a.Name] = bin
		}
	}
	def, more := dsl.Link(m, used)
	return def, append(diags, more...).Sorted()
}

// linked links a module that must have no errors.
func linked(t testing.TB, f files) *dsl.Definition {
	t.Helper()
	def, diags := check(f)
	if def == nil || diags.HasErrors() {
		t.Fatalf("the module cannot be linked: %v", diags.Err())
	}
	return def
}

// linkedWorkflow links workflow w with this body.
func linkedWorkflow(t testing.TB, body string) *dsl.Workflow {
	t.Helper()
	return linked(t, files{"main.hcl": workflow(body)}).Workflow("w")
}

// stepOf finds a step by name.
func stepOf(t testing.TB, wf *dsl.Workflow, name string) *dsl.Step {
	t.Helper()
	i := slices.IndexFunc(wf.Steps, func(s *dsl.Step) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("the workflow has no step %q", name)
	}
	return wf.Steps[i]
}

// settingsOf evaluates the settings of a step.
func settingsOf(t testing.TB, s *dsl.Step, scope *dsl.Scope) *dsl.Settings {
	t.Helper()
	out, err := s.Settings(scope)
	if err != nil {
		t.Fatalf("settings of step %q: %v", s.Name, err)
	}
	return out
}

// A finding is a diagnostic as tests compare it: at is the source text that it points to,
// and detail is a part of its detail.
type finding struct {
	severity            diag.Severity
	summary, at, detail string
}

func fails(summary, at, detail string) finding {
	return finding{diag.SeverityError, summary, at, detail}
}

func warns(summary, at, detail string) finding {
	return finding{diag.SeverityWarning, summary, at, detail}
}

func (f finding) String() string {
	return fmt.Sprintf("%s: %s @ %s: %s", f.severity, f.summary, f.at, f.detail)
}

// marked is the source text that a diagnostic points to, up to the end of its line.
func marked(d diag.Diagnostic) string {
	if d.Snippet == nil {
		return ""
	}
	return d.Snippet.Code[d.Snippet.HighlightStart:d.Snippet.HighlightEnd]
}

// wantFindings compares errors and warnings with those wanted, in their order. Each
// diagnostic must be wanted, and each wanted one must be there.
func wantFindings(t *testing.T, diags diag.Diagnostics, want ...finding) {
	t.Helper()
	var got []finding
	for _, d := range diags {
		if d.Severity != diag.SeverityInfo {
			got = append(got, finding{d.Severity, d.Summary, marked(d), d.Detail})
		}
	}
	ok := len(got) == len(want)
	for i := 0; ok && i < len(want); i++ {
		g, w := got[i], want[i]
		ok = g.severity == w.severity && g.summary == w.summary && g.at == w.at && strings.Contains(g.detail, w.detail)
	}
	if ok {
		return
	}
	var b strings.Builder
	for _, g := range got {
		b.WriteString("\n got  " + g.String())
	}
	for _, w := range want {
		b.WriteString("\n want " + w.String())
	}
	t.Errorf("the findings differ:%s", b.String())
}

// A rule is one sentence of the language: a workflow body and what is found in it.
type rule struct {
	name string
	body string
	want []finding
}

func finds(f ...finding) []finding { return f }

// checkRules checks each rule in a workflow of its own.
func checkRules(t *testing.T, rules []rule) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			_, diags := check(files{"main.hcl": workflow(r.body)})
			wantFindings(t, diags, r.want...)
		})
	}
}

// bound binds variables of a workflow: names and texts in turn.
func bound(t testing.TB, wf *dsl.Workflow, pairs ...string) dsl.Value {
	t.Helper()
	var list []dsl.Assignment
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, dsl.Assignment{Name: pairs[i], Text: pairs[i+1], Source: "--var"})
	}
	v, diags := wf.Bind(list)
	if diags.HasErrors() {
		t.Fatalf("bind: %v", diags.Err())
	}
	return v
}

// document is a value without marks.
func document(text string) dsl.Value { return dsl.NewValue([]byte(text), nil, nil) }

// succeeded is the result of a step that succeeded with an output.
func succeeded(output string) dsl.StepResult {
	return dsl.StepResult{Final: true, One: dsl.InstanceResult{Status: "succeeded", Attempts: 1, Output: document(output)}}
}

// wantValue compares the JSON of a value.
func wantValue(t *testing.T, v dsl.Value, err error, want string) {
	t.Helper()
	if err != nil {
		t.Errorf("error %v, want %s", err, want)
		return
	}
	if got := string(v.JSON()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// wantError checks that an error holds a text.
func wantError(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v, want %q in it", err, part)
	}
}

// Parts of schemas.

func text(name string, opts ...func(*schema.Field)) schema.Field {
	return typed(name, schema.Type{Kind: schema.KindString}, opts...)
}

func number(name string, opts ...func(*schema.Field)) schema.Field {
	return typed(name, schema.Type{Kind: schema.KindNumber}, opts...)
}

func truth(name string, opts ...func(*schema.Field)) schema.Field {
	return typed(name, schema.Type{Kind: schema.KindBool}, opts...)
}

func dynamic(name string, opts ...func(*schema.Field)) schema.Field {
	return typed(name, schema.Type{Kind: schema.KindAny}, opts...)
}

func typed(name string, t schema.Type, opts ...func(*schema.Field)) schema.Field {
	f := schema.Field{Name: name, Type: t}
	for _, o := range opts {
		o(&f)
	}
	return f
}

func of(k schema.Kind, elem schema.Type) schema.Type { return schema.Type{Kind: k, Elem: &elem} }

func kind(k schema.Kind) schema.Type { return schema.Type{Kind: k} }

func objectType(fields ...schema.Field) schema.Type {
	return schema.Type{Kind: schema.KindObject, Fields: fields}
}

func optional(f *schema.Field) { f.Optional = true }

func sensitive(f *schema.Field) { f.Sensitive = true }

func withDefault(raw string) func(*schema.Field) {
	return func(f *schema.Field) { f.Optional, f.Default = true, json.RawMessage(raw) }
}

func enum(raw ...string) func(*schema.Field) {
	return func(f *schema.Field) {
		for _, r := range raw {
			f.Enum = append(f.Enum, json.RawMessage(r))
		}
	}
}

// agents are the agents of the tests, by plugin.
//
// shop has actions with every kind of promise. echo returns what it is given and may
// answer with any code. kinds has a field of each type.
func agents() map[string]dsl.AgentBinary {
	value := []schema.Field{dynamic("value", optional)}
	any := []schema.ErrorCode{{Code: schema.AnyCode}}
	return map[string]dsl.AgentBinary{
		"shop": {Version: "1.4.0", Checksum: strings.Repeat("ab", 32), Schema: schema.Schema{
			Name: "shop", Version: "1.4.0",
			Config: []schema.Field{text("region", optional), text("api_key", optional, sensitive), number("port", withDefault("443"))},
			Actions: map[string]schema.Action{
				"reserve": {
					Inputs:  []schema.Field{text("sku"), number("qty", withDefault("1"))},
					Outputs: []schema.Field{text("reservation_id"), text("token", sensitive, optional)},
					Errors:  []schema.ErrorCode{{Code: "out_of_stock"}}, Idempotent: true, CompensatedBy: "release",
				},
				"release": {Inputs: []schema.Field{text("reservation_id", optional), text("sku", optional)}, Idempotent: true, ByKey: true},
				"charge": {
					Inputs:  []schema.Field{number("amount"), text("email", optional), text("currency", withDefault(`"eur"`), enum(`"eur"`, `"usd"`))},
					Outputs: []schema.Field{text("charge_id"), text("card", sensitive, optional)},
					Errors:  []schema.ErrorCode{{Code: "card_declined"}, {Code: "gateway_busy", Retryable: true}},
					Lookup:  true, Idempotent: true, Typical: 2 * time.Second,
				},
				"refund": {
					Inputs: []schema.Field{text("charge_id"), text("reason", optional)}, Idempotent: true,
					Errors: []schema.ErrorCode{{Code: "too_late"}, {Code: "bank_closed", Retryable: true}},
				},
				"ship": {
					Inputs: []schema.Field{text("to")}, Outputs: []schema.Field{text("booking_id")},
					Errors: []schema.ErrorCode{{Code: "no_carrier"}},
				},
				"recall": {Inputs: []schema.Field{text("booking_id")}},
				"stock": {
					Inputs:   []schema.Field{text("sku")},
					Outputs:  []schema.Field{number("qty"), typed("tags", of(schema.KindList, kind(schema.KindString)), optional)},
					ReadOnly: true, Idempotent: true, Cancellable: true,
				},
				"fill":  {Outputs: []schema.Field{number("items")}, Idempotent: true, CompensatedBy: "empty", Heartbeats: true, Checkpoints: true},
				"empty": {Idempotent: true, ByKey: true},
				"lend":  {Inputs: []schema.Field{text("sku")}, CompensatedBy: "fetch", Idempotent: true},
				"fetch": {Inputs: []schema.Field{text("loan_id")}, Idempotent: true},
			},
		}},
		"echo": {Version: "1.0.0", Schema: schema.Schema{
			Name: "echo", Version: "1.0.0",
			Actions: map[string]schema.Action{
				"call":     {Inputs: value, Outputs: value, Errors: any, Idempotent: true},
				"once":     {Inputs: value, Outputs: value, Errors: any},
				"look":     {Inputs: value, Outputs: value, Errors: any, ReadOnly: true},
				"take":     {Inputs: value, Outputs: value, Errors: any, Idempotent: true, CompensatedBy: "put_back"},
				"put_back": {Idempotent: true, ByKey: true},
			},
		}},
		"kinds": {Version: "1.0.0", Schema: schema.Schema{
			Name: "kinds", Version: "1.0.0",
			Actions: map[string]schema.Action{"call": {Inputs: kindFields(), Outputs: kindFields(), ReadOnly: true}},
		}},
	}
}

// kindFields is one optional field of each type.
func kindFields() []schema.Field {
	row := objectType(text("id"), number("n", optional))
	hiding := objectType(text("name"), text("key", sensitive))
	return []schema.Field{
		text("text", optional), number("number", optional), truth("truth", optional), dynamic("any", optional),
		typed("list", of(schema.KindList, kind(schema.KindString)), optional),
		typed("set", of(schema.KindSet, kind(schema.KindString)), optional),
		typed("map", of(schema.KindMap, kind(schema.KindNumber)), optional),
		typed("row", row, optional), typed("rows", of(schema.KindList, row), optional),
		typed("open", of(schema.KindList, kind(schema.KindAny)), optional),
		text("level", optional, enum(`"low"`, `"high"`)), number("step", optional, enum("1", "2.5")),
		text("hidden", optional, sensitive), typed("hiding", hiding, optional), typed("hidings", of(schema.KindList, hiding), optional),
		typed("codes", of(schema.KindMap, kind(schema.KindString)), optional, func(f *schema.Field) { f.Pattern, f.Codes = "[1-5][0-9]{2}", true }),
		typed("words", of(schema.KindList, kind(schema.KindString)), optional, func(f *schema.Field) { f.Pattern = "[a-z]+" }),
	}
}

// scopeOf is a scope in which only variables are known.
func scopeOf(vars dsl.Value) *dsl.Scope { return &dsl.Scope{Vars: vars, Memo: &dsl.Memo{}} }

// instant reads a time.
func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
