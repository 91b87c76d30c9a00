package argument

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk/schema"
)

var (
	textType = schema.Type{Kind: schema.KindString}
	listType = schema.Type{Kind: schema.KindList, Elem: &textType}
	mapType  = schema.Type{Kind: schema.KindMap, Elem: &textType}
	pinned   = schema.Type{Kind: schema.KindObject, Fields: []schema.Field{{Name: "pin", Type: textType, Optional: true, Sensitive: true}}}
	secret   = value.SecretValue([]value.SecretPart{{Ref: "env:A"}})
)

func raws(texts ...string) (out []json.RawMessage) {
	for _, s := range texts {
		out = append(out, json.RawMessage(s))
	}
	return out
}

func specOf(t *testing.T, f schema.Field) *Spec {
	t.Helper()
	f.Name = "x"
	specs, err := Specs([]schema.Field{f})
	if err != nil {
		t.Fatal(err)
	}
	return specs["x"]
}

// shown returns a value with its sensitive parts and secrets; "" if the argument is left out.
func shown(v cty.Value) string {
	if v == cty.NilVal {
		return ""
	}
	out, err := value.Encode(v, true)
	if err != nil {
		return "error: " + err.Error()
	}
	return fmt.Sprintf("%s %q %d", out.JSON(), out.Sensitive(), len(out.Secrets()))
}

// An argument is converted to its type, is checked, and has the marks of the schema.
func TestAccept(t *testing.T) {
	null := cty.NullVal(cty.DynamicPseudoType)
	list := func(texts ...string) cty.Value {
		var out []cty.Value
		for _, s := range texts {
			out = append(out, cty.StringVal(s))
		}
		return cty.TupleVal(out)
	}
	entry := func(k, v string) cty.Value { return cty.ObjectVal(map[string]cty.Value{k: cty.StringVal(v)}) }
	for _, c := range []struct {
		rule  string
		field schema.Field
		v     cty.Value
		want  string
	}{
		{"null for a required argument", schema.Field{Type: textType}, null, "refused"},
		{"null for an optional argument leaves it out", schema.Field{Type: textType, Optional: true}, null, ""},
		{"null means the default", schema.Field{Type: textType, Default: json.RawMessage(`"d"`)}, null, `"d" [] 0`},
		{"a sensitive default is marked", schema.Field{Type: textType, Sensitive: true, Default: json.RawMessage(`"d"`)}, null, `"d" [""] 0`},
		{"the default null is no default", schema.Field{Type: textType, Default: json.RawMessage("null")}, null, "refused"},
		{"the default null of an optional argument", schema.Field{Type: textType, Optional: true, Default: json.RawMessage("null")}, null, ""},
		{"a number becomes a text", schema.Field{Type: textType}, cty.NumberIntVal(5), `"5" [] 0`},
		{"a list is no text", schema.Field{Type: textType}, list("a"), "refused"},
		{"a sensitive argument", schema.Field{Type: textType, Sensitive: true}, cty.StringVal("a"), `"a" [""] 0`},
		{"a sensitive attribute", schema.Field{Type: pinned}, entry("pin", "1"), `{"pin":"1"} ["/pin"] 0`},
		{"a value of the enum", schema.Field{Type: textType, Enum: raws(`"a"`, `"b"`)}, cty.StringVal("b"), `"b" [] 0`},
		{"no value of the enum", schema.Field{Type: textType, Enum: raws(`"a"`, `"b"`)}, cty.StringVal("c"), "refused"},
		{"a sensitive value of the enum", schema.Field{Type: textType, Enum: raws(`"a"`)}, cty.StringVal("a").Mark(value.SensitiveMark{}), `"a" [""] 0`},
		{"a sensitive value that is none", schema.Field{Type: textType, Enum: raws(`"a"`)}, cty.StringVal("c").Mark(value.SensitiveMark{}), "refused"},
		{"a secret is not compared with the enum", schema.Field{Type: textType, Enum: raws(`"a"`)}, secret, `null [] 1`},
		{"a text that matches", schema.Field{Type: textType, Pattern: "[a-z]+"}, cty.StringVal("abc"), `"abc" [] 0`},
		{"a text that does not match", schema.Field{Type: textType, Pattern: "[a-z]+"}, cty.StringVal("ABC"), "refused"},
		{"a secret has no text to match", schema.Field{Type: textType, Pattern: "[a-z]+"}, secret, `null [] 1`},
		{"each element matches", schema.Field{Type: listType, Pattern: "[a-z]+"}, list("a", "b"), `["a","b"] [] 0`},
		{"the last element does not", schema.Field{Type: listType, Pattern: "[a-z]+"}, list("a", "B"), "refused"},
		{"the keys of a map match", schema.Field{Type: mapType, Pattern: "[a-z]+"}, entry("a", "B"), `{"a":"B"} [] 0`},
		{"a key does not", schema.Field{Type: mapType, Pattern: "[a-z]+"}, entry("A", "b"), "refused"},
		{"a key does not, and its value is null", schema.Field{Type: mapType, Pattern: "[a-z]+"}, cty.MapVal(map[string]cty.Value{"A": cty.NullVal(cty.String)}), "refused"},
		{"a code", schema.Field{Type: textType, Codes: true}, cty.StringVal("no_money"), `"no_money" [] 0`},
		{"no code", schema.Field{Type: textType, Codes: true}, cty.StringVal("No money"), "refused"},
		{"the values of a map are codes", schema.Field{Type: mapType, Codes: true, Pattern: "[0-9]+"}, entry("404", "not_found"), `{"404":"not_found"} [] 0`},
		{"a value is no code", schema.Field{Type: mapType, Codes: true, Pattern: "[0-9]+"}, entry("404", "Not found"), "refused"},
	} {
		v, err := specOf(t, c.field).Accept(c.v)
		got := "refused"
		if err == nil {
			got = shown(v)
		}
		if got != c.want {
			t.Errorf("%s: %s (%v), want %s", c.rule, got, err, c.want)
		}
	}
}

// An error does not repeat a text that is sensitive, because of its field or because of its value.
func TestErrorsHideSensitiveTexts(t *testing.T) {
	mark := func(v cty.Value) cty.Value { return v.Mark(value.SensitiveMark{}) }
	word, code := schema.Field{Type: textType, Pattern: "[0-9]+"}, schema.Field{Type: mapType, Codes: true}
	hidden := word
	hidden.Sensitive = true
	for name, c := range map[string]struct {
		field schema.Field
		v     cty.Value
		shows bool
	}{
		"neither is sensitive":      {word, cty.StringVal("hunter2"), true},
		"the value is sensitive":    {word, mark(cty.StringVal("hunter2")), false},
		"the field is sensitive":    {hidden, cty.StringVal("hunter2"), false},
		"a sensitive value in it":   {code, cty.ObjectVal(map[string]cty.Value{"1": mark(cty.StringVal("hunter2 x"))}), false},
		"a value that is no secret": {code, cty.ObjectVal(map[string]cty.Value{"1": cty.StringVal("hunter2 x")}), true},
	} {
		_, err := specOf(t, c.field).Accept(c.v)
		if err == nil || strings.Contains(err.Error(), "hunter2") != c.shows {
			t.Errorf("%s: error %v; shows the text: want %t", name, err, c.shows)
		}
	}
}

// What the fast evaluator may write without more checks, Accept takes unchanged.
func TestTakesAgreesWithAccept(t *testing.T) {
	for _, f := range []schema.Field{{Type: textType}, {Type: textType, Enum: raws(`"a"`, `"5"`)}, {Type: textType, Pattern: "[a-z]+"}, {Type: textType, Codes: true}, {Type: textType, Optional: true}, {Type: textType, Default: json.RawMessage(`"d"`)}} {
		s := specOf(t, f)
		for _, raw := range []string{`"a"`, `"b"`, `"B"`, `"5"`, `""`, "null"} {
			if !s.takes([]byte(raw)) {
				continue
			}
			v, err := value.DecodeJSON([]byte(raw))
			if err != nil {
				t.Fatal(err)
			}
			if out, err := s.Accept(v); err != nil || shown(out) != raw+" [] 0" {
				t.Errorf("%+v takes %s, and Accept gives %s, %v", f, raw, shown(out), err)
			}
		}
	}
}

// A schema with a default, an enum or a pattern that cannot be used is refused.
func TestBrokenSchemas(t *testing.T) {
	for part, f := range map[string]schema.Field{
		"default": {Type: schema.Type{Kind: schema.KindNumber}, Default: json.RawMessage(`"x"`)}, "enum": {Type: schema.Type{Kind: schema.KindNumber}, Enum: raws("1", `"x"`)},
		"argument": {Type: textType, Pattern: "("}, `default of argument "x"`: {Type: textType, Default: json.RawMessage("{")}, `argument "x"`: {Type: schema.Type{Kind: "odd"}},
	} {
		f.Name = "x"
		if _, err := Specs([]schema.Field{f}); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", part, err)
		}
	}
}

// written returns an argument with an expression over var.v.
func written(t *testing.T, name, src string, f schema.Field) Argument {
	t.Helper()
	syn, diags := hclsyntax.ParseExpression([]byte(src), "a.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	f.Name = name
	specs, err := Specs([]schema.Field{f})
	if err != nil {
		t.Fatal(err)
	}
	c := &eval.Compiled{Syntax: syn, Metered: metered.Of(syn), Vars: strings.Contains(src, "var."), Self: strings.Contains(src, "self."), SelfOutput: strings.Contains(src, "self.output")}
	return Argument{Spec: specs[name], Name: name, Path: []byte("/" + name), Compiled: c, Preset: specs[name].Preset()}
}

func evaluator() *eval.Evaluator {
	open := cty.Object(map[string]cty.Type{"a": cty.String, "id": cty.String})
	return &eval.Evaluator{Vars: map[string]eval.VariableShape{"v": {Type: cty.DynamicPseudoType}}, Steps: []eval.StepShape{{Name: "a", Out: open, In: cty.ObjectWithOptionalAttrs(map[string]cty.Type{"a": cty.String, "b": cty.String}, []string{"a", "b"})}}}
}

func built(v value.Value, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return fmt.Sprintf("%s %q", v.JSON(), v.Sensitive())
}

// The arguments of an undo that need an unknown output have their default, or are left out.
func TestArgumentsWithoutTheOutput(t *testing.T) {
	l := &List{Evaluator: evaluator(), List: []Argument{
		written(t, "a", "self.output.a", schema.Field{Type: textType, Default: json.RawMessage(`"d"`)}),
		written(t, "b", "self.output.a", schema.Field{Type: textType, Optional: true}),
		written(t, "c", "self.key", schema.Field{Type: textType, Sensitive: true}),
	}}
	l.Fold()
	s := &eval.Scope{Self: &eval.Self{Key: "k", Output: value.NewValue([]byte(`{"a":"o","id":"i"}`), nil, nil), OutputKnown: true}}
	for skip, want := range map[bool]string{false: `{"a":"o","b":"o","c":"k"} ["/c"]`, true: `{"a":"d","c":"k"} ["/c"]`} {
		if got := built(l.Build(s, skip)); got != want {
			t.Errorf("without the output %t: %s, want %s", skip, got, want)
		}
	}
}

// An argument that cannot be evaluated is named before one that cannot be encoded. Arguments have
// a limit of size together.
func TestErrorsOfArguments(t *testing.T) {
	any := schema.Field{Type: schema.Type{Kind: schema.KindAny}}
	vars := func(json string) *eval.Scope { return &eval.Scope{Vars: value.NewValue([]byte(json), nil, nil)} }
	deep := `{"v":` + strings.Repeat("[", value.MaxDepth-1) + strings.Repeat("]", value.MaxDepth-1) + "}"
	both := &List{Evaluator: evaluator(), List: []Argument{written(t, "a", "[[var.v]]", any), written(t, "b", "var.v.none", any)}}
	if _, err := both.Build(vars(deep), false); err == nil || strings.HasPrefix(err.Error(), "arguments:") {
		t.Errorf("the error is %v, want the one of the evaluation", err)
	}
	nested := &List{Evaluator: evaluator(), List: []Argument{written(t, "a", "[[var.v]]", any), written(t, "b", "1", any)}}
	if _, err := nested.Build(vars(deep), false); err == nil || !strings.HasPrefix(err.Error(), "arguments:") {
		t.Errorf("the error is %v, want the one of the encoding", err)
	}
	text := strings.Repeat("x", value.MaxSize/2)
	for n, ok := range map[int]bool{1: true, 2: false} {
		l := &List{Evaluator: evaluator()}
		for i := range n {
			name := fmt.Sprint("a", i)
			l.List = append(l.List, Argument{Name: name, Ready: &ready{json: fmt.Appendf(nil, `%q:"%s"`, name, text)}})
		}
		if _, err := l.Build(nil, false); (err == nil) != ok {
			t.Errorf("%d arguments of 8 MiB: %v", n, err)
		}
	}
}

// A declared undo takes its arguments from the step, with their marks. An output that is not known
// is an error, unless the undo works by key.
func TestFiller(t *testing.T) {
	specs, err := Specs([]schema.Field{{Name: "a", Type: textType, Optional: true}, {Name: "b", Type: textType, Optional: true}, {Name: "c", Type: textType, Default: json.RawMessage(`"d"`)}})
	if err != nil {
		t.Fatal(err)
	}
	f := &Filler{Evaluator: evaluator(), Fields: []Fill{{specs["a"], "output"}, {specs["b"], "input"}, {specs["c"], ""}}}
	in, marked := value.NewValue([]byte(`{"a":"in-a","b":"in-b"}`), []string{"/b"}, nil), value.NewValue([]byte(`{"a":"out-a","id":"i"}`), []string{""}, nil)
	for _, c := range []struct {
		rule  string
		self  *eval.Self
		byKey bool
		want  string
	}{
		{"from the output and the input", &eval.Self{Input: in, Output: marked, OutputKnown: true}, false, `{"a":"out-a","b":"in-b","c":"d"} ["/a" "/b"]`},
		{"the output is not known", &eval.Self{Input: in, Output: marked}, false, `error: argument "a" comes from the output of the step, which is not known`},
		{"an undo by key needs no output", &eval.Self{Input: in, Output: marked}, true, `{"b":"in-b","c":"d"} ["/b"]`},
		{"without the values of a step", nil, false, "error: " + eval.ErrNoScope.Error()},
	} {
		f.ByKey = c.byKey
		if got := built(f.Eval(&eval.Scope{Self: c.self})); got != c.want {
			t.Errorf("%s: %s, want %s", c.rule, got, c.want)
		}
	}
}
