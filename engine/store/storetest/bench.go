package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// Bench measures commits of 1, 64 and 256 transitions, each with 100 bytes of data. One
// writer makes the commits, one after another. Bench shows how the cost of a commit grows
// with the number of transitions. It reports transitions per second and the median time of
// a commit.
func Bench(b *testing.B, s store.Store) {
	ctx := b.Context()
	ids, err := s.PutDefinition(ctx, store.Definition{Digest: "bench", Data: []byte("x"), Workflows: []store.DefinedWorkflow{{Name: flowName, Steps: stepNames}}})
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
	run := status.RunID(1)
	for _, size := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("rows=%d", size), func(b *testing.B) {
			batch := make([]store.Transition, size)
			for i := range batch {
				batch[i] = store.Transition{
					Run: run, At: base, Workflow: ids[flowName], State: status.RunRunning, Owner: &id, NextCheck: base, Data: make([]byte, 100),
					Steps: []store.StepRow{{Node: 0, State: status.StepRunning, Attempt: 1, CompleteBy: base}},
				}
				run++
			}
			benchCommit(b, w, batch)
			for i := range batch { // every transition after the first ends one step and starts the next step
				batch[i].State, batch[i].Owner, batch[i].NextCheck = 0, nil, time.Time{}
				batch[i].Steps = []store.StepRow{{Node: 0, State: status.StepSucceeded, Attempt: 1}, {Node: 1, State: status.StepRunning, Attempt: 1, CompleteBy: base}}
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

func benchCommit(b *testing.B, w store.Writer, batch []store.Transition) {
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

// BenchLoad measures how fast a store reads 10,000 runs of five rows, as in a takeover. It
// compares one call of Load for all runs with one call for each run. It reports runs per
// second.
func BenchLoad(b *testing.B, s store.Store) {
	const runs, rows = 10_000, 5
	ids := fill(b, s, "load", runs, rows, status.RunInvalid)
	b.Run("many", func(b *testing.B) {
		for b.Loop() {
			got, err := s.Load(b.Context(), ids...)
			if err != nil || len(got) != runs || len(got[runs-1].Rows) != rows {
				b.Fatalf("%d runs, err = %v", len(got), err)
			}
		}
		b.ReportMetric(float64(b.N*runs)/b.Elapsed().Seconds(), "runs/s")
	})
	b.Run("each", func(b *testing.B) {
		n := 0
		for b.Loop() {
			if _, got, err := store.LoadRun(b.Context(), s, ids[n%runs]); err != nil || len(got) != rows {
				b.Fatalf("%d rows, err = %v", len(got), err)
			}
			n++
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	})
}

// BenchOrphans measures how long it takes to list one page of 1,000 orphans, in a store
// with 100,000 orphans. A takeover of all orphans reads a hundred such pages.
func BenchOrphans(b *testing.B, s store.Store) {
	ids := fill(b, s, "orphans", 100_000, 1, status.RunInvalid)
	if err := s.Leave(b.Context(), store.EngineID(ids[0]>>40)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		page, err := IDs(s.Runs(b.Context(), Orphans(ids[len(ids)/2], 1000)))
		if err != nil || len(page) != 1000 {
			b.Fatalf("%d runs, err = %v", len(page), err)
		}
	}
}

// BenchTick measures a tick of an engine without runs. Another engine has a thousand open runs
// that are not due. BenchTick measures once without finished runs, and once with the given number
// of finished runs. Both times should be equal, because a tick must not read finished runs.
func BenchTick(b *testing.B, s store.Store, finished int) {
	fill(b, s, "open", 1000, 1, status.RunInvalid)
	for _, n := range []int{0, finished} {
		if n > 0 {
			fill(b, s, "finished", n, 2, status.RunSucceeded)
		}
		b.Run(fmt.Sprintf("finished=%d", n), func(b *testing.B) {
			id, err := s.Join(b.Context(), "bench", time.Hour, 1)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				t, err := s.Tick(b.Context(), id, time.Hour, 1000)
				if err != nil || len(t.Due)+len(t.Unowned)+len(t.Inbox) > 0 {
					b.Fatalf("tick = %+v, err = %v", t, err)
				}
			}
		})
	}
}

// fill lets a new engine join, creates runs of this engine, and returns them. Each run has the
// given number of rows, with 100 bytes of data each. If `state` is not RunInvalid, the last row of
// a run ends the run in this state. A benchmark may call fill several times for one store.
func fill(b *testing.B, s store.Store, digest string, runs, rows int, state status.RunState) []status.RunID {
	b.Helper()
	ctx := b.Context()
	flows, err := s.PutDefinition(ctx, store.Definition{Digest: digest, Data: []byte("x"), Workflows: []store.DefinedWorkflow{{Name: flowName, Steps: stepNames}}})
	if err != nil {
		b.Fatal(err)
	}
	id, err := s.Join(ctx, "filler", time.Hour, 1)
	if err != nil {
		b.Fatal(err)
	}
	w, err := s.OpenWriter(ctx, id, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			b.Error(err)
		}
	}()
	var ids []status.RunID
	at := time.Now().Add(time.Hour)
	for first := 0; first < runs; first += 1000 {
		batch := make([]store.Transition, min(1000, runs-first))
		for i := range batch {
			run := status.RunID(id)<<40 + status.RunID(first+i) + 1
			ids = append(ids, run)
			batch[i] = store.Transition{Run: run, At: base, Workflow: flows[flowName], State: status.RunRunning, Owner: &id, NextCheck: at, Data: make([]byte, 100)}
		}
		for seq := range rows {
			for i := range batch {
				if batch[i].Seq = int32(seq); seq > 0 {
					batch[i].State, batch[i].Owner, batch[i].NextCheck = status.RunInvalid, nil, time.Time{}
				}
				if seq == rows-1 && state != status.RunInvalid {
					batch[i].State, batch[i].NextCheck = state, store.Never
				}
			}
			benchCommit(b, w, batch)
		}
	}
	return ids
}
