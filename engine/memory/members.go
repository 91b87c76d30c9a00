package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
)

// Join registers a new incarnation.
func (s *Store) Join(ctx context.Context, address string, lease time.Duration, writers int) (engine.EngineID, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	s.engines++
	now := s.now()
	m := &member{address: engine.CleanText(address), joined: now, lease: now.Add(lease), fence: make(map[int]bool, writers)}
	for n := range writers {
		m.fence[n] = true
	}
	s.members[s.engines] = m
	return s.engines, nil
}

// Tick renews the lease and returns what needs attention. Returns ErrLapsed.
func (s *Store) Tick(ctx context.Context, id engine.EngineID, lease time.Duration, limit int) (engine.Tick, error) {
	if err := s.lock(ctx); err != nil {
		return engine.Tick{}, err
	}
	defer s.mu.Unlock()
	now := s.now()
	m := s.members[id]
	if m == nil || m.dead || !m.lease.After(now) {
		return engine.Tick{}, engine.ErrLapsed
	}
	m.lease = now.Add(lease)
	t := engine.Tick{Now: micro(now), Due: s.dueLocked(id, now, limit), Unowned: s.dueLocked(0, now, limit)}
	for other, m := range s.members {
		if m.dead || !m.lease.After(now) {
			t.Dead = append(t.Dead, other)
		}
	}
	slices.Sort(t.Dead)
	t.Inbox = s.waitingLocked(id, limit)
	return t, nil
}

func (s *Store) dueLocked(owner engine.EngineID, now time.Time, limit int) []engine.DueRun {
	var due []engine.DueRun
	for id, r := range s.runs {
		if !r.head.State.Final() && r.head.Owner == owner && !r.head.NextCheck.After(now) {
			due = append(due, engine.DueRun{Run: id, NextCheck: r.head.NextCheck})
		}
	}
	slices.SortFunc(due, func(a, b engine.DueRun) int {
		return cmp.Or(a.NextCheck.Compare(b.NextCheck), cmp.Compare(a.Run, b.Run))
	})
	return due[:min(len(due), limit)]
}

// Fence declares a member whose lease is past dead. The mutex makes it wait
// for batches in flight.
func (s *Store) Fence(ctx context.Context, id engine.EngineID) (bool, error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	m := s.members[id]
	if m != nil && !m.dead && m.lease.After(s.now()) {
		return false, nil
	}
	s.buryLocked(id)
	return true, nil
}

// Leave ends a membership in order.
func (s *Store) Leave(ctx context.Context, id engine.EngineID) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.buryLocked(id)
	s.hintLocked() // its runs are free now
	return nil
}

// buryLocked fences a member off and forgets it once it owns no open run.
func (s *Store) buryLocked(id engine.EngineID) {
	m := s.members[id]
	if m == nil {
		return
	}
	m.dead, m.fence = true, nil
	if m.lease.After(s.now()) {
		m.lease = s.now()
	}
	if len(s.sortedRunsLocked(func(r *run) bool { return r.head.Owner == id && !r.head.State.Final() })) == 0 {
		delete(s.members, id)
	}
}

// Orphans returns open runs of nobody, or of a member declared dead, that are
// not at rest, or have a message.
func (s *Store) Orphans(ctx context.Context, after machine.RunID, limit int) ([]machine.RunID, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	ids := s.sortedRunsLocked(func(r *run) bool {
		m := s.members[r.head.Owner]
		rests := r.head.AtRest() && len(s.inbox[r.head.Run]) == 0
		return r.head.Run > after && !r.head.State.Final() && !rests && (r.head.Owner == 0 || m != nil && m.dead)
	})
	return ids[:min(len(ids), limit)], nil
}

// Addressed returns open runs of members declared dead for which messages wait.
func (s *Store) Addressed(ctx context.Context, limit int) ([]machine.RunID, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	ids := s.sortedRunsLocked(func(r *run) bool {
		m := s.members[r.head.Owner]
		return len(s.inbox[r.head.Run]) > 0 && !r.head.State.Final() && m != nil && m.dead
	})
	slices.SortStableFunc(ids, func(a, b machine.RunID) int { return cmp.Compare(s.inbox[a][0].ID, s.inbox[b][0].ID) })
	return ids[:min(len(ids), limit)], nil
}

// Pass reports whether the caller may make the named pass now.
func (s *Store) Pass(ctx context.Context, name string, period time.Duration) (bool, error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	now := s.now()
	if s.passes[name].After(now) {
		return false, nil
	}
	s.passes[name] = now.Add(period)
	return true, nil
}

// Overdue returns open runs of other live engines whose next check passed more
// than grace ago, most overdue first.
func (s *Store) Overdue(ctx context.Context, self engine.EngineID, grace time.Duration, limit int) ([]machine.RunID, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	ids := s.sortedRunsLocked(func(r *run) bool {
		return !r.head.State.Final() && r.head.Owner != self && s.aliveLocked(r.head.Owner) && r.head.NextCheck.Before(s.now().Add(-grace))
	})
	slices.SortStableFunc(ids, func(a, b machine.RunID) int { return s.runs[a].head.NextCheck.Compare(s.runs[b].head.NextCheck) })
	return ids[:min(len(ids), limit)], nil
}

// Live returns the members whose lease has not passed, by number.
func (s *Store) Live(ctx context.Context) ([]engine.Member, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var live []engine.Member
	for id, m := range s.members {
		if s.aliveLocked(id) {
			live = append(live, s.memberLocked(id, m))
		}
	}
	slices.SortFunc(live, func(a, b engine.Member) int { return cmp.Compare(a.Engine, b.Engine) })
	return live, nil
}

// Member returns a member that lives, or that is dead and still owns open runs.
func (s *Store) Member(ctx context.Context, id engine.EngineID) (engine.Member, error) {
	if err := s.lock(ctx); err != nil {
		return engine.Member{}, err
	}
	defer s.mu.Unlock()
	m := s.members[id]
	if m == nil {
		return engine.Member{}, engine.ErrNotFound
	}
	return s.memberLocked(id, m), nil
}

func (s *Store) memberLocked(id engine.EngineID, m *member) engine.Member {
	return engine.Member{Engine: id, Address: m.address, JoinedAt: micro(m.joined), LeaseUntil: micro(m.lease), Left: m.lease.Sub(s.now())}
}

// LiveEngines counts members whose lease has not passed.
func (s *Store) LiveEngines(ctx context.Context) (int, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	n := 0
	for id := range s.members {
		if s.aliveLocked(id) {
			n++
		}
	}
	return n, nil
}

func (s *Store) aliveLocked(id engine.EngineID) bool {
	m := s.members[id]
	return m != nil && !m.dead && m.lease.After(s.now())
}
