package history

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/notice"
)

// AllGroups returns the child runs of the groups of a run, at any depth, as far as ReadGroups has read
// them.
func AllGroups(r *Run) []*Run {
	var all []*Run
	for _, node := range slices.Sorted(maps.Keys(r.Groups)) {
		if group := r.Groups[node].Run; group != nil {
			all = append(append(all, group), AllGroups(group)...)
		}
	}
	return all
}

// NoticesOfGroups adds to the notices of a run those of its groups, as far as ReadGroups has read them: that
// the run of a group needs a person is announced by the notify blocks of the workflow around the group.
func NoticesOfGroups(ctx context.Context, s *session.Session, r *Run) error {
	for _, group := range AllGroups(r) {
		if !group.Flow.Announces() {
			continue
		}
		sent, err := notices(ctx, s, group)
		if err != nil {
			return err
		}
		r.Notices = append(r.Notices, sent...)
	}
	return nil
}

// notices returns the notices of one run, with their notifications.
func notices(ctx context.Context, s *session.Session, r *Run) ([]notice.Sent, error) {
	sent, err := notice.Find(ctx, s.Store, r.Row, func(state string) int { return len(r.Flow.Notifications(state)) })
	if err != nil {
		return nil, s.Wrap("read the notices", err)
	}
	return sent, nil
}

// mostRuns is the highest number of runs of groups that an error names.
const mostRuns = 3

// KnowsStep returns an error if the run has no step with that name. If the run of a group has such a
// step, the error names that run and the command line for it. The parameter `command` is the name of
// the command, such as settle.
func KnowsStep(ctx context.Context, s *session.Session, r *Run, step, command string) error {
	unknown := r.Knows(step)
	if unknown == nil || !r.Flow.StartsChildren() {
		return unknown
	}
	if err := ReadGroups(ctx, s, r); err != nil {
		return err
	}
	var lines []string
	for _, group := range AllGroups(r) {
		if group.Knows(step) == nil {
			lines = append(lines, fmt.Sprintf("`engine %s %s --step %s`", command, Arg(group.Row), words.Quote(step)))
		}
	}
	if len(lines) == 0 {
		return unknown
	}
	list := strings.Join(lines[:min(len(lines), mostRuns)], " or ")
	if more := len(lines) - mostRuns; more > 0 {
		list += fmt.Sprintf(" (`engine show %s` names %s more)", Arg(r.Row), render.Count(more, "run"))
	}
	return cli.Failed("Step of a group", "Step %q belongs to a group, and a group has a run of its own. Use the run of the group, with the other flags as before: %s.", render.Clean(step), list)
}

// GroupRows returns the rows of the runs of a run's groups, at any depth, but at most MaxGroups. It reads
// no journal: the workflow of a group has the name WORKFLOW.GROUP. The result `more` is true if there
// are further groups.
func GroupRows(ctx context.Context, s *session.Session, run store.RunRow) (rows []store.RunRow, more bool, err error) {
	level := []store.RunRow{run}
	for len(level) > 0 {
		parent := level[0]
		level = level[1:]
		for after := status.RunID(0); ; {
			page, err := s.Store.Runs(ctx, store.RunFilter{Parent: parent.Run, After: after, Limit: maxIDs})
			if err != nil {
				return nil, false, s.Wrap("list the runs of groups", err)
			}
			for _, child := range page {
				after = child.Run
				if !strings.HasPrefix(child.WorkflowName, parent.WorkflowName+".") {
					continue
				}
				if len(rows) == MaxGroups {
					return rows, true, nil
				}
				rows, level = append(rows, child), append(level, child)
			}
			if len(page) < maxIDs {
				break
			}
		}
	}
	return rows, false, nil
}
