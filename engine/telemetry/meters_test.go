package telemetry_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/engine/telemetry"
)

func scrape(t *testing.T, m *telemetry.Meters) string {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	if rec.Code != 200 {
		t.Fatalf("status %d: %s", rec.Code, rec.Body)
	}
	return rec.Body.String()
}

// S47: detection lag and the cost of scans are published, and so are the counters (S28:
// late answers).
func TestMeters(t *testing.T) {
	m := telemetry.New(func(context.Context) telemetry.Snapshot {
		return telemetry.Snapshot{
			RunsOwned: 7, InFlight: 3, LeaseSeconds: 12.5, Queued: 21, Behind: 0.25, QueueAge: 42, Slowest: 1.5, Undelivered: -1, Refused: 2,
			Starts:  map[string]float64{"event": 3.5, "submission": 0},
			Replies: map[string]telemetry.ReplyLag{"table": {Waiting: 3, Oldest: 61.5}, "webhook": {}},
			Agents:  []telemetry.AgentSnapshot{{Agent: "stripe", Instances: 1, InFlight: 2}, {Agent: "stripe", Circuit: 2, Instances: 1, InFlight: 1}},
		}
	})
	m.Pass(engine.PassStats{Took: 3 * time.Millisecond})
	m.Pass(engine.PassStats{Took: 5 * time.Millisecond, Due: 1, Lag: 90 * time.Millisecond, Foreign: true, Taken: 4})
	m.Retained(store.RetainStats{Runs: 11, Rows: 40, Partitions: 2, Kept: 3})
	m.Fenced()
	m.LateReply(1, machine.AttemptID{Node: 0, Call: 1})
	m.Pushed(true)
	m.Facts(1, 1, []story.Fact{
		{Kind: story.FactRunCreated, Run: "o-1"},
		{Kind: story.FactAttemptFinished, Status: "ok"},
		{Kind: story.FactAttemptFinished, Status: "unknown"},
		{Kind: story.FactRunFinished, Status: "succeeded"},
	})
	got := scrape(t, m)
	for _, want := range []string{
		`engine_supervisor_passes_total{scope="own"} 1`,
		`engine_supervisor_passes_total{scope="all"} 1`,
		`engine_supervisor_detection_lag_seconds_count 1`,
		`engine_supervisor_detection_lag_seconds_sum 0.09`,
		`engine_supervisor_scan_seconds_count 2`,
		`engine_runs_taken_over_total 4`,
		`engine_runs_removed_total 11`,
		`engine_partitions_dropped_total 2`,
		`engine_fenced_total 1`,
		`engine_late_replies_total 1`,
		`engine_runs_accepted_total 1`,
		`engine_attempts_finished_total{status="ok"} 1`,
		`engine_attempts_finished_total{status="unknown"} 1`,
		`engine_runs_finished_total{status="succeeded"} 1`,
		`engine_alerts_pushed_total{result="delivered"} 1`,
		`engine_runs_owned 7`,
		`engine_calls_in_flight 3`,
		`engine_commits_waiting 21`,
		`engine_commit_oldest_seconds 0.25`,
		`engine_queue_oldest_seconds 42`,
		`engine_slowest_decision_seconds 1.5`,
		`engine_lease_seconds 12.5`,
		`engine_submissions_refused 2`,
		`engine_starts_oldest_seconds{kind="event"} 3.5`,
		`engine_starts_oldest_seconds{kind="submission"} 0`,
		`engine_replies_waiting{kind="table"} 3`,
		`engine_replies_oldest_seconds{kind="table"} 61.5`,
		`engine_replies_oldest_seconds{kind="webhook"} 0`,
		`engine_agent_circuit_state{agent="stripe"} 2`,
		`engine_agent_instances{agent="stripe"} 2`,
		`engine_agent_calls_in_flight{agent="stripe"} 3`,
		`go_goroutines `,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, not := range []string{"engine_alerts_undelivered", "o-1"} {
		if strings.Contains(got, not) {
			t.Errorf("%q shows", not)
		}
	}
}

// The number of labels stays bounded with any number of agents.
func TestLabelsAreBounded(t *testing.T) {
	m := telemetry.New(func(context.Context) telemetry.Snapshot {
		var s telemetry.Snapshot
		for i := range 500 {
			s.Agents = append(s.Agents, telemetry.AgentSnapshot{Agent: fmt.Sprintf("a%d", i), InFlight: 1})
		}
		return s
	})
	got := scrape(t, m)
	if n := strings.Count(got, "engine_agent_calls_in_flight{"); n != 101 {
		t.Errorf("%d agents show, want 100 and the others together", n)
	}
	if !strings.Contains(got, `engine_agent_calls_in_flight{agent="other"} 400`) {
		t.Error("what the others have must add up")
	}
}
