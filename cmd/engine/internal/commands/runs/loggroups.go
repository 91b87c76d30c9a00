package runs

import (
	"context"
	"fmt"
	"slices"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A logged is a log line of a run, or of the run of one of its groups.
type logged struct {
	store.LogLine
	group string // name of the run of the group; "" = the line belongs to the run itself
}

// print prints the line. It replaces characters that could control a terminal.
func (l logged) print(a *cli.App) error {
	call := ""
	// A line without a step may be about several calls, so no attempt is printed.
	if l.Step != "" {
		call = fmt.Sprintf("%s (attempt %d): ", l.Step, l.Attempt)
	}
	if l.group != "" {
		call = "run " + l.group + ": " + call
	}
	return a.Print("%s %s\n", l.At.UTC().Format("2006-01-02 15:04:05.000Z"),
		render.Clean(fmt.Sprintf("%-5s %s%s", l.Level, call, l.Message)))
}

func (l logged) json() map[string]any {
	m := map[string]any{"at": l.At.UTC(), "step": l.Step, "attempt": l.Attempt, "level": l.Level, "message": l.Message}
	if l.group != "" {
		m["run"] = l.group
	}
	return m
}

// allLogs returns the log lines of a run and of its groups, oldest first. If there are too many
// groups, it leaves some out and prints a note.
func allLogs(ctx context.Context, a *cli.App, s *session.Session, row store.RunRow, step string) ([]logged, error) {
	if _, more, err := history.GroupRows(ctx, s, row); err != nil {
		return nil, err
	} else if more {
		a.Note("The logs of further groups are left out. `engine logs` with the run of a group shows them; `engine show` names it.")
	}
	return newLogs(ctx, s, row, step, map[status.RunID]int64{})
}

// newLogs returns the new log lines of a run and of its groups, sorted by time. The map `after`
// contains for each run the number of the last line that was read. Lines with a larger number are
// new. The function newLogs updates this map.
func newLogs(ctx context.Context, s *session.Session, row store.RunRow, step string, after map[status.RunID]int64) ([]logged, error) {
	groups, _, err := history.GroupRows(ctx, s, row)
	if err != nil {
		return nil, err
	}
	var all []logged
	for _, r := range append([]store.RunRow{row}, groups...) {
		group := ""
		if r.Run != row.Run {
			group = r.Name
		}
		after[r.Run], err = logs(ctx, s, r, step, after[r.Run], func(l store.LogLine) error {
			all = append(all, logged{l, group})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(x, y logged) int { return x.At.Compare(y.At) })
	return all, nil
}

// knowsLogged returns an error if neither the run nor the run of one of its groups has a step with
// that name.
func knowsLogged(ctx context.Context, s *session.Session, r *history.Run, step string) error {
	unknown := r.Knows(step)
	if unknown == nil {
		return nil
	}
	if err := history.ReadGroups(ctx, s, r); err != nil {
		return err
	}
	for _, group := range history.AllGroups(r) {
		if group.Knows(step) == nil {
			return nil
		}
	}
	return unknown
}
