package memory

import (
	"context"
	"slices"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
)

// Hold replaces the list of runs that an engine has in hand. Returns ErrFenced.
func (s *Store) Hold(ctx context.Context, id engine.EngineID, runs []machine.RunID) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	m := s.members[id]
	if m == nil || m.dead {
		return engine.ErrFenced
	}
	m.hand = slices.Clone(runs)
	return nil
}

// Suspects returns which of the runs engines had in hand when they died.
func (s *Store) Suspects(ctx context.Context, runs []machine.RunID) (map[machine.RunID]int, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var found map[machine.RunID]int
	for _, run := range runs {
		if n := s.deaths[run]; n > 0 {
			if found == nil {
				found = map[machine.RunID]int{}
			}
			found[run] = n
		}
	}
	return found, nil
}

// Absolve forgets what is known against runs.
func (s *Store) Absolve(ctx context.Context, runs ...machine.RunID) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, run := range runs {
		delete(s.deaths, run)
	}
	return nil
}

// blameLocked counts the death of a member against the open runs it had in hand.
func (s *Store) blameLocked(m *member) {
	slices.Sort(m.hand)
	for _, run := range slices.Compact(m.hand) {
		if r := s.runs[run]; r != nil && !r.head.State.Final() {
			s.deaths[run]++
		}
	}
	m.hand = nil
}

// shunnedLocked reports whether no engine looks at a run until a person says how it
// goes on.
func (s *Store) shunnedLocked(r *run) bool {
	return s.deaths[r.head.Run] >= engine.MaxDeaths && r.head.AtRest()
}
