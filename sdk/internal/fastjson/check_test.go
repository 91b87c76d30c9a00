package fastjson

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/saga-engine/engine/sdk/schema"
)

// Holds says yes only to objects that fit. It may say no to an unusual one that fits, and then another
// parser decides.
func TestHolds(t *testing.T) {
	text, number := schema.Type{Kind: schema.KindString}, schema.Type{Kind: schema.KindNumber}
	fields := []schema.Field{
		{Name: "id", Type: text},
		{Name: "n", Type: number, Optional: true},
		{Name: "on", Type: schema.Type{Kind: schema.KindBool}, Optional: true},
		{Name: "mode", Type: text, Optional: true, Enum: []json.RawMessage{[]byte(`"a"`), []byte(`"b"`)}},
		{Name: "list", Type: schema.Type{Kind: schema.KindList, Elem: &number}, Optional: true},
		{Name: "map", Type: schema.Type{Kind: schema.KindMap, Elem: &text}, Optional: true},
		{Name: "any", Type: schema.Type{Kind: schema.KindAny}, Optional: true},
		{Name: "in", Type: schema.Type{Kind: schema.KindObject, Fields: []schema.Field{{Name: "k", Type: text}}}, Optional: true},
	}
	for _, data := range []string{
		`{"id":"x"}`, ` { "n" : 1.5e3 , "id" : "é" } `, `{"id":"x","n":null,"on":true,"mode":"b","list":[],"map":{},"any":null}`,
		`{"id":"x","on":false,"list":[1,2],"map":{"a":"b"},"any":{"q":[1,"x"]},"in":{"k":""}}`,
	} {
		if !Holds(fields, json.RawMessage(data)) {
			t.Errorf("%s does not hold", data)
		}
	}
	for _, data := range []string{
		``, `null`, `[]`, `{}`, `{"n":1}`, `{"id":1}`, `{"id":null}`, `{"id":"x","other":1}`, `{"id":"x"} x`, `{"id":"x"`, `{"id":"x","n":"1"}`,
		`{"id":"x","on":1}`, `{"id":"x","on":truth}`, `{"id":"x","mode":"c"}`, `{"id":"x","mode":1}`, `{"id":"x","list":[1,"2"]}`, `{"id":"x","list":{}}`,
		`{"id":"x","map":{"a":1}}`, `{"id":"x","map":[]}`, `{"id":"x","in":{}}`, `{"id":"x","in":{"k":"","l":1}}`, `{"id":"x","any":}`,
	} {
		if Holds(fields, json.RawMessage(data)) {
			t.Errorf("%s holds", data)
		}
	}
	for _, odd := range []schema.Type{{}, {Kind: schema.KindList}, {Kind: schema.KindMap}} {
		if Holds([]schema.Field{{Name: "id", Type: odd}}, json.RawMessage(`{"id":[]}`)) {
			t.Errorf("%+v holds", odd)
		}
	}
}

// An object with more fields than there are bits is left to the other parser.
func TestHoldsManyFields(t *testing.T) {
	var fields []schema.Field
	var data []string
	for i := range mostFields + 1 {
		fields = append(fields, schema.Field{Name: fmt.Sprint("f", i), Type: schema.Type{Kind: schema.KindNumber}})
		data = append(data, fmt.Sprintf(`"f%d":1`, i))
	}
	if !Holds(fields[:mostFields], json.RawMessage("{"+strings.Join(data[:mostFields], ",")+"}")) {
		t.Error("64 fields do not hold")
	}
	if Holds(fields, json.RawMessage("{"+strings.Join(data, ",")+"}")) {
		t.Error("65 fields hold")
	}
}
