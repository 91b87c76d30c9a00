package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
)

// Bench measures commits of 1, 64 and 256 transitions of 100 bytes through one
// writer, one after the other: what a group commit costs by its size. It
// reports transitions per second and the median time of a commit.
func Bench(b *testing.B, s engine.Store) {
	ctx := b.Context()
	ids, err := s.PutDefinition(ctx, engine.Definition{Digest: "bench", Data: []byte("x"), Workflows: []engine.DefinedWorkflow{{Name: flowName, Steps: stepNames}}})
	if err != nil {
		b.Fatal(err)
	}
	id, err := s.Join(ctx, "bench", time.Hour, 1)
	if err != nil {
		b.Fatal(err)
	}
	w, err := s.OpenWriter(ctx, id, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := w.Close(); err != nil {
			b.Error(err)
		}
	})
	run := machine.RunID(1)
	for _, size := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("rows=%d", size), func(b *testing.B) {
			batch := make([]engine.Transition, size)
			for i := range batch {
				batch[i] = engine.Transition{
					Run: run, At: base, Workflow: ids[flowName], State: machine.RunRunning, Owner: &id, NextCheck: base, Data: make([]byte, 100),
					Steps: []engine.StepRow{{Node: 0, State: machine.StepRunning, Attempt: 1, CompleteBy: base}},
				}
				run++
			}
			benchCommit(b, w, batch)
			for i := range batch { // from here on a step ends and the next begins
				batch[i].State, batch[i].Owner, batch[i].NextCheck = 0, nil, time.Time{}
				batch[i].Steps = []engine.StepRow{{Node: 0, State: machine.StepSucceeded, Attempt: 1}, {Node: 1, State: machine.StepRunning, Attempt: 1, CompleteBy: base}}
			}
			var took []time.Duration
			b.ResetTimer()
			for b.Loop() {
				for i := range batch {
					batch[i].Seq++
				}
				start := time.Now()
				benchCommit(b, w, batch)
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
		})
	}
}

func benchCommit(b *testing.B, w engine.Writer, batch []engine.Transition) {
	out, err := w.Commit(b.Context(), batch)
	if err != nil {
		b.Fatal(err)
	}
	for _, o := range out {
		if !o.Landed {
			b.Fatal(o.Err)
		}
	}
}
