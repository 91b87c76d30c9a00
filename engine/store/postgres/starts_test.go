package postgres

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/store/firings"
)

// T18, S76: a tick says whether there is work that starts runs or delivers replies, so that an idle
// engine makes no query of its own for each kind. What is claimed, quarantined, refused, paused, ended
// or not due yet does not count.
func TestTickSeesWhatStartsRuns(t *testing.T) {
	b := newBench(t, migrated(t))
	db := b.db
	starts := func(what string, want bool) {
		t.Helper()
		tick, err := b.Tick(t.Context(), b.id, time.Hour, 10)
		if err != nil {
			t.Fatal(err)
		}
		if !tick.Searched || tick.Starts != want {
			t.Errorf("%s: looked %t, starts %t, want %t", what, tick.Searched, tick.Starts, want)
		}
	}
	starts("an empty database", false)
	must(t, db, `INSERT INTO engine.published (workflow, workflow_id, published_by, given) SELECT 'w', min(workflow_id), 'test', '' FROM engine.workflow`)
	for _, c := range []struct{ what, make, still, gone string }{
		{"a submission", `INSERT INTO engine.submission (run, workflow, input, submitted_by) VALUES ('a', 'w', '{}', 'test')`,
			`UPDATE engine.submission SET refused = 'no'`, `DELETE FROM engine.submission`},
		{"an event", `INSERT INTO engine.events (id, type) VALUES ('a', 'x')`,
			`UPDATE engine.events SET claimed_until = 'infinity'`, `UPDATE engine.events SET claimed_until = '-infinity', quarantined = 'bad'`},
		{"a firing", `INSERT INTO engine.firing (workflow, schedule, tick, workflow_id, opened_by) SELECT 'w', 's', now(), min(workflow_id), 'test' FROM engine.workflow`,
			`UPDATE engine.firing SET held_until = 'infinity'`, `UPDATE engine.firing SET held_until = '-infinity', state = 'complete'`},
		{"a schedule", `INSERT INTO engine.schedule (workflow, name, timetable, next_tick) VALUES ('w', 's', '', now())`,
			`UPDATE engine.schedule SET paused = true`, `UPDATE engine.schedule SET paused = false, next_tick = now() + interval '1 hour'`},
		{"a reply", `INSERT INTO engine.reply (run_id, n, sink, correlation, state, at) VALUES (1, 1, 'webhook:a', '', 'started', now())`,
			`UPDATE engine.reply SET done = true`, `UPDATE engine.reply SET done = false, sink = 'table:a'`},
		{"a reply to an agent", `INSERT INTO engine.reply (run_id, n, sink, correlation, state, at) VALUES (2, 1, 'agent:shop.told', '', 'started', now())`,
			`UPDATE engine.reply SET done = true WHERE run_id = 2`, `UPDATE engine.reply SET done = false, sink = 'table:a' WHERE run_id = 2`},
	} {
		must(t, db, c.make)
		starts(c.what, true)
		must(t, db, c.still)
		starts(c.what+" that needs no engine now", false)
		must(t, db, c.gone)
		starts(c.what+" that needs no engine", false)
	}

	// A person lets the engines try a quarantined event again.
	if known, err := b.RetryEvent(t.Context(), "a"); err != nil || !known {
		t.Fatal(known, err)
	}
	starts("an event that is retried", true)
	if list, err := b.ClaimEvents(t.Context(), 10, time.Hour); err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	starts("a retried event that is claimed", false)

	// An event opens a firing.
	f := firings.Firing{Workflow: "w", Schedule: "on", Event: "a", Tick: time.Now(), WorkflowID: b.flow, By: "test"}
	if added, err := b.Selections().Fire(t.Context(), f, false); err != nil || !added {
		t.Fatal(added, err)
	}
	starts("a firing that an event has opened", true)
	must(t, db, `UPDATE engine.firing SET held_until = 'infinity' WHERE event = 'a'`)
	starts("a firing of an event that an engine holds", false)
	must(t, db, `UPDATE engine.firing SET held_until = '-infinity', state = 'cancelled' WHERE event = 'a'`)
	starts("a cancelled firing of an event", false)
}

// T18, S71: a tick also says whether a state of a run waits to be announced. So an idle engine does not look
// for such states.
func TestTickSeesNotices(t *testing.T) {
	b := newBench(t, migrated(t))
	for _, c := range []struct {
		change string
		want   bool
	}{
		{`SELECT`, false},
		{`INSERT INTO engine.notice (run_id, seq, state) VALUES (1, 1, 'failed')`, true},
		{`UPDATE engine.notice SET done = true`, false},
	} {
		must(t, b.db, c.change)
		tick, err := b.Tick(t.Context(), b.id, time.Hour, 10)
		if err != nil {
			t.Fatal(err)
		}
		if !tick.Searched || tick.Notices != c.want {
			t.Errorf("after %s: looked %t, notices %t, want %t", c.change, tick.Searched, tick.Notices, c.want)
		}
	}
}
