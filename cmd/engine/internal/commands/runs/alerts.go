package runs

import (
	"context"
	"slices"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/store"
)

// listAlerts prints the alerts that --workflow, --since and --limit select. It looks only at the
// newest history.MaxAlerts alerts.
func listAlerts(ctx context.Context, a *cli.App, o listOptions) error {
	if len(o.status) > 0 || o.key != "" {
		return cli.Failed("Invalid flag", "--alerts goes with --workflow, --since and --limit only.")
	}
	if o.limit < 1 || o.limit > history.MaxAlerts {
		return cli.Failed("Invalid flag", "--limit must be between 1 and %d, not %d.", history.MaxAlerts, o.limit)
	}
	from, err := sinceFlag(a, o.since)
	if err != nil {
		return err
	}
	s, err := session.OpenReader(ctx, a, ".", ".")
	if err != nil {
		return err
	}
	defer s.Close()
	limit := o.limit
	if o.workflow != "" {
		limit = history.MaxAlerts
	}
	all, err := s.Store.Alerts(ctx, 0, limit)
	if err != nil {
		return s.Wrap("list alerts", err)
	}
	all = slices.DeleteFunc(all, func(al store.AlertRow) bool {
		return o.workflow != "" && al.Workflow != o.workflow || al.At.Before(from)
	})
	all = all[:min(len(all), o.limit)]
	if a.JSON {
		out := []map[string]any{}
		for _, al := range all {
			m := history.AlertJSON(al)
			m["run"], m["workflow"], m["key"] = al.Name, al.Workflow, al.Key
			out = append(out, m)
		}
		return a.PrintJSON(map[string]any{"alerts": out})
	}
	if len(all) == 0 {
		a.Note("No alerts.")
		return nil
	}
	table := render.Table{Head: []string{"TIME", "ALERT", "RUN", "WORKFLOW", "KEY", "STEP", "WHY"}}
	for _, al := range all {
		table.Add(words.Stamp(al.At), al.Kind, al.Name, al.Workflow, al.Key, al.Step, words.Join(": ", al.Code, al.Message))
	}
	return table.Write(a.Stdout)
}
