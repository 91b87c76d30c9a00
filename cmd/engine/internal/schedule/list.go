package schedule

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// maxListed is the largest number of schedules that a command reads.
const maxListed = 100_000

// List prints the schedules of the published workflows.
func List(ctx context.Context, a *cli.App) error {
	s, role, err := open(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	rows, err := role.Schedules(ctx, time.Time{}, maxListed)
	if err != nil {
		return s.Wrap("list schedules", err)
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"schedules": listed(rows)})
	}
	if len(rows) == 0 {
		a.Note("No schedule is published. Publish a workflow with: engine publish PATH")
		return nil
	}
	return printRows(a, rows)
}

// printRows prints schedules as a table.
func printRows(a *cli.App, rows []schedules.Row) error {
	table := render.Table{Head: []string{"SCHEDULE", "TIMETABLE", "NEXT TICK", "LAST TICK", "LAST RUN"}}
	for _, r := range rows {
		next := timeText(r.Next)
		if r.Paused {
			next = "paused"
		}
		table.Add(nameOf(r), strings.TrimSpace(r.Timetable), next, timeText(r.Last), dash(r.LastRun))
	}
	if err := table.Write(a.Stdout); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// listed returns schedules as JSON objects.
func listed(rows []schedules.Row) []map[string]any {
	out := []map[string]any{}
	for _, r := range rows {
		out = append(out, map[string]any{
			"workflow": r.Workflow, "schedule": r.Name, "timetable": strings.TrimSpace(r.Timetable), "paused": r.Paused,
			"next": timeJSON(r.Next), "last": timeJSON(r.Last), "last_run": r.LastRun,
		})
	}
	return out
}

func nameOf(r schedules.Row) string { return r.Workflow + "." + r.Name }

// timeText returns a time for people, in UTC; "-" = none.
func timeText(t time.Time) string {
	if t.IsZero() || !t.Before(store.Never) {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// timeJSON returns a time for programs; nil = none.
func timeJSON(t time.Time) any {
	if t.IsZero() || !t.Before(store.Never) {
		return nil
	}
	return t.UTC().Format(time.RFC3339)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// find returns the schedule with the name WORKFLOW.SCHEDULE.
func find(ctx context.Context, s *session.Session, role schedules.Store, name string) (schedules.Row, error) {
	rows, err := role.Schedules(ctx, time.Time{}, maxListed)
	if err != nil {
		return schedules.Row{}, s.Wrap("list schedules", err)
	}
	var names []string
	for _, r := range rows {
		if nameOf(r) == name {
			return r, nil
		}
		names = append(names, nameOf(r))
	}
	return schedules.Row{}, cli.Failed("Unknown schedule", "No schedule %q is published in %s.%s `engine schedule list` shows those that are.",
		name, s.Shown, diag.DidYouMean(name, names))
}
