// Package replies is the role of a store that keeps the replies of runs: the outbox.
//
// In: the replies in store.Transition.Post. A store writes them in the same commit as the journal
// row that causes them. Out: the replies that wait for their sink, in order. A sink is a queue of
// the store, a webhook, or an action of an agent. The consumer of a queue takes the replies from
// the store. To all other sinks, engines send the replies. The package sends nothing itself.
package replies

import (
	"context"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// An ID identifies a reply.
type ID struct {
	Run status.RunID
	N   int32 // number of the reply in its run: 1, 2, 3, … without gaps
}

// A Reply notifies the submitter of a run about what has happened to the run.
type Reply struct {
	ID
	Sink        string // such as table:orders
	Correlation string // text of the submitter; "" = none
	State       string // accepted, started, or the state that the run has reached
	At          time.Time
	Name        string // public id of the run
	Workflow    string
	Key         string // unique key of the run; "" = none
	Tries       int    // how often engines have claimed the reply
	Why         string // why the last try to deliver it failed; "" = no try has failed
	Done        bool   // true = it was delivered
}

// A Lag says how many replies wait for a sink.
type Lag struct {
	Sink    string
	Waiting int       // number of replies that wait; LagLimit = there may be more
	Oldest  time.Time // time of the oldest reply that waits
}

// KeepFor is how long retention keeps a run because one of its replies waits for a sink. The time
// counts from the reply. So a sink that is down for some days loses nothing, and a sink that never
// answers does not keep runs for ever.
const KeepFor = 7 * 24 * time.Hour

// LagLimit is the largest number of replies that Lag counts for one sink. MaxSinks is the largest
// number of sinks in the result of Lag.
const (
	LagLimit = 10000
	MaxSinks = 100
)

// Kind returns the kind of a sink, for people: table, webhook or agent.
func Kind(sink string) string {
	kind, _, _ := strings.Cut(sink, ":")
	return kind
}

// An Outbox keeps replies. The store does not remove a run while one of the run's replies is not
// done and is younger than KeepFor. A run's replies are delivered in the order of their numbers: a
// reply is claimed or taken only when the one before it is done.
type Outbox interface {
	// Take returns the next reply of each run that has a reply for the sink, and marks it as done.
	// It returns no more replies than the parameter `limit` says.
	Take(ctx context.Context, sink string, limit int) ([]Reply, error)
	// Waiting returns replies for the sink that are not done, and changes nothing.
	Waiting(ctx context.Context, sink string, limit int) ([]Reply, error)
	// Due returns the names of sinks that have a reply which an engine may claim now, in ascending
	// order. It returns only names greater than the parameter `after` and smaller than the
	// parameter `before`.
	Due(ctx context.Context, after, before string, limit int) ([]string, error)
	// Claim returns the next reply of each run that has a reply for the sink. Until the duration
	// `hold` has passed, no other call of Claim returns replies of these runs. If the engine that
	// calls Claim dies, another engine can claim the replies after that.
	Claim(ctx context.Context, sink string, limit int, hold time.Duration) ([]Reply, error)
	// Delivered marks replies as done. It ignores replies that are done or do not exist.
	Delivered(ctx context.Context, done ...ID) error
	// Later records why a reply was not delivered. No engine can claim the replies of this run
	// before the pause has passed.
	Later(ctx context.Context, id ID, pause time.Duration, why string) error
	// OfRun returns all replies of a run, ascending by number.
	OfRun(ctx context.Context, run status.RunID) ([]Reply, error)
	// Lag returns the sinks for which replies wait, sorted by name.
	Lag(ctx context.Context) ([]Lag, error)
	// Hint notifies the consumers of queues that replies may wait for them. A store without a
	// channel for such hints does nothing.
	Hint(ctx context.Context, queues ...string) error
}

// A Keeper is a store that keeps replies. The role is optional. A store without it accepts no run
// with replies.
type Keeper interface {
	Replies() Outbox
}

// Of returns the outbox of a store. The result `ok` is false if the store keeps no replies.
func Of(s store.Store) (box Outbox, ok bool) {
	if full, complete := s.(store.Full); complete {
		s = full.Store
	}
	k, ok := s.(Keeper)
	if !ok {
		return nil, false
	}
	box = k.Replies()
	return box, box != nil
}
