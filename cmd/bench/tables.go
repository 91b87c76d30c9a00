package main

import (
	"fmt"
	"io"
	"strings"
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
// sorted the rounds: see the function `takeovers`. The parameter `finished` is the number of
// finished runs in the database.
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

// cell returns the median of a number of a row as text. The parameter `format` is a format string
// of package fmt, such as "%.2f". The function `cell` returns "-" if the number was not measured.
func cell(b *book, row, name, format string) string {
	v, ok := b.median(row, name)
	if !ok {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// ratioCell returns the ratio of two numbers as text. The parameters `row` and `name` select the
// first number, and the parameters `to` and `toName` select the second number. ratioCell returns
// "-" if the numbers were not measured.
func ratioCell(b *book, row, to, name, toName string) string {
	v, ok := b.ratio(row, to, name, toName)
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

// steps prints the figures of the engine on each store, and those of pgbench and the naive
// store. The parameter `yard` is the name of the yardstick.
func (t *table) steps(b *book, p plan, yard string) {
	const columns = "%-14s %8s %10s %10s %10s %8s %8s %8s %8s %9s %8s %9s %9s %9s %10s"
	t.say("")
	t.say(columns, "end to end", "steps/s", "to pgbench", "to naive", "to naive", "p50 ms", "p95 ms", "p99 ms", "p99/p50", "commits", "log B", "engine µs", "agent µs", "server µs", "to pgbench")
	t.say(columns, "(in flight)", "", "64 clients", "64", "lone p50", "", "", "", "", "/step", "/step", "/step", "/step", "/step", "by CPU")
	for _, row := range []string{
		"postgres/1", "postgres/64", "postgres/256", "postgres/1024", "sqlite/1", "sqlite/64", "sqlite/256", "sqlite/1024", "naive/1", "naive/64",
	} {
		lone := "-"
		if strings.HasSuffix(row, "/1") {
			lone = ratioCell(b, row, "naive/1", "p50", "p50")
		}
		log, server := cell(b, row, "log/step", "%.0f"), cell(b, row, "server µs/step", "%.1f")
		if strings.HasPrefix(row, "sqlite") {
			log, server = "-", "-"
		}
		t.say(columns, row, cell(b, row, "steps/s", "%.0f"), ratioCell(b, row, "pgbench/64", "steps/s", "tps"), ratioCell(b, row, "naive/64", "steps/s", "steps/s"), lone,
			cell(b, row, "p50", "%.1f"), cell(b, row, "p95", "%.1f"), cell(b, row, "p99", "%.1f"), cell(b, row, "p99/p50", "%.2f"),
			cell(b, row, "commits/step", "%.3f"), log, cell(b, row, "engine µs/step", "%.1f"), cell(b, row, "agent µs/step", "%.1f"), server,
			ratioCell(b, "pgbench/64", row, "all µs/step", "all µs/step"))
	}
	for _, row := range []string{"pgbench/1", "pgbench/64"} {
		t.say(columns, row, cell(b, row, "tps", "%.0f"), ratioCell(b, row, "pgbench/64", "tps", "tps"), "-", "-", "-", "-", "-", "-", "-", "-", "-", "-",
			cell(b, row, "all µs/step", "%.1f"), ratioCell(b, "pgbench/64", row, "all µs/step", "all µs/step"))
	}
	t.say("")
	t.say("Medians of %d rounds of %s each, everything in turn; ratios are medians of the ratios of each round. A run is %d steps in a row that echo %d bytes.", p.rounds, p.each, steps, payload)
	t.say("pgbench: single-row updates by key, prepared, by %s; its figure is commits/s. naive: the same engine with a transaction for each start, finish and end, and unary calls.", yard)
	t.say("by CPU: the CPU time of a commit of pgbench with 64 clients, pgbench's own included and connecting not, to that of a step by all processes.")
}

// saga prints the figures of runs that the engine undoes.
func (t *table) saga(b *book) {
	const columns = "%-28s %8s %9s %8s %8s %8s %9s %8s"
	t.say("")
	t.say(columns, "saga with undo (in flight)", "runs/s", "calls/s", "p50 ms", "p95 ms", "p99 ms", "commits", "log B")
	for _, row := range []string{"saga/1", "saga/256"} {
		calls := "-"
		if v, ok := b.median(row, "runs/s"); ok {
			calls = fmt.Sprintf("%.0f", v*sagaCalls)
		}
		t.say(columns, row, cell(b, row, "runs/s", "%.0f"), calls, cell(b, row, "p50", "%.1f"), cell(b, row, "p95", "%.1f"), cell(b, row, "p99", "%.1f"),
			cell(b, row, "commits/step", "%.3f"), cell(b, row, "log/step", "%.0f"))
	}
	t.say("The fourth of %d steps fails for good and three are undone: %d calls; commits and log are for each of them.", steps, sagaCalls)
}

// calls prints the figures of calls of an agent: in batches over one stream, and with a stream
// for each call.
func (t *table) calls(b *book) {
	const columns = "%-20s %10s %10s %10s %16s %16s"
	t.say("")
	t.say(columns, "calls of an agent", "calls/s", "to unary", "µs each", "engine µs/call", "agent µs/call")
	for _, n := range []string{"1", "64", "256"} {
		for _, kind := range []string{"unary/", "batched/"} {
			row := kind + n
			t.say(columns, row, cell(b, row, "calls/s", "%.0f"), ratioCell(b, row, "unary/"+n, "calls/s", "calls/s"), cell(b, row, "µs", "%.0f"),
				cell(b, row, "engine µs/call", "%.1f"), cell(b, row, "agent µs/call", "%.1f"))
		}
	}
	t.say("Through the engine's pool with its breaker and TLS, so many callers at once, %d bytes both ways.", payload)
}

// shapes prints the figures of large runs next to the figures of small runs.
func (t *table) shapes(b *book, p plan) {
	const columns = "%-36s %9s %9s %9s %9s %9s %8s"
	t.say("")
	t.say(columns, "shapes of runs, for each call", "µs", "engine µs", "agent µs", "server µs", "commits", "log B")
	line := func(what, row string) {
		t.say(columns, what, cell(b, row, "µs/step", "%.0f"), cell(b, row, "engine µs/step", "%.1f"), cell(b, row, "agent µs/step", "%.1f"),
			cell(b, row, "server µs/step", "%.1f"), cell(b, row, "commits/step", "%.3f"), cell(b, row, "log/step", "%.0f"))
	}
	for _, s := range shapes() {
		line(fmt.Sprintf("%s runs of %d %s", count(s.small(p.large)), s.calls, s.what), "small-"+s.row)
		line(fmt.Sprintf("one of %s%s", count(p.large), s.parts), s.row)
		ratio := func(name string) string { return ratioCell(b, s.row, "small-"+s.row, name, name) }
		t.say(columns, "  ratio", ratio("µs/step"), ratio("engine µs/step"), ratio("agent µs/step"), ratio("server µs/step"), "", ratio("log/step"))
	}
	rate := func(row string) string {
		v, ok := b.median(row, "µs/step")
		if !ok || v == 0 {
			return "-"
		}
		return fmt.Sprintf("%.0f", 1e6/v/steps)
	}
	t.say("Instances are called at once, steps and attempts one after the other; an attempt fails and is followed by a pause of 1 ms.")
	t.say("Child runs of one parent, started together: %s runs/s; plain runs of the same steps, submitted together: %s runs/s.", rate("family"), rate("small-family"))
}

// long prints the figures of each minute of the long measurement, and of the old and the new
// database after it.
func (t *table) long(b *book, p plan) {
	t.say("")
	t.say("%-28s %8s %10s %8s %9s %9s %9s %9s %9s", "256 in flight, no pause", "steps/s", "to first", "idle %", "stolen %", "engine µs", "agent µs", "server µs", "log B")
	line := func(name, row, ratio string) {
		t.say("%-28s %8s %10s %8s %9s %9s %9s %9s %9s", name, cell(b, row, "steps/s", "%.0f"), ratio, cell(b, row, "idle", "%.0f"), cell(b, row, "stolen", "%.1f"),
			cell(b, row, "engine µs/step", "%.1f"), cell(b, row, "agent µs/step", "%.1f"), cell(b, row, "server µs/step", "%.1f"), cell(b, row, "log/step", "%.0f"))
	}
	for i := range minutes {
		row := fmt.Sprintf("long/minute %d", i+1)
		line(fmt.Sprintf("minute %d", i+1), row, ratioCell(b, row, "long/minute 1", "steps/s", "steps/s"))
	}
	line("then", "long/aged", "")
	line("a new database, in turn", "long/new", ratioCell(b, "long/aged", "long/new", "steps/s", "steps/s"))
	t.say("idle and stolen: of the machine's CPU; stolen is what its host gave to others, so that nobody here had it. µs and B: for each step.")
	t.say("Each of %s, with autovacuum on (it ran %s times); p50 %s ms, p99 %s ms; %s bytes of log for each step.", p.minute,
		cell(b, "long/256", "autovacuums", "%.0f"), cell(b, "long/256", "p50", "%.1f"), cell(b, "long/256", "p99", "%.1f"), cell(b, "long/256", "log/step", "%.0f"))
}

// queue prints the figures of a long queue.
func (t *table) queue(b *book) {
	t.say("")
	t.say("%-36s %10s %10s", "a queue of "+cell(b, "queue", "runs", "%.0f")+" runs", "runs/s", "steps/s")
	for _, row := range []string{"submit", "submit, first", "submit, last", "claim and work", "claim alone"} {
		t.say("%-36s %10s %10s", row, cell(b, row, "runs/s", "%.0f"), cell(b, row, "steps/s", "%.0f"))
	}
	t.say("submit: EnqueueAll of 10,000 at a time; the first of them and the last. claim: by one engine that finds the queue, with a real agent, then with agents that never answer.")
}

// memory prints the memory that an engine uses for an open run.
func (t *table) memory(b *book, p plan) {
	t.say("")
	t.say("%-28s %12s %16s", "memory of each open run", "bytes", "goroutines")
	for _, row := range []string{"in flight", "held", "in backoff", "parked"} {
		t.say("%-28s %12s %16s", row, cell(b, "memory, "+row, "bytes/run", "%.0f"), cell(b, "memory, "+row, "goroutines/run", "%.2f"))
	}
	t.say("Heap and stacks of the engine with %s runs, less what it had before, for each. In flight: a call of a real agent is under way.", count(p.kept))
}

// waits prints the figures of runs that wait for a signal or a time.
func (t *table) waits(b *book, p waitPlan) {
	const columns = "%-28s %12s %16s %10s %9s %9s %9s %9s %10s %9s %9s"
	t.say("")
	t.say(columns, "waiting runs", "bytes/run", "goroutines/run", "rows/run", "lag p50", "lag p99", "lag max", "sent/s", "signals/s", "plain/s", "ratio")
	t.say(columns, count(p.waiting), cell(b, "waits", "bytes/run", "%.0f"), cell(b, "waits", "goroutines/run", "%.2f"), cell(b, "waits", "rows/run", "%.2f"),
		cell(b, "waits", "lag p50", "%.1fms"), cell(b, "waits", "lag p99", "%.1fms"), cell(b, "waits", "lag max", "%.1fms"),
		cell(b, "waits", "sent/s", "%.0f"), cell(b, "waits", "signals/s", "%.0f"), cell(b, "waits", "plain/s", "%.0f"), ratioCell(b, "waits", "waits", "signals/s", "plain/s"))
	t.say("Each run waits for a signal. The table shows the heap and stacks of the process and the rows, divided by the number of runs. Lag: how late %s timers of %s end meanwhile.", count(p.timers), timerLength)
	t.say("signals: %s of them from %d senders, who do what engine signal does, over connections of their own; sent: until the last one is in an inbox, signals: until the last run has ended.", count(p.signals), senders)
	t.say("plain: as many transactions of as many clients, each with an INSERT of the signal and an UPDATE of one row of a plain table.")
}

// loop prints the figures of long loops.
func (t *table) loop(b *book, p plan) {
	const columns = "%-28s %14s %14s %16s %12s %12s %14s"
	t.say("")
	t.say(columns, "loops", "µs/iteration", "CPU µs", "rows/iteration", "state bytes", "load ms", "load whole ms")
	for _, kind := range loopKinds {
		for size, n := range p.loops.sizes() {
			row := "loop/" + kind + "_" + size
			t.say(columns, fmt.Sprintf("%s, %s iterations", kind, count(n)), cell(b, row, "µs/iteration", "%.1f"), cell(b, row, "CPU µs/iteration", "%.1f"), cell(b, row, "rows/iteration", "%.2f"),
				cell(b, row, "state bytes", "%.0f"), cell(b, row, "load ms", "%.1f"), cell(b, row, "load whole ms", "%.1f"))
		}
	}
	t.say("One run at a time. CPU: of engine, agent and server. load: from the last snapshot and the rows after it; load whole: from the first row.")
}

// cold prints the times that the method processLab.cold has measured.
func (t *table) cold(b *book, p plan) {
	t.say("")
	t.say("%-28s %16s %16s", "engine apply, cold", "first step ms", "end ms")
	for _, row := range []string{"cold/sqlite", "cold/postgres"} {
		t.say("%-28s %16s %16s", row, cell(b, row, "first step ms", "%.0f"), cell(b, row, "end ms", "%.0f"))
	}
	t.say("Medians of %d, from the start of the process to the start of the first of %d steps, which has committed twice by then, and to the end of the process.", p.colds, steps)
}

// idle prints how many statements and pings per minute idle engines send.
func (t *table) idle(b *book, p plan) {
	t.say("")
	for _, row := range []string{"idle", "idle/schedules"} {
		name := "idle engine"
		if row != "idle" {
			name += " with " + count(p.starts.schedules) + " schedules"
		}
		seconds, _ := b.median(row, "seconds")
		t.say("%s: %s statements a minute, and %s empty ones of the connection that listens, over %s", name,
			cell(b, row, "statements/min", "%.1f"), cell(b, row, "pings/min", "%.1f"), time.Duration(seconds)*time.Second)
	}
}

// submissions prints how many runs per second programs submit.
func (t *table) submissions(b *book, p startPlan) {
	const columns = "%-44s %10s %10s %10s %12s"
	t.say("")
	t.say(columns, "submissions by SQL", "rows/s", "to INSERT", "to River", "all µs/row")
	line := func(what, row, plain, river string) {
		toPlain, toRiver := "", ""
		if row != plain {
			toPlain = ratioCell(b, row, plain, "rows/s", "rows/s")
		}
		if strings.Contains(row, "submit") {
			toRiver = ratioCell(b, row, river, "rows/s", "rows/s")
		}
		t.say(columns, what, cell(b, row, "rows/s", "%.0f"), toPlain, toRiver, cell(b, row, "all µs/row", "%.0f"))
	}
	who := func(n int) string {
		if n == 1 {
			return "1 client"
		}
		return fmt.Sprintf("%d clients", n)
	}
	for _, n := range p.clients {
		plain, river := fmt.Sprintf("insert/%d", n), fmt.Sprintf("river/%d", n)
		line(who(n)+": INSERT", plain, plain, river)
		line("  engine.submit", fmt.Sprintf("submit/%d", n), plain, river)
		line("  River", river, plain, river)
	}
	for _, n := range p.clients {
		plain, river := fmt.Sprintf("order+insert/%d", n), fmt.Sprintf("order+river/%d", n)
		line(who(n)+", with an order: the order alone", fmt.Sprintf("order/%d", n), plain, river)
		line("  and INSERT", plain, plain, river)
		line("  and engine.submit", fmt.Sprintf("order+submit/%d", n), plain, river)
		line("  and River", river, plain, river)
	}
	line(count(batchSize)+" a batch: INSERT", "insert, batches", "insert, batches", "river, batches")
	line("  engine.submit", "submit, batches", "insert, batches", "river, batches")
	line("  River, InsertMany", "river, batches", "insert, batches", "river, batches")
	line("  River, InsertManyFast, which uses COPY", "river, COPY", "insert, batches", "river, batches")
	t.say("Each submission has %d bytes of input and an id, all through pgx; neither an engine nor a worker takes them. With an order: one transaction inserts a row of the program, too.", payload)
	t.say("INSERT: the same bytes into a plain table with the same unique id, without checks. µs: CPU time of client and server for each row.")
}

// events prints how many events per second start runs.
func (t *table) events(b *book, p plan) {
	const columns = "%-44s %10s %10s %10s %14s %14s"
	t.say("")
	t.say(columns, "events: "+count(p.starts.events)+" of them", "events/s", "plain", "ratio", "µs/event", "plain µs/event")
	for _, s := range sendings(p.starts.events) {
		name := map[string]string{
			"each":    fmt.Sprintf("each in a transaction, by %d clients", s.clients),
			"batches": fmt.Sprintf("%s a transaction, by %d clients", count(s.size), s.clients),
			"all":     "all in one transaction",
		}[s.row]
		ours, plain := "events/"+s.row, "delete/"+s.row
		t.say(columns, name, cell(b, ours, "events/s", "%.0f"), cell(b, plain, "events/s", "%.0f"), ratioCell(b, ours, plain, "events/s", "events/s"),
			cell(b, ours, "all µs/event", "%.0f"), cell(b, plain, "all µs/event", "%.0f"))
	}
	t.say("From the first transaction, or the commit of the only one, until an engine has recorded a run for each event and removed it. The run ends with its first row.")
	t.say("plain: the same rows in a plain table, removed by one client: DELETE … SKIP LOCKED … RETURNING, %d at a time. µs: CPU time of all processes, senders included.", plainBatch)
}

// replies prints how much slower runs with replies are, and how fast consumers take replies.
func (t *table) replies(b *book) {
	const columns = "%-36s %10s %10s %10s %10s %10s %10s"
	t.say("")
	t.say(columns, "replies", "steps/s", "ratio", "replies/s", "engine µs", "server µs", "log B")
	for _, row := range []string{"no replies/256", "replies/256"} {
		name, ratio, rate := "runs without replies", "", "-"
		if row == "replies/256" {
			name, ratio = "runs with replies to a queue", ratioCell(b, row, "no replies/256", "steps/s", "steps/s")
			if v, ok := b.median(row, "runs/s"); ok {
				rate = fmt.Sprintf("%.0f", v*repliesEach)
			}
		}
		t.say(columns, name, cell(b, row, "steps/s", "%.0f"), ratio, rate, cell(b, row, "engine µs/step", "%.1f"), cell(b, row, "server µs/step", "%.1f"), cell(b, row, "log/step", "%.0f"))
	}
	t.say("")
	t.say("%-36s %10s %10s %14s", "replies taken out of a queue", "replies/s", "ratio", "all µs/reply")
	t.say("%-36s %10s %10s %14s", "DELETE of the same rows", cell(b, "take/plain", "replies/s", "%.0f"), "", cell(b, "take/plain", "all µs/reply", "%.1f"))
	t.say("%-36s %10s %10s %14s", "engine.take_replies", cell(b, "take/replies", "replies/s", "%.0f"), ratioCell(b, "take/replies", "take/plain", "replies/s", "replies/s"), cell(b, "take/replies", "all µs/reply", "%.1f"))
	t.say("256 runs in flight; each has %d replies: accepted, started, succeeded. µs and B: for each step. Then %d consumers take all %s replies, at most %d at a time.",
		repliesEach, takers, cell(b, "take/replies", "replies", "%.0f"), takeSize)
	t.say("DELETE: with SKIP LOCKED, from a plain table with one index, which does not keep the order of each run.")
}

// schedules prints how late the runs of schedules start.
func (t *table) schedules(b *book, p plan) {
	const columns = "%-36s %10s %10s %10s %14s %12s"
	t.say("")
	t.say(columns, "schedules with the same tick", "lag p50", "lag p99", "lag max", "EnqueueAll", "all µs/run")
	t.say(columns, count(p.starts.schedules), cell(b, "schedules", "lag p50", "%.0fms"), cell(b, "schedules", "lag p99", "%.0fms"), cell(b, "schedules", "lag max", "%.0fms"),
		cell(b, "enqueue", "ms", "%.0fms"), cell(b, "schedules", "all µs/run", "%.0f"))
	t.say("Lag: from the tick to the start of the run, on one engine. EnqueueAll: time in which a program submits as many runs of the same workflows, in turn. µs: CPU time of engine and server.")
}
