package selects

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/selection"
	"github.com/saga-engine/engine/engine/internal/pgtest"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/firings"
	"github.com/saga-engine/engine/engine/store/postgres"
	"github.com/saga-engine/engine/engine/store/schedules"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

var template = pgtest.Template{Fill: func(ctx context.Context, dsn string) error {
	_, _, err := postgres.Migrate(ctx, dsn)
	return err
}}

var tick = time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)

// A shop is a database with business tables and a published workflow, and engines that work on it. It
// counts how often each run was submitted, and accepts each name once.
type shop struct {
	testing.TB
	st   *postgres.Store
	role firings.Store
	db   *sql.DB
	def  *dsl.Definition
	id   store.WorkflowID

	mu     sync.Mutex     // protects the fields below
	runs   map[string]int // number of submissions by name
	pages  int
	before func(page int, runs []Run) // called before the runs of a page are accepted; nil = nothing
	after  func(page int) error       // called afterwards; an error means that the engine dies; nil = nothing
	answer func(r Run) *Result        // answer of the store; nil = the run is accepted
}

// newShop makes a shop whose schedule has the given arguments in its select block.
func newShop(t testing.TB, args string) *shop {
	t.Helper()
	dsn := template.DSN(t)
	st, err := postgres.Open(t.Context(), dsn, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(db.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	})
	s := &shop{TB: t, st: st, role: st.Selections(), db: db, runs: map[string]int{}}
	s.exec(`CREATE TABLE public.orders (id int, total numeric DEFAULT 1, at timestamptz)`)
	source := `
workflow "w" {
  deadline = "1h"
  variable "id" { type = number }
  variable "total" {
    type = number
    validation {
      condition     = var.total > 0
      error_message = "total must be positive."
    }
  }
  schedule "s" {
    cron      = "0 * * * *"
    variables = { id = row.id, total = row.total }
    select {
      key = row.id
      ` + args + `
    }
  }
  on_event "closed" {
    type      = "shop.closed"
    variables = { id = row.id, total = row.total }
    select {
      sql       = "SELECT id, total FROM public.orders WHERE total < $most::numeric"
      args      = { most = event.data.most }
      key       = row.id
      page_size = 2
    }
  }
  step "a" { value = var.id }
}`
	module, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(source)}}, dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	if s.def, diags = dsl.Link(module, nil); diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	ids, err := st.PutDefinition(t.Context(), store.Definition{Digest: "d", Data: []byte("x"), Workflows: []store.DefinedWorkflow{{Name: "w", Steps: []string{"a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	s.id = ids["w"]
	none, diags := s.def.Workflow("w").BindDeployed(nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	given, err := journal.EncodeGiven(nil, s.def.Workflow("w"), none)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Publish(t.Context(), schedules.Workflow{Name: "w", ID: s.id, Given: given}, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shop) exec(query string, args ...any) {
	s.Helper()
	if _, err := s.db.ExecContext(s.Context(), query, args...); err != nil {
		s.Fatal(err)
	}
}

// fire opens the firing of a tick.
func (s *shop) fire(tick time.Time) bool {
	s.Helper()
	sel := s.def.Workflow("w").Schedules[0].Select
	f := firings.Firing{Workflow: "w", Schedule: "s", Tick: tick, WorkflowID: s.id, By: "test", From: tick.Add(-time.Hour)}
	f.Runs = Begin(&f)
	added, err := s.role.Fire(s.Context(), f, sel.Strategy == selection.Window)
	if err != nil {
		s.Fatal(err)
	}
	return added
}

// engine returns an engine that works on the firings of the shop.
func (s *shop) engine() *Worker {
	return New(Config{
		Store: s.role, Logger: slog.New(slog.DiscardHandler), Holder: "e", Lease: time.Minute, MaxPause: time.Second,
		Definition: func(context.Context, store.WorkflowID) (*dsl.Definition, error) { return s.def, nil },
		Submit:     s.submit,
	})
}

func (s *shop) submit(_ context.Context, runs []Run) []Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages++
	if s.before != nil {
		s.before(s.pages, runs)
	}
	out := make([]Result, len(runs))
	for i, r := range runs {
		if s.answer != nil {
			if a := s.answer(r); a != nil {
				out[i] = *a
				continue
			}
		}
		out[i] = Result{Name: r.Name, Exists: s.runs[r.Name] > 0}
		s.runs[r.Name]++
	}
	if s.after != nil {
		if err := s.after(s.pages); err != nil {
			for i := range out {
				out[i] = Result{Err: err}
			}
		}
	}
	return out
}

// work lets one engine work until no firing is open for it.
func (s *shop) work() {
	s.Helper()
	w := s.engine()
	for {
		worked, err := w.Work(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		if !worked {
			return
		}
	}
}

// firing returns the firing of a tick. The counts of a complete firing must add up.
func (s *shop) firing(tick time.Time) *firings.Firing {
	s.Helper()
	f, err := s.role.Find(s.Context(), "w", "s", tick)
	if err != nil || f == nil {
		s.Fatalf("firing of %s: %v, %v", tick, f, err)
	}
	if r := f.Report; r.Selected != r.Started+r.Refused+r.Filtered+r.Quarantined+r.Vanished {
		s.Errorf("the counts do not add up: %+v", r)
	}
	return f
}

// want checks a complete firing and its runs, which are named by their keys.
func (s *shop) want(report firings.Report, keys ...int) {
	s.Helper()
	f := s.firing(tick)
	if f.State != firings.Complete || f.Report != report {
		s.Errorf("firing is %s %q: %+v, want %+v", f.State, f.Error, f.Report, report)
	}
	var names, want []string
	for name := range s.runs {
		names = append(names, name)
	}
	for _, k := range keys {
		want = append(want, RunName("w", "s", tick, fmt.Sprint(k)))
	}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		s.Errorf("runs = %v, want %v", names, want)
	}
}

func upTo(n int, without ...int) (list []int) {
	for i := 1; i <= n; i++ {
		if !slices.Contains(without, i) {
			list = append(list, i)
		}
	}
	return list
}

const all = `sql = "SELECT id, total FROM public.orders"
page_size = 7
`

// selecting returns the arguments of a select block with a strategy. All rows of the tests are in the
// interval of the strategy window.
func selecting(strategy string) string {
	if strategy == "window" {
		return `sql = "SELECT id, total FROM public.orders WHERE at >= $from AND at < $to"
page_size = 7
strategy = "window"`
	}
	return all + `strategy = "` + strategy + `"`
}

// inWindow is a time in the interval of the tick.
var inWindow = tick.Add(-30 * time.Minute)

// T28, S103, S104, S105, S106, S108, S109: rows are inserted, deleted and updated while a firing reads them. Every row that is there all
// the time starts one run. The strategies with several passes also find rows behind the watermark.
func TestT28RowsChange(t *testing.T) {
	for strategy, behind := range map[string]bool{"keyset": false, "exhaust": true, "locked": true, "in_memory": false, "window": false} {
		t.Run(strategy, func(t *testing.T) {
			s := newShop(t, selecting(strategy))
			s.exec(`INSERT INTO public.orders SELECT 10 * i, 1, $1 FROM generate_series(1, 30) i`, inWindow)
			s.before = func(page int, _ []Run) {
				if page == 2 { // the watermark is 70
					s.exec(`INSERT INTO public.orders VALUES (5, 1, $1), (305, 1, $1)`, inWindow)
					s.exec(`DELETE FROM public.orders WHERE id IN (10, 200)`)
					s.exec(`UPDATE public.orders SET id = 205 WHERE id = 210`)
					s.exec(`UPDATE public.orders SET total = 2 WHERE id = 220`)
				}
			}
			s.fire(tick)
			s.work()
			var keys []int
			for i := 1; i <= 30; i++ {
				if i != 20 && i != 21 {
					keys = append(keys, 10*i)
				}
			}
			report := firings.Report{Selected: 30, Started: 30}
			switch {
			case strategy == "in_memory":
				report = firings.Report{Selected: 30, Started: 28, Vanished: 2}
			case behind:
				report = firings.Report{Selected: 31, Started: 31}
				keys = append(keys, 5, 205, 305)
			default:
				keys = append(keys, 205, 305)
			}
			s.want(report, keys...)
			for name, n := range s.runs {
				if n != 1 {
					t.Errorf("run %s was submitted %d times", name, n)
				}
			}
		})
	}
}

// T28, S102: an engine dies after it has submitted a page and before it has stored the progress. The next
// engine continues there. No row starts two runs, and each row is counted once.
func TestT28EngineDiesInAPage(t *testing.T) {
	for _, strategy := range []string{"keyset", "exhaust", "locked", "in_memory", "window"} {
		t.Run(strategy, func(t *testing.T) {
			s := newShop(t, selecting(strategy))
			s.exec(`INSERT INTO public.orders SELECT i, 1, $1 FROM generate_series(1, 30) i`, inWindow)
			s.after = func(page int) error {
				if page == 2 {
					return errors.New("the engine dies")
				}
				return nil
			}
			s.fire(tick)
			s.work()
			f := s.firing(tick)
			if f.State != firings.Open || f.Report.Started != 7 || !strings.Contains(f.Error, "the engine dies") {
				t.Fatalf("firing is %s %q: %+v, want one page", f.State, f.Error, f.Report)
			}
			s.exec(`UPDATE engine.firing SET held_until = '-infinity'`)
			s.work()
			s.want(firings.Report{Selected: 30, Started: 30}, upTo(30)...)
			for _, k := range []int{8, 14} {
				if n := s.runs[RunName("w", "s", tick, fmt.Sprint(k))]; n != 2 {
					t.Errorf("run of row %d was submitted %d times, want 2", k, n)
				}
			}
		})
	}
}

// S102: an engine whose firing was taken over while it worked stores no progress. Firings of one
// schedule are worked on one after the other.
func TestS102OneEngineAtATime(t *testing.T) {
	s := newShop(t, all)
	s.exec(`INSERT INTO public.orders SELECT i FROM generate_series(1, 20) i`)
	s.fire(tick)
	s.fire(tick.Add(time.Hour))
	s.before = func(page int, _ []Run) {
		other, err := s.role.Claim(t.Context(), "other", time.Minute)
		if err != nil || other != nil {
			t.Errorf("page %d: another engine has claimed %+v, %v", page, other, err)
		}
		if page == 2 { // the lease runs out, and another engine takes the firing over
			s.exec(`UPDATE engine.firing SET held_until = '-infinity' WHERE tick = $1`, tick)
			if other, err = s.role.Claim(t.Context(), "other", time.Minute); err != nil || other == nil {
				t.Errorf("the firing was not claimed: %v", err)
			}
		}
	}
	if worked, err := s.engine().Work(t.Context()); !worked || err != nil {
		t.Fatalf("Work = %t, %v", worked, err)
	}
	if f := s.firing(tick); f.Report.Started != 7 || f.Holder != "other" {
		t.Errorf("firing of %s: %+v, want the progress of the first page", f.Holder, f.Report)
	}
	s.before = nil
	s.exec(`UPDATE engine.firing SET held_until = '-infinity'`)
	s.work()
	if a, b := s.firing(tick), s.firing(tick.Add(time.Hour)); a.Report.Started != 20 || b.Report.Started != 20 || a.Ended.After(b.Ended) {
		t.Errorf("firings: %+v, %+v", a, b)
	}
}

// S103: rows with an error are quarantined, and do not stop others. So are rows without a key and rows
// whose key is not unique, also at the end of a page.
func TestS103BadRows(t *testing.T) {
	for _, strategy := range []string{"keyset", "exhaust", "locked", "in_memory"} {
		t.Run(strategy, func(t *testing.T) {
			s := newShop(t, all+`strategy = "`+strategy+`"
filter = row.id != 11`)
			s.exec(`INSERT INTO public.orders SELECT i, CASE WHEN i = 3 THEN -1 ELSE 1 END FROM generate_series(1, 20) i`)
			s.exec(`INSERT INTO public.orders VALUES (7), (15), (15), (NULL)`)
			s.answer = func(r Run) *Result {
				switch r.Name {
				case RunName("w", "s", tick, "4"):
					return &Result{Name: "another-run", Exists: true}
				case RunName("w", "s", tick, "5"):
					return &Result{Err: errors.New("the limit is full"), Refused: true}
				case RunName("w", "s", tick, "6"):
					return &Result{Err: errors.New("the run is too large"), Lasting: true}
				}
				return nil
			}
			s.fire(tick)
			s.work()
			s.want(firings.Report{Selected: 24, Started: 13, Refused: 2, Filtered: 1, Quarantined: 8}, upTo(20, 3, 4, 5, 6, 7, 11, 15)...)
			list, err := s.role.Quarantined(t.Context(), s.firing(tick).ID, 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, b := range list {
				got = append(got, b.Key+" "+b.Error)
			}
			for _, want := range []string{"3 variables: ", "6 the run is too large", `7 2 rows have the key "7"`, `15 3 rows have the key "15"`, " 1 rows have no key: column id is NULL"} {
				if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
					t.Errorf("quarantine = %q, want %q", got, want)
				}
			}
		})
	}
}

// S104: each interval is covered once. A tick after a gap covers the gap, and a tick inside of a
// covered interval opens no firing.
func TestS104Windows(t *testing.T) {
	s := newShop(t, `sql = "SELECT id, total FROM public.orders WHERE at >= $from AND at < $to"
strategy = "window"`)
	s.exec(`INSERT INTO public.orders SELECT i, 1, $1::timestamptz + (i - 60) * interval '6 min' FROM generate_series(0, 119) i`, tick)
	check := func(at time.Time, from time.Time, rows int64) {
		t.Helper()
		if f := s.firing(at); !f.From.Equal(from) || !f.To.Equal(at) || f.State != firings.Complete || f.Report.Started != rows {
			t.Errorf("firing: %s %s to %s, %+v, want %d rows from %s", f.State, f.From, f.To, f.Report, rows, from)
		}
	}
	s.fire(tick)
	s.work()
	check(tick, tick.Add(-time.Hour), 10)
	s.fire(tick.Add(3 * time.Hour)) // nobody worked for two ticks
	s.work()
	check(tick.Add(3*time.Hour), tick, 30)
	if s.fire(tick.Add(2 * time.Hour)) {
		t.Error("an interval is covered twice")
	}
	s.fire(tick.Add(-2 * time.Hour)) // a tick of the past
	s.work()
	check(tick.Add(-2*time.Hour), tick.Add(-3*time.Hour), 10)
	s.fire(tick.Add(-time.Hour))
	s.work()
	check(tick.Add(-time.Hour), tick.Add(-2*time.Hour), 10)
	if len(s.runs) != 60 {
		t.Errorf("%d runs, want 60", len(s.runs))
	}
}

// S107: pages run in parallel, and together they have each row once.
func TestS107ParallelPages(t *testing.T) {
	s := newShop(t, all+`parallel = 4
stable = true`)
	s.exec(`INSERT INTO public.orders SELECT i FROM generate_series(1, 100) i`)
	s.exec(`INSERT INTO public.orders VALUES (14)`)
	s.fire(tick)
	s.work()
	s.want(firings.Report{Selected: 101, Started: 99, Quarantined: 2}, upTo(100, 14)...)
}

// T28, S107: with parallel pages, rows that are added ahead of the pages start runs, and each row starts one.
func TestT28RowsAddedAheadOfParallelPages(t *testing.T) {
	s := newShop(t, all+`parallel = 4
stable = true`)
	s.exec(`INSERT INTO public.orders SELECT 10 * i FROM generate_series(1, 100) i`)
	var once sync.Once
	s.before = func(int, []Run) {
		once.Do(func() { s.exec(`INSERT INTO public.orders VALUES (995), (1005)`) })
	}
	s.fire(tick)
	s.work()
	keys := []int{995, 1005}
	for i := 1; i <= 100; i++ {
		keys = append(keys, 10*i)
	}
	s.want(firings.Report{Selected: 102, Started: 102}, keys...)
	for name, n := range s.runs {
		if n != 1 {
			t.Errorf("run %s was submitted %d times", name, n)
		}
	}
}

// S108: rows that another transaction has locked are left out. They are started by a later pass, or
// counted as missed. The rows of a page stay locked until their progress is stored.
func TestS108LockedRows(t *testing.T) {
	s := newShop(t, all+`strategy = "locked"`)
	s.exec(`INSERT INTO public.orders SELECT i FROM generate_series(1, 20) i`)
	held, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Rollback()
	soon, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer soon.Rollback()
	for tx, id := range map[*sql.Tx]int{held: 3, soon: 9} {
		if _, err := tx.ExecContext(t.Context(), `UPDATE public.orders SET total = 5 WHERE id = $1`, id); err != nil {
			t.Fatal(err)
		}
	}
	s.before = func(page int, _ []Run) {
		if page == 1 {
			var free int
			if err := s.db.QueryRowContext(t.Context(), `SELECT count(*) FROM (SELECT FROM public.orders WHERE id <= 8 FOR UPDATE SKIP LOCKED) x`).Scan(&free); err != nil || free != 0 {
				t.Errorf("%d rows of the page are not locked, %v", free, err)
			}
		}
		if page == 3 {
			if err := soon.Commit(); err != nil {
				t.Error(err)
			}
		}
	}
	s.fire(tick)
	s.work()
	s.want(firings.Report{Selected: 19, Started: 19, Missed: 1}, upTo(20, 3)...)
}

// S109: more keys than max_keys are refused, and nothing starts.
func TestS109TooManyKeys(t *testing.T) {
	s := newShop(t, all+`strategy = "in_memory"
max_keys = 19`)
	s.exec(`INSERT INTO public.orders SELECT i FROM generate_series(1, 20) i`)
	s.fire(tick)
	s.work()
	if f := s.firing(tick); f.State != firings.Open || !strings.Contains(f.Error, "more than 19 keys") || len(s.runs) > 0 {
		t.Errorf("firing is %s %q, %d runs", f.State, f.Error, len(s.runs))
	}
}

// A firing is opened once. A cancelled one is opened again, and continues after its watermark.
func TestCancelledFiringContinues(t *testing.T) {
	s := newShop(t, all)
	s.exec(`INSERT INTO public.orders SELECT i FROM generate_series(1, 20) i`)
	if !s.fire(tick) || s.fire(tick) {
		t.Error("a firing was not opened once")
	}
	s.before = func(page int, _ []Run) {
		if page == 2 {
			if done, err := s.role.Cancel(t.Context(), s.firing(tick).ID, "test"); !done || err != nil {
				t.Errorf("Cancel = %t, %v", done, err)
			}
		}
	}
	s.work()
	if f := s.firing(tick); f.State != firings.Cancelled || f.Report.Started != 7 {
		t.Errorf("firing is %s: %+v", f.State, f.Report)
	}
	s.before = nil
	if !s.fire(tick) {
		t.Error("the cancelled firing was not opened again")
	}
	s.work()
	s.want(firings.Report{Selected: 20, Started: 20}, upTo(20)...)
	if n := s.runs[RunName("w", "s", tick, "1")]; n != 1 {
		t.Errorf("row 1 was submitted %d times", n)
	}
}

// Names are valid, and differ if workflow, schedule, tick or key differ.
func TestRunName(t *testing.T) {
	long := strings.Repeat("w", 90)
	seen := map[string]bool{}
	for _, workflow := range []string{"w", long} {
		for _, schedule := range []string{"s", long} {
			for _, key := range []string{"1", "a/b", "a b", "ä", "k-1", long + "x", long + "y", "\n"} {
				name := RunName(workflow, schedule, tick, key)
				if len(name) > 100 || seen[name] || !plain.MatchString(name) {
					t.Errorf("name %q of %q", name, key)
				}
				seen[name] = true
			}
		}
	}
	if got, want := RunName("w", "s", tick, "o-1"), "w.s.20260329T010000Z.o-1"; got != want {
		t.Errorf("RunName = %s, want %s", got, want)
	}
}

// T28: a large set takes no more memory than a few pages. `make chaos` takes a million rows.
func TestManyRows(t *testing.T) {
	rows := int64(100_000)
	if os.Getenv("CHAOS") == "full" {
		rows = 1_000_000
	}
	s := newShop(t, `sql = "SELECT id, total FROM public.orders"`)
	s.exec(`INSERT INTO public.orders SELECT i FROM generate_series(1, $1) i`, rows)
	s.exec(`CREATE INDEX ON public.orders (id)`)
	var most uint64
	w := s.engine()
	w.cfg.Submit = func(_ context.Context, runs []Run) []Result {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse)
		out := make([]Result, len(runs))
		for i, r := range runs {
			out[i].Name = r.Name
		}
		return out
	}
	s.fire(tick)
	if worked, err := w.Work(t.Context()); !worked || err != nil {
		t.Fatalf("Work = %t, %v", worked, err)
	}
	if f := s.firing(tick); f.Report != (firings.Report{Selected: rows, Started: rows}) {
		t.Errorf("report = %+v", f.Report)
	}
	if most > 64<<20 {
		t.Errorf("the heap grew to %d MiB", most>>20)
	}
	t.Logf("%d rows, heap of %d MiB", rows, most>>20)
}
