package link

import (
	"errors"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/dsl/span"
)

// errLimit says that a text is not a deadline, and shows how to write a deadline.
var errLimit = errors.New(`a deadline is a duration such as "90s", "36h" or "2d", or a time such as "2030-01-31T18:00:00Z"`)

// parseLimit parses a deadline: a duration such as "36h", or a time as in RFC 3339.
func parseLimit(s string) (noun.Limit, error) {
	if strings.Contains(s, "T") && strings.Contains(s, "-") {
		at, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return noun.Limit{}, errInstant
		}
		return noun.Limit{At: at}, nil
	}
	after, err := span.Parse(s)
	if errors.Is(err, span.ErrFormat) {
		err = errLimit
	}
	return noun.Limit{After: after}, err
}

// limitOf converts a value to a deadline. It returns an error if the value is not a deadline.
func limitOf(v cty.Value) (noun.Limit, error) {
	s, err := value.StringOf(v)
	if err != nil {
		return noun.Limit{}, errLimit
	}
	return parseLimit(s)
}

// errInstant says that a text is not a point in time, and shows how to write one.
var errInstant = errors.New(`a point in time is written as in RFC 3339, such as "2030-01-31T18:00:00Z"`)

// timerFits warns if the timer of the step s can never end, because a deadline passes earlier. It
// compares only durations that are known before a run: the duration of the timer, and the deadlines
// of the step, of the groups that contain the step, and of the workflow. The deadline of a workflow
// counts from the start of the run, which is before the timer starts. So if the timer is longer
// than this deadline, the deadline passes first.
func (l undoLinker) timerFits(s *linkedStep) {
	if s.timer == 0 {
		return
	}
	warn := func(e *eval.Expr, what string) bool {
		limit := spanOf(e)
		if limit == 0 || limit >= s.timer {
			return false
		}
		l.Warnf(s.decl.Timer.Attr("duration").Range, "Timer is longer than the deadline",
			"The timer takes %s, and the deadline of %s is %s, so step %q can never succeed.",
			span.Text(s.timer), what, span.Text(limit), s.decl.Name)
		return true
	}
	if warn(s.decl.Attr("deadline"), "the step") {
		return
	}
	for w := l.decl; w != nil; w = w.Outer {
		if w.Holder != nil && warn(w.Holder.Attr("deadline"), "the group around it") || warn(w.Deadline, "the workflow") {
			return
		}
	}
}

// spanOf returns the duration that an expression states. It returns 0 if there is no expression, or
// if its value is not known before a run, or is no duration.
func spanOf(e *eval.Expr) time.Duration {
	if e == nil || e.Compiled == nil {
		return 0
	}
	return constantSpan(e.Bad, e.Compiled.Constant)
}
