package limits

import (
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/quota"
)

const (
	// answerValid is how long an answer of the store allows the engine to start calls. This time
	// begins when the engine sends the question.
	answerValid = 10 * time.Second
	// renewEvery is the pause between two questions about slots, while the engine has slots. It is
	// also the longest time after which the engine learns that another engine waits for a slot.
	renewEvery = time.Second
	// retryEvery is the pause before the next question if the store had too few slots.
	retryEvery = 100 * time.Millisecond
	// backEvery is the shortest pause between two questions that give slots back.
	backEvery = 10 * time.Millisecond
	// idleFor is how long an engine without calls keeps a slot if no other engine waits for one. So
	// the engine need not ask for each step of a run that pauses between its steps.
	idleFor = 10 * time.Second
	// askFor is how long a question may take.
	askFor = 5 * time.Second
	// firstLinger is the first value of slots.linger. It is a little more than the default timeout.
	firstLinger = 40 * time.Second
)

// slots is the engine's part of max_concurrency of one agent.
type slots struct {
	used    int           // slots that calls have reserved
	peak    int           // largest value of the field `used` since the last question
	most    int           // smallest max_concurrency of the versions in use; 0 = none
	inRow   int           // slots in the engine's row, as far as the engine knows
	limit   int           // slots that calls may use; never more than the field `inRow`
	fair    int           // the engine's fair part; the engine gives the other slots back
	until   time.Time     // time until which calls may start
	cover   time.Time     // time at which the engine's row in the store expires
	linger  time.Duration // longest time that a call may take: firstLinger, or more if a call needs it
	granted time.Duration // value of the field `linger` in the last question that the store answered
	asked   time.Time     // time of the last question
	unmet   bool          // the last answer had too few slots, or the store did not answer
	// expected is the number of runs that will soon wait for a slot (see Prepare).
	expected int
	// Time of the first question at which no call needed a slot; zero = a call needed a slot at the
	// last question.
	idle   time.Time
	others bool // another engine waits for a slot
}

// free returns how many calls may start now.
func (s *slots) free(now time.Time) int {
	if !now.Before(s.until) {
		return 0
	}
	return max(0, s.limit-s.used)
}

func (s *slots) take(n int) {
	s.used += n
	s.peak = max(s.peak, s.used)
}

// release counts n calls as ended. It returns true if the engine should give slots back now.
func (s *slots) release(n int) bool {
	s.used = max(0, s.used-n)
	if s.limit > s.fair {
		s.limit = max(s.used, s.fair)
	}
	return s.others && s.limit < s.inRow
}

// covers reports whether a call that starts now certainly ends before the engine's row in the store
// expires. The parameter `left` is the longest time that the call may take. The store knows such a
// time, too: the engine named it in the last answered question. If `left` is longer, covers returns
// false. Then no call starts until the engine has named a longer time, and the store has answered.
func (s *slots) covers(now time.Time, left time.Duration) bool {
	if left > s.granted {
		s.linger = max(s.linger, left+left/8+time.Second)
		s.until = time.Time{}
		return false
	}
	return now.Before(s.until)
}

// askSlots asks the store for slots, or gives slots back, if a question is due. The result is the
// time until the next question. The error is store.ErrFenced, or the error of ctx.
func (l *Limits) askSlots(ctx context.Context, a *agent) (time.Duration, error) {
	end, err := l.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	waiting := l.waiting(a, func(spec *invoke.AgentSpec) bool { return spec.MaxConcurrency > 0 })
	l.mu.Lock()
	ask, wait := a.slotAskLocked(time.Now(), max(waiting, a.slots.expected))
	a.slots.expected = 0
	l.mu.Unlock()
	if wait > 0 {
		return wait, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	sent := time.Now()
	share, err := l.store.ShareSlots(ctx, l.cfg.Engine, ask)
	l.mu.Lock()
	s := &a.slots
	s.asked = time.Now()
	if err != nil {
		s.unmet = true
		l.mu.Unlock()
		if errors.Is(err, store.ErrFenced) {
			return 0, err
		}
		l.cfg.Outage.Failed(doing, err, "agent", a.name)
		return renewEvery, nil
	}
	s.inRow, s.fair, s.others, s.granted = share.Slots, share.Fair, share.Contended, ask.Linger
	s.until = sent.Add(answerValid)
	if cover := s.until.Add(ask.Linger); cover.After(s.cover) {
		s.cover = cover
	}
	if s.limit = share.Slots; s.fair < s.inRow {
		s.limit = min(s.inRow, max(s.used, s.fair))
	}
	s.unmet = share.Slots < ask.Want
	free := s.free(time.Now()) > 0
	l.mu.Unlock()
	l.cfg.Outage.Worked(doing, sent)
	if free {
		l.notify(a, l.cfg.Free)
	}
	return backEvery, nil
}

// slotAskLocked returns the next question about slots. If no question is due, the result `wait` is
// above 0: the time until a question may be due.
func (a *agent) slotAskLocked(now time.Time, waiting int) (ask quota.SlotAsk, wait time.Duration) {
	s := &a.slots
	s.most = a.mostLocked(now)
	if s.most == 0 && s.inRow == 0 {
		return ask, pause
	}
	want := max(s.peak, s.used+waiting)
	since := now.Sub(s.asked)
	due := pause
	if s.inRow > 0 || s.used > 0 {
		due = renewEvery
	}
	if waiting > 0 && s.free(now) == 0 {
		if due = 0; s.unmet {
			due = retryEvery
		}
	}
	if s.others && s.limit < s.inRow {
		due = min(due, backEvery)
	}
	if since < due {
		return ask, due - since
	}
	if due == pause {
		return ask, pause
	}
	if !now.Before(s.cover) { // the engine's row in the store has expired, so the engine has no slots
		s.inRow, s.limit = 0, 0
	}
	switch {
	case want > 0:
		s.idle = time.Time{}
	case s.idle.IsZero():
		s.idle = now
	}
	if want == 0 && (s.others || now.Sub(s.idle) >= idleFor) {
		s.limit = 0
	} else if want == 0 { // keep one slot, because a call may come soon
		want = min(1, s.limit)
	}
	s.peak = s.used
	return quota.SlotAsk{Limit: a.name, Most: max(1, s.most), Reserve: max(s.limit, s.used), Want: want, Keep: answerValid, Linger: s.linger}, 0
}

// mostLocked returns the smallest max_concurrency of all versions in use; 0 = there is none. It
// removes versions that were not used for a while: no call was made, and no run waited for a call.
func (a *agent) mostLocked(now time.Time) int {
	most := 0
	for key, u := range a.specs {
		switch {
		case u.used == 0 && now.Sub(u.last) > forget:
			delete(a.specs, key)
		case u.spec.MaxConcurrency > 0 && (most == 0 || u.spec.MaxConcurrency < most):
			most = u.spec.MaxConcurrency
		}
	}
	return most
}
