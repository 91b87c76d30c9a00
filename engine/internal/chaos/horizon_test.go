package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/internal/pgtest"
	"github.com/saga-engine/engine/engine/machine/status"
)

// horizonTime returns how long a transaction of T17 is held. CHAOS_HORIZON sets another time.
func horizonTime(t *testing.T) time.Duration {
	t.Helper()
	if text := os.Getenv("CHAOS_HORIZON"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	switch {
	case part:
		return time.Minute
	case full:
		return 30 * time.Minute
	}
	return 0
}

// horizonRate is the number of runs that are submitted per second in T17.
const horizonRate = 800

// A pace submits runs of light at a rate, and counts those that end. It submits no further runs while
// the queue has more runs than are submitted in ten seconds.
type pace struct {
	w      *World
	perSec int
	flow   engine.Submission
	sent   int
	some   []status.RunID // runs whose status is read
	https  []string       // addresses of the metrics of the engines
}

// newPace returns a pace. All its runs have the same priority.
func (w *World) newPace(perSec int) *pace {
	def := w.Define(light)
	vars, diags := def.Workflow("w").Bind(given("priority", "50"))
	if diags.HasErrors() {
		w.T.Fatal(diags.Err())
	}
	p := &pace{w: w, perSec: perSec, flow: engine.Submission{Definition: def, Workflow: "w", Vars: vars, By: "chaos"}}
	p.send([]engine.Submission{p.flow})
	return p
}

// during submits runs for the given time. It returns how many runs have ended per second, and says how
// long the scans took with which engines find runs.
func (p *pace) during(d time.Duration) (rate float64, reads watched) {
	p.w.T.Helper()
	stop := p.w.watch(p.some)
	began, before := time.Now(), p.ended()
	batch := make([]engine.Submission, p.perSec/4)
	for i := range batch {
		batch[i] = p.flow
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for time.Since(began) < d {
		<-tick.C
		if p.sent-p.ended() > 10*p.perSec {
			continue
		}
		p.send(batch)
	}
	return float64(p.ended()-before) / time.Since(began).Seconds(), stop()
}

// ended returns how many runs the engines have ended. It asks the engines, because counting the rows in
// the database would take more time with each run.
func (p *pace) ended() int {
	p.w.T.Helper()
	sum := 0
	for _, address := range p.https {
		res, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			p.w.T.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			p.w.T.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "engine_runs_finished_total{"); ok {
				_, number, _ := strings.Cut(rest, "} ")
				n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
				if err != nil {
					p.w.T.Fatalf("%s: %v", line, err)
				}
				sum += int(n)
			}
		}
	}
	return sum
}

// send submits runs.
func (p *pace) send(all []engine.Submission) {
	p.w.T.Helper()
	ctx, cancel := context.WithTimeout(p.w.T.Context(), patience(time.Minute))
	defer cancel()
	out, err := engine.EnqueueAll(ctx, engine.Config{Store: p.w.store}, all)
	if err != nil {
		p.w.T.Fatal(err)
	}
	p.sent += len(all)
	p.some = append(p.some[:0], out[0].Run)
}

// rest waits until all submitted runs have ended.
func (p *pace) rest() {
	p.w.T.Helper()
	p.w.slowly("the runs to end", 10*time.Minute, func() bool { return p.w.ended() == p.sent })
}

// hold begins a transaction that sees the database as it is now. Until it ends, no dead row can be
// removed.
func (w *World) hold() (end func()) {
	w.T.Helper()
	db := w.open()
	tx, err := db.BeginTx(w.T.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		w.T.Fatal(err)
	}
	var n int
	if err := tx.QueryRowContext(w.T.Context(), `SELECT count(*) FROM engine.setting`).Scan(&n); err != nil {
		w.T.Fatal(err)
	}
	w.Note("a transaction holds the horizon")
	return func() {
		w.T.Helper()
		if err := tx.Rollback(); err != nil {
			w.T.Errorf("the transaction that held the horizon has ended: %v", err)
		}
		if err := db.Close(); err != nil {
			w.T.Error(err)
		}
		w.Note("the horizon is free")
	}
}

// dead removes dead rows of the tables that change most, and returns how many are left.
func (w *World) dead() int {
	w.T.Helper()
	w.exec(`VACUUM engine.run, engine.member, engine.fence, engine.inbox, engine.hand, engine.pass`)
	return w.number(`SELECT sum(n_dead_tup) FROM pg_stat_user_tables WHERE schemaname = 'engine' AND relname IN ('run', 'member', 'fence', 'inbox', 'hand', 'pass')`)
}

// T17: a transaction holds the horizon of the database while runs are submitted, claimed and ended: no
// dead row can be removed. All runs end, engines keep their leases, and the dead rows are removed when
// the transaction has ended (S76, I1, I8). `make chaos` holds the transaction for half an hour, with 800
// runs a second, and prints by how much the engines become slower.
func TestHeldHorizon(t *testing.T) {
	if !full { // it measures rates
		t.Parallel()
	}
	began := time.Now()
	w := newWorld(t, 17)
	var engines []*Process
	var https []string
	for _, name := range []string{"a", "b"} {
		port, err := pgtest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		https = append(https, fmt.Sprintf("127.0.0.1:%d", port))
		e := w.StartEngine(name, "", "--lease", "10s", "--http", https[len(https)-1])
		engines = append(engines, e)
		w.Await("the engines to serve", time.Minute, func() bool { return strings.Contains(e.Output(), "msg=serving") })
	}
	held := horizonTime(t)
	rate, window := horizonRate, min(held/2, time.Minute)
	if held == 0 {
		rate, window = 200, 3*time.Second
	}
	p := w.newPace(rate)
	p.https = https
	before, quick := p.during(window)
	end := w.hold()
	if held > window {
		p.during(held - window)
	}
	while, slow := p.during(window)
	if n := w.dead(); n < p.sent/4 {
		t.Errorf("void: only %d dead rows after %d runs: nothing holds the horizon", n, p.sent)
	}
	size := w.number(`SELECT pg_total_relation_size('engine.run')`)
	end()
	p.rest()
	after, _ := p.during(window)
	p.rest()
	// The engines renew their leases and claim runs meanwhile, so a few dead rows are new.
	w.Await("the dead rows to be removed", time.Minute, func() bool { return w.dead() < 200 })
	for _, e := range engines {
		if e.Ended() || strings.Contains(e.Output(), "lost its lease") {
			t.Errorf("%s has ended, or has lost its lease:\n%s", e.Name, e.Output())
		}
	}
	w.audit()
	report.note("T17 held horizon: %s, %d runs; runs ended per second: %.0f before, %.0f at the end of the hold (%.0f %%; design: at least 85 %%), %.0f afterwards; before: %s; at the end of the hold: %s; engine.run had %d MB",
		held, p.sent, before, while, 100*while/max(before, 1), after, quick, slow, size>>20)
	report.count(fmt.Sprintf("T17 horizon held for %s", held), 1, Verdict{Runs: p.sent}, began)
}
