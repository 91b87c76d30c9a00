package schema_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/saga-engine/engine/sdk/schema"
)

// A type comes back as it was, in the JSON form of the package cty.
func TestTypesComeBack(t *testing.T) {
	text, number := schema.Type{Kind: schema.KindString}, schema.Type{Kind: schema.KindNumber}
	object := schema.Type{Kind: schema.KindObject, Fields: []schema.Field{{Name: "a", Type: text}, {Name: "b", Type: number, Optional: true}, {Name: "c", Type: text, Optional: true}}}
	for data, typ := range map[string]schema.Type{
		`"dynamic"`: {Kind: schema.KindAny}, `"bool"`: {Kind: schema.KindBool}, `"number"`: number, `"string"`: text,
		`["list","string"]`: {Kind: schema.KindList, Elem: &text}, `["set","number"]`: {Kind: schema.KindSet, Elem: &number},
		`["map",["list","string"]]`:          {Kind: schema.KindMap, Elem: &schema.Type{Kind: schema.KindList, Elem: &text}},
		`["object",{"a":"string"}]`:          {Kind: schema.KindObject, Fields: []schema.Field{{Name: "a", Type: text}}},
		`["object",{}]`:                      {Kind: schema.KindObject},
		`["list",["object",{"a":"string"}]]`: {Kind: schema.KindList, Elem: &schema.Type{Kind: schema.KindObject, Fields: []schema.Field{{Name: "a", Type: text}}}},
		`["object",{"a":"string","b":"number","c":"string"},["b","c"]]`: object,
	} {
		got, err := json.Marshal(typ)
		if err != nil || string(got) != data {
			t.Errorf("written %s, %v, want %s", got, err, data)
		}
		var back schema.Type
		if err := json.Unmarshal([]byte(data), &back); err != nil || !reflect.DeepEqual(back, typ) {
			t.Errorf("%s: read %+v, %v, want %+v", data, back, err, typ)
		}
	}
}

func TestTypesThatAreWrong(t *testing.T) {
	for data, want := range map[string]string{
		`"int"`: `unknown type "int"`, `7`: "type expression", `[]`: "malformed type expression", `["list"]`: "malformed type expression",
		`[1,"string"]`: "malformed type expression", `["tuple",["string"]]`: `unknown type constructor "tuple"`, `["list","int"]`: `unknown type "int"`,
		`["object",["string"]]`: "cannot unmarshal", `["object",{"a":"int"}]`: `unknown type "int"`, `["object",{},"a"]`: "optional attributes",
	} {
		var typ schema.Type
		if err := json.Unmarshal([]byte(data), &typ); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", data, err, want)
		}
	}
	for _, typ := range []schema.Type{{}, {Kind: "tuple"}, {Kind: schema.KindList}, {Kind: schema.KindMap}} {
		if data, err := json.Marshal(typ); err == nil {
			t.Errorf("%+v: written as %s", typ, data)
		}
	}
}

// A field with a pattern or codes accepts some texts only: the text itself, elements, keys, values.
func TestWordsOfFields(t *testing.T) {
	text := schema.Type{Kind: schema.KindString}
	list, dict := schema.Type{Kind: schema.KindList, Elem: &text}, schema.Type{Kind: schema.KindMap, Elem: &text}
	for _, c := range []struct {
		field schema.Field
		tree  any
		want  string // text of the error; "" = accepted
	}{
		{schema.Field{Type: text}, "anything", ""},
		{schema.Field{Type: text, Pattern: "[a-z]+"}, "abc", ""},
		{schema.Field{Type: text, Pattern: "[a-z]+"}, "abc1", `"abc1" does not match [a-z]+`},
		{schema.Field{Type: text, Pattern: "a|b"}, "ax", `"ax" does not match a|b`}, // the whole text counts
		{schema.Field{Type: text, Pattern: "a"}, "a\n", "does not match"},
		{schema.Field{Type: list, Pattern: "a"}, []any{"a", "b"}, `"b" does not match`},
		{schema.Field{Type: list, Pattern: "a"}, []any{"a", nil}, ""},
		{schema.Field{Type: dict, Pattern: "[0-9]+"}, map[string]any{"404": "not_found"}, ""},
		{schema.Field{Type: dict, Pattern: "[0-9]+"}, map[string]any{"x": "y"}, `"x" does not match`},
		{schema.Field{Type: dict, Codes: true}, map[string]any{"404": "not_found"}, ""},
		{schema.Field{Type: dict, Codes: true}, map[string]any{"404": "NotFound"}, `"NotFound" cannot be an error code`},
		{schema.Field{Type: dict, Codes: true}, map[string]any{"404": "timeout"}, `"timeout" cannot be an error code`}, // the engine's own
		{schema.Field{Type: text, Codes: true}, "not_found", ""},
		{schema.Field{Type: text, Codes: true}, "", "cannot be an error code"},
		{schema.Field{Type: text, Codes: true}, nil, ""},
	} {
		w, err := c.field.Words()
		if err != nil {
			t.Errorf("%+v: %v", c.field, err)
			continue
		}
		if err = w.Check(c.tree); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v accepts %v: %v, want %q", c.field, c.tree, err, c.want)
		}
	}
	number := schema.Type{Kind: schema.KindNumber}
	for _, f := range []schema.Field{
		{Type: number, Pattern: "a"}, {Type: number, Codes: true}, {Type: schema.Type{Kind: schema.KindList, Elem: &number}, Pattern: "a"},
		{Type: schema.Type{Kind: schema.KindMap, Elem: &number}, Codes: true}, {Type: text, Pattern: "("},
	} {
		if _, err := f.Words(); err == nil {
			t.Errorf("%+v: no error", f)
		}
	}
	// The keys of a map of numbers are texts.
	if _, err := (schema.Field{Type: schema.Type{Kind: schema.KindMap, Elem: &number}, Pattern: "a"}).Words(); err != nil {
		t.Errorf("pattern of keys: %v", err)
	}
}
