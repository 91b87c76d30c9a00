package plan

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// A plan says how often a step is repeated, and the worst time counts all iterations and the
// pauses between them.
func TestLoopInAPlan(t *testing.T) {
	every := func(d time.Duration, err error) func(*dsl.Scope) (time.Duration, error) {
		return func(*dsl.Scope) (time.Duration, error) { return d, err }
	}
	until := func(*dsl.Scope) (bool, error) { return true, nil }
	for _, c := range []struct {
		name     string
		repeat   *dsl.Repeat
		most     int
		deadline time.Duration
		text     string
		worst    time.Duration
		bounded  bool
	}{
		{"no loop", nil, 0, 0, "", 2 * time.Second, true},
		{"a number of times", &dsl.Repeat{}, 3, 0, "repeated 3 times", 6 * time.Second, true},
		{"with pauses", &dsl.Repeat{Until: until, Interval: every(10*time.Second, nil)}, 3, 0, "repeated until a condition, ≤3 times every 10s", 26 * time.Second, true},
		{"no largest number", &dsl.Repeat{Until: until}, 0, 0, "repeated until a condition", 0, false},
		{"a deadline", &dsl.Repeat{Until: until}, 0, time.Minute, "repeated until a condition", time.Minute, true},
		{"a deadline before the end", &dsl.Repeat{}, 100, time.Minute, "repeated 100 times", time.Minute, true},
		{"a pause that depends on outputs", &dsl.Repeat{Interval: every(0, errors.New("unknown"))}, 2, 0, "repeated 2 times, pause known at run time", 4 * time.Second, true},
		{"for centuries", &dsl.Repeat{Interval: every(1<<62, nil)}, 100, 0, "", math.MaxInt64, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &dsl.Step{Name: "a", Do: &dsl.Action{Agent: "mock", Name: "do"}, Repeat: c.repeat}
			p := &step{step: s, each: 1, settings: &dsl.Settings{MaxIterations: c.most, Timeout: 2 * time.Second, Retry: dsl.Retry{MaxAttempts: 1}}}
			p.settings.Deadline.After = c.deadline
			p.loop = loopOf(s, p.settings, &dsl.Scope{})
			if worst, bounded := p.worst(&dsl.Scope{}); worst != c.worst || bounded != c.bounded {
				t.Errorf("worst = %s, %t, want %s, %t", worst, bounded, c.worst, c.bounded)
			}
			if p.loop != nil && c.text != "" && p.loop.text() != c.text {
				t.Errorf("note = %q, want %q", p.loop.text(), c.text)
			}
		})
	}
}
