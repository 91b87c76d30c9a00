package call

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// These constants are limits for late replies that are not stored yet. If a new late reply would
// exceed maxLateWaiting or maxLateBytes, the engine drops the new late reply. The engine logs how
// many late replies it has dropped.
const (
	maxLateWaiting = 1000     // largest number of late replies that are not stored yet
	maxLateBytes   = 16 << 20 // largest size of all late replies that are not stored yet, in bytes
	lateTries      = 6        // how many times the engine tries to store one late reply
)

// A lateAnswer is a late reply that is not stored yet.
type lateAnswer struct {
	run     status.RunID
	step    string // name of the step as people see it
	attempt machine.AttemptID
	event   machine.Event
	at      time.Time // store time at which the answer arrived
	size    int       // size of the event, in bytes
}

// evidence stores late replies one after the other. A goroutine does this, and runs only while
// late replies wait.
type evidence struct {
	to      Store
	sealer  crypt.Sealer // encrypts messages and late replies; nil = nothing is encrypted
	logger  *slog.Logger
	stopped context.Context // ends when the engine stops without waiting for open work
	most    time.Duration   // longest pause between two tries to store a late reply

	mu      sync.Mutex    // protects the fields below
	waiting []lateAnswer  // late replies that wait to be stored, oldest first
	bytes   int           // size of all events in the field `waiting`, in bytes
	dropped int           // late replies that were dropped since the last message in the log
	failing bool          // the engine could not store the last late reply
	idle    chan struct{} // closed when the goroutine ends; nil = no goroutine runs
}

// add lets the goroutine store a late reply. It drops the late reply if a limit is reached.
func (ev *evidence) add(l lateAnswer) {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	if len(ev.waiting) >= maxLateWaiting || ev.bytes+l.size > maxLateBytes {
		ev.dropped++
		return
	}
	ev.waiting = append(ev.waiting, l)
	ev.bytes += l.size
	if ev.idle == nil {
		ev.idle = make(chan struct{})
		go ev.work(ev.idle)
	}
}

// work stores late replies until none waits any more. Then it closes the channel `idle`.
func (ev *evidence) work(idle chan struct{}) {
	for {
		ev.mu.Lock()
		if dropped := ev.dropped; dropped > 0 {
			ev.dropped = 0
			ev.mu.Unlock()
			ev.logger.Warn("late answers were not kept: too many at once", "count", dropped)
			continue
		}
		if len(ev.waiting) == 0 {
			ev.waiting, ev.idle = nil, nil
			close(idle)
			ev.mu.Unlock()
			return
		}
		l := ev.waiting[0]
		ev.waiting[0] = lateAnswer{}
		ev.waiting = ev.waiting[1:]
		ev.bytes -= l.size
		failed := ev.failing
		ev.mu.Unlock()

		err := ev.store(l, failed)
		if err != nil && !failed && !errors.Is(err, context.Canceled) {
			ev.logger.Error("a late answer could not be kept", "run", naming.RunName(l.run), "step", l.step, "error", err)
		}
		ev.mu.Lock()
		ev.failing = err != nil
		ev.mu.Unlock()
	}
}

// store stores one late reply, in at most lateTries tries. If the parameter `failing` is true, the
// previous late reply could not be stored. Then store tries only once, because more late replies
// wait. If the run does not exist any more, store returns nil. If store returns an error, the late
// reply is lost; this changes no run.
func (ev *evidence) store(l lateAnswer, failing bool) error {
	data, err := journal.EncodeMessage(ev.sealer, l.run, l.event)
	if err != nil {
		return err
	}
	outcome, code, _ := OutcomeOf(l.event)
	row := store.LateReply{
		Run: l.run, Node: int32(l.attempt.Node), Call: int32(l.attempt.Call), Step: naming.CleanText(l.step),
		At: l.at, Outcome: outcome, Code: naming.CleanText(code), Data: data,
	}
	tries := lateTries
	if failing {
		tries = 1
	}
	pause := 20 * time.Millisecond
	for {
		err := ev.to.KeepLate(ev.stopped, row)
		if err == nil || errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if tries--; tries == 0 || ev.stopped.Err() != nil {
			return fmt.Errorf("keep a late answer: %w", err)
		}
		if err := wait.For(ev.stopped, pause); err != nil {
			return err
		}
		pause = min(4*pause, ev.most)
	}
}

// wait returns when no late reply waits any more, or when ctx ends. It waits at most for the
// duration in the parameter `limit`.
func (ev *evidence) wait(ctx context.Context, limit time.Duration) {
	ev.mu.Lock()
	idle := ev.idle
	ev.mu.Unlock()
	if idle == nil {
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// A Store has those methods of the store that a Caller uses.
type Store interface {
	// Post puts an answer or a checkpoint into the inbox of a run.
	Post(ctx context.Context, m store.Message) (store.MessageID, error)
	// KeepLate stores a late reply.
	KeepLate(ctx context.Context, r store.LateReply) error
}
