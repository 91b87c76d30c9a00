package plan

import (
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
)

// times holds how long a run may take.
type times struct {
	typical   time.Duration
	known     bool // at least one action has an estimate
	worst     time.Duration
	unbounded bool
	passed    bool // the deadline is a point in time that has passed already
	runtime   bool // some limits are known only in a run
	deadline  dsl.Limit
	// compensation is the deadline of all undo work; zero = it is known only in a run.
	compensation dsl.Limit
}

// estimate computes how long the slowest path through the steps takes, and the deadlines of the
// run.
func estimate(wf *dsl.Workflow, steps []step, scope *dsl.Scope) times {
	var t times
	typical, worst := make([]time.Duration, len(wf.Steps)), make([]time.Duration, len(wf.Steps))
	// The steps are in the order of their waves, so a step comes after the steps for which it
	// waits.
	for _, p := range steps {
		var before, beforeWorst time.Duration
		for _, i := range p.step.After {
			before, beforeWorst = max(before, typical[i]), max(beforeWorst, worst[i])
		}
		rounds := time.Duration(p.rounds())
		usual := p.step.Do.Typical
		if p.child != nil {
			usual = p.child.typical
			t.runtime = t.runtime || p.child.runtime
		}
		typical[p.step.Index] = before + usual*rounds
		t.known = t.known || usual > 0
		w, bounded := p.worst(scope)
		t.unbounded = t.unbounded || !bounded
		t.runtime = t.runtime || p.settings == nil || p.each < 0
		worst[p.step.Index] = beforeWorst + w
		t.typical, t.worst = max(t.typical, typical[p.step.Index]), max(t.worst, worst[p.step.Index])
	}
	if wf.Deadline != nil {
		if l, err := wf.Deadline(scope); err == nil {
			t.deadline = l
			t.passed = !l.At.IsZero() && !l.At.After(scope.Run.StartedAt)
		}
	}
	t.compensation = dsl.Limit{After: machine.DefaultCompensation}
	if wf.CompensationDeadline != nil {
		// The result is zero if the deadline depends on values that only a run has.
		t.compensation, _ = wf.CompensationDeadline(scope)
	}
	return t
}

// rounds returns how many instances of the step run one after the other. It assumes that always
// max_parallel instances run at the same time. If max_parallel or the number of instances is not
// known, or if max_parallel is not set, it assumes that all instances run at the same time.
func (p *step) rounds() int {
	if !p.forEach || p.each < 0 || p.settings == nil || p.settings.MaxParallel <= 0 {
		return min(1, max(p.each, -p.each))
	}
	return (p.each + p.settings.MaxParallel - 1) / p.settings.MaxParallel
}

// worst returns the longest time that a step can take, with all its instances and iterations. It
// returns false if there is no limit. The time is 0 if the settings, or the end of a timer, are
// known only in a run.
func (p *step) worst(scope *dsl.Scope) (time.Duration, bool) {
	once, bounded := p.once(scope)
	if p.loop == nil || p.settings == nil || !bounded {
		return once, bounded
	}
	limit := p.settings.Deadline.After
	if p.loop.most == 0 {
		return limit, limit > 0
	}
	total := p.loop.total(once, p.rounds())
	if limit > 0 && total > limit {
		return limit, true
	}
	return total, true
}

// once returns the longest time that one iteration of a step can take, for all instances of the
// step together. It returns false if there is no limit. The time is 0 if the settings, or the end
// of a timer, are known only in a run.
func (p *step) once(scope *dsl.Scope) (time.Duration, bool) {
	s := p.settings
	if s == nil {
		// The time is known only in a run. The function `estimate` finds such a step, and sets the
		// field times.runtime.
		return 0, true
	}
	limit := s.Deadline.After
	switch {
	case p.step.Value != nil:
		return 0, true
	case p.step.Wait != nil:
		return limit, limit > 0
	case p.step.Until != nil:
		return timerLength(p.step, scope), true
	case p.child != nil:
		return p.worstChild(limit)
	}
	if s.Retry.MaxAttempts == dsl.Unbounded {
		return limit, limit > 0
	}
	round := time.Duration(s.Retry.MaxAttempts) * s.Timeout
	for n := 1; n < s.Retry.MaxAttempts; n++ {
		round += pause(s.Retry, n)
	}
	total := round
	if s.Retry.OnExhausted == dsl.ExhaustedCoolDown {
		total += time.Duration(s.Retry.CoolDowns) * (s.Retry.CoolDown + round)
	}
	total *= time.Duration(p.rounds())
	if limit > 0 && total > limit {
		return limit, true
	}
	return total, true
}

// worstChild returns the longest time that the child runs of a step can take together. It returns
// false if there is no limit. The parameter `limit` is the deadline of the step; 0 = none.
func (p *step) worstChild(limit time.Duration) (time.Duration, bool) {
	one, bounded := p.child.worst, !p.child.unbounded
	if d := p.child.deadline.After; d > 0 && (!bounded || one > d) {
		one, bounded = d, true
	}
	if l := limitedOf(p.step); l != nil && !l.reject {
		bounded = false // it is not known how long a child run waits in line
	}
	total := one * time.Duration(p.rounds())
	if limit > 0 && (!bounded || total > limit) {
		return limit, true
	}
	return total, bounded
}

// timerLength returns how long a timer takes. It returns 0 if the length is known only in a run, or
// if the end of the timer has passed already.
func timerLength(s *dsl.Step, scope *dsl.Scope) time.Duration {
	l, err := s.Until(scope)
	switch {
	case err != nil:
		return 0
	case !l.At.IsZero():
		return max(0, l.At.Sub(scope.Run.StartedAt))
	}
	return l.After
}

// pause returns the longest pause after the n-th attempt.
func pause(r dsl.Retry, n int) time.Duration {
	d := float64(r.InitialInterval)
	switch r.Strategy {
	case dsl.Linear:
		d *= float64(n)
	case dsl.Exponential:
		for range n - 1 {
			if d *= r.Multiplier; d > float64(r.MaxInterval) {
				break
			}
		}
	}
	if r.MaxInterval > 0 && d > float64(r.MaxInterval) {
		return r.MaxInterval
	}
	return time.Duration(d)
}

func (t times) text() string {
	s := "Time: "
	if t.known {
		s += "typical " + render.Span(t.typical.Round(100*time.Millisecond)) + " (agents' estimates), "
	}
	switch {
	case t.unbounded:
		s += "worst unbounded"
	case t.runtime:
		s += "worst known at run time"
	default:
		s += "worst " + render.Span(t.worst.Round(time.Second))
	}
	switch {
	case t.deadline.After > 0:
		s += ", deadline " + render.Span(t.deadline.After)
	case t.passed:
		s += ", deadline " + words.Stamp(t.deadline.At) + " has passed"
	case !t.deadline.At.IsZero():
		s += ", deadline " + words.Stamp(t.deadline.At)
	default:
		s += ", no deadline"
	}
	return s + "."
}

func (t times) json() map[string]any {
	m := map[string]any{}
	if t.known {
		m["typical_s"] = t.typical.Seconds()
	}
	if !t.unbounded && !t.runtime {
		m["worst_s"] = t.worst.Seconds()
	}
	switch {
	case t.compensation.After > 0:
		m["compensation_deadline_s"] = t.compensation.After.Seconds()
	case !t.compensation.At.IsZero():
		m["compensation_deadline"] = t.compensation.At.UTC()
	}
	switch {
	case t.deadline.After > 0:
		m["deadline_s"] = t.deadline.After.Seconds()
	case !t.deadline.At.IsZero():
		m["deadline"] = t.deadline.At.UTC()
	}
	return m
}
