package main

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// startsOf returns a lab with small sizes for the parts that measure how runs start.
func startsOf(t *testing.T, out io.Writer) startsLab {
	t.Helper()
	return (&lab{
		dsn: os.Getenv(envServer), rows: regexp.MustCompile(""), work: linked(t), book: &book{}, t: newTable(out), progress: io.Discard, prof: &profiler{},
		p: plan{starts: startPlan{rounds: 1, clients: []int{2}, each: 50 * time.Millisecond, events: 40, schedules: 150}},
	}).startsLab()
}

// wantFigures checks that each of these rows has a positive figure with the given name.
func (l startsLab) wantFigures(t *testing.T, name string, rows ...string) {
	t.Helper()
	for _, row := range rows {
		if v, ok := l.book.median(row, name); !ok || v <= 0 {
			t.Errorf("%s: %s = %v, measured: %t", row, name, v, ok)
		}
	}
}

// Each way to submit makes as many rows as it counts, with the ids that it was given.
func TestWaysToSubmit(t *testing.T) {
	d := testDatabase(t, "ways")
	k, err := newDesk(t.Context(), d, linked(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, k.close) })
	for _, w := range k.ways([]int{1}) {
		if err := k.clear(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := w.call(t.Context(), w.next.Add(int64(w.size))); err != nil {
				t.Fatalf("%s: %v", w.row, err)
			}
		}
		var orders, plain, submitted, jobs int
		err := d.db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM bench.orders), (SELECT count(*) FROM bench.plain), (SELECT count(*) FROM engine.submission),
			(SELECT count(DISTINCT args->>'id') FROM river_job)`).Scan(&orders, &plain, &submitted, &jobs)
		if err != nil {
			t.Fatal(err)
		}
		n := 2 * w.size
		wants := func(word string) int {
			if strings.Contains(w.row, word) {
				return n
			}
			return 0
		}
		if orders != wants("order") || plain != wants("insert") || submitted != wants("submit") || jobs != wants("river") {
			t.Errorf("%s made %d orders, %d plain rows, %d submissions and %d jobs; want %d of each that it names", w.row, orders, plain, submitted, jobs, n)
		}
	}
}

// The part submissions measures every way.
func TestSubmissions(t *testing.T) {
	var out bytes.Buffer
	l := startsOf(t, &out)
	if err := l.submissions(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.wantFigures(t, "rows/s", "insert/2", "submit/2", "river/2", "order/2", "order+submit/2", "order+river/2", "submit, batches", "river, batches", "river, COPY")
	if !strings.Contains(out.String(), "River, InsertMany ") {
		t.Errorf("the table is\n%s", out.String())
	}
}

// The part events sends events in each way; the engine starts a run for each of them.
func TestEvents(t *testing.T) {
	var out bytes.Buffer
	l := startsOf(t, &out)
	if err := l.events(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.wantFigures(t, "events/s", "events/each", "events/batches", "events/all", "delete/each", "delete/batches", "delete/all")
	if !strings.Contains(out.String(), "events: 40 of them") {
		t.Errorf("the table is\n%s", out.String())
	}
}

// The part schedules lets all schedules start a run at the same tick, and never before it.
func TestSchedules(t *testing.T) {
	var out bytes.Buffer
	l := startsOf(t, &out)
	if err := l.schedules(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.wantFigures(t, "lag p50", "schedules")
	l.wantFigures(t, "ms", "enqueue")
	if !strings.Contains(out.String(), "EnqueueAll") {
		t.Errorf("the table is\n%s", out.String())
	}
}

// Consumers take every reply of the runs that have replies, and plain clients the same rows.
func TestRepliesAreTaken(t *testing.T) {
	l := startsOf(t, io.Discard)
	d := testDatabase(t, "replies")
	r := testEngine(t, l.work, setup{store: d.store, d: d, invoker: echo{}})
	const runs = 7
	for range runs {
		for _, of := range []*running{r, r.replying("table:" + replyQueue)} {
			if err := of.once(t.Context(), "five", status.RunSucceeded); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.taken(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	l.wantFigures(t, "replies/s", "take/plain", "take/replies")
	for _, row := range []string{"take/plain", "take/replies"} {
		if n, _ := l.book.median(row, "replies"); n != runs*repliesEach {
			t.Errorf("%s: %v replies, want %d", row, n, runs*repliesEach)
		}
	}
	var left int
	if err := d.db.QueryRowContext(t.Context(), `SELECT count(*) FROM engine.reply WHERE NOT done`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d replies are left, err = %v", left, err)
	}
}
