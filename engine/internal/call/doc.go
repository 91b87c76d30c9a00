// Package call makes the calls of landed records, and hands the answers to the engine that
// owns the run.
//
// In comes a Spec; out goes an Answer, to the present Member, or into the run's inbox in
// the store if another engine owns the run by then. The package reaches agents through
// invoke.Invoker, and the store for inboxes and evidence. It never changes a run. It does
// nothing when the complete-by of a call passes: only the Supervisor reports that time has
// passed (S17, S18).
package call

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/clock"
	"github.com/saga-engine/engine/engine/internal/outage"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// ErrNotOwner says that another engine owns the run.
var ErrNotOwner = errors.New("engine: another engine owns the run")

// An Answer is the result of a call, or a sign of life of a call, on its way to the run.
type Answer struct {
	Event      machine.Event
	Arrived    time.Time // store time when it reached this engine
	CompleteBy time.Time // of the attempt that it answers; zero = it answers none
	Attempt    machine.AttemptID
	Slot       *Reservation // of the call that it answers; nil = none
}

// A Member is a membership of the engine, as calls see it: the way to the runs that it
// owns.
type Member interface {
	// Conclude has the goroutine that owns the call's run conclude the call. It does
	// not block. It returns false if this membership has ended.
	Conclude(c *Call) bool
	// Deliver hands an answer to a run, in the order of the calls of Deliver. told, if
	// it is not nil, is called once with the outcome, unless the membership ends first.
	// Deliver does not block. It returns false if this membership has ended.
	Deliver(run status.RunID, a Answer, told func(error)) bool
	// Done is closed when this membership has ended.
	Done() <-chan struct{}
}

// A Store keeps answers for runs of other engines, and answers that came too late.
type Store interface {
	Post(ctx context.Context, m store.Message) (store.MessageID, error)
	KeepLate(ctx context.Context, r store.LateReply) error
}

// An Observer gets the answers that came too late.
type Observer interface {
	LateReply(run status.RunID, attempt machine.AttemptID)
}

// Config holds the parts and settings of a Caller. All fields but Sealer are required.
type Config struct {
	Invoker  invoke.Invoker
	Store    Store
	Sealer   crypt.Sealer // nil = nothing is sensitive
	Secrets  func(ref string) (string, error)
	Observer Observer
	Logger   *slog.Logger
	Clock    *clock.Clock
	Outage   *outage.Outage
	Present  func() Member   // the present membership; nil = there is none
	Stopped  context.Context // ends when the engine stops at once; calls outlive an orderly stop

	Lease, MinScan, RetryHeld, RetryStore time.Duration // see engine.Options
	MaxValue                              int           // bytes of a reply
}
