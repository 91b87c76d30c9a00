package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/sdk/internal/fastjson"
	"github.com/saga-engine/engine/sdk/internal/jsontree"
)

type hotAny struct {
	Value any `agent:"value,optional"`
}

type hotOrder struct {
	ID    string            `agent:"id"`
	Qty   int               `agent:"qty"`
	Price float64           `agent:"price"`
	Tags  []string          `agent:"tags"`
	Meta  map[string]string `agent:"meta,optional"`
	Mode  string            `agent:"mode,optional" enum:"soft|hard"`
	Wait  time.Duration     `agent:"wait,optional"`
	Lines []hotLine         `agent:"lines,optional"`
}

type hotLine struct {
	SKU string `agent:"sku"`
	Qty int    `agent:"qty"`
}

var hotAgent = func() *Agent {
	a := New("hot", "1.0.0")
	Action(a, "any", func(_ context.Context, _ *Call, in hotAny) (hotAny, error) { return in, nil })
	Action(a, "order", func(_ context.Context, _ *Call, in hotOrder) (hotOrder, error) { return in, nil })
	return a
}()

var hotInputs = map[string]string{
	"any":   fmt.Sprintf(`{"value":%q}`, strings.Repeat("x", 100)),
	"order": `{"id":"o-1042","qty":3,"price":19.99,"tags":["a","b"],"meta":{"k":"v"},"mode":"soft","wait":"1m30s","lines":[{"sku":"mug","qty":1},{"sku":"tee","qty":2}]}`,
}

func BenchmarkInvoke(b *testing.B) {
	for _, name := range []string{"any", "order"} {
		b.Run(name, func(b *testing.B) {
			req := Request{Action: name, Purpose: PurposeDo, Input: json.RawMessage(hotInputs[name]), CompleteBy: time.Now().Add(time.Hour), Run: "r", Step: "s", Attempt: 1}
			b.ReportAllocs()
			for b.Loop() {
				if r, ok := hotAgent.Invoke(b.Context(), req, InvokeOptions{}); !ok || r.Outcome != OutcomeResult {
					b.Fatal(r, ok)
				}
			}
		})
	}
}

func BenchmarkCodec(b *testing.B) {
	for _, name := range []string{"any", "order"} {
		act, raw := hotAgent.actions[name], json.RawMessage(hotInputs[name])
		v, err := fastjson.Decode(act.in, raw)
		if err != nil {
			b.Fatal(err)
		}
		out, err := fastjson.Encode(act.out, v)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fastjson.Decode(act.in, raw); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fastjson.Encode(act.out, v); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/check", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := CheckObject(act.schema.Outputs, out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestCodecAllocations limits what a call costs in addition to what its author makes.
func TestCodecAllocations(t *testing.T) {
	act, raw := hotAgent.actions["any"], json.RawMessage(hotInputs["any"])
	v, err := fastjson.Decode(act.in, raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		most float64
		f    func() error
	}{
		{"decode", 4, func() error { _, err := fastjson.Decode(act.in, raw); return err }},
		{"encode", 1, func() error { _, err := fastjson.Encode(act.out, v); return err }},
		{"check", 0, func() error { return CheckObject(act.schema.Outputs, raw) }},
	} {
		got := testing.AllocsPerRun(200, func() {
			if err := tt.f(); err != nil {
				t.Fatal(err)
			}
		})
		if got > tt.most {
			t.Errorf("%s: %.0f allocations, want %.0f", tt.name, got, tt.most)
		}
	}
}

// FuzzCheck: a document that passes the fast check passes the general check, too.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `[]`, `{"id":"x","qty":1,"price":0.5,"tags":[]}`, `{"id":"x","qty":1,"price":0.5,"tags":[],"mode":"hard","lines":[{"sku":"a","qty":2}]}`,
		`{"id":"x","qty":1,"price":0.5,"tags":[],"meta":{"a":"b"},"mode":"other"}`, `{"id":1,"qty":1,"price":1,"tags":[]}`, `{"id":"x","qty":1,"price":1,"tags":[1]}`,
		`{"id":"x","id":"y","qty":1,"price":1,"tags":[],"wait":null}`, `{"id":"x","qty":"1","price":1,"tags":[],"nope":1}`, `{"id":"x"} x`,
		`{"id":"x","qty":1,"price":1,"tags":[],"lines":[{"sku":"a"}]}`, `{"id":"\u0078","qty":1e3,"price":-0,"tags":["\"]}`,
	} {
		f.Add([]byte(s))
	}
	fields := hotAgent.actions["order"].schema.Outputs
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !fastjson.Holds(fields, raw) {
			return
		}
		tree, err := jsontree.Parse(raw)
		if err == nil {
			err = checkFields(fields, tree, "", false)
		}
		if err != nil {
			t.Fatalf("%s passes the fast check; the general check says: %v", raw, err)
		}
	})
}
