package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/sdk"
)

// instant is an Invoker that answers at once.
type instant struct{}

func (instant) Invoke(context.Context, invoke.Call) (sdk.Reply, error) {
	return sdk.Reply{Outcome: sdk.OutcomeResult, Output: []byte(`{"id":"x"}`)}, nil
}

// BenchmarkSteps measures what the engine itself costs for each durable step
// of a five-step run, with a store in memory and agents that answer at once.
func BenchmarkSteps(b *testing.B) {
	source := "workflow \"five\" {\n  deadline = \"1h\"\n"
	for i := range 5 {
		after := ""
		if i > 0 {
			after = fmt.Sprintf("depends_on = [step.s%d]", i-1)
		}
		source += fmt.Sprintf("  step \"s%d\" {\n    action = agent.shop.reserve\n    %s\n    input { name = \"n\" }\n  }\n", i, after)
	}
	source += "}\n"
	def := define(b, source, newShop().agent)
	vars, _ := def.Workflow("five").Bind(nil)
	for _, concurrent := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("C=%d", concurrent), func(b *testing.B) {
			n, err := engine.NewNode(engine.Config{Store: memory.New(memory.Options{}), Invoker: instant{}, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan error, 1)
			go func() { done <- n.Run(ctx) }()
			<-n.Ready()
			start := time.Now()
			benchRuns(b, n, def, vars, concurrent)
			b.ReportMetric(5*float64(b.N)/time.Since(start).Seconds(), "steps/s")
			cancel()
			if err := <-done; err != nil {
				b.Error(err)
			}
		})
	}
}

func benchRuns(b *testing.B, n *engine.Node, def *dsl.Definition, vars dsl.Value, concurrent int) {
	left := make(chan struct{}, b.N)
	for range b.N {
		left <- struct{}{}
	}
	close(left)
	errs := make(chan error, concurrent)
	for range concurrent {
		go func() {
			for range left {
				s, err := n.Submit(b.Context(), engine.Submission{Definition: def, Workflow: "five", Vars: vars})
				if err == nil {
					_, err = n.Wait(b.Context(), s.Run)
				}
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range concurrent {
		if err := <-errs; err != nil {
			b.Error(err)
		}
	}
}
