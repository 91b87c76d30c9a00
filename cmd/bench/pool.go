package main

import "github.com/saga-engine/engine/engine/agents"

// newPool makes a pool of the mock agent's processes. Calls go in batches over
// one stream for each process, or each over a stream of its own.
func newPool(w *work, unary bool, procs *processes) *agents.Pool {
	return agents.NewPool(agents.Options{Catalog: w.catalog, Observer: procs, Unary: unary})
}
