package main

import "fmt"

// A goal is a target for a figure. All goals were set before the first measurement.
type goal struct {
	what, beside string  // name of the figure, and what it is compared with
	must, aim    float64 // required value and wanted value
	// If `least` is true, the fields `must` and `aim` are lower bounds. If it is false, they are
	// upper bounds.
	least  bool
	digits int                         // digits after the point when the figure is printed
	got    func(*book) (float64, bool) // returns the figure; false = not measured
}

// between makes a function that reads a ratio of two numbers from the book. The parameters
// `row` and `name` select the first number, and the parameters `to` and `toName` select the
// second number.
func between(row, to, name, toName string) func(*book) (float64, bool) {
	return func(b *book) (float64, bool) { return b.ratio(row, to, name, toName) }
}

// of makes a function that reads one number from the book: its median over all rounds. The
// parameters `row` and `name` select the number.
func of(row, name string) func(*book) (float64, bool) {
	return func(b *book) (float64, bool) { return b.median(row, name) }
}

func goals() []goal {
	return []goal{
		{"end-to-end steps/s, 256 in flight", "pgbench, 64 clients", 2, 4, true, 2, between("postgres/256", "pgbench/64", "steps/s", "tps")},
		{"end-to-end steps/s, 256 in flight", "naive, 64 in flight", 10, 30, true, 1, between("postgres/256", "naive/64", "steps/s", "steps/s")},
		{"lone 5-step run, p50", "naive, lone", 0.5, 0.33, false, 2, between("postgres/1", "naive/1", "p50", "p50")},
		{"p99 of run latency at 256", "its p50", 3, 1.5, false, 2, of("postgres/256", "p99/p50")},
		{"commits per step, 64 in flight", "", 0.08, 0.02, false, 3, of("postgres/64", "commits/step")},
		{"commits per step, 256 in flight", "", 0.08, 0.02, false, 3, of("postgres/256", "commits/step")},
		{"commits per step, lone", "without the Supervisor's", 1.2, 1.2, false, 2, of("postgres/1", "sends/step")},
		{"log bytes per step, 256 in flight", "naive, 64 in flight", 0.55, 0.35, false, 2, between("postgres/256", "naive/64", "log/step", "log/step")},
		{"steps/s in minute 5", "minute 1", 0.9, 0.98, true, 2, between("long/minute 5", "long/minute 1", "steps/s", "steps/s")},
		{"steps/s after five minutes", "a new database, in turn", 0.9, 0.98, true, 2, between("long/aged", "long/new", "steps/s", "steps/s")},
		{"CPU of a step, one wide run", "runs of 10 instances", 1.5, 1, false, 2, between("wide", "small-wide", "all µs/step", "all µs/step")},
		{"CPU of a step, one long run", "runs of 5 steps", 1.5, 1, false, 2, between("long", "small-long", "all µs/step", "all µs/step")},
		{"CPU of an attempt, one run of very many", "runs of 5 attempts", 1.5, 1, false, 2, between("tried", "small-tried", "all µs/step", "all µs/step")},
		{"child runs/s", "plain runs of the same steps", 0.5, 0.8, true, 2, between("small-family", "family", "µs/step", "µs/step")},
		{"CPU of an iteration with a call, long loop", "short loop", 1.5, 1, false, 2, between("loop/calls_long", "loop/calls_short", "CPU µs/iteration", "CPU µs/iteration")},
		{"lone run with greedy workflows, p50", "alone", 2, 1.5, false, 2, between("quiet/with greedy", "quiet/alone", "p50", "p50")},
		{"lone run with greedy workflows, p95", "alone", 2, 1.5, false, 2, between("quiet/with greedy", "quiet/alone", "p95", "p95")},
		{"lone run with an agent that spins, p50", "alone", 2, 1.5, false, 2, between("quiet/with a hog", "quiet/alone", "p50", "p50")},
		{"lone run with an agent that spins, p99", "alone", 2, 1.5, false, 2, between("quiet/with a hog", "quiet/alone", "p99", "p99")},
		{"batched calls/s, 64 callers", "unary", 2.5, 5, true, 2, between("batched/64", "unary/64", "calls/s", "calls/s")},
		{"submissions/s by SQL, one client", "INSERT of the same bytes", 0.5, 0.8, true, 2, between("submit/1", "insert/1", "rows/s", "rows/s")},
		{"submissions/s by SQL, 16 clients", "INSERT of the same bytes", 0.5, 0.8, true, 2, between("submit/16", "insert/16", "rows/s", "rows/s")},
		{"submissions/s by SQL, 16 clients", "River, Insert", 1, 2, true, 2, between("submit/16", "river/16", "rows/s", "rows/s")},
		{"submissions/s with an order, 16 clients", "River, InsertTx", 0.9, 1.2, true, 2, between("order+submit/16", "order+river/16", "rows/s", "rows/s")},
		{"submissions/s, 1,000 a batch", "River, InsertMany", 0.5, 1, true, 2, between("submit, batches", "river, batches", "rows/s", "rows/s")},
		{"events/s, each in a transaction", "DELETE … SKIP LOCKED", 0.5, 0.8, true, 2, between("events/each", "delete/each", "events/s", "events/s")},
		{"events/s, all at once", "DELETE … SKIP LOCKED", 0.05, 0.15, true, 2, between("events/all", "delete/all", "events/s", "events/s")},
		{"steps/s of runs with replies", "runs without", 0.7, 0.9, true, 2, between("replies/256", "no replies/256", "steps/s", "steps/s")},
		{"replies/s taken", "DELETE … SKIP LOCKED", 0.25, 0.5, true, 2, between("take/replies", "take/plain", "replies/s", "replies/s")},
		{"p99 of the lag of 10,000 schedules", "EnqueueAll of as many runs", 10, 4, false, 1, between("schedules", "enqueue", "lag p99", "ms")},
		{"Supervisor's scan beside finished runs", "beside none", 2, 1.1, false, 2, between("scan beside finished", "scan", "sum µs", "sum µs")},
		{"takeover until dispatchable", "psql that reads the same", 5, 2, false, 2, between("takeover", "psql", "ms", "ms")},
		{"SQLite steps/s, 256 in flight", "Postgres", 0.5, 1, true, 2, between("sqlite/256", "postgres/256", "steps/s", "steps/s")},
		{"signals/s until the run has ended", "INSERT and UPDATE", 0.25, 0.5, true, 2, between("waits", "waits", "signals/s", "plain/s")},
		{"idle engine with schedules, statements a minute", "an idle engine", 1.2, 1, false, 2, between("idle/schedules", "idle", "statements/min", "statements/min")},
		{"idle engine, statements a minute", "", 6, 6, false, 1, of("idle", "statements/min")},
	}
}

// holds says whether the figure v reaches the goal. It returns "aim" if v reaches the wanted
// value, "yes" if v reaches only the required value, and otherwise "NO". It rounds v as in the
// table, so that the result fits the printed figure.
func (g goal) holds(v float64) string {
	var rounded float64
	if _, err := fmt.Sscanf(g.print(v), "%g", &rounded); err != nil {
		return "?"
	}
	reaches := func(bound float64) bool { return g.least && rounded >= bound || !g.least && rounded <= bound }
	switch {
	case reaches(g.aim):
		return "aim"
	case reaches(g.must):
		return "yes"
	}
	return "NO"
}

func (g goal) print(v float64) string { return fmt.Sprintf("%.*f", g.digits, v) }

// goals prints all goals next to the measured figures.
func (t *table) goals(b *book) {
	const columns = "%-48s %-28s %9s %9s %10s %6s"
	t.say("")
	t.say(columns, "figure", "beside", "must", "aim", "measured", "holds")
	for _, g := range goals() {
		sign := "≤"
		if g.least {
			sign = "≥"
		}
		measured, holds := "-", "-"
		if v, ok := g.got(b); ok {
			measured, holds = g.print(v), g.holds(v)
		}
		t.say(columns, g.what, g.beside, fmt.Sprintf("%s %g", sign, g.must), fmt.Sprintf("%s %g", sign, g.aim), measured, holds)
	}
}
