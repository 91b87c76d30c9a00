package cluster

import (
	"context"
	"slices"

	"github.com/saga-engine/engine/engine/store"
)

// handBack gives up, one by one, the runs that another engine could continue now. An
// engine that stops waits for its calls in flight, which may take long. Runs without a call
// in flight need not wait with it. The other runs become free when the engine leaves.
//
// Where no other engine is alive, a run without an owner would gain nothing, and
// no engine would notice that its time has passed.
func (t *Membership) handBack(ctx context.Context) {
	live, err := t.n.cfg.Store.Live(ctx)
	if err != nil {
		t.n.cfg.Logger.Debug("look for other engines to hand runs back to", "error", err)
		return
	}
	if !slices.ContainsFunc(live, func(m store.Member) bool { return m.Engine != t.Engine }) {
		return
	}
	t.Runs.HandBack()
}
