package chaos

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/line"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

const (
	claimable  = 1000 // engines claim the first of the queue: this many runs, by docs/language.md
	claimBatch = 256  // largest number of runs that an engine claims at once
)

// queueSize returns how many runs are in the queue of T16, and how many engines claim them.
func queueSize() (runs, engines int) {
	switch {
	case part:
		return 100_000, 4
	case full:
		return 1_000_000, 8
	}
	return 4000, 3
}

// A queue is what the test knows of the runs that it has submitted.
type queue struct {
	w        *World
	runs     int
	priority map[status.RunID]int
	rank     map[status.RunID]time.Time // by the rule in docs/language.md
}

// light is a workflow whose calls answer at once, so that the engines and the database are what is
// measured.
const light = `agent "mock" {
  max_concurrency = 1000
}
workflow "w" {
  deadline = "24h"
  priority = var.priority
  variable "priority" { type = number }
  step "a" {
    action       = agent.mock.echo
    compensation = "none"
    timeout      = "30m"
    input { value = "a" }
  }
  step "b" {
    action       = agent.mock.echo
    compensation = "none"
    timeout      = "30m"
    input { value = step.a.output.value }
  }
}
`

// queue submits runs of light with random priorities.
func (w *World) queue(runs int) *queue {
	w.T.Helper()
	q := &queue{w: w, priority: map[status.RunID]int{}, rank: map[status.RunID]time.Time{}}
	def := w.Define(light)
	for q.runs < runs {
		all := make([]engine.Submission, min(10_000, runs-q.runs))
		priorities := make([]int, len(all))
		for i := range all {
			priorities[i] = w.Rng.IntN(101)
			vars, diags := def.Workflow("w").Bind(given("priority", fmt.Sprint(priorities[i])))
			if diags.HasErrors() {
				w.T.Fatal(diags.Err())
			}
			all[i] = engine.Submission{Definition: def, Workflow: "w", Vars: vars, By: "chaos"}
		}
		ctx, cancel := context.WithTimeout(w.T.Context(), patience(time.Minute))
		out, err := engine.EnqueueAll(ctx, engine.Config{Store: w.store}, all)
		cancel()
		if err != nil {
			w.T.Fatal(err)
		}
		for i, o := range out {
			q.priority[o.Run] = priorities[i]
		}
		q.runs += len(out)
	}
	w.Note("%d runs are in the queue", q.runs)
	return q
}

// age lets the runs look as if they had been submitted in the last twenty minutes. Before, it checks
// that the place of each run in the queue follows from its priority, as docs/language.md says (S71).
func (q *queue) age() {
	q.w.T.Helper()
	db := q.w.open()
	defer db.Close()
	read := func(each func(run status.RunID, next, created time.Time)) {
		rows, err := db.QueryContext(q.w.T.Context(), `SELECT run_id, next_check, created_at FROM engine.run WHERE state < 10 AND owner = 0`)
		if err != nil {
			q.w.T.Fatal(err)
		}
		defer rows.Close()
		n := 0
		for ; rows.Next(); n++ {
			var run int64
			var next, created time.Time
			if err := rows.Scan(&run, &next, &created); err != nil {
				q.w.T.Fatal(err)
			}
			each(status.RunID(run), next, created)
		}
		if err := rows.Err(); err != nil || n != q.runs {
			q.w.T.Fatalf("%d runs wait, want %d: %v", n, q.runs, err)
		}
	}
	wrong := 0
	read(func(run status.RunID, next, created time.Time) {
		if want := created.Add(-time.Duration(q.priority[run]) * line.PerPoint); !next.Equal(want) && wrong < 5 {
			wrong++
			q.w.T.Errorf("run %d with priority %d, accepted at %s, has the place %s in the queue, want %s (S71)", run, q.priority[run], created, next, want)
		}
	})
	q.w.exec(`UPDATE engine.run r SET next_check = next_check - a.age, created_at = created_at - a.age
FROM (SELECT run_id, (hashint8(run_id) & 4095) * interval '293 ms' AS age FROM engine.run) a WHERE a.run_id = r.run_id AND owner = 0`, `VACUUM ANALYZE engine.run`, `CHECKPOINT`)
	read(func(run status.RunID, next, _ time.Time) { q.rank[run] = next })
}

// A claim is the record with which a run got its first owner.
type claim struct {
	run status.RunID
	at  time.Time
}

// claims returns the claims of the runs in the queue, the earliest first.
func (q *queue) claims() []claim {
	q.w.T.Helper()
	db := q.w.open()
	defer db.Close()
	rows, err := db.QueryContext(q.w.T.Context(), `SELECT run_id, min(at) FROM engine.journal WHERE owner > 0 GROUP BY run_id`)
	if err != nil {
		q.w.T.Fatal(err)
	}
	defer rows.Close()
	var out []claim
	for rows.Next() {
		var c claim
		var run int64
		if err := rows.Scan(&run, &c.at); err != nil {
			q.w.T.Fatal(err)
		}
		if c.run = status.RunID(run); !q.rank[c.run].IsZero() {
			out = append(out, c)
		}
	}
	if err := rows.Err(); err != nil || len(out) != q.runs {
		q.w.T.Fatalf("%d of %d runs were claimed: %v", len(out), q.runs, err)
	}
	slices.SortFunc(out, func(a, b claim) int { return cmp.Or(a.at.Compare(b.at), q.rank[a.run].Compare(q.rank[b.run])) })
	return out
}

// overtaken returns by how many runs a run was overtaken at most: it is the largest number of runs that
// came before a claimed run in the queue, and were claimed after it.
func (q *queue) overtaken() int {
	order := make([]status.RunID, 0, q.runs)
	for run := range q.rank {
		order = append(order, run)
	}
	slices.SortFunc(order, func(a, b status.RunID) int { return cmp.Or(q.rank[a].Compare(q.rank[b]), cmp.Compare(a, b)) })
	place := make(map[status.RunID]int, q.runs)
	for i, run := range order {
		place[run] = i
	}
	claimed, most := make([]int, q.runs+1), 0 // claimed is a Fenwick tree over the places
	for _, c := range q.claims() {
		before := 0
		for i := place[c.run]; i > 0; i -= i & -i {
			before += claimed[i]
		}
		most = max(most, place[c.run]-before)
		for i := place[c.run] + 1; i <= q.runs; i += i & -i {
			claimed[i]++
		}
	}
	return most
}

// T16, S71, S75: very many runs of all priorities and ages are in the queue, and several engines claim them. One
// of the engines dies. Runs are claimed in the order of the queue, but for the first 1,000; each run
// ends once; reads of statuses answer all the time (S71, I1, I8, I10). The test prints how long
// everything took. A million runs take part in `make chaos`.
func TestLongQueue(t *testing.T) {
	if !full { // the large queue needs the whole machine
		t.Parallel()
	}
	began := time.Now()
	w := newWorld(t, 16)
	runs, engines := queueSize()
	q := w.queue(runs)
	submitted := time.Since(began)
	q.age()
	stop := w.watch(slices.Collect(maps.Keys(q.priority)))
	serving := time.Now()
	var a *Process
	for i := range engines {
		a = w.StartEngine(fmt.Sprint("e", i), "", "--lease", "10s")
	}
	w.slowly("a part of the runs to end", 30*time.Minute, func() bool { return w.ended() > runs/4 })
	a.Kill()
	w.Note("%s is dead", a.Name)
	w.slowly("the runs to end", time.Hour, func() bool { return w.ended() == runs })
	took := time.Since(serving)
	seen := stop()
	if n := w.number(`SELECT count(*) FROM (SELECT run_id FROM engine.journal WHERE run_state >= 10 GROUP BY run_id HAVING count(*) = 1) x`); n != runs {
		t.Errorf("%d of %d runs have ended exactly once (I1)", n, runs)
	}
	w.audit() // the runs have no effects, so only the database is checked
	most := q.overtaken()
	// A clock of an engine may differ by the duration of a tick, so a batch of each engine may seem to be
	// claimed too early.
	if limit := claimable + 2*engines*claimBatch; most >= limit && limit < runs {
		t.Errorf("a run that was claimed was not among the first %d of the queue: %d runs came before it (S71)", limit, most)
	}
	rows := w.number(`SELECT count(*) FROM engine.journal`)
	report.note("T16 %d runs, %d engines: submitted %.0f/s (design: 2000), %.0f runs and %.0f steps/s ended (design: 1000 steps), %d journal rows; a claimed run was overtaken by %d at most, and the first 1,000 are claimable; %s",
		runs, engines, float64(runs)/submitted.Seconds(), float64(runs)/took.Seconds(), float64(2*runs)/took.Seconds(), rows, most, seen)
	report.count("T16 long queue", 1, Verdict{Runs: runs}, began)
}

// The type watched holds how long reads took while the engines worked.
type watched struct {
	status, scan []time.Duration
	failed       error
}

// String returns the 99th percentiles.
func (x watched) String() string {
	p99 := func(d []time.Duration) float64 {
		if len(d) == 0 {
			return -1
		}
		slices.Sort(d)
		return float64(d[len(d)*99/100].Microseconds()) / 1000
	}
	return fmt.Sprintf("p99 of %d scans that find the claimable runs: %.1f ms (design: 50), p99 of %d reads of a status: %.1f ms (design: 20)", len(x.scan), p99(x.scan), len(x.status), p99(x.status))
}

// watch reads the status of runs, and makes the scan with which engines find runs to claim, until the
// caller calls stop. It fails the test if a read fails.
func (w *World) watch(names []status.RunID) (stop func() watched) {
	w.T.Helper()
	id, err := w.store.Join(w.T.Context(), "watcher", time.Hour, 1)
	if err != nil {
		w.T.Fatal(err)
	}
	names = slices.Clone(names)
	var x watched
	done, ended := make(chan struct{}), make(chan struct{})
	chance := rand.New(rand.NewPCG(16, 1))
	go func() {
		defer close(ended)
		pause := time.NewTicker(50 * time.Millisecond)
		defer pause.Stop()
		for x.failed == nil {
			select {
			case <-done:
				return
			case <-pause.C:
			}
			at := time.Now()
			if _, _, err := store.LoadRun(context.WithoutCancel(w.T.Context()), w.store, names[chance.IntN(len(names))]); err != nil {
				x.failed = err
			}
			x.status = append(x.status, time.Since(at))
			at = time.Now()
			if _, err := w.store.Tick(context.WithoutCancel(w.T.Context()), id, time.Hour, claimable); err != nil {
				x.failed = errors.Join(x.failed, err)
			}
			x.scan = append(x.scan, time.Since(at))
		}
	}()
	return sync.OnceValue(func() watched {
		close(done)
		<-ended
		if x.failed != nil || len(x.status) == 0 {
			w.T.Errorf("%d reads, the last one: %v", len(x.status), x.failed)
		}
		if err := w.store.Leave(context.WithoutCancel(w.T.Context()), id); err != nil {
			w.T.Errorf("leave: %v", err)
		}
		return x
	})
}

// slowly does the work of Await, but calls fn only every second: counting many rows takes the database
// some time.
func (w *World) slowly(what string, limit time.Duration, fn func() bool) {
	w.T.Helper()
	var next time.Time
	w.Await(what, limit, func() bool {
		if !full { // a short test has few rows
			return fn()
		}
		if time.Now().Before(next) {
			return false
		}
		defer func() { next = time.Now().Add(time.Second) }()
		return fn()
	})
}

// given returns the value of a variable.
func given(name, text string) []dsl.Assignment {
	return []dsl.Assignment{{Name: name, Text: text, Source: "--var"}}
}

// audit runs the audits of Judge, and checks no run.
func (w *World) audit() {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.T.Context()), patience(10*time.Minute))
	defer cancel()
	(&judge{w: w}).audit(ctx)
}

// open opens the database of the World.
func (w *World) open() *sql.DB {
	w.T.Helper()
	db, err := sql.Open("postgres", w.DSN)
	if err != nil {
		w.T.Fatal(err)
	}
	return db
}

// ask returns the result of a query that returns one number.
func (w *World) ask(query string) (n int, err error) {
	db, err := sql.Open("postgres", w.DSN)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.T.Context()), 2*time.Minute)
	defer cancel()
	return n, db.QueryRowContext(ctx, query).Scan(&n)
}
