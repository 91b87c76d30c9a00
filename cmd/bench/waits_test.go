package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// Runs that wait take one row and no goroutine, timers never end early, and each signal ends its
// run.
func TestWaitingRuns(t *testing.T) {
	w := linked(t)
	timer := w.def.Workflow("timer").Steps[0].Until
	if limit, err := timer(&dsl.Scope{}); err != nil || limit.After != timerLength {
		t.Fatalf("the timer of the workflow timer is %s, %v; want %s", limit.After, err, timerLength)
	}
	d := testDatabase(t, "waits")
	p := waitPlan{waiting: 40, timers: 10, signals: 15}
	f, err := waitingRuns(t.Context(), w, d, p, &profiler{})
	if err != nil {
		t.Fatal(err)
	}
	if f.rows != 1 {
		t.Errorf("a run takes %.2f rows until it waits, want 1", f.rows)
	}
	if f.lags[0] < 0 || f.lags[1] < f.lags[0] || f.lags[2] < f.lags[1] {
		t.Errorf("the lags are %v, want none below 0, rising", f.lags)
	}
	if f.perSecond <= 0 || f.sent < f.perSecond || f.plain <= 0 {
		t.Errorf("%.1f signals a second ended a run, %.1f were sent, and %.1f plain ones", f.perSecond, f.sent, f.plain)
	}
	var open, done int
	err = d.db.QueryRowContext(t.Context(), `SELECT count(*) FILTER (WHERE finished_at IS NULL), count(*) FILTER (WHERE state = 'succeeded') FROM engine.runs`).Scan(&open, &done)
	if err != nil {
		t.Fatal(err)
	}
	if want := 64 + p.waiting - p.signals; open != want || done != p.timers+p.signals {
		t.Errorf("%d runs are open and %d succeeded, want %d and %d", open, done, want, p.timers+p.signals)
	}
	if runs, err := d.waiting(t.Context(), open+1); err == nil {
		t.Errorf("%d runs wait, want an error", len(runs))
	}
}

func TestWaitsTable(t *testing.T) {
	var out bytes.Buffer
	b := &book{}
	for name, v := range map[string]float64{"bytes/run": 1234.5, "rows/run": 1, "lag p50": 2, "lag p99": 3, "lag max": milliseconds(4500 * time.Microsecond), "sent/s": 2000, "signals/s": 999.9, "plain/s": 2000} {
		b.put(0, "waits", name, v)
	}
	newTable(&out).waits(b, waitPlan{waiting: 100_000, timers: 10_000, signals: 20_000})
	if got := strings.Join(strings.Fields(strings.Split(out.String(), "\n")[2]), " "); got != "100,000 1234 - 1.00 2.0ms 3.0ms 4.5ms 2000 1000 2000 0.50" {
		t.Errorf("the row is %q", got)
	}
}
