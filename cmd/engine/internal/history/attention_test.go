package history

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/store/naming"
)

// listedRuns is a store with the given runs, of which some are overdue.
type listedRuns struct {
	*memory.Store
	rows    []store.RunRow
	overdue []status.RunID
}

func (s *listedRuns) Runs(_ context.Context, f store.RunFilter) (found []store.RunRow, _ error) {
	for _, r := range slices.Backward(s.rows) {
		name := f.Name == "" || f.Name == strconv.Itoa(int(r.Run))
		id := len(f.IDs) == 0 || slices.Contains(f.IDs, r.Run)
		state := len(f.States) == 0 || slices.Contains(f.States, r.State)
		trigger := len(f.Triggers) == 0 || slices.Contains(f.Triggers, r.Trigger)
		before := f.Before == 0 || r.Run < f.Before
		if name && id && state && trigger && before && len(found) < f.Max() {
			found = append(found, r)
		}
	}
	return found, nil
}

func (s *listedRuns) Alerts(context.Context, status.RunID, int) (all []store.AlertRow, _ error) {
	for _, run := range s.overdue {
		row := s.rows[run-1]
		all = append(all, store.AlertRow{Alert: store.Alert{Kind: "overdue"}, Run: run, Workflow: row.WorkflowName})
	}
	return all, nil
}

// The list of the runs that need a person has overdue runs and parents of parked runs only if they
// fit the other flags, too. It has notifications only if the user asks for them.
func TestAttentionFitsTheFilter(t *testing.T) {
	db := &listedRuns{Store: memory.New(memory.Options{})}
	now := time.Date(2026, 3, 14, 10, 0, 0, 0, time.UTC)
	add := func(name, workflow string, state status.RunState, by naming.Trigger, parent status.RunID) status.RunID {
		id := status.RunID(len(db.rows) + 1)
		r := store.RunRow{WorkflowName: workflow, Trigger: by, Parent: parent}
		r.Run, r.Name, r.State, r.CreatedAt = id, name, state, now.Add(time.Duration(id)*time.Second)
		db.rows = append(db.rows, r)
		return id
	}
	late := add("late", "w", status.RunRunning, naming.ByHand, 0)
	lateEvent := add("late-event", "w", status.RunRunning, naming.ByEvent, 0)
	lateNotice := add("late-notice", "w.notify", status.RunRunning, naming.ByNotification, 0)
	db.overdue = []status.RunID{late, lateEvent, lateNotice}
	top := add("top", "w", status.RunWaiting, naming.ByHand, 0)
	add("child", "w.g", status.RunParked, naming.ByParent, top)
	topEvent := add("top-event", "w", status.RunWaiting, naming.ByEvent, 0)
	add("child-event", "w.g", status.RunParked, naming.ByParent, topEvent)
	add("notice", "w.notify", status.RunParked, naming.ByNotification, 0)

	s := &session.Session{Store: store.Complete(db)}
	for name, c := range map[string]struct {
		Selection
		want []string
	}{
		"all runs":      {Selection{}, []string{"child-event", "top-event", "child", "top", "late-event", "late"}},
		"by event":      {Selection{RunFilter: store.RunFilter{Triggers: []naming.Trigger{naming.ByEvent}}}, []string{"top-event", "late-event"}},
		"by hand":       {Selection{RunFilter: store.RunFilter{Triggers: []naming.Trigger{naming.ByHand}}}, []string{"top", "late"}},
		"notifications": {Selection{Notifications: true}, []string{"notice", "child-event", "top-event", "child", "top", "late-notice", "late-event", "late"}},
		"by a notice":   {Selection{RunFilter: store.RunFilter{Triggers: []naming.Trigger{naming.ByNotification}}}, []string{"notice", "late-notice"}},
		"the newest":    {Selection{RunFilter: store.RunFilter{Limit: 2}}, []string{"child-event", "top-event"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.States = AttentionStates()
			if c.Limit == 0 {
				c.Limit = 100
			}
			runs, err := Listed(t.Context(), s, c.Selection)
			if err == nil {
				runs, err = WithOverdue(t.Context(), s, c.Selection, runs)
			}
			if err == nil {
				runs, _, err = WithParents(t.Context(), s, c.Selection, runs)
			}
			var got []string
			for _, r := range runs {
				got = append(got, r.Name)
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
}
