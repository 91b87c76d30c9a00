package history

import (
	"context"
	"slices"
	"strconv"

	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/notice"
)

// MaxAlerts is the highest number of alerts that a command reads.
const MaxAlerts = 10000

// A Selection says which runs a list for people shows. The zero value selects all runs except
// notifications.
type Selection struct {
	store.RunFilter
	Notifications bool // --notifications: the list also has notifications
}

// withNotifications reports whether the list has notifications. The user asks for them with
// --notifications, with the name of a workflow of notifications, or with `--trigger notify`.
func (x Selection) withNotifications() bool {
	return x.Notifications || notice.Announces(x.Workflow) || slices.Contains(x.Triggers, naming.ByNotification)
}

// has reports whether the list has the run r, if the status of the run fits. It reads the filter's
// fields Workflow, Key, Triggers and Since.
func (x Selection) has(r store.RunRow) bool {
	switch {
	case x.Workflow != "" && r.WorkflowName != x.Workflow, x.Key != "" && r.Key != x.Key:
		return false
	case len(x.Triggers) > 0 && !slices.Contains(x.Triggers, r.Trigger):
		return false
	case notice.Announces(r.WorkflowName) && !x.withNotifications():
		return false
	}
	return !r.CreatedAt.Before(x.Since)
}

// Listed returns the runs that the Selection selects, newest first. The store cannot leave out
// notifications. So Listed reads further pages until it has as many other runs as the filter
// allows.
func Listed(ctx context.Context, s *session.Session, x Selection) ([]store.RunRow, error) {
	if x.withNotifications() {
		return s.Store.Runs(ctx, x.RunFilter)
	}
	var out []store.RunRow
	for filter := x.RunFilter; ; {
		page, err := s.Store.Runs(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, r := range page {
			if !notice.Announces(r.WorkflowName) && len(out) < x.Limit {
				out = append(out, r)
			}
		}
		if len(page) < filter.Limit || len(out) == x.Limit {
			return out, nil
		}
		filter.Before = page[len(page)-1].Run
	}
}

// WithOverdue returns the given runs and, in addition, the open runs that need a person
// although their status does not say so. These are runs that were not undone although their
// deadline has passed, and runs whose agents no living engine has. WithOverdue finds such runs
// by their alerts, and adds only runs that the Selection has. The result has at most x.Limit runs,
// newest first.
func WithOverdue(ctx context.Context, s *session.Session, x Selection, runs []store.RunRow) ([]store.RunRow, error) {
	alerts, err := s.Store.Alerts(ctx, 0, MaxAlerts)
	if err != nil {
		return nil, s.Wrap("list alerts", err)
	}
	listed := map[status.RunID]bool{}
	for _, r := range runs {
		listed[r.Run] = true
	}
	for _, al := range alerts {
		if al.Kind != "overdue" || listed[al.Run] || x.Workflow != "" && al.Workflow != x.Workflow {
			continue
		}
		listed[al.Run] = true
		row, err := s.Store.Find(ctx, strconv.FormatInt(int64(al.Run), 10))
		if err != nil {
			return nil, s.Wrap("find the run", err)
		}
		if row.State.Final() || al.Code == engine.AlertAgentMissing && row.OwnerAlive || !x.has(row) {
			continue
		}
		runs = append(runs, row)
	}
	slices.SortStableFunc(runs, func(a, b store.RunRow) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return runs[:min(len(runs), x.Limit)], nil
}
