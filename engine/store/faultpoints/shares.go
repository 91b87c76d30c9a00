//go:build failpoints

package faultpoints

import (
	"context"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/quota"
)

// The type `faultStore` implements quota.Sharer. Each method of this role calls the same method of
// the wrapped store. Tests cannot inject faults here, because a lost answer changes no run: the
// engine asks again. If the wrapped store is not a quota.Sharer, the engine gets the whole limit of
// slots, and all calls that it asks for.

func (s *faultStore) ShareSlots(ctx context.Context, engine store.EngineID, ask quota.SlotAsk) (quota.SlotShare, error) {
	if r, ok := quota.Of(s.Full); ok {
		return r.ShareSlots(ctx, engine, ask)
	}
	return quota.SlotShare{Slots: ask.Most, Fair: ask.Most}, nil
}

func (s *faultStore) TakeCalls(ctx context.Context, engine store.EngineID, ask quota.CallAsk) (quota.CallGrant, error) {
	if r, ok := quota.Of(s.Full); ok {
		return r.TakeCalls(ctx, engine, ask)
	}
	return quota.CallGrant{Calls: ask.Want}, nil
}
