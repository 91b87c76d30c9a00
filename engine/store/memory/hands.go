package memory

import (
	"context"
	"slices"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// hands is the part of a Store that records which runs each engine has in hand.
type hands struct {
	*state
	deaths map[status.RunID]int // for each run, the number of engines that died with the run in hand
}

// PutInHand replaces the list of runs that an engine has in hand. It returns ErrFenced if the
// engine was declared dead.
func (s *hands) PutInHand(ctx context.Context, id store.EngineID, runs []status.RunID) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	m := s.members[id]
	if m == nil || m.dead {
		return store.ErrFenced
	}
	m.hand = slices.Clone(runs)
	return nil
}

// Suspects returns, for each run, how many engines died with the run in hand, and whether an engine
// other than `self` has the run in hand now. A run has no entry in the result if no engine died
// with it and no other engine has it in hand.
func (s *hands) Suspects(ctx context.Context, self store.EngineID, runs []status.RunID) (map[status.RunID]store.Suspicion, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	found := map[status.RunID]store.Suspicion{}
	for _, run := range runs {
		x := store.Suspicion{Deaths: s.deaths[run]}
		for id, m := range s.members {
			x.InHand = x.InHand || id != self && slices.Contains(m.hand, run)
		}
		if x != (store.Suspicion{}) {
			found[run] = x
		}
	}
	return found, nil
}

// Absolve resets the number of deaths of each run to 0.
func (s *hands) Absolve(ctx context.Context, runs ...status.RunID) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, run := range runs {
		delete(s.deaths, run)
	}
	return nil
}

// blameLocked counts one more death for each open run that a dead member had in hand. Then
// it removes the member's list of runs.
func (s *hands) blameLocked(m *member) {
	slices.Sort(m.hand)
	for _, run := range slices.Compact(m.hand) {
		if r := s.runs[run]; r != nil && !r.head.State.Final() {
			s.deaths[run]++
		}
	}
	m.hand = nil
}

// shunnedLocked reports whether a run is at rest and MaxDeaths engines died with the run in
// hand. Engines ignore such a run until a person decides about it.
func (s *hands) shunnedLocked(r *run) bool {
	return s.deaths[r.head.Run] >= store.MaxDeaths && r.head.AtRest()
}
