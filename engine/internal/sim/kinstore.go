package sim

import (
	"context"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/notice"
	"github.com/saga-engine/engine/engine/store/quota"
)

// A richWire is a wire to a store that also keeps notices, and divides the limits of agents among
// all engines. Only worlds with families use it instead of a plain wire.
type richWire struct{ *wire }

var (
	_ notice.Keeper = (*richWire)(nil)
	_ quota.Sharer  = (*richWire)(nil)
)

// connect returns the connection of an engine to the store.
func connect(w *world, n *node) store.Store {
	plain := &wire{store.Complete(w.store), w, n}
	if w.kin == nil {
		return plain
	}
	return &richWire{plain}
}

// Open passes the call to the store.
func (w *richWire) Open(ctx context.Context, after notice.Notice, limit int) ([]notice.Notice, error) {
	return over(ctx, w.wire, callerOther, "open notices", func() ([]notice.Notice, error) { return w.world.store.Open(ctx, after, limit) })
}

// Announced passes the call to the store.
func (w *richWire) Announced(ctx context.Context, done ...notice.Notice) error {
	_, err := over(ctx, w.wire, callerOther, "announced", func() (nothing, error) { return nothing{}, w.world.store.Announced(ctx, done...) })
	return err
}

// OfRun passes the call to the store.
func (w *richWire) OfRun(ctx context.Context, run status.RunID) ([]notice.Kept, error) {
	return over(ctx, w.wire, callerOther, "notices", func() ([]notice.Kept, error) { return w.world.store.OfRun(ctx, run) })
}

// ShareSlots passes the call to the store.
func (w *richWire) ShareSlots(ctx context.Context, e store.EngineID, ask quota.SlotAsk) (quota.SlotShare, error) {
	return over(ctx, w.wire, callerOther, "share slots", func() (quota.SlotShare, error) { return w.world.store.ShareSlots(ctx, e, ask) })
}

// TakeCalls passes the call to the store.
func (w *richWire) TakeCalls(ctx context.Context, e store.EngineID, ask quota.CallAsk) (quota.CallGrant, error) {
	return over(ctx, w.wire, callerOther, "take calls", func() (quota.CallGrant, error) { return w.world.store.TakeCalls(ctx, e, ask) })
}
