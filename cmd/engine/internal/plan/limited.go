package plan

import (
	"fmt"

	"github.com/saga-engine/engine/dsl"
)

// The type limited describes the concurrency block of a group, or of the workflow of a child run,
// as far as it is known before a run.
type limited struct {
	limit int // largest number of open runs; 0 = it is known only in a run
	keyed bool
	// If `reject` is true, the step fails if the limit is reached. If it is false, the child run of
	// the step waits in line.
	reject bool
}

// limitedOf returns the limit of the child runs of a step; nil = the step starts no child run, or
// there is no limit.
func limitedOf(s *dsl.Step) *limited {
	if s.Child == nil || s.Child.Workflow.Concurrency == nil {
		return nil
	}
	c := s.Child.Workflow.Concurrency
	l := &limited{keyed: c.Key != nil, reject: c.Reject}
	// This scope has no values, because the values of a child run are known only in a run.
	if n, err := c.Limit(&dsl.Scope{}); err == nil {
		l.limit = n
	}
	return l
}

// text returns the note about a limit for people.
func (l *limited) text() string {
	s := "limited"
	if l.limit > 0 {
		s = fmt.Sprintf("≤%d open", l.limit)
	}
	if l.keyed {
		s += " per key"
	}
	if l.reject {
		return s + " or it fails"
	}
	return s
}

// json returns the limit in the form in which the output of --json shows it.
func (l *limited) json() map[string]any {
	m := map[string]any{"keyed": l.keyed, "when_full": "queue"}
	if l.reject {
		m["when_full"] = "reject"
	}
	if l.limit > 0 {
		m["limit"] = l.limit
	}
	return m
}
