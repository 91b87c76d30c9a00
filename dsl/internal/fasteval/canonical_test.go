package fasteval

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk/schema"
)

var (
	textType   = schema.Type{Kind: schema.KindString}
	numberType = schema.Type{Kind: schema.KindNumber}
)

func shapeOf(t *testing.T, fields ...schema.Field) *Shape {
	t.Helper()
	s := ShapeOfFields(fields)
	if s == nil {
		t.Fatal("these fields have no shape")
	}
	return s
}

// copied returns the canonical form and the sensitive parts, or "-" if the copier gives up.
func copied(s *Shape, raw string) string {
	v, ok := Canonical(s, []byte(raw))
	if !ok {
		return "-"
	}
	return strings.TrimSuffix(fmt.Sprintf("%s %q", v.JSON(), v.Sensitive()), " []")
}

// The copier writes the canonical form, or leaves the document to the general evaluator.
func TestCanonicalForm(t *testing.T) {
	object := shapeOf(t, schema.Field{Name: "a", Type: textType}, schema.Field{Name: "b", Type: numberType, Optional: true})
	for _, c := range []struct {
		rule, raw, want string
		shape           *Shape
	}{
		{"members are sorted", `{"b":1,"a":"x"}`, `{"a":"x","b":1}`, object},
		{"a missing optional member is null", `{"a":"x"}`, `{"a":"x","b":null}`, object},
		{"an optional member may be null", `{"a":"x","b":null}`, `{"a":"x","b":null}`, object},
		{"a missing required member is an error", `{"b":1}`, "-", object},
		{"a required member is not null", `{"a":null}`, "-", object},
		{"a member with another name is an error", `{"a":"x","c":1}`, "-", object},
		{"a number is no text", `{"a":1}`, "-", object},
		{"two members with one name, next to each other", `{"x":1,"x":2}`, "-", Anything},
		{"two members with one name, apart", `{"x":1,"y":0,"x":2}`, "-", Anything},
		{"three members with one name", `{"b":0,"x":1,"x":1,"x":1}`, "-", Anything},
		{"the last two members have one name", `{"a":1,"c":2,"b":3,"c":2}`, "-", Anything},
		{"a name with an escape", `{"\u0061":1}`, "-", Anything},
		{"white space goes", " { \"x\" : [ 1 , 2 ] } ", `{"x":[1,2]}`, Anything},
		{"zeros behind the point go", `[1.50,1.0,-0,-0.0,0.10,100]`, `[1.5,1,0,0,0.1,100]`, Anything},
		{"an exponent is written out", `[1e2,1E-2,-1.5e1]`, `[100,0.01,-15]`, Anything},
		{"texts have their shortest escapes", `"\u0041\/\n\u000a"`, `"A/\n\n"`, Anything},
		{"texts are normalised", `"e\u0301"`, `"é"`, Anything},
		{"a comma too much", `[1,]`, "-", Anything},
		{"something behind the value", `{} {}`, "-", Anything},
		{"no value", ``, "-", Anything},
		{"an object that does not end", `{"a":1`, "-", Anything},
		{"a member without a name", `{1:2}`, "-", Anything},
	} {
		if got := copied(c.shape, c.raw); got != c.want {
			t.Errorf("%s: %s gives %s, want %s", c.rule, c.raw, got, c.want)
		}
	}
}

// The enum of a text holds for the text as it was sent. A text that is equal only after Unicode
// normalisation is left to the general evaluator, which refuses it.
func TestEnumOfTexts(t *testing.T) {
	s := shapeOf(t, schema.Field{Name: "a", Type: textType, Enum: []json.RawMessage{json.RawMessage(`"é"`), json.RawMessage(`"x"`)}},
		schema.Field{Name: "n", Type: numberType, Optional: true, Enum: []json.RawMessage{json.RawMessage(`2.5`)}})
	for raw, want := range map[string]string{
		`{"a":"é","n":2.5}`:       `{"a":"é","n":2.5}`,
		`{"a":"x", "n": 2.50 }`:   `{"a":"x","n":2.5}`,
		`{"a": "x","n":25e-1}`:    `{"a":"x","n":2.5}`,
		`{"a":"x"}`:               `{"a":"x","n":null}`,
		`{"a":"e\u0301","n":2.5}`: "-",
		"{\"a\":\"e\u0301\"}":     "-",
		`{"a":"\u0078"}`:          "-",
		`{"a":"y"}`:               "-",
		`{"a":"x","n":2}`:         "-",
	} {
		if got := copied(s, raw); got != want {
			t.Errorf("%s gives %s, want %s", raw, got, want)
		}
	}
}

// Each sensitive part has one mark, at the innermost place that the shape can name.
func TestSensitiveParts(t *testing.T) {
	inner := schema.Type{Kind: schema.KindObject, Fields: []schema.Field{{Name: "pin", Type: textType, Optional: true, Sensitive: true}, {Name: "z", Type: textType, Optional: true}}}
	s := shapeOf(t,
		schema.Field{Name: "a~/b", Type: inner, Optional: true},
		schema.Field{Name: "list", Type: schema.Type{Kind: schema.KindList, Elem: &inner}, Optional: true},
		schema.Field{Name: "whole", Type: inner, Optional: true, Sensitive: true},
		schema.Field{Name: "z/~", Type: textType, Optional: true, Sensitive: true},
	)
	for raw, want := range map[string]string{
		`{"a~/b":{"pin":"1"},"list":[{"pin":"1"}],"whole":{"pin":"1"}}`: `["/a~0~1b/pin" "/list" "/whole" "/z~1~0"]`,
		`{"whole":null,"list":null,"a~/b":{}}`:                          `["/a~0~1b/pin" "/list" "/whole" "/z~1~0"]`,
		`{}`:                                                            `["/list" "/whole" "/z~1~0"]`,
	} {
		v, ok := Canonical(s, []byte(raw))
		if !ok {
			t.Errorf("%s is left to the general evaluator", raw)
		} else if got := fmt.Sprintf("%q", v.Sensitive()); got != want {
			t.Errorf("%s: the sensitive parts are %s, want %s", raw, got, want)
		}
	}
}

// A document at the limit of nesting is copied, and a deeper one is not.
func TestNestingOfCopies(t *testing.T) {
	for _, c := range []struct {
		depth int
		want  bool
	}{{value.MaxDepth, true}, {value.MaxDepth + 1, false}} {
		lists := strings.Repeat("[", c.depth) + strings.Repeat("]", c.depth)
		objects := strings.Repeat(`{"a":`, c.depth-1) + "{}" + strings.Repeat("}", c.depth-1)
		for _, raw := range []string{lists, objects} {
			if _, ok := Canonical(Anything, []byte(raw)); ok != c.want {
				t.Errorf("%.5s... at depth %d: copied %t, want %t", raw, c.depth, ok, c.want)
			}
			b := newBench(cty.DynamicPseudoType, raw)
			d := Compile(b.ev, 0, b.compiled(t, "[var.v]"), Anything, nil)
			if _, ok := d.Value(&Context{Evaluator: b.ev, Scope: b.scope}, false); ok {
				t.Errorf("[%.5s...] at depth %d: a list around it is copied", raw, c.depth)
			}
			d = Compile(b.ev, 0, b.compiled(t, "var.v"), Anything, nil)
			if _, _, ok := d.WriteInto(&Context{Evaluator: b.ev, Scope: b.scope}, nil, nil, nil, false); ok {
				t.Errorf("%.5s... at depth %d: it is copied as one argument, which is inside of an object", raw, c.depth)
			}
		}
	}
}

// Two types meet if they have the same names and the same kinds, and then no value is converted.
func TestShapesThatMeet(t *testing.T) {
	text, number := ShapeFrom(cty.String), ShapeFrom(cty.Number)
	ab := ShapeFrom(cty.Object(map[string]cty.Type{"a": cty.String, "b": cty.List(cty.String)}))
	for _, c := range []struct {
		name     string
		from, to *Shape
		want     *Shape
	}{
		{"any and text", Anything, text, text},
		{"text and any", text, Anything, text},
		{"text and number", text, number, nil},
		{"no shape and text", nil, text, nil},
		{"text and no shape", text, nil, nil},
		{"other names", ShapeFrom(cty.Object(map[string]cty.Type{"a": cty.String, "c": cty.List(cty.String)})), ab, nil},
		{"fewer names", ShapeFrom(cty.Object(map[string]cty.Type{"a": cty.String})), ab, nil},
		{"another type in a list", ShapeFrom(cty.Object(map[string]cty.Type{"a": cty.String, "b": cty.List(cty.Number)})), ab, nil},
		{"another type of an attribute", ShapeFrom(cty.Object(map[string]cty.Type{"a": cty.Bool, "b": cty.List(cty.String)})), ab, nil},
		{"lists of other types", ShapeFrom(cty.List(cty.String)), ShapeFrom(cty.List(cty.Bool)), nil},
	} {
		if got := meet(c.from, c.to); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	any := ShapeFrom(cty.Object(map[string]cty.Type{"a": cty.DynamicPseudoType, "b": cty.List(cty.DynamicPseudoType)}))
	if got := meet(any, ab); got == nil || copied(got, `{"a":"x","b":["y"]}`) != `{"a":"x","b":["y"]}` || copied(got, `{"a":1,"b":[]}`) != "-" {
		t.Errorf("what may be anything, and the narrow type: %+v", got)
	}
}

// With output_type, a field that the schema leaves open has the wanted type. In it, objects may
// have more attributes, at every level. The schema decides about the other fields.
func TestNarrowedReplies(t *testing.T) {
	declared := shapeOf(t, schema.Field{Name: "json", Type: schema.Type{Kind: schema.KindAny}}, schema.Field{Name: "note", Type: textType, Optional: true})
	item := cty.Object(map[string]cty.Type{"id": cty.Number})
	wanted := func(optional ...string) *Shape {
		return ShapeFrom(cty.ObjectWithOptionalAttrs(map[string]cty.Type{"json": cty.List(cty.Map(item)), "note": cty.String}, optional))
	}
	for _, c := range []struct {
		raw, want, optional string
	}{
		{`{"json":[{"k":{"id":1}}],"note":"n"}`, `{"json":[{"k":{"id":1}}],"note":"n"}`, ""},
		{`{"json":[{"k":{"id":1,"more":2}}],"note":"n"}`, `{"json":[{"k":{"id":1}}],"note":"n"}`, ""},
		{`{"json":[],"note":"n","more":1}`, "-", ""},
		{`{"json":[],"note":null}`, "-", ""},
		{`{"json":[]}`, "-", ""},
		{`{"json":[]}`, `{"json":[],"note":null}`, "note"},
		{`{"json":[],"note":null}`, `{"json":[],"note":null}`, "note"},
		{`{"note":"n"}`, "-", "json"},
		{`{"json":[{"k":{"id":"1"}}],"note":"n"}`, "-", ""},
	} {
		var optional []string
		if c.optional != "" {
			optional = append(optional, c.optional)
		}
		s := Narrowed(declared, wanted(optional...))
		if s == nil {
			t.Fatal("the replies have no shape")
		}
		if got := copied(s, c.raw); got != c.want {
			t.Errorf("optional %q: %s gives %s, want %s", c.optional, c.raw, got, c.want)
		}
	}
	for name, other := range map[string]cty.Type{
		"another name":   cty.Object(map[string]cty.Type{"json": cty.String, "nota": cty.String}),
		"another type":   cty.Object(map[string]cty.Type{"json": cty.String, "note": cty.Number}),
		"fewer names":    cty.Object(map[string]cty.Type{"json": cty.String}),
		"a set has none": cty.Object(map[string]cty.Type{"json": cty.Set(cty.String), "note": cty.String}),
	} {
		if got := Narrowed(declared, ShapeFrom(other)); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// for_each over a reference gives the members of the map in order. Sensitive parts, lists and texts
// are left to the general evaluator.
func TestEachOfAMap(t *testing.T) {
	for _, c := range []struct{ v, mark, want string }{
		{`{"a":1,"b":{"x":[]}}`, "", `a=1 b={"x":[]} `},
		{"{}", "", ""},
		{`{"a":1}`, "/v/a", "-"},
		{`{"a":1}`, "/v", "-"},
		{`["a"]`, "", "-"},
		{`"a"`, "", "-"},
		{"null", "", "-"},
	} {
		b := newBench(cty.DynamicPseudoType, c.v)
		if c.mark != "" {
			b.scope.Vars = value.NewValue(b.scope.Vars.JSON(), []string{"/pin", c.mark}, nil)
		}
		d := Compile(b.ev, 0, b.compiled(t, "var.v"), Anything, nil)
		keys, values, ok := d.Each(&Context{Evaluator: b.ev, Scope: b.scope})
		got := ""
		for i, k := range keys {
			got += fmt.Sprintf("%s=%s ", k, values[i].JSON())
		}
		if !ok {
			got = "-"
		}
		if got != c.want || !slices.IsSorted(keys) {
			t.Errorf("%s: %q, want %q", c.v, got, c.want)
		}
	}
}
