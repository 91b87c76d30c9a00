package main

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// attention is the value of --status that selects runs which need a person.
const attention = "attention"

// attentionStates are those that need it by themselves; withOverdue adds the rest.
func attentionStates() []status.RunState {
	return []status.RunState{status.RunParked, status.RunCompensationFailed}
}

// maxAlerts is how many alerts are looked through at most.
const maxAlerts = 10000

// withOverdue adds the open runs that are past their deadline and have not
// turned back for it, and those whose agents no engine has: an alert told of each
// when it happened.
func (s history) withOverdue(ctx context.Context, f store.RunFilter, runs []store.RunRow) ([]store.RunRow, error) {
	alerts, err := s.store.Alerts(ctx, 0, maxAlerts)
	if err != nil {
		return nil, s.wrap("list alerts", err)
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
		row, err := s.store.Find(ctx, strconv.FormatInt(int64(al.Run), 10))
		if err != nil {
			return nil, s.wrap("find the run", err)
		}
		if row.State.Final() || al.Code == engine.AlertAgentMissing && row.OwnerAlive || f.Key != "" && row.Key != f.Key || row.CreatedAt.Before(f.Since) {
			continue
		}
		runs = append(runs, row)
	}
	slices.SortStableFunc(runs, func(x, y store.RunRow) int { return y.CreatedAt.Compare(x.CreatedAt) })
	return runs[:min(len(runs), f.Limit)], nil
}

// listAlerts lists what an operator was told.
func (a reader) listAlerts(ctx context.Context, o listOptions) error {
	if len(o.status) > 0 || o.key != "" {
		return failed("Invalid flag", "--alerts goes with --workflow, --since and --limit only.")
	}
	if o.limit < 1 || o.limit > maxAlerts {
		return failed("Invalid flag", "--limit must be between 1 and %d, not %d.", maxAlerts, o.limit)
	}
	from, err := a.sinceFlag(o.since)
	if err != nil {
		return err
	}
	s, err := a.opener().openReader(ctx, ".", ".")
	if err != nil {
		return err
	}
	defer s.close()
	limit := o.limit
	if o.workflow != "" {
		limit = maxAlerts
	}
	all, err := s.store.Alerts(ctx, 0, limit)
	if err != nil {
		return s.wrap("list alerts", err)
	}
	all = slices.DeleteFunc(all, func(al store.AlertRow) bool {
		return o.workflow != "" && al.Workflow != o.workflow || al.At.Before(from)
	})
	all = all[:min(len(all), o.limit)]
	if a.json {
		out := []map[string]any{}
		for _, al := range all {
			m := alertJSON(al)
			m["run"], m["workflow"], m["key"] = al.Name, al.Workflow, al.Key
			out = append(out, m)
		}
		return a.printJSON(map[string]any{"alerts": out})
	}
	if len(all) == 0 {
		a.note("No alerts.")
		return nil
	}
	table := render.Table{Head: []string{"TIME", "ALERT", "RUN", "WORKFLOW", "KEY", "STEP", "WHY"}}
	for _, al := range all {
		table.Add(stamp(al.At), al.Kind, al.Name, al.Workflow, al.Key, al.Step, join(": ", al.Code, al.Message))
	}
	return table.Write(a.stdout)
}

// alertJSON is an alert as programs see it.
func alertJSON(al store.AlertRow) map[string]any {
	return map[string]any{"at": al.At.In(time.UTC), "kind": al.Kind, "step": al.Step, "code": al.Code, "message": al.Message}
}
