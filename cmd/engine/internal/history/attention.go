package history

import (
	"context"
	"slices"
	"strconv"

	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// MaxAlerts is the highest number of alerts that a command reads.
const MaxAlerts = 10000

// WithOverdue returns the given runs and, in addition, the open runs that need a person
// although their status does not say so. These are runs that were not undone although their
// deadline has passed, and runs whose agents no living engine has. WithOverdue finds such runs
// by their alerts. The result has at most f.Limit runs, newest first.
func WithOverdue(ctx context.Context, s *session.Session, f store.RunFilter, runs []store.RunRow) ([]store.RunRow, error) {
	alerts, err := s.Store.Alerts(ctx, 0, MaxAlerts)
	if err != nil {
		return nil, s.Wrap("list alerts", err)
	}
	listed := map[status.RunID]bool{}
	for _, r := range runs {
		listed[r.Run] = true
	}
	for _, al := range alerts {
		if al.Kind != "overdue" || listed[al.Run] || f.Workflow != "" && al.Workflow != f.Workflow {
			continue
		}
		listed[al.Run] = true
		row, err := s.Store.Find(ctx, strconv.FormatInt(int64(al.Run), 10))
		if err != nil {
			return nil, s.Wrap("find the run", err)
		}
		if row.State.Final() || al.Code == engine.AlertAgentMissing && row.OwnerAlive || f.Key != "" && row.Key != f.Key || row.CreatedAt.Before(f.Since) {
			continue
		}
		runs = append(runs, row)
	}
	slices.SortStableFunc(runs, func(x, y store.RunRow) int { return y.CreatedAt.Compare(x.CreatedAt) })
	return runs[:min(len(runs), f.Limit)], nil
}
