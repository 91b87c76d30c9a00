package memory

import (
	"context"
	"slices"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// Runs lists runs, newest first.
func (s *Store) Runs(ctx context.Context, f store.RunFilter) ([]store.RunRow, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if f.Limit == 0 {
		f.Limit = store.DefaultRunLimit
	}
	asked := func(r *run) bool {
		w := s.flows[r.head.Workflow-1]
		return (len(f.States) == 0 || slices.Contains(f.States, r.head.State)) &&
			(f.Workflow == "" || f.Workflow == w.name) &&
			(f.Digest == "" || f.Digest == w.digest) &&
			(f.Key == "" || f.Key == r.key.key) &&
			(f.Before == 0 || r.head.Run < f.Before) &&
			!r.head.CreatedAt.Before(micro(f.Since))
	}
	var rows []store.RunRow
	for _, id := range slices.Backward(s.order) {
		if len(rows) == f.Limit {
			break
		}
		if r := s.runs[id]; asked(r) {
			rows = append(rows, s.runRowLocked(r))
		}
	}
	return rows, nil
}

func (s *Store) runRowLocked(r *run) store.RunRow {
	w := s.flows[r.head.Workflow-1]
	return store.RunRow{Head: r.head, WorkflowName: w.name, Digest: w.digest, Key: r.key.key, OwnerAlive: s.aliveLocked(r.head.Owner)}
}

// Find returns the run with this public name, or internal id in decimal.
// Returns ErrNotFound.
func (s *Store) Find(ctx context.Context, name string) (store.RunRow, error) {
	if err := s.lock(ctx); err != nil {
		return store.RunRow{}, err
	}
	defer s.mu.Unlock()
	id, ok := s.names[name]
	if !ok {
		id, _ = store.ParseRunID(name)
	}
	if r := s.runs[id]; r != nil {
		return s.runRowLocked(r), nil
	}
	return store.RunRow{}, store.ErrNotFound
}

// StepRows returns the view of a run's steps, by node number.
func (s *Store) StepRows(ctx context.Context, id machine.RunID) ([]store.StepView, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r := s.runs[id]
	if r == nil {
		return nil, nil
	}
	nodes := slices.Clone(r.nodes)
	for i, name := range s.flows[r.head.Workflow-1].steps {
		nodes = append(nodes, store.NodeName{Node: int32(i), Step: int32(i), Name: name})
	}
	var changes []store.StepRow
	for _, row := range r.rows {
		c, err := store.DecodeStepRows(row.steps)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c...)
	}
	return store.FoldSteps(nodes, r.head.Owner, changes), nil
}

// Alerts lists alerts, newest first; run 0 means of all runs.
func (s *Store) Alerts(ctx context.Context, id machine.RunID, limit int) ([]store.AlertRow, error) {
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
