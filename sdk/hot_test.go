package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
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
		v, err := act.in.decode(raw)
		if err != nil {
			b.Fatal(err)
		}
		out, err := act.out.encode(v)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := act.in.decode(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := act.out.encode(v); err != nil {
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
