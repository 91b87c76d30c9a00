//go:build failpoints

package faultpoints

import (
	"context"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/events"
	"github.com/saga-engine/engine/engine/store/firings"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/health"
	"github.com/saga-engine/engine/engine/store/intake"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/notice"
	"github.com/saga-engine/engine/engine/store/quota"
	"github.com/saga-engine/engine/engine/store/rekey"
	"github.com/saga-engine/engine/engine/store/replies"
	"github.com/saga-engine/engine/engine/store/schedules"
	"github.com/saga-engine/engine/engine/store/snapshots"
)

// A wrapped store has every role that engines and the command line ask a store for. Without a role,
// a build with the tag failpoints would behave as on a store that lacks this role.
var _ interface {
	store.Store
	store.Passes
	store.Hands
	store.Evidence
	store.Views
	store.Waker
	store.Retainer
	health.Examiner
	naming.Heirs
	rekey.Resealer
	notice.Keeper
	replies.Keeper
	schedules.Store
	events.Store
	intake.Store
	firings.Keeper
	quota.Sharer
	snapshots.Keeper
	goals.Keeper
} = (*fed)(nil)

// Heir calls Heir of the wrapped store. It returns 0 if the wrapped store does not have this
// method.
func (s *faultStore) Heir(ctx context.Context, run status.RunID) (status.RunID, error) {
	if h, ok := s.Full.Store.(naming.Heirs); ok {
		return h.Heir(ctx, run)
	}
	return 0, nil
}

// Replies returns the outbox of the wrapped store; nil = the store keeps no replies. Tests inject
// faults at Commit, which writes the replies.
func (s *faultStore) Replies() replies.Outbox {
	box, _ := replies.Of(s.Full)
	return box
}
