package doctor

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/events"
	"github.com/saga-engine/engine/engine/store/health"
	"github.com/saga-engine/engine/engine/store/intake"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/store/naming"
)

// S45 (T7): whether an engine renews its lease is judged by the store's clock,
// however far off this machine's is.
func TestDoctorGoesByTheStoresClock(t *testing.T) {
	for name, skew := range map[string]time.Duration{"here it is an hour later": time.Hour, "here it is an hour earlier": -time.Hour, "the same": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mem := memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(-skew) }})
			if _, err := mem.Join(t.Context(), "frozen", 2*leaseLook, 1); err != nil {
				t.Fatal(err)
			}
			if _, err := mem.Join(t.Context(), "fine", time.Hour, 1); err != nil {
				t.Fatal(err)
			}
			live, err := store.Complete(mem).Live(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c := &checkup{a: &cli.App{}, s: &session.Session{Store: store.Complete(mem)}, live: live}
			if err := c.leases(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(c.found) != 1 || c.found[0].Name != "lease" || !strings.Contains(c.found[0].Message, "1 at frozen does not renew its lease") {
				t.Errorf("found %+v, want the frozen engine only", c.found)
			}
		})
	}
}

// Runs that took long to decide are named.
func TestDoctorNamesSlowDecisions(t *testing.T) {
	db := memory.New(memory.Options{})
	c := &checkup{a: &cli.App{Now: time.Now}, s: &session.Session{Store: store.Complete(db)}}
	look := func() health.Finding {
		t.Helper()
		c.found = nil
		if err := c.alerts(t.Context()); err != nil {
			t.Fatal(err)
		}
		return c.found[0]
	}
	if f := look(); f.Name != "decisions" || f.Level != health.OK {
		t.Errorf("without alerts: %+v", f)
	}
	self, err := db.Join(t.Context(), "here", time.Hour, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := db.OpenWriter(t.Context(), self, 0)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := db.PutDefinition(t.Context(), store.Definition{Digest: "d", Data: []byte("x"), Workflows: []store.DefinedWorkflow{{Name: "order"}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, kind := range []string{"parked", engine.AlertSlow, "late_reply"} {
		name := []string{"one", "two", "three"}[i]
		out, err := w.Commit(t.Context(), []store.Transition{{
			Run: status.RunID(i + 1), At: time.Now(), Workflow: ids["order"], Owner: &self, Names: &naming.Names{Name: name, Workflow: "order"}, Data: []byte{1},
			State: status.RunRunning, NextCheck: store.Never, Alerts: []store.Alert{{Kind: kind, Message: "it took 3s"}},
		}})
		if err != nil || out[0].Err != nil {
			t.Fatal(err, out)
		}
	}
	f := look()
	if f.Level != health.Warning || !strings.Contains(f.Message, "1 run took long to decide, the last one two of workflow order") || !strings.Contains(f.Message, "it took 3s") {
		t.Errorf("found %+v", f)
	}
}

// S65: runs that no engine has taken for long are a warning, although they have not failed.
func TestDoctorNamesAnOldQueue(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	row := func(owner store.EngineID, state status.RunState, age time.Duration) store.RunRow {
		return store.RunRow{Head: store.Head{Owner: owner, State: state, CreatedAt: now.Add(-age)}}
	}
	c := &checkup{a: &cli.App{Now: func() time.Time { return now }}, live: []store.Member{{Engine: 1}}, open: []store.RunRow{
		row(0, status.RunQueued, time.Minute), row(1, status.RunQueued, time.Hour), row(0, status.RunRunning, time.Hour),
	}}
	if err := c.queue(t.Context()); err != nil || len(c.found) > 0 {
		t.Errorf("found %+v, %v", c.found, err)
	}
	c.open = append(c.open, row(0, status.RunQueued, 9*time.Minute), row(0, status.RunQueued, 7*time.Minute))
	if err := c.queue(t.Context()); err != nil || len(c.found) != 1 || c.found[0].Level != health.Warning || !strings.Contains(c.found[0].Message, "2 queued runs; the oldest waits for 9m") {
		t.Errorf("found %+v, %v", c.found, err)
	}
}

// A sink that has not taken a reply for long is a warning. It says in time when replies go.
func TestDoctorNamesSinksThatWait(t *testing.T) {
	now := time.Now()
	db := memory.New(memory.Options{})
	c := &checkup{a: &cli.App{Now: func() time.Time { return now }}, s: &session.Session{Store: store.Complete(db)}}
	self, err := db.Join(t.Context(), "here", time.Hour, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := db.OpenWriter(t.Context(), self, 0)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := db.PutDefinition(t.Context(), store.Definition{Digest: "d", Data: []byte("x"), Workflows: []store.DefinedWorkflow{{Name: "order"}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, age := range []time.Duration{time.Minute, time.Hour, 5 * 24 * time.Hour} {
		sink := []string{"table:young", "webhook:old", "agent:shop.told"}[i]
		out, err := w.Commit(t.Context(), []store.Transition{{
			Run: status.RunID(i + 1), At: now.Add(-age), Workflow: ids["order"], Owner: &self, Names: &naming.Names{Workflow: "order"}, Data: []byte{1},
			State: status.RunRunning, NextCheck: store.Never, Post: &naming.Post{Sink: sink, States: []string{"accepted"}},
		}})
		if err != nil || out[0].Err != nil {
			t.Fatal(err, out)
		}
	}
	if err := checkReplies(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range c.found {
		if f.Level != health.Warning || f.Hint == "" {
			t.Errorf("%+v", f)
		}
		got = append(got, f.Message)
	}
	want := []string{
		"1 reply waits for agent:shop.told, the oldest since 120h0m0s. After 168h0m0s a reply no longer keeps its run, and retention removes both.",
		"1 reply waits for webhook:old, the oldest since 1h0m0s.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// A desk is the role intake.Store; the doctor calls only the methods below.
type desk = intake.Store

// An inbox is the role events.Store.
type inbox = events.Store

// refusing is a store in which submissions wait, and engines have refused submissions.
type refusing struct {
	store.Store
	desk
	inbox
	refused intake.Refusals
	waiting []intake.Submission
}

// Submissions is a method of intake.Store.
func (r refusing) Submissions(context.Context, int64, int) ([]intake.Submission, error) {
	return r.waiting, nil
}

// RefusedSubmissions is a method of intake.Store.
func (r refusing) RefusedSubmissions(context.Context) (intake.Refusals, error) { return r.refused, nil }

// S54: a refused submission is a warning with the oldest reason and the next command, because its program
// waits for a run that does not exist.
func TestDoctorNamesRefusedSubmissions(t *testing.T) {
	now := time.Now()
	oldest := intake.Submission{Run: "order-1", Workflow: "order", Refused: "n must be above 0.", RefusedAt: now.Add(-time.Hour)}
	for count, want := range map[int]string{
		0: "No submission is refused.",
		1: "1 submission is refused, since 1h0m0s: run order-1 of workflow order: n must be above 0.",
		7: "7 submissions are refused, the oldest since 1h0m0s: run order-1 of workflow order: n must be above 0.",
	} {
		db := refusing{Store: memory.New(memory.Options{}), refused: intake.Refusals{Count: count, Oldest: oldest}}
		c := &checkup{a: &cli.App{Now: func() time.Time { return now }}, s: &session.Session{Store: store.Complete(db)}}
		if err := checkSubmissions(t.Context(), c); err != nil || len(c.found) != 1 {
			t.Fatalf("found %+v, %v", c.found, err)
		}
		f := c.found[0]
		if f.Message != want || (f.Level == health.Warning) != (count > 0) || count > 0 && !strings.Contains(f.Hint, "`engine show order-1` says more") {
			t.Errorf("found %+v, want %q", f, want)
		}
	}
}

// S65: a submission or an event that waits for more than five minutes is a warning. A quarantined event does
// not wait.
func TestDoctorNamesWaitingStarts(t *testing.T) {
	mem := memory.New(memory.Options{})
	role, ok := events.Of(store.Complete(mem))
	if !ok {
		t.Fatal("the store takes no events")
	}
	for _, id := range []string{"bad", "late"} {
		if sent, err := role.SendEvent(t.Context(), events.Event{ID: id, Type: "order", Data: []byte("{}")}); err != nil || !sent {
			t.Fatal(sent, err)
		}
	}
	list, err := role.ListEvents(t.Context(), false, 10)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if err := role.KeepEvent(t.Context(), list[0].Seq, nil, "no workflow"); err != nil {
		t.Fatal(err)
	}
	for ahead, want := range map[time.Duration][]string{
		time.Minute: nil,
		time.Hour:   {"submissions: The oldest submission that waits for an engine is order-1, since 1h.", "events: The oldest event that waits for an engine is late, since 1h."},
	} {
		db := refusing{Store: mem, inbox: role, waiting: []intake.Submission{{Run: "order-1", At: list[1].At}}}
		c := &checkup{a: &cli.App{Now: func() time.Time { return list[1].At.Add(ahead) }}, s: &session.Session{Store: store.Complete(db)}}
		if err := checkStarts(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range c.found {
			if f.Level != health.Warning || f.Hint == "" {
				t.Errorf("%+v", f)
			}
			got = append(got, f.Name+": "+f.Message)
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %s: %q, want %q", ahead, got, want)
		}
	}
}
