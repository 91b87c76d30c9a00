package call

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// Limits of the late answers that wait to be stored. Beyond them answers are only counted,
// and the number of answers that were not kept is logged.
const (
	maxLateWaiting = 1000
	maxLateBytes   = 16 << 20
	lateTries      = 6
)

// A lateAnswer is an answer that came too late to count, not yet stored.
type lateAnswer struct {
	run     status.RunID
	step    string
	attempt machine.AttemptID
	event   machine.Event
	at      time.Time
	size    int
}

// KeepLate counts an answer that came too late to count, and keeps it as
// evidence (S28). It changes no run and never blocks: the answer is stored in the
// background. KeepLate ignores events that are no answers: calls that were not sent, and
// signs of life. step is the step's name as people see it, at the store time when the
// answer arrived.
func (w *Caller) KeepLate(run status.RunID, step string, attempt machine.AttemptID, event machine.Event, at time.Time) {
	if _, _, ok := OutcomeOf(event); !ok {
		return
	}
	w.cfg.Observer.LateReply(run, attempt)
	w.evidence.add(lateAnswer{run: run, step: step, attempt: attempt, event: event, at: at, size: journal.EventSize(event)})
}

// OutcomeOf returns the outcome and the code of an answer; ok is false for an event that is
// no answer.
func OutcomeOf(e machine.Event) (outcome, code string, ok bool) {
	switch e := e.(type) {
	case machine.AttemptOK:
		return "ok", "", true
	case machine.AttemptFailed:
		return "failed", e.Code, true
	case machine.AttemptUnknown:
		return "unknown", e.Code, true
	case machine.AttemptNotDone:
		return "not_done", "", true
	}
	return "", "", false
}

// evidence stores late answers one after the other. Its goroutine lives only while answers
// wait.
type evidence struct {
	cfg *Config

	mu      sync.Mutex // protects following fields
	waiting []lateAnswer
	bytes   int
	dropped int
	failing bool          // the last one could not be stored
	idle    chan struct{} // closed when nothing waits any more; nil = nothing waits
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
	log := ev.cfg.Logger
	for {
		ev.mu.Lock()
		if dropped := ev.dropped; dropped > 0 {
			ev.dropped = 0
			ev.mu.Unlock()
			log.Warn("late answers were not kept: too many at once", "count", dropped)
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
			log.Error("a late answer could not be kept", "run", naming.RunName(l.run), "step", l.step, "error", err)
		}
		ev.mu.Lock()
		ev.failing = err != nil
		ev.mu.Unlock()
	}
}

// store stores one answer. It tries a few times, or once if the last answer could not be
// stored. Losing a late answer changes no run, and other answers wait.
func (ev *evidence) store(l lateAnswer, failing bool) error {
	data, err := journal.EncodeMessage(ev.cfg.Sealer, l.run, l.event)
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
		err := ev.cfg.Store.KeepLate(ev.cfg.Stopped, row)
		if err == nil || errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if tries--; tries == 0 || ev.cfg.Stopped.Err() != nil {
			return fmt.Errorf("keep a late answer: %w", err)
		}
		if err := wait.For(ev.cfg.Stopped, pause); err != nil {
			return err
		}
		pause = min(4*pause, ev.cfg.RetryStore)
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
