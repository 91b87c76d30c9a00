package main

import (
	"fmt"
	"io"
	"time"
)

// A table prints lines immediately, and keeps the first error of printing in the field `err`.
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

// scans prints the durations of a Supervisor's scan: in the database without finished runs and
// in the database with finished runs.
func (t *table) scans(found [2]scan, finished int) {
	const columns = "%-22s %10s %10s %10s %10s %9s"
	t.say("")
	t.say(columns, "scan of a Supervisor", "tick", "overdue", "orphans", "sum", "ratio")
	base := found[0]
	for k, n := range []int{0, finished} {
		s := found[k]
		t.say(columns, count(n)+" finished runs", micros(s.tick), micros(s.overdue), micros(s.orphans), micros(s.sum()), fmt.Sprintf("%.2f", ratio(s.sum(), base.sum())))
	}
	t.say("%-22s %10s %10s %10s", "  ratio of each", fmt.Sprintf("%.2f", ratio(found[1].tick, base.tick)),
		fmt.Sprintf("%.2f", ratio(found[1].overdue, base.overdue)), fmt.Sprintf("%.2f", ratio(found[1].orphans, base.orphans)))
	t.say("")
	t.say("Medians of passes in turn on two databases. Each holds %d open runs: of this engine (%d due), another (%d long overdue) and a dead one (%d).",
		openRuns, dueRuns, lateRuns, orphanRuns)
	t.say("The finished runs are rows of the table of runs, vacuumed, without journals: no scan reads those.")
}

// takeovers prints the figures of takeovers of n runs, one line for each round. The caller has
// sorted the rounds by the time of the takeover divided by the time of psql, smallest first. The
// parameter `finished` is the number of finished runs in the database.
func (t *table) takeovers(rounds []takeover, n, finished int) {
	const columns = "%-36s %10s %10s %8s %9s %12s %12s %9s"
	t.say("")
	t.say(columns, "takeover of "+count(n)+" runs in flight", "psql", "took", "runs/s", "ratio", "CPU of psql", "CPU", "ratio")
	for k, r := range rounds {
		name := ""
		if k == len(rounds)/2 {
			name = "  median"
		}
		t.say(columns, name, millis(r.psql), millis(r.took), fmt.Sprintf("%.0f", float64(n)/r.took.Seconds()), fmt.Sprintf("%.2f", r.ratio()),
			millis(r.psqlCPU), millis(r.tookCPU), fmt.Sprintf("%.2f", ratio(r.tookCPU, r.psqlCPU)))
	}
	t.say("")
	t.say("Each run has %d of %d steps done and the next one called; beside them stand %s finished runs.", done, steps, count(finished))
	t.say("psql: reads the same rows of runs and journals into nothing, before each takeover. took: from the start of an engine, with the owner known dead, until every run is its own and decided.")
	t.say("CPU: of the engine or psql and of the whole server, who share the CPUs.")
}

// ratio returns a divided by b.
func ratio(a, b time.Duration) float64 { return a.Seconds() / b.Seconds() }

// count returns a number as text, with commas between the thousands.
func count(n int) string {
	s := fmt.Sprint(n)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

func micros(d time.Duration) string {
	return fmt.Sprintf("%.0fµs", float64(d)/float64(time.Microsecond))
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
}
