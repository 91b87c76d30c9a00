package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/quota"
)

// membership is the part of a Store that records which engines are alive. It also records
// when the next scans may be made.
type membership struct {
	*state
	*hands
	*hints
	*inboxRole
	engines store.EngineID       // the last number that was used for a membership
	passes  map[string]time.Time // for each scan, the time from which an engine may make the scan again
}

// Join registers a new membership and returns its number.
func (s *membership) Join(ctx context.Context, address string, lease time.Duration, writers int) (store.EngineID, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	s.engines++
	now := s.now()
	m := &member{address: naming.CleanText(address), joined: now, lease: now.Add(lease), fence: make(map[int]bool, writers)}
	for n := range writers {
		m.fence[n] = true
	}
	s.members[s.engines] = m
	return s.engines, nil
}

// Tick renews the lease of an engine and returns the work for the engine. It returns
// ErrLapsed if the lease had expired or the engine was declared dead. The parameter `limit` is the
// largest number of runs in each list of the result, and of each kind of runs in Tick.Next.
func (s *membership) Tick(ctx context.Context, id store.EngineID, lease time.Duration, limit int) (store.Tick, error) {
	if err := s.lock(ctx); err != nil {
		return store.Tick{}, err
	}
	defer s.mu.Unlock()
	now := s.now()
	m := s.members[id]
	if m == nil || m.dead || !m.lease.After(now) {
		return store.Tick{}, store.ErrLapsed
	}
	m.lease = now.Add(lease)
	t := store.Tick{Now: micro(now), Due: s.dueLocked(id, now, limit), Unowned: s.dueLocked(0, now, limit)}
	for other, m := range s.members {
		if m.dead || !m.lease.After(now) {
			t.Dead = append(t.Dead, other)
		}
	}
	slices.Sort(t.Dead)
	t.Inbox, t.Next = s.waitingLocked(id, limit), s.nextLocked(id, limit)
	keyed, beaten := s.waitingKeysLocked(id, limit)
	t.Next, t.Beaten = append(t.Next, keyed...), beaten
	return t, nil
}

func (s *membership) dueLocked(owner store.EngineID, now time.Time, limit int) []store.DueRun {
	var due []store.DueRun
	for _, r := range s.open[owner].due(now, limit) {
		due = append(due, store.DueRun{Run: r.head.Run, NextCheck: r.head.NextCheck})
	}
	return due
}

// Fence declares a member dead if the member's lease has expired. It reports whether the
// member is dead now. Fence waits for a batch in flight, because a commit holds the mutex.
func (s *membership) Fence(ctx context.Context, id store.EngineID) (bool, error) {
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

// Leave ends the membership of an engine that stops normally.
func (s *membership) Leave(ctx context.Context, id store.EngineID) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if m := s.members[id]; m != nil {
		m.hand = nil
	}
	s.buryLocked(id)
	s.hintLocked() // a hint to other engines: they can take over the runs of this engine now
	return nil
}

// buryLocked declares a member dead, so that its writers can commit nothing any more. If
// the member owns no open run, buryLocked removes the member completely.
func (s *membership) buryLocked(id store.EngineID) {
	m := s.members[id]
	if m == nil {
		return
	}
	m.dead, m.fence = true, nil
	s.blameLocked(m)
	if m.lease.After(s.now()) {
		m.lease = s.now()
	}
	if s.open[id] == nil {
		delete(s.members, id)
	}
}

// Pass reports whether the caller may make the scan with this name now. If Pass returns true, it
// returns false to every further call for this scan until the period has passed.
func (s *membership) Pass(ctx context.Context, name string, period time.Duration) (bool, error) {
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

// Members returns the live members, and the dead members that the store has not removed yet.
func (s *membership) Members(ctx context.Context) ([]store.Member, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var found []store.Member
	for id, m := range s.members {
		found = append(found, s.memberLocked(id, m))
	}
	slices.SortFunc(found, func(a, b store.Member) int { return cmp.Compare(a.Engine, b.Engine) })
	return found, nil
}

func (s *membership) memberLocked(id store.EngineID, m *member) store.Member {
	return store.Member{Engine: id, Address: m.address, JoinedAt: micro(m.joined), LeaseUntil: micro(m.lease), Left: m.lease.Sub(s.now())}
}

// shares is the part of a Store that divides the limits of agents among engines. It implements
// quota.Sharer.
type shares struct {
	*state
	table quota.Table
}

// ShareSlots implements quota.Sharer.
func (s *shares) ShareSlots(ctx context.Context, engine store.EngineID, ask quota.SlotAsk) (quota.SlotShare, error) {
	if err := s.lockAlive(ctx, engine); err != nil {
		return quota.SlotShare{}, err
	}
	defer s.mu.Unlock()
	return s.table.ShareSlots(engine, ask, micro(s.now())), nil
}

// TakeCalls implements quota.Sharer.
func (s *shares) TakeCalls(ctx context.Context, engine store.EngineID, ask quota.CallAsk) (quota.CallGrant, error) {
	if err := s.lockAlive(ctx, engine); err != nil {
		return quota.CallGrant{}, err
	}
	defer s.mu.Unlock()
	return s.table.TakeCalls(ask, micro(s.now())), nil
}

// lockAlive locks the store. If the engine was declared dead, lockAlive returns store.ErrFenced and
// does not lock the store.
func (s *shares) lockAlive(ctx context.Context, engine store.EngineID) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	if m := s.members[engine]; m == nil || m.dead {
		s.mu.Unlock()
		return store.ErrFenced
	}
	return nil
}
