package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// finder is the part of a Store that finds the runs that a filter selects.
type finder struct {
	*state
	*hands
}

// Runs returns the runs that a filter selects.
func (s *finder) Runs(ctx context.Context, f store.RunFilter) ([]store.RunRow, error) {
	kind, err := storekit.KindOf(f)
	if err != nil {
		return nil, err
	}
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	switch kind {
	case storekit.KindName:
		return s.namedRunLocked(f.Name), nil
	case storekit.KindOrphans:
		return idsOf(s.orphansLocked(f), f.Max()), nil
	case storekit.KindAddressed:
		return idsOf(s.addressedLocked(), f.Max()), nil
	case storekit.KindOverdue:
		return idsOf(s.overdueLocked(f), f.Max()), nil
	}
	if kind == storekit.KindIDs || kind == storekit.KindChildren {
		return s.familyLocked(f), nil
	}
	return s.listLocked(f), nil
}

// familyLocked returns the runs with the ids of the filter, or the child runs of the run that
// the filter names as parent.
func (s *finder) familyLocked(f store.RunFilter) []store.RunRow {
	var rows []store.RunRow
	for _, id := range s.order {
		r := s.runs[id]
		if len(f.IDs) > 0 && !slices.Contains(f.IDs, id) || f.Parent != 0 && (r.parent != f.Parent || id <= f.After) {
			continue
		}
		if rows = append(rows, s.runRowLocked(r)); len(rows) == f.Max() {
			break
		}
	}
	return rows
}

// listLocked lists runs for people, newest first.
func (s *finder) listLocked(f store.RunFilter) []store.RunRow {
	asked := func(r *run) bool {
		w := s.flows[r.present()-1]
		return (len(f.States) == 0 || slices.Contains(f.States, r.head.State)) &&
			(f.Workflow == "" || f.Workflow == w.name) &&
			(f.Digest == "" || f.Digest == w.digest) &&
			(f.Key == "" || f.Key == r.key.key) &&
			(len(f.Triggers) == 0 || slices.Contains(f.Triggers, r.trigger)) &&
			(f.Before == 0 || r.head.Run < f.Before) &&
			!r.head.CreatedAt.Before(micro(f.Since))
	}
	var rows []store.RunRow
	for _, id := range slices.Backward(s.order) {
		if len(rows) == f.Max() {
			break
		}
		if r := s.runs[id]; asked(r) {
			rows = append(rows, s.runRowLocked(r))
		}
	}
	return rows
}

func (s *finder) runRowLocked(r *run) store.RunRow {
	w := s.flows[r.present()-1]
	return store.RunRow{Head: r.head, WorkflowName: w.name, Digest: w.digest, Moved: r.moved, Key: r.key.key, OwnerAlive: s.aliveLocked(r.head.Owner),
		InLine: r.share != nil && !r.share.admitted && !r.head.State.Final(), Parent: r.parent, Trigger: r.trigger}
}

// present returns the workflow that the run has now.
func (r *run) present() store.WorkflowID { return cmp.Or(r.moved, r.head.Workflow) }

// namedRunLocked returns the run with this public name. If no run has this name, it returns the run
// whose id naming.ParseRunID reads from the name. It returns nil if there is no such run.
func (s *finder) namedRunLocked(name string) []store.RunRow {
	id, ok := s.names[name]
	if !ok {
		id, _ = naming.ParseRunID(name)
	}
	if r := s.runs[id]; r != nil {
		return []store.RunRow{s.runRowLocked(r)}
	}
	return nil
}

// orphansLocked returns the open runs of dead members, ascending by id. If the filter has
// OwnerNone, it also returns runs without an owner. It leaves out a run at rest in two cases: no
// message waits for the run, or MaxDeaths engines died with the run in hand.
func (s *finder) orphansLocked(f store.RunFilter) []*run {
	var runs []*run
	for owner, q := range s.open {
		if m := s.members[owner]; owner == 0 && f.Owners&store.OwnerNone == 0 || owner != 0 && (m == nil || !m.dead) {
			continue
		}
		for _, r := range q.runs {
			if r.head.Run > f.After && !(r.head.AtRest() && len(s.inbox[r.head.Run]) == 0) && !s.shunnedLocked(r) {
				runs = append(runs, r)
			}
		}
	}
	slices.SortFunc(runs, func(a, b *run) int { return cmp.Compare(a.head.Run, b.head.Run) })
	return runs
}

// addressedLocked returns open runs of dead members for which messages wait. It leaves out runs
// that engines ignore until a person decides about them (shunnedLocked). The run with the oldest
// message is the first.
func (s *finder) addressedLocked() []*run {
	var runs []*run
	for id := range s.inbox {
		r := s.runs[id]
		if m := s.members[r.head.Owner]; !r.head.State.Final() && m != nil && m.dead && !s.shunnedLocked(r) {
			runs = append(runs, r)
		}
	}
	slices.SortFunc(runs, func(a, b *run) int { return cmp.Compare(s.inbox[a.head.Run][0].ID, s.inbox[b.head.Run][0].ID) })
	return runs
}

// overdueLocked returns open runs of live engines other than f.Asking, most overdue first.
// It returns only runs whose next_check passed longer than f.Overdue ago.
func (s *finder) overdueLocked(f store.RunFilter) []*run {
	var runs []*run
	past := s.now().Add(-f.Overdue).Add(-time.Nanosecond)
	for owner, q := range s.open {
		if owner != f.Asking && s.aliveLocked(owner) {
			runs = append(runs, q.due(past, f.Max())...)
		}
	}
	slices.SortFunc(runs, func(a, b *run) int {
		return cmp.Or(a.head.NextCheck.Compare(b.head.NextCheck), cmp.Compare(a.head.Run, b.head.Run))
	})
	return runs
}

// views is the part of a Store that lists steps, alerts and places for people. It also finds the
// heir of a run.
type views struct {
	*state
	*evidence
}

// StepRows returns the steps of a run, in the order of their node numbers.
func (s *views) StepRows(ctx context.Context, id status.RunID) ([]store.StepView, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r := s.runs[id]
	if r == nil {
		return nil, nil
	}
	var nodes []store.NodeName
	for i, name := range s.flows[r.head.Workflow-1].steps {
		nodes = append(nodes, store.NodeName{Node: int32(i), Step: int32(i), Name: name})
	}
	nodes = append(nodes, r.nodes...)
	var changes []store.StepRow
	for _, row := range r.rows {
		c, err := storekit.DecodeStepRows(row.steps)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c...)
	}
	return storekit.FoldSteps(nodes, r.head.Owner, changes), nil
}

// Alerts returns the alerts of a run, newest first. The parameter `limit` is the largest
// number of alerts. If the run's id is 0, Alerts returns alerts of all runs.
func (s *views) Alerts(ctx context.Context, id status.RunID, limit int) ([]store.AlertRow, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var rows []store.AlertRow
	for _, a := range s.alerts {
		if id == 0 || a.Run == id {
			rows = append(rows, s.namedLocked(a.AlertRow))
		}
	}
	slices.SortStableFunc(rows, func(a, b store.AlertRow) int { return a.At.Compare(b.At) })
	slices.Reverse(rows)
	return rows[:min(len(rows), limit)], nil
}
