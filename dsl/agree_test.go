package dsl

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/dsl/internal/link"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk/schema"
)

// A writer of random expressions and of the values they see.
type author struct {
	*rand.Rand
	inEach, inSelf bool
}

func (a *author) pick(words ...string) string { return words[a.IntN(len(words))] }

func (a *author) reference() string {
	refs := []string{
		"var.s", "var.n", "var.b", "var.any", "var.any.x", "var.any.x.y", `var.any["a b"]`, "var.any[0]", "var.o", "var.o.a", "var.o.n", "var.o.in.z",
		"var.l", "var.l[0]", `var.m["k"]`, "var.m", "var.set", "var.pin", "var.opt", "var.lo", "var.mo", "var.far",
		"step.a.output.value", "step.a.output.value.k", "step.a.output", "step.a.status", "step.a.attempts", "step.a.error.code",
		"step.a.timed_out", "step.a.started_at", "step.a", "step.t.output.charge_id", "step.t.output.card", "step.t.output",
		`step.e["k1"].output.reservation_id`, "step.e[var.s].output.reservation_id", "step.e[var.o.a].status", "step.e", "step.e[var.pin].output.reservation_id",
		"step.j.output.json.id", "step.j.output.json.tags", "step.j.output.status", "step.j.output.body",
		"run.id", "run.key", "run.workflow", "run.started_at", "run.tick", "local.c", "local.r", "local.t", "local.o", "local.o.x", "local.twice",
	}
	if a.inEach {
		refs = append(refs, "each.key", "each.value", "each.value.q", "step.e[each.key].output.reservation_id", "step.e[each.key].error.message")
	}
	if a.inSelf {
		refs = append(refs, "self.output.value", "self.output.value.k", "self.input.value", "self.key", "self.timed_out", "self.signal")
	}
	return refs[a.IntN(len(refs))]
}

func (a *author) expr(depth int) string {
	n := 16
	if depth <= 0 {
		n = 6
	}
	switch a.IntN(n) {
	case 0:
		return a.pick(`"text"`, `"é"`, `"a\"b\n"`, "5", "2.50", "true", "null", `"k1"`, `""`, "[]", "{}", `upper("x")`, `toset(["b", "a"])`, `jsondecode("{\"n\":1e2}")`)
	case 1:
		return fmt.Sprintf("\"%s${%s}%s${%s}\"", a.pick("", "x-", "é", `\n`), a.reference(), a.pick("", "/", "\u0301"), a.reference())
	case 2, 3, 4, 5:
		return a.reference()
	case 6:
		return fmt.Sprintf("{ %s = %s, %s = %s }", a.pick("a", `"b c"`, `"a/~b"`), a.expr(depth-1), a.pick("x", "k"), a.expr(depth-1))
	case 7:
		return fmt.Sprintf("[%s, %s]", a.expr(depth-1), a.expr(depth-1))
	case 8, 9:
		return fmt.Sprintf("%s %s %s", a.expr(depth-1), a.pick("==", "!=", "<", ">=", "&&", "||"), a.expr(depth-1))
	case 10:
		return a.pick("!"+a.reference(), `var.l == ["x"]`, "var.l == [var.s]", "var.any == null", "step.a.output.value == null")
	case 11:
		return fmt.Sprintf("try(%s, %s)", a.expr(depth-1), a.expr(0))
	case 12:
		return fmt.Sprintf("(%s)", a.expr(depth-1))
	case 13:
		return fmt.Sprintf("%s ? %s : %s", a.expr(0), a.expr(depth-1), a.expr(depth-1))
	case 14:
		return fmt.Sprintf("\"${%s}\"", a.expr(depth-1))
	}
	return fmt.Sprintf("%s(%s)", a.pick("tostring", "sensitive", "nonsensitive", "jsonencode"), a.expr(depth-1))
}

func (a *author) source(where string) string {
	a.inEach, a.inSelf = where == "each", where == "self"
	e := a.expr(2)
	step := func(attrs, input string) string {
		return "  step \"x\" {\n    action = agent." + attrs + "\n    input {\n      " + input + "\n    }\n  }\n"
	}
	var tail string
	switch where {
	case "output":
		tail = "  output \"x\" {\n    sensitive = " + a.pick("true", "true", "false") + "\n    value = " + e + "\n  }\n"
	case "any":
		tail = step("mock.call\n    compensation = \"none\"", "value = "+e)
	case "typed":
		tail = step("payment.charge\n    compensation = \"none\"", a.pick("amount = "+e, "amount = 1\n      email = "+e, "amount = var.n\n      currency = "+e))
	case "http":
		tail = step("http.post\n    compensation = \"none\"", "url = \"u\"\n      "+a.pick("json = "+e, "headers = { a = "+e+" }", "headers = "+e))
	case "kinds":
		tail = step("kinds.call\n    compensation = \"none\"", a.pick("list", "set", "obj", "hidden", "hides", "level", "objs", "flag")+" = "+e)
	case "when":
		tail = step("mock.call\n    compensation = \"none\"\n    when = "+e+"\n    idempotency_key = "+a.expr(1), "value = 1")
	case "settings":
		tail = step("mock.call\n    compensation = \"none\"\n    timeout = "+a.pick("var.s", `"${var.n}s"`, e)+"\n    deadline = "+e, "value = 1")
	case "each":
		tail = step("mock.call\n    compensation = \"none\"\n    for_each = "+a.pick("var.m", "var.m", "var.mo", "var.o", "var.any", "local.o", "step.e", "toset(var.l)", "step.a.output.value"), "value = "+e)
	case "self":
		tail = "  step \"x\" {\n    action = agent.mock.call\n    input { value = 1 }\n    postcondition {\n      condition = " + e + " == 1\n      error_message = \"${self.output.value}!\"\n    }\n" +
			"    compensate {\n      action = agent.mock.call\n      input { value = " + e + " }\n    }\n  }\n"
	}
	return agreeHead + tail + "}\n"
}

const agreeHead = `
workflow "w" {
  deadline = "1h"
  variable "s" { type = string }
  variable "n" { type = number }
  variable "b" { type = bool }
  variable "any" { default = null }
  variable "o" { type = object({ a = string, n = optional(number), in = optional(object({ z = any })) }) }
  variable "l" { type = list(string) }
  variable "m" { type = map(number) }
  variable "set" { type = set(string) }
  variable "lo" { type = list(object({ a = string, b = optional(number) })) }
  variable "mo" { type = map(any) }
  variable "far" { type = any }
  variable "opt" {
    type    = string
    default = null
  }
  variable "pin" {
    type      = string
    sensitive = true
  }
  locals {
    c     = "const"
    r     = var.s
    t     = "${var.s}:${var.n}"
    o     = { x = var.any, y = [var.b] }
    twice = { a = local.o, b = local.o }
  }
  step "a" {
    action       = agent.mock.call
    compensation = "none"
    input { value = var.s }
  }
  step "t" {
    action       = agent.payment.charge
    compensation = "none"
    input { amount = 1 }
  }
  step "e" {
    for_each = { k1 = 1, k2 = 2 }
    action   = agent.inventory.reserve
    input { sku = each.key }
  }
  step "j" {
    action      = agent.http.get
    output_type = object({ json = object({ id = number, tags = list(string) }) })
    input { url = "u" }
  }
`

// kindsAgent takes arguments of many types.
func kindsAgent() AgentBinary {
	inner := schema.Type{Kind: schema.KindObject, Fields: []schema.Field{str("a"), num("n", optional), str("pin", optional, hidden)}}
	return AgentBinary{Schema: schema.Schema{Name: "kinds", Actions: map[string]schema.Action{"call": {Inputs: []schema.Field{
		field("list", listOf(schema.KindString), optional), field("set", schema.Type{Kind: schema.KindSet, Elem: &schema.Type{Kind: schema.KindString}}, optional),
		field("obj", inner, optional), str("hidden", hidden, preset(`"d"`)), field("hides", schema.Type{Kind: schema.KindList, Elem: &inner}, optional),
		num("level", optional, oneOf("1", "2.5")), field("objs", schema.Type{Kind: schema.KindMap, Elem: &inner}, optional),
		field("flag", schema.Type{Kind: schema.KindBool}, preset("true")),
	}}}}}
}

// linkBoth links a source with and without direct expressions.
func linkBoth(t *testing.T, src string) (with, without *Workflow) {
	t.Helper()
	one := func(undirected bool) *Workflow {
		m, diags := Parse(fstest.MapFS{"a.hcl": {Data: []byte(src)}}, ParseOptions{EngineVersion: "0.1.0"})
		if diags.HasErrors() {
			return nil
		}
		agents := usedAgents(m)
		agents["kinds"] = kindsAgent()
		linkAll := link.Workflows
		if undirected {
			linkAll = link.GeneralWorkflows
		}
		workflows, _ := linkAll(m.m, agents, &report.Reporter{Sources: m.m.Sources, Blocks: m.m.Blocks})
		for _, wf := range workflows {
			if wf.Name == "w" {
				return wf
			}
		}
		return nil
	}
	return one(false), one(true)
}

// document makes a random document, canonical, mostly of a wanted kind.
func (a *author) document(kind string, depth int) string {
	if a.IntN(15) == 0 {
		kind = a.pick("string", "number", "null", "list", "object", "bool")
	}
	join := func(open, shut string, n int, f func(int) string) string {
		var parts []string
		for i := range n {
			parts = append(parts, f(i))
		}
		return open + strings.Join(parts, ",") + shut
	}
	any := func(int) string {
		return a.document(a.pick("string", "number", "null", "bool", "list", "object"), depth-1)
	}
	switch {
	case kind == "string":
		return a.pick(`"k1"`, `"x"`, `""`, `"é"`, `"a\nb\"c"`, `"\u2028"`, `"10s"`, `"eur"`, `"true"`, `"5"`, `"\u0301"`)
	case kind == "number":
		return a.pick("1", "0", "-3", "2.5", "12345678901234567890", "0.1", "7")
	case kind == "bool":
		return a.pick("true", "false")
	case kind == "null" || depth < 0:
		return "null"
	case kind == "list":
		return join("[", "]", a.IntN(3), any)
	case kind == "strings":
		return join("[", "]", a.IntN(3), func(int) string { return a.document("string", 0) })
	case kind == "numbers":
		return join("{", "}", 2, func(i int) string { return fmt.Sprintf(`"%c":%s`, 'k'+i, a.document("number", 0)) })
	case kind == "o":
		return fmt.Sprintf(`{"a":%s,%s"in":%s,"n":%s}`, a.document("string", 0), a.pick("", "", "", `"extra":1,`), a.pick("null", `{"z":1}`, `{"z":"q"}`), a.document("number", 0))
	case kind == "lo":
		return join("[", "]", a.IntN(3), func(int) string {
			return fmt.Sprintf(`{"a":%s,"b":%s}`, a.document("string", 0), a.pick("null", "1"))
		})
	case kind == "far":
		return `{"pad":"` + strings.Repeat("p", value.FarPart) + `","x":` + a.document("string", 0) + `}`
	case kind == "json":
		return fmt.Sprintf(`{"body":null,"json":{"id":%s,"tags":%s},"status":200}`, a.document("number", 0), a.document("strings", 0))
	}
	keys := [][]string{{"x"}, {"k", "x"}, {"a b", "q"}, {}}[a.IntN(4)]
	return join("{", "}", len(keys), func(i int) string {
		if keys[i] == "x" && a.IntN(2) == 0 {
			return `"x":{"y":` + any(0) + `}`
		}
		return fmt.Sprintf("%q:%s", keys[i], any(0))
	})
}

// value makes a Value of a document, sometimes with marks and secrets.
func (a *author) value(doc string) Value {
	v, err := value.DecodeJSON([]byte(doc))
	if err != nil {
		panic(err)
	}
	out, err := value.Encode(v, false)
	if err != nil {
		panic(err)
	}
	if a.IntN(4) > 0 {
		return out
	}
	var tree any
	if err := json.Unmarshal(out.JSON(), &tree); err != nil {
		panic(err)
	}
	var marks []string
	var secrets []Secret
	var walk func(x any, ptr string)
	walk = func(x any, ptr string) {
		if a.IntN(5) == 0 {
			marks = append(marks, ptr)
			return
		}
		switch x := x.(type) {
		case nil:
			if a.IntN(3) == 0 {
				secrets = append(secrets, Secret{Path: ptr, Parts: []SecretPart{{Text: "Bearer "}, {Ref: "env:X"}}})
			}
		case []any:
			for i, e := range x {
				walk(e, fmt.Sprintf("%s/%d", ptr, i))
			}
		case map[string]any:
			for _, k := range sorted.Keys(x) {
				walk(x[k], ptr+"/"+value.EscapePointer(k))
			}
		}
	}
	walk(tree, "")
	return NewValue(out.JSON(), marks, secrets)
}

func (a *author) result(kind string) InstanceResult {
	r := InstanceResult{Status: "succeeded", Attempts: a.IntN(3), StartedAt: time.Unix(1_800_000_000, int64(a.IntN(2))*5e6), TimedOut: a.IntN(2) == 0}
	switch a.IntN(6) {
	case 0:
		r.Status, r.ErrorCode, r.ErrorText = "failed", "denied", "no é"
	case 1:
		r.Status, r.StartedAt = "skipped", time.Time{}
	default:
		r.Output = a.value(kind)
	}
	return r
}

func (a *author) scope(wf *Workflow) func() *Scope {
	vars := "{"
	for i, v := range []string{"any:object", "b:bool", "far:far", "l:strings", "lo:lo", "m:numbers", "mo:object", "n:number", "o:o", "opt:string", "pin:string", "s:string", "set:strings"} {
		name, kind, _ := strings.Cut(v, ":")
		if a.IntN(40) == 0 {
			continue
		}
		if i > 0 && len(vars) > 1 {
			vars += ","
		}
		vars += fmt.Sprintf("%q:%s", name, a.document(kind, 2))
	}
	all := a.value(vars + "}")
	if whole, _ := value.MarksAt(all, ""); whole || len(all.Sensitive()) == 0 { // as Bind does
		all = NewValue(all.JSON(), []string{"/pin"}, nil)
	}
	results := map[string]StepResult{
		"a": {Final: true, One: a.result(`{"value":` + a.document(a.pick("string", "object", "number"), 2) + "}")},
		"t": {Final: true, One: a.result(`{"card":` + a.document("string", 0) + `,"charge_id":` + a.document("string", 0) + "}")},
		"j": {Final: true, One: a.result(a.document("json", 1))},
		"e": {Final: a.IntN(2) == 0, Each: true},
	}
	e := results["e"]
	for _, k := range []string{"k1", "k2", "x", "é"}[:a.IntN(5)] {
		r := a.result(`{"reservation_id":` + a.document("string", 0) + "}")
		r.Key = k
		e.Instances = append(e.Instances, r)
	}
	results["e"] = e
	each := &EachItem{Key: a.pick("k1", "k2", "é", "zz"), Value: a.value(a.document(a.pick("number", "object"), 2))}
	self := &Self{
		Input: a.value(`{"value":1}`), Output: a.value(`{"value":` + a.document(a.pick("string", "object"), 2) + "}"),
		OutputKnown: a.IntN(4) > 0, Key: "key é", TimedOut: a.IntN(2) == 0, Signal: a.pick("", "paid"),
	}
	info := RunInfo{ID: "r-1", Workflow: "w", Key: a.pick("", "k"), StartedAt: time.Unix(1_800_000_000, 0)}
	return func() *Scope {
		return &Scope{
			Run: info, Vars: NewValue(all.JSON(), all.Sensitive(), all.Secrets()), Each: each, Self: self,
			Failure: &Failure{Step: "x", Code: "c", Message: "m"}, Memo: &Memo{},
			Step: func(i int) StepResult { return results[wf.Steps[i].Name] },
		}
	}
}

// outcomes evaluates everything of the last step and of the outputs.
func outcomes(wf *Workflow, scope func() *Scope) map[string]string {
	out := map[string]string{}
	say := func(name string, v any, err error) {
		if x, ok := v.(Value); ok && err == nil {
			v = fmt.Sprintf("%s %q %q", x.JSON(), x.Sensitive(), x.Secrets())
		}
		if err != nil {
			v = errors.New("error: " + err.Error())
		}
		out[name] = fmt.Sprint(v)
	}
	for _, o := range wf.Outputs {
		v, err := o.Value(scope())
		say("output", v, err)
	}
	s := wf.Steps[len(wf.Steps)-1]
	v, err := s.Input(scope())
	say("input", v, err)
	if s.When != nil {
		v, err := s.When(scope())
		say("when", v, err)
	}
	if s.IdempotencyKey != nil {
		v, err := s.IdempotencyKey(scope())
		say("key", v, err)
	}
	if s.ForEach != nil {
		v, err := s.ForEach(scope())
		say("for_each", v.Keys, err)
		for i, k := range v.Keys {
			say("for_each "+k, v.Values[i], nil)
		}
	}
	set, err := s.Settings(scope())
	if set != nil {
		say("settings", *set, err)
	} else {
		say("settings", nil, err)
	}
	for _, c := range s.Post {
		ok, err := c.Check(scope())
		say("post", ok, err)
		text, err := c.Message(scope())
		say("message", text, err)
	}
	if s.Undo != nil {
		v, err := s.Undo.Input(scope())
		say("undo", v, err)
	}
	return out
}

// TestDirectAgrees: over generated expressions and values, what is evaluated
// on bytes gives the evaluator's value, marks, secrets and errors.
func TestDirectAgrees(t *testing.T) {
	places := []string{"output", "any", "typed", "http", "kinds", "when", "settings", "each", "self"}
	linked, values := 0, 0
	a := &author{Rand: rand.New(rand.NewPCG(7, 11))}
	for i := range 630 {
		src := a.source(places[i%len(places)])
		with, without := linkBoth(t, src)
		if (with == nil) != (without == nil) {
			t.Fatalf("only one of two can be linked:\n%s", src)
		}
		if with == nil {
			continue
		}
		linked++
		for range 6 {
			scope := a.scope(with)
			got, want := outcomes(with, scope), outcomes(without, scope)
			for name := range want {
				// The library takes the elements of a map in any order, so that of two
				// mistakes either may be named.
				for k := 0; k < 50 && got[name] != want[name] && strings.HasPrefix(got[name], "error:"); k++ {
					want = outcomes(without, scope)
				}
				if got[name] != want[name] {
					t.Fatalf("%s:\n direct    %s\n evaluator %s\nvariables %s %q\n%s", name, got[name], want[name],
						scope().Vars.JSON(), scope().Vars.Sensitive(), src[len(agreeHead):])
				}
				if !strings.HasPrefix(got[name], "error:") {
					values++
				}
			}
		}
	}
	if linked < 200 || values < 1000 {
		t.Errorf("%d definitions with %d values: the test compares too little", linked, values)
	}
	t.Logf("%d definitions, %d values", linked, values)
}
