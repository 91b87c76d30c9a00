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

// Limits for late answers that wait to be stored. Above a limit, further answers are
// dropped, and the number of dropped answers is logged.
const (
	maxLateWaiting = 1000     // largest number of late answers that wait
	maxLateBytes   = 16 << 20 // largest size of all late answers that wait, in bytes
	lateTries      = 6        // how often the engine tries to store one late answer
)

// A lateAnswer is an answer that was too late to count and is not stored yet.
type lateAnswer struct {
	run     status.RunID
	step    string
	attempt machine.AttemptID
	event   machine.Event
	at      time.Time
	size    int
}

// evidence stores late answers one after the other. Its goroutine runs only while answers
// wait.
type evidence struct {
	to      Store
	sealer  crypt.Sealer // nil = no data is encrypted
	logger  *slog.Logger
	stopped context.Context // ends when the engine stops at once
	most    time.Duration   // the longest pause between two tries

	mu      sync.Mutex // protects following fields
	waiting []lateAnswer
	bytes   int
	dropped int
	failing bool          // the engine could not store the last answer
	idle    chan struct{} // closed when no answer waits any more; nil = no answer waits
}

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

// work stores the waiting answers.
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

// store stores one answer. It tries a few times, or only once if the last answer could not
// be stored. Losing a late answer changes no run, and other answers wait.
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

// wait returns when all answers are stored, or after limit.
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

// A Store keeps answers for runs of other engines, and answers that were too late.
type Store interface {
	Post(ctx context.Context, m store.Message) (store.MessageID, error)
	KeepLate(ctx context.Context, r store.LateReply) error
}
