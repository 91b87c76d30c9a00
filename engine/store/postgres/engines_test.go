package postgres

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
)

// nobody is an Invoker for a workflow that calls no agent.
type nobody struct{}

func (nobody) Invoke(context.Context, invoke.Call) (sdk.Reply, error) {
	return sdk.Reply{}, errors.New("no agent is called")
}

// Two engines on one database and 50 runs with a limit of 3: at every moment at most 3 runs are
// open and admitted, and all end. Half of the runs are submitted to an engine, half are queued in
// the database.
func TestLimitOfTwoEngines(t *testing.T) {
	const runs, limit = 50, 3
	dsn := migrated(t)
	module, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(`
workflow "w" {
  deadline = "1h"
  concurrency { limit = 3 }
  step "hold" {
    timer { duration = "100ms" }
  }
}`)}}, dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	def, diags := dsl.Link(module, nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	vars, diags := def.Workflow("w").Bind(nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	sub := engine.Submission{Definition: def, Workflow: "w", Vars: vars, By: "test"}
	config := func() engine.Config {
		return engine.Config{Store: open(t, dsn), Invoker: nobody{}, Logger: slog.New(slog.DiscardHandler), Options: engine.Options{Address: "test"}}
	}
	var nodes []*engine.Node
	for range 2 {
		n, err := engine.NewNode(config())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-done; err != nil {
				t.Errorf("Run = %v", err)
			}
		})
		<-n.Ready()
		nodes = append(nodes, n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	db := raw(t, dsn)
	for k := range runs / 2 {
		if _, err := nodes[k%2].Submit(ctx, sub); err != nil {
			t.Fatal(err)
		}
	}
	queued := make([]engine.Submission, runs/2)
	for k := range queued {
		queued[k] = sub
	}
	if _, err := engine.EnqueueAll(ctx, config(), queued); err != nil {
		t.Fatal(err)
	}
	most := 0
	for {
		var admitted, ended int
		err := db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM engine.place p JOIN engine.run r USING (run_id) WHERE p.admitted AND r.state < 10),
			(SELECT count(*) FROM engine.run WHERE state = 10)`).Scan(&admitted, &ended)
		if err != nil {
			t.Fatal(err)
		}
		if most = max(most, admitted); admitted > limit {
			t.Fatalf("%d runs are open and admitted, the limit is %d", admitted, limit)
		}
		if ended == runs {
			break
		}
	}
	// The queries see only some moments, so they may miss those with three runs.
	if most < 2 {
		t.Error("no two runs were open and admitted at the same time")
	}
}
