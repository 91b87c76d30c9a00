package plan

import (
	"fmt"
	"math"
	"time"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
)

// A loop is the repeat block of a step, as far as it is known before a run.
type loop struct {
	until bool // the loop may end before its largest number of iterations
	// Largest number of iterations; 0 = there is no limit, or it is known only in a run.
	most int
	// Pause between two iterations; nil = there is none, or it is known only in a run.
	interval *time.Duration
	varies   bool // the pause is known only in a run
}

// loopOf returns the repeat block of a step; nil = the step has none.
func loopOf(s *dsl.Step, settings *dsl.Settings, scope *dsl.Scope) *loop {
	if s.Repeat == nil {
		return nil
	}
	l := &loop{until: s.Repeat.Until != nil}
	if settings != nil {
		l.most = settings.MaxIterations
	}
	if s.Repeat.Interval != nil {
		if pause, err := s.Repeat.Interval(scope); err == nil {
			l.interval = &pause
		} else {
			l.varies = true
		}
	}
	return l
}

// total returns how long all iterations take, with the pauses between them. The parameter `once` is
// the time of one iteration of all instances. The parameter `rounds` is the number of instances
// that run one after the other: the pauses of each of these instances count. The result is at most
// the longest time.Duration.
func (l *loop) total(once time.Duration, rounds int) time.Duration {
	total := float64(once) * float64(l.most)
	if l.interval != nil {
		total += float64(*l.interval) * float64(l.most-1) * float64(rounds)
	}
	if total >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(total)
}

// text returns the note about a loop for people.
func (l *loop) text() string {
	s := "repeated"
	switch {
	case l.until && l.most > 0:
		s += fmt.Sprintf(" until a condition, ≤%s", render.Count(l.most, "time"))
	case l.until:
		s += " until a condition"
	case l.most > 0:
		s += " " + render.Count(l.most, "time")
	}
	switch {
	case l.interval != nil:
		s += " every " + render.Span(*l.interval)
	case l.varies:
		s += ", pause known at run time"
	}
	return s
}

// json returns a loop for --json.
func (l *loop) json() map[string]any {
	m := map[string]any{"until": l.until}
	if l.most > 0 {
		m["max_iterations"] = l.most
	}
	if l.interval != nil {
		m["interval_s"] = l.interval.Seconds()
	}
	return m
}
