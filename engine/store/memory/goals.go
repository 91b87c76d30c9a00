package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/goals"
)

// contexts is the part of a Store that shows and frees unique keys. It implements goals.Keeper.
type contexts struct {
	*state
	resets []goals.Reset // oldest first
}

// Goals returns the goals that a filter selects, ascending by workflow and key.
func (s *contexts) Goals(ctx context.Context, f goals.Filter) ([]goals.Goal, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []goals.Goal
	for k, h := range s.keys {
		after := cmp.Or(cmp.Compare(k.workflow, f.AfterWorkflow), cmp.Compare(k.key, f.AfterKey)) > 0
		if after && (f.Workflow == "" || f.Workflow == k.workflow) && (f.Key == "" || f.Key == k.key) {
			out = append(out, s.goalLocked(k, h))
		}
	}
	slices.SortFunc(out, func(a, b goals.Goal) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Key, b.Key))
	})
	return out[:min(len(out), f.Limit)], nil
}

// goalLocked returns the goal of the unique key `k`. The parameter `h` is the entry of this key.
func (s *contexts) goalLocked(k key, h *holder) goals.Goal {
	head := h.run.head
	g := goals.Goal{Workflow: k.workflow, Key: k.key, Run: head.Run, Name: head.Name, Gone: h.gone, RunState: head.State, KeyScope: h.scope}
	for _, r := range s.resets {
		if r.Workflow == k.workflow && r.Key == k.key {
			g.Resets++
			g.LastReset = r
		}
	}
	if h.waits() {
		g.Next, g.NextName = h.next.head.Run, h.next.head.Name
	}
	g.SetState(head.FinishedAt, h.reset, s.now())
	return g
}

// ResetGoal frees the key of a goal that was reached, and records who did it and why.
func (s *contexts) ResetGoal(ctx context.Context, r goals.Reset) (goals.Goal, error) {
	if err := r.Validate(); err != nil {
		return goals.Goal{}, err
	}
	if err := s.lock(ctx); err != nil {
		return goals.Goal{}, err
	}
	defer s.mu.Unlock()
	k := key{r.Workflow, r.Key}
	h := s.keys[k]
	if h == nil {
		return goals.Goal{}, store.ErrNotFound
	}
	g := s.goalLocked(k, h)
	if err := g.Resettable(); err != nil {
		return g, err
	}
	r.Run, r.Name, r.At = g.Run, g.Name, micro(s.now())
	s.resets = append(s.resets, r)
	if h.reset = true; h.gone && !h.waits() {
		delete(s.keys, k)
	}
	return g, nil
}

// Resets returns the resets of the goals that the given run had reached, oldest first.
func (s *contexts) Resets(ctx context.Context, id status.RunID) ([]goals.Reset, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []goals.Reset
	for _, r := range s.resets {
		if r.Run == id {
			out = append(out, r)
		}
	}
	return out, nil
}
