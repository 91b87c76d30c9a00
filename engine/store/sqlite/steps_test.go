package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// benchSteps is how many steps a run of BenchmarkSteps has: a create, a row for
// every step that ends and the next that begins, and the end.
const benchSteps = 5

// A flight is one run on its way through BenchmarkSteps.
type flight struct {
	run status.RunID
	seq int32
}

// BenchmarkSteps measures durable steps with a number of runs in flight: every
// commit moves each of them on by one transition of 100 bytes, and replaces
// those that end by new ones under a name. Beside steps per second it reports
// CPU and written bytes for each step, which do not depend on what else the
// machine does.
func BenchmarkSteps(b *testing.B) {
	for _, flying := range []int{1, 64, 256, 1000} {
		b.Run(fmt.Sprintf("flying=%d", flying), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "state.db")
			s := open(b, path, Options{})
			id, w := join(b, s)
			submit(b, s, w, id, 1)
			benchFly(b, w, id, flying)
			if info, err := os.Stat(path); err == nil {
				b.ReportMetric(float64(info.Size())/float64(b.N*flying*benchSteps/(benchSteps+1)), "filebytes/step")
			}
		})
	}
}

// BenchmarkRetain removes finished runs of five steps, beside nothing else, and
// reports how long a commit would have had to wait at most.
func BenchmarkRetain(b *testing.B) {
	path := filepath.Join(b.TempDir(), "state.db")
	s := open(b, path, Options{})
	id, w := join(b, s)
	submit(b, s, w, id, 1)
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	data := make([]byte, 100)
	for first := 0; first < b.N; first += 1000 {
		batch := make([]store.Transition, min(1000, b.N-first))
		for seq := range int32(benchSteps + 1) {
			for i := range batch {
				batch[i] = benchTransition(flight{status.RunID(first + i + 2), seq}, id, at, data)
			}
			if _, err := w.Commit(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
		}
	}
	var longest time.Duration
	s.mu.Lock()
	begun := time.Now()
	s.commit = func(x *tx, what string) error {
		err := execCommit(x, what)
		longest = max(longest, time.Since(begun))
		begun = time.Now()
		return err
	}
	s.mu.Unlock()
	before := cpu(b)
	b.ResetTimer()
	got, err := s.Retain(b.Context(), at.Add(time.Hour), b.N+1)
	b.StopTimer()
	if err != nil || got.Runs != b.N {
		b.Fatalf("%+v, err = %v, want %d runs", got, err, b.N)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/1000/float64(b.N), "cpu-us/run")
	b.ReportMetric(float64(longest.Microseconds()), "longest-us")
}

func benchFly(b *testing.B, w store.Writer, id store.EngineID, flying int) {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	data := make([]byte, 100)
	minted := status.RunID(1 << 40)
	fly := make([]flight, flying)
	batch := make([]store.Transition, 0, flying)
	for i := range fly { // they begin one after the other, so that all stages are in every batch
		minted += 1 << 12
		fly[i] = flight{minted, -int32(i % (benchSteps + 1))}
	}
	before := cpu(b)
	ended := 0
	var took []time.Duration
	b.ResetTimer()
	for b.Loop() {
		for i := range fly {
			if f := &fly[i]; f.seq > benchSteps {
				minted += 1 << 12
				*f = flight{run: minted}
			}
		}
		slices.SortFunc(fly, func(a, b flight) int { return int(a.run - b.run) })
		batch = batch[:0]
		for i := range fly {
			if fly[i].seq >= 0 {
				batch = append(batch, benchTransition(fly[i], id, at, data))
			}
			if fly[i].seq > 0 {
				ended++
			}
			fly[i].seq++
		}
		start := time.Now()
		out, err := w.Commit(b.Context(), batch)
		took = append(took, time.Since(start))
		if err != nil {
			b.Fatal(err)
		}
		for i, o := range out {
			if !o.Landed {
				b.Fatal(batch[i].Run, o.Err)
			}
		}
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(ended)/b.Elapsed().Seconds(), "steps/s")
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/1000/float64(ended), "cpu-us/step")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
}

func benchTransition(f flight, id store.EngineID, at time.Time, data []byte) store.Transition {
	t := store.Transition{Run: f.run, Seq: f.seq, At: at, Data: data}
	switch f.seq {
	case 0:
		t.Workflow, t.State, t.Owner, t.NextCheck = 1, status.RunRunning, &id, at.Add(time.Hour)
		t.Names = &naming.Names{Workflow: "w"}
		t.Steps = []store.StepRow{{Node: 0, State: status.StepRunning, Attempt: 1, CompleteBy: at}}
	case benchSteps:
		t.State, t.NextCheck = status.RunSucceeded, store.Never
		t.Steps = []store.StepRow{{Node: f.seq - 1, State: status.StepSucceeded, Attempt: 1}}
	default:
		t.Steps = []store.StepRow{{Node: f.seq - 1, State: status.StepSucceeded, Attempt: 1}, {Node: f.seq, State: status.StepRunning, Attempt: 1, CompleteBy: at}}
	}
	return t
}

// cpu returns what this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
