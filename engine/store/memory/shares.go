package memory

import (
	"context"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/quota"
)

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

// lockAlive locks the store. It returns store.ErrFenced, without the lock, if the engine was declared
// dead.
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
