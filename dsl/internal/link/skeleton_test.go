package link

import (
	"encoding/json"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk/schema"
)

// A skeleton names every output, with its type as the workflow sees it.
func TestSkeleton(t *testing.T) {
	text := schema.Type{Kind: schema.KindString}
	fields := []schema.Field{
		{Name: "id", Type: text}, {Name: "note", Type: text, Optional: true},
		{Name: "amount", Type: schema.Type{Kind: schema.KindNumber}}, {Name: "paid", Type: schema.Type{Kind: schema.KindBool}},
		{Name: "state", Type: text, Enum: []json.RawMessage{json.RawMessage(`"new"`), json.RawMessage(`"old"`)}},
		{Name: "tags", Type: schema.Type{Kind: schema.KindList, Elem: &text}}, {Name: "by", Type: schema.Type{Kind: schema.KindMap, Elem: &text}},
		{Name: "json", Type: schema.Type{Kind: schema.KindAny}},
	}
	declared, err := value.ObjectFrom(fields)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"amount":"NUMBER","by":{"KEY":"STRING"},"id":"STRING","json":"ANY","note":"STRING or null","paid":"BOOL","state":"new or old","tags":["STRING"]}`
	if got := skeletonFunc(fields, declared)(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	narrow := cty.Object(map[string]cty.Type{"json": cty.Object(map[string]cty.Type{"id": cty.Number, "pair": cty.Tuple([]cty.Type{cty.Bool, cty.String})})})
	if got, want := skeletonFunc(fields, narrow)(), `{"json":{"id":"NUMBER","pair":["BOOL","STRING"]}}`; got != want {
		t.Errorf("with an output_type got %s, want %s", got, want)
	}
}

// All that is null although output_type wants it is named at once.
func TestNarrowNamesAllThatIsNull(t *testing.T) {
	v := cty.ObjectVal(map[string]cty.Value{"a": cty.NullVal(cty.String), "b": cty.NullVal(cty.String)})
	_, err := narrow(v, v.Type())
	if want := `attributes "a", "b" are null`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
