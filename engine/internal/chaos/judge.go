package chaos

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/chaos/ledger"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// A Verdict says how much Judge has checked.
type Verdict struct {
	Runs, Attempts, Calls int                     // number of runs, attempts and calls
	Signals               int                     // number of wait steps that a signal ended
	Ends                  map[status.RunState]int // number of runs, by their last status
}

// Judge checks the invariants I1 to I10 and I12 on all accepted runs. If an invariant does not
// hold, the test fails. Judge returns how much it has checked.
func (w *World) Judge() Verdict {
	w.T.Helper()
	runs := w.Runs()
	limit := patience(2*time.Minute + time.Duration(len(runs))*2*time.Millisecond)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.T.Context()), limit)
	defer cancel()
	snap, err := w.Ledger.Snapshot(ctx)
	if err != nil {
		w.T.Fatalf("read the ledger: %v", err)
	}
	v := Verdict{Runs: len(runs), Ends: map[status.RunState]int{}, Calls: len(snap.Calls)}
	w.learnKey()
	j := &judge{w: w, entries: map[string]ledger.Entry{}, calls: map[string]int{}}
	for _, e := range snap.Entries {
		j.entries[e.Key] = e
	}
	for _, c := range snap.Calls {
		j.calls[c.Run+" "+c.Step]++
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	const judges = 4
	for part := range slices.Chunk(runs, max(1, (len(runs)+judges-1)/judges)) {
		wait.Go(func() {
			for _, r := range part {
				state, attempts, signals := j.run(ctx, r)
				mu.Lock()
				v.Attempts += attempts
				v.Signals += signals
				v.Ends[state]++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	j.audit(ctx)
	return v
}

// A judge holds the data of the ledger for one call of Judge.
type judge struct {
	w       *World
	entries map[string]ledger.Entry // entries of the ledger, by idempotency key
	calls   map[string]int          // number of calls, by run and step as "RUN STEP"
}

// fault reports that an invariant does not hold: the test fails.
func (j *judge) fault(format string, args ...any) {
	j.w.T.Helper()
	j.w.T.Errorf("seed %d: "+format, append([]any{j.w.Seed}, args...)...)
}

// run checks one run. It returns the run's status, the number of attempts that started, and the
// number of wait steps that a signal ended. If the run cannot be read, all results are zero.
func (j *judge) run(ctx context.Context, r Run) (end status.RunState, attempts, signals int) {
	loaded, err := journal.Load(ctx, j.w.store, j.w.sealer, j.w.defs, r.ID)
	if err != nil {
		j.fault("%s: an accepted run is lost: %v (I1)", r.Name, err)
		return 0, 0, 0
	}
	head, err := j.w.head(r.ID)
	if err != nil {
		j.fault("%s: %v (I1)", r.Name, err)
		return 0, 0, 0
	}
	state := loaded.State
	if state.Status() != head.State {
		j.fault("%s: the journal says %v, the row %v (I10)", r.Name, state.Status(), head.State)
	}
	// The method Lost returns true if the run has the code engine_lost. Engines do not work on such
	// a run, even if it is due.
	if due, ok := state.NextDue(); ok && !head.State.Final() && !state.Run().Lost() && head.NextCheck.After(due) {
		j.fault("%s: the row's bound %v is later than what is due at %v (promise 13)", r.Name, head.NextCheck, due)
	}
	started, failures, parked := count(loaded.Flow, loaded.Records)
	for i := range state.NodeCount() {
		node := story.Node(state, loaded.Flow, i)
		if node.Each {
			continue
		}
		attempts += started[node.Name]
		if sent := j.calls[r.Name+" "+node.Name]; sent > started[node.Name] {
			j.fault("%s: %s was called %d times, the journal knows %d (I4)", r.Name, node.Name, sent, started[node.Name])
		}
		if node.Failures != failures[node.Name] {
			j.fault("%s: %s counts %d failures, its story has %d (I9)", r.Name, node.Name, node.Failures, failures[node.Name])
		}
		j.effect(r, state, node)
	}
	if state.Status() == status.RunCompensated {
		j.order(r, loaded.Flow, state)
	}
	j.alerts(ctx, r, parked)
	return state.Status(), attempts, j.waits(r, loaded.Records)
}

// count reads the records of a run. It returns how many attempts of each step started, and how
// many of them failed or ended with an unknown outcome. It also returns how many times the run
// was parked.
func count(wf *dsl.Workflow, records []machine.Record) (started, failures map[string]int, parked int) {
	started, failures = map[string]int{}, map[string]int{}
	state := machine.NewState()
	for _, rec := range records {
		for _, f := range story.Facts(wf, state, rec) {
			switch f.Kind {
			case story.FactAttemptStarted:
				started[f.Step]++
			case story.FactAttemptFinished:
				if f.Purpose != story.PurposeLookup && f.Purpose != story.PurposeLearn && (f.Status == "failed" || f.Status == "unknown") {
					failures[f.Step]++
				}
			case story.FactRunParked:
				parked++
			}
		}
		state.Apply(rec)
	}
	return started, failures, parked
}

// effect checks that the ledger's entry for one node fits the status of the run.
func (j *judge) effect(r Run, state *machine.State, node story.NodeView) {
	if r.step(node.Name).Name == "" {
		return // the step calls no agent, so it has no effect
	}
	e, known := j.entries[node.IdempotencyKey]
	step := r.step(node.Name)
	if known && step.Honours() && e.Applied > 1 {
		j.fault("%s: %s took effect %d times (I4)", r.Name, node.Name, e.Applied)
	}
	standing := known && e.Applied > e.Undone
	switch state.Status() {
	case status.RunSucceeded:
		if node.Forward == status.StepSucceeded && (!standing || e.Applied != 1 && step.Honours()) {
			j.fault("%s succeeded, the effect of %s stands %d times (I5)", r.Name, node.Name, e.Applied-e.Undone)
		}
		if known && e.Undone > 0 {
			j.fault("%s succeeded, but %s was undone (I5)", r.Name, node.Name)
		}
	case status.RunCompensated, status.RunFailed, status.RunCancelled:
		if standing && !node.LeftAsIs && !node.NotUndoneByDeclaration {
			j.fault("%s is %v, but the effect of %s stands (I6, I7)", r.Name, state.Status(), node.Name)
		}
	case status.RunParked, status.RunCompensationFailed:
	default:
		j.fault("%s is %v: neither ended nor listed as needing a person (I8)", r.Name, state.Status())
	}
}

// order checks that a step was undone only after all steps that depend on it (I6).
func (j *judge) order(r Run, wf *dsl.Workflow, state *machine.State) {
	undoneAt := func(name string) int {
		if i, ok := state.FindNode(wf, name); ok {
			return j.entries[story.Node(state, wf, i).IdempotencyKey].UndoneAt
		}
		return 0
	}
	for _, s := range r.Flow.Steps {
		for _, k := range s.After {
			for _, later := range s.Names() {
				for _, earlier := range r.Flow.Steps[k].Names() {
					a, b := undoneAt(earlier), undoneAt(later)
					if a != 0 && b != 0 && a < b {
						j.fault("%s: %s was undone before %s, which depends on it (I6)", r.Name, earlier, later)
					}
				}
			}
		}
	}
}

// alerts compares two numbers, which must be equal (I9): the number of the run's alerts, and the
// parameter `parked`, which says how many times the run was parked.
func (j *judge) alerts(ctx context.Context, r Run, parked int) {
	rows, err := j.w.store.Alerts(ctx, r.ID, 1000)
	if err != nil {
		j.fault("%s: alerts: %v", r.Name, err)
		return
	}
	raised := 0
	for _, a := range rows {
		if a.Kind == "parked" || a.Kind == "compensation_failed" {
			raised++
		}
	}
	if raised != parked {
		j.fault("%s came to need a person %d times, and raised %d alerts (I9)", r.Name, parked, raised)
	}
}

// step returns the step to which a node belongs. The parameter `node` is the name of the node. If
// the workflow has no such step, the method `step` returns the zero Step.
func (r Run) step(node string) Step {
	name, _, _ := strings.Cut(node, "[")
	i := slices.IndexFunc(r.Flow.Steps, func(s Step) bool { return s.Name == name })
	if i < 0 {
		return Step{}
	}
	return r.Flow.Steps[i]
}

// audits holds queries that check the database. The key says what the query checks. A query
// returns a row for each violation, so it returns no rows if all is well.
var audits = map[string]string{
	"journals have no gaps (I10)": `
SELECT run_id::text || ' row ' || seq FROM (SELECT run_id, seq, row_number() OVER (PARTITION BY run_id ORDER BY seq) - 1 AS want FROM engine.journal) x WHERE seq <> want`,
	"only the owner appends (I2, I3)": `
SELECT run_id::text || ' row ' || seq || ' by ' || (writer >> 32) || ', owner ' || holder FROM (
  SELECT run_id, seq, writer, (array_agg(owner) FILTER (WHERE owner IS NOT NULL) OVER w)[count(owner) OVER w] AS holder
  FROM engine.journal WINDOW w AS (PARTITION BY run_id ORDER BY seq)
) x WHERE holder <> 0 AND writer >> 32 <> holder`,
	"nothing follows a run's end (promise 3)": `
SELECT j.run_id::text || ' row ' || j.seq FROM engine.journal j
JOIN (SELECT run_id, min(seq) AS seq FROM engine.journal WHERE run_state >= 10 GROUP BY run_id) e ON e.run_id = j.run_id AND j.seq > e.seq
-- a child run that has succeeded may turn back with its parent
WHERE NOT EXISTS (SELECT FROM engine.journal t JOIN engine.run_name n USING (run_id)
  WHERE t.run_id = j.run_id AND t.seq > e.seq AND t.seq <= j.seq AND t.run_state = 5 AND n.parent IS NOT NULL)`,
	"what runs has a complete-by (I8)": `
SELECT run || ' ' || step FROM engine.steps WHERE state = 'running' AND complete_by IS NULL`,
	"replies have the numbers 1, 2, 3, … (I12)": `
SELECT run_id::text FROM engine.reply GROUP BY run_id HAVING min(n) <> 1 OR max(n) <> count(*)`,
	"the last reply names the final state (I12)": `
SELECT r.run_id::text || ' ' || l.state || ' and not ' || engine.run_state(r.state) FROM engine.run r
CROSS JOIN LATERAL (SELECT p.state FROM engine.reply p WHERE p.run_id = r.run_id ORDER BY p.n DESC LIMIT 1) l WHERE r.state >= 10 AND l.state <> engine.run_state(r.state)`,
	"no message is left to a run that ended": `
SELECT i.run_id::text FROM engine.inbox i JOIN engine.run r USING (run_id) WHERE r.state >= 10 AND i.at < clock_timestamp() - interval '20 seconds'`,
}

// audit runs the queries of the map `audits` directly on the database. It reports each query that
// returns rows.
func (j *judge) audit(ctx context.Context) {
	if j.w.Embedded() {
		return // the queries are for PostgreSQL
	}
	db, err := sql.Open("postgres", j.w.DSN)
	if err != nil {
		j.fault("audit: %v", err)
		return
	}
	defer db.Close()
	for what, query := range audits {
		rows, err := db.QueryContext(ctx, query+" LIMIT 5")
		if err != nil {
			j.fault("audit: %s: %v", what, err)
			continue
		}
		var found []string
		for rows.Next() {
			var s string
			if err := rows.Scan(&s); err != nil {
				j.fault("audit: %s: %v", what, err)
			}
			found = append(found, s)
		}
		if err := rows.Err(); err != nil {
			j.fault("audit: %s: %v", what, err)
		}
		rows.Close()
		if len(found) > 0 {
			j.fault("%s: not so: %s", what, strings.Join(found, "; "))
		}
	}
}

// String returns the numbers in one line.
func (v Verdict) String() string {
	var ends []string
	for s, n := range v.Ends {
		ends = append(ends, fmt.Sprintf("%d %v", n, s))
	}
	slices.Sort(ends)
	return fmt.Sprintf("%d runs (%s), %d attempts, %d calls", v.Runs, strings.Join(ends, ", "), v.Attempts, v.Calls)
}
