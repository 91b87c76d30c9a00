package postgres

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// BenchmarkSteps commits runs of five steps with 100 bytes each, a batch of
// transitions at a time, as an engine does with so many in flight: of six
// transitions one begins a run under a name, four finish a step and start the
// next, and one ends the run. It reports what a step costs: processor time of
// the server's process and of this one, bytes of log, and time.
func BenchmarkSteps(b *testing.B) {
	for _, keyed := range []bool{false, true} {
		for _, size := range []int{1, 10, 76, 300} {
			b.Run(fmt.Sprintf("keys=%t/batch=%d", keyed, size), func(b *testing.B) { benchSteps(b, size, keyed) })
		}
	}
}

// stepsOf is how many steps a run of the benchmark has.
const stepsOf = 5

func benchSteps(b *testing.B, size int, keyed bool) {
	dsn := migrated(b)
	s := open(b, dsn)
	flows, err := s.PutDefinition(b.Context(), store.Definition{Digest: "d", Data: []byte("x"), Workflows: []store.DefinedWorkflow{{Name: "w", Steps: []string{"a", "b", "c", "d", "e"}}}})
	if err != nil {
		b.Fatal(err)
	}
	id, err := s.Join(b.Context(), "bench", time.Hour, 1)
	if err != nil {
		b.Fatal(err)
	}
	wr, err := s.OpenWriter(b.Context(), id, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer wr.Close()
	type flight struct {
		run status.RunID
		seq int32
	}
	var (
		runs    status.RunID
		flights = make([]flight, size)
		batch   = make([]store.Transition, size)
		data    = bytes.Repeat([]byte("x"), 100)
		now     = time.Now()
	)
	fresh := func(seq int32) flight { runs++; return flight{runs << 22, seq} }
	transition := func(f flight, named bool) store.Transition {
		t := store.Transition{Run: f.run, Seq: f.seq, At: now, Data: data}
		running := func(n int32) store.StepRow {
			return store.StepRow{Node: n, State: status.StepRunning, Attempt: 1, CompleteBy: now.Add(time.Minute)}
		}
		done := func(n int32) store.StepRow { return store.StepRow{Node: n, State: status.StepSucceeded, Attempt: 1} }
		switch f.seq {
		case 0:
			t.Workflow, t.State, t.Owner, t.NextCheck, t.Steps = flows["w"], status.RunRunning, &id, now.Add(time.Minute), []store.StepRow{running(0)}
			if named {
				n := naming.Names{Workflow: "w"}
				if keyed {
					n.Key = "order-" + strconv.FormatInt(int64(f.run), 10)
				}
				t.Names = &n
			}
		case stepsOf:
			t.State, t.NextCheck, t.Steps = status.RunSucceeded, store.Never, []store.StepRow{done(stepsOf - 1)}
		default:
			t.Steps = []store.StepRow{done(f.seq - 1), running(f.seq)}
		}
		return t
	}
	commit := func() {
		out, err := wr.Commit(b.Context(), batch)
		if err != nil {
			b.Fatal(err)
		}
		for i := range out {
			if !out[i].Landed {
				b.Fatal(out[i].Err)
			}
		}
	}
	// Runs at every stage, so that each batch holds the same mix.
	for i := range flights {
		flights[i] = fresh(0)
	}
	for stage := range int32(stepsOf) {
		batch = batch[:0]
		for i := range flights {
			if int32(i%(stepsOf+1)) > stage {
				flights[i].seq = stage
				batch = append(batch, transition(flights[i], false))
			}
		}
		if len(batch) > 0 {
			commit()
		}
	}
	for i := range flights {
		flights[i].seq = int32(i % (stepsOf + 1))
	}
	m := newMeter(b, dsn, wr.(*Writer))
	b.ResetTimer()
	took := make([]time.Duration, 0, 1<<16)
	for b.Loop() {
		batch = batch[:0]
		for i := range flights {
			batch = append(batch, transition(flights[i], true))
		}
		slices.SortFunc(batch, func(a, b store.Transition) int { return int(a.Run - b.Run) })
		start := time.Now()
		commit()
		took = append(took, time.Since(start))
		for i := range flights {
			if flights[i].seq++; flights[i].seq > stepsOf {
				flights[i] = fresh(0)
			}
		}
	}
	steps := float64(b.N*size) * stepsOf / (stepsOf + 1)
	m.report(b, steps)
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
}

// A meter reads what a writer's server process and this one have used so far.
type meter struct {
	db          *sql.DB
	pid         string
	server, own time.Duration
	log         int64
}

func newMeter(b *testing.B, dsn string, w *Writer) *meter {
	m := &meter{db: raw(b, dsn)}
	if err := w.conn.QueryRowContext(b.Context(), backendPID).Scan(&m.pid); err != nil {
		b.Fatal(err)
	}
	m.server, m.own, m.log = m.read(b)
	return m
}

func (m *meter) read(b *testing.B) (server, own time.Duration, log int64) {
	if err := m.db.QueryRowContext(b.Context(), `SELECT (pg_current_wal_insert_lsn() - '0/0')::int8`).Scan(&log); err != nil {
		b.Fatal(err)
	}
	return onCPU(b, m.pid), ownTime(b), log
}

// onCPU returns how long a process has run: the server's have one thread.
func onCPU(b *testing.B, pid string) time.Duration {
	b.Helper()
	stat, err := os.ReadFile("/proc/" + pid + "/schedstat")
	if err != nil {
		b.Logf("no time of the server: %v", err)
		return 0
	}
	ns, err := strconv.ParseInt(strings.Fields(string(stat))[0], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(ns)
}

// ownTime returns how long this process has run.
func ownTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (m *meter) report(b *testing.B, steps float64) {
	server, own, log := m.read(b)
	b.ReportMetric(float64((server-m.server).Nanoseconds())/steps/1e3, "server-us/step")
	b.ReportMetric(float64((own-m.own).Nanoseconds())/steps/1e3, "own-us/step")
	b.ReportMetric(float64(log-m.log)/steps, "log-B/step")
	b.ReportMetric(steps/b.Elapsed().Seconds(), "steps/s")
}
