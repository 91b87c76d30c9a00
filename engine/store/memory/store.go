// Package memory holds runs in maps. It is the store of tests and simulations. It is also a
// deliberately simple model of what engine/store/sqlite and engine/store/postgres must do.
// It obeys every rule of engine/store/storetest, but its data is lost with the process.
package memory

import (
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/events"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/notice"
	"github.com/saga-engine/engine/engine/store/quota"
	"github.com/saga-engine/engine/engine/store/rekey"
	"github.com/saga-engine/engine/engine/store/replies"
	"github.com/saga-engine/engine/engine/store/schedules"
	"github.com/saga-engine/engine/engine/store/snapshots"
)

// Options of a Store. Zero fields mean their defaults.
type Options struct {
	// Now returns store time; nil = time.Now.
	Now func() time.Time
}

// A Store is a store.Store in memory. Several engines may share one Store. It has one part
// for each role, and one mutex protects all parts.
type Store struct {
	*state
	*definitions
	*membership
	*hands
	*published
	*eventbox
	*hints
	*inboxRole
	*journal
	*finder
	*views
	*shorts
	*evidence
	*retention
	*resealer
	*notices
	*contexts
	*posts
	*shares
}

var _ interface {
	store.Store
	store.Passes
	store.Hands
	store.Evidence
	store.Views
	store.Waker
	store.Retainer
	naming.Heirs
	rekey.Resealer
	notice.Keeper
	goals.Keeper
	replies.Keeper
	schedules.Store
	events.Store
	quota.Sharer
	snapshots.Keeper
} = (*Store)(nil)

// New returns an empty Store.
func New(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	st := &state{
		now:     o.Now,
		members: make(map[store.EngineID]*member),
		runs:    make(map[status.RunID]*run),
		names:   make(map[string]status.RunID),
		keys:    make(map[key]*holder),
		inbox:   make(map[status.RunID][]store.Message),
		sharing: make(map[status.RunID]*run),
		open:    make(map[store.EngineID]*queue),
	}
	inHand := &hands{state: st, deaths: make(map[status.RunID]int)}
	listeners := &hints{state: st}
	posted := &inboxRole{state: st, hands: inHand, hints: listeners}
	kept := &evidence{state: st}
	announced := &notices{state: st}
	catalogue := &definitions{state: st, settings: make(map[string]string), defs: make(map[string]store.Definition)}
	return &Store{
		state: st, hands: inHand, hints: listeners, inboxRole: posted, evidence: kept,
		definitions: catalogue,
		published:   &published{state: st, workflows: make(map[string]schedules.Workflow), rows: make(map[scheduleKey]schedules.Row)},
		eventbox:    &eventbox{state: st, claimed: make(map[int64]time.Time), failed: make(map[int64][]events.FailedKey)},
		resealer:    &resealer{state: st, definitions: catalogue},
		membership:  &membership{state: st, hands: inHand, hints: listeners, inboxRole: posted, passes: make(map[string]time.Time)},
		journal:     &journal{state: st, hints: listeners, inboxRole: posted, evidence: kept},
		finder:      &finder{state: st, hands: inHand},
		views:       &views{state: st, evidence: kept},
		shorts:      &shorts{state: st},
		retention:   &retention{state: st, evidence: kept},
		notices:     announced,
		contexts:    &contexts{state: st},
		posts:       &posts{state: st},
		shares:      &shares{state: st},
	}
}

// Close makes every later call fail that reads or changes data of the store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
