package engine_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/memory"
)

// BenchmarkChildren compares child runs with plain runs of the same workflow. One iteration is 100
// runs: submitted by 32 clients, or started by one parent.
func BenchmarkChildren(b *testing.B) {
	def := define(b, `
workflow "kid" {
  step "v" { value = 1 }
}
workflow "top" {
  step "kid" {
    workflow = workflow.kid
    for_each = toset([for n in range(100) : tostring(n)])
  }
}`)
	b.Run("plain", func(b *testing.B) {
		n, stop := benchNode(b)
		defer stop()
		for b.Loop() {
			todo := make(chan int, 100)
			for i := range 100 {
				todo <- i
			}
			close(todo)
			var wg sync.WaitGroup
			for range 32 {
				wg.Go(func() {
					for range todo {
						runOne(b, n, def, "kid")
					}
				})
			}
			wg.Wait()
		}
		b.ReportMetric(float64(100*b.N)/b.Elapsed().Seconds(), "runs/s")
	})
	b.Run("children", func(b *testing.B) {
		n, stop := benchNode(b)
		defer stop()
		for b.Loop() {
			runOne(b, n, def, "top")
		}
		b.ReportMetric(float64(100*b.N)/b.Elapsed().Seconds(), "runs/s")
	})
}

// runOne submits a run and waits until it has succeeded.
func runOne(b *testing.B, n *engine.Node, def *dsl.Definition, workflow string) {
	vars, diags := def.Workflow(workflow).Bind(nil)
	if diags.HasErrors() {
		b.Error(diags.Err())
		return
	}
	s, err := n.Submit(b.Context(), engine.Submission{Definition: def, Workflow: workflow, Vars: vars})
	if err != nil {
		b.Error(err)
		return
	}
	if state, err := n.Wait(b.Context(), s.Run); err != nil || state.Status() != status.RunSucceeded {
		b.Errorf("err = %v", err)
	}
}

// benchNode runs a node on a store in memory.
func benchNode(b *testing.B) (*engine.Node, func()) {
	n, err := engine.NewNode(engine.Config{Store: memory.New(memory.Options{}), Invoker: &direct{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	<-n.Ready()
	return n, func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
}
