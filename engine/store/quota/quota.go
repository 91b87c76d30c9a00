// Package quota is the role of a store that divides the limits of agents among the engines of a
// database.
//
// In: how many calls of an agent an engine wants to make. Out: how many calls it may make. The
// store keeps rows for each limit, and computes every answer from these rows. There is no counter
// that could become wrong. Each row expires at its own time, and not when its engine dies.
//
// The package does not see calls or runs, but only their numbers. The functions Slots and Calls
// compute the answers, so that all stores give the same answers.
package quota

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// A Sharer is a store that divides limits among engines. The role is optional. Without it, each
// engine has the whole limit for itself (see Local).
type Sharer interface {
	// ShareSlots stores how many slots of a limit an engine holds and wants. It returns how many
	// slots the engine may use. At any time, all engines together hold no more slots than the limit
	// says, unless the limit has become smaller. ShareSlots returns store.ErrFenced if the engine
	// was declared dead.
	ShareSlots(ctx context.Context, engine store.EngineID, ask SlotAsk) (SlotShare, error)
	// TakeCalls gives an engine the right to start a number of calls. It returns
	// store.ErrFenced if the engine was declared dead.
	TakeCalls(ctx context.Context, engine store.EngineID, ask CallAsk) (CallGrant, error)
}

// A SlotAsk says what an engine needs of a limit for calls in flight (max_concurrency).
type SlotAsk struct {
	Limit string // name of the limit
	Most  int    // the largest number of slots for all engines together, at least 1
	// Reserve is the number of slots that the store must not take from the engine, because the
	// engine's calls may use them. But the engine keeps no more slots than its row in the store
	// has.
	Reserve int
	Want    int // slots for which the engine has work; at least the slots in use
	// Keep is how long the engine may start calls after the answer, without asking again.
	Keep time.Duration
	// Linger is the longest time that one call may take. So the slots of a dead engine are free
	// again after Keep plus Linger since its last SlotAsk.
	Linger time.Duration
}

// A SlotShare is the answer to a SlotAsk.
type SlotShare struct {
	Slots int // slots that the engine holds now
	// Fair is the engine's part of the limit. If Fair is smaller than Slots, the engine holds too
	// many slots. Then it starts no further call while it uses Fair slots or more, and gives the
	// slots back that it does not need.
	Fair int
	// Contended is true if another engine waits for a slot.
	Contended bool
}

// A CallAsk says what an engine needs of a limit for started calls (rate_limit).
type CallAsk struct {
	Limit string        // name of the limit
	Most  int           // the largest number of calls that start in any period, at least 1
	Per   time.Duration // the length of a period
	Want  int           // calls that the engine wants to start now; 0 = none, only Usage counts
	Valid time.Duration // how long the engine may use the answer
	// Usage corrects the engine's last CallGrant of this limit. The engine starts no further calls
	// with that CallGrant. Zero = there is nothing to correct.
	Usage Usage
}

// A Usage says how much of a CallGrant an engine has used.
type Usage struct {
	Until time.Time     // the field Until of the CallGrant; zero = there is no CallGrant
	Calls int           // the field Calls of the CallGrant
	Used  int           // calls that the engine has started
	Spare time.Duration // when the engine last started a call, at least this much of CallAsk.Valid was left
}

// A CallGrant is the answer to a CallAsk.
type CallGrant struct {
	Calls int       // calls that the engine may start, while CallAsk.Valid lasts
	Until time.Time // store time until which these calls count against the limit; the engine needs it for Usage
	// Wait is how long it takes until the next calls may be free; 0 = the engine got all that
	// it asked for.
	Wait time.Duration
}

// Of returns the optional role Sharer of the store s. If s does not have this role, `ok` is false.
func Of(s store.Store) (role Sharer, ok bool) {
	if full, complete := s.(store.Full); complete {
		s = full.Store
	}
	role, ok = s.(Sharer)
	return role, ok
}
