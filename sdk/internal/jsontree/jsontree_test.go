package jsontree_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/saga-engine/engine/sdk/internal/jsontree"
)

// Numbers keep their digits, and exactly one document is read.
func TestParse(t *testing.T) {
	for _, tt := range []struct {
		doc  string
		want any
	}{
		{"1.50", json.Number("1.50")}, {"12345678901234567890", json.Number("12345678901234567890")}, {"null", nil}, {` "x" `, "x"},
		{`{"a":[true,false]}`, map[string]any{"a": []any{true, false}}},
	} {
		if got, err := jsontree.Parse([]byte(tt.doc)); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("Parse(%s) = %#v, %v; want %#v", tt.doc, got, err, tt.want)
		}
	}
	for _, doc := range []string{"", " ", "{", "1 2", "{} x", "nul", `{"a":1,}`} {
		if got, err := jsontree.Parse([]byte(doc)); err == nil {
			t.Errorf("Parse(%q) = %#v, want an error", doc, got)
		}
	}
}

// Keys are sorted, HTML is not escaped, and there is no final newline.
func TestMarshal(t *testing.T) {
	raw, err := jsontree.Marshal(map[string]any{"b": "<&>", "a": json.Number("1.0"), "c": nil, "d": []any{}})
	if want := `{"a":1.0,"b":"<&>","c":null,"d":[]}`; err != nil || string(raw) != want {
		t.Errorf("Marshal = %s, %v; want %s", raw, err, want)
	}
	if raw, err := jsontree.Marshal(make(chan int)); err == nil {
		t.Errorf("Marshal of a channel = %s, want an error", raw)
	}
}

func TestWant(t *testing.T) {
	if err := jsontree.Want(true, "a", "a number", "x"); err != nil {
		t.Errorf("ok = true: %v", err)
	}
	for _, tt := range []struct {
		path string
		tree any
		want string
	}{
		{"", nil, "must be a map, not null"}, {"in", true, "in: must be a map, not a boolean"}, {"in.a", "secret", "in.a: must be a map, not a string"},
		{"n", json.Number("1"), "n: must be a map, not a number"}, {"l[0]", []any{}, "l[0]: must be a map, not a list"}, {"o", map[string]any{}, "o: must be a map, not an object"},
	} {
		if err := jsontree.Want(false, tt.path, "a map", tt.tree); err == nil || err.Error() != tt.want {
			t.Errorf("%q: %v; want %s", tt.path, err, tt.want)
		}
	}
	if got := jsontree.Join("", "a"); got != "a" {
		t.Errorf("Join of the document and a = %q", got)
	}
	if got := jsontree.Join("a", "b"); got != "a.b" {
		t.Errorf("Join(a, b) = %q", got)
	}
}

// 1 and 1.0 are one number; "1" is another value. Null fits every list.
func TestOneOf(t *testing.T) {
	raw := []json.RawMessage{[]byte(`1`), []byte(`"x"`), []byte(`true`)}
	allowed := []any{json.Number("1"), "x", true}
	for _, v := range []any{json.Number("1"), json.Number("1.0"), json.Number("10e-1"), "x", true, nil} {
		if err := jsontree.OneOf(v, allowed, raw); err != nil {
			t.Errorf("%#v: %v", v, err)
		}
	}
	for _, v := range []any{json.Number("2"), "1", "X", false, []any{}} {
		err := jsontree.OneOf(v, allowed, raw)
		if want := `must be one of 1, "x", true`; err == nil || err.Error() != want {
			t.Errorf("%#v: %v; want %s", v, err, want)
		}
	}
	if err := jsontree.OneOf("anything", nil, nil); err != nil {
		t.Errorf("without a list: %v", err)
	}
}
