package main

import (
	"fmt"
	"io"
	"time"
)

// A table prints rows as they come; it keeps the first error.
type table struct {
	w   io.Writer
	err error
}

func newTable(w io.Writer) *table { return &table{w: w} }

func (t *table) say(format string, args ...any) {
	if _, err := fmt.Fprintf(t.w, format+"\n", args...); err != nil && t.err == nil {
		t.err = fmt.Errorf("print: %w", err)
	}
}

const columns = "%-9s %9s %8s %8s %9s %9s %9s %13s %11s %18s %9s"

func (t *table) head() {
	t.say(columns, "store", "in flight", "runs/s", "steps/s", "run p50", "run p95", "run p99", "commits/step", "rows/commit", "plain commits/s", "ratio")
}

func (t *table) row(store string, inFlight int, r result, yard float64, clients int) {
	n := float64(max(1, r.runs*steps))
	t.say(columns, store, fmt.Sprint(inFlight),
		fmt.Sprintf("%.0f", float64(r.runs)/r.took.Seconds()), fmt.Sprintf("%.0f", r.stepsPerSecond()),
		millis(r.quantile(0.50)), millis(r.quantile(0.95)), millis(r.quantile(0.99)),
		fmt.Sprintf("%.2f", float64(r.commits)/n), fmt.Sprintf("%.1f", float64(r.rows)/float64(max(1, r.commits))),
		fmt.Sprintf("%.0f (%d)", yard, clients), fmt.Sprintf("%.2f", r.stepsPerSecond()/yard))
}

func (t *table) notes() {
	t.say("")
	t.say("A run has %d steps in a row that hand on %d bytes; its latency is from submission to its end.", steps, payload)
	t.say("plain commits/s: updates of one row by its key, each in a commit of its own, by as many clients as the brackets say.")
	t.say("ratio: steps/s to plain commits/s.")
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
}
