package link

import (
	"errors"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// priorityOf converts a value to the priority of a run.
func priorityOf(v cty.Value) (int, error) {
	if v.ContainsMarked() {
		return 0, errors.New("a priority is shown, so it cannot be computed from a sensitive value")
	}
	return value.WholeNumber(v, noun.MinPriority, noun.MaxPriority)
}

// roomOf converts a value to the limit of a concurrency block.
func roomOf(v cty.Value) (int, error) {
	if v.ContainsMarked() {
		return 0, errors.New("a limit is shown, so it cannot be computed from a sensitive value")
	}
	return value.WholeNumber(v, 1, noun.MaxConcurrency)
}

// concurrencyOf links the concurrency block of the workflow. It returns nil if there is none.
func concurrencyOf(l *workflowLinker) *noun.Concurrency {
	b := l.decl.Concurrency
	if b == nil {
		return nil
	}
	c := &noun.Concurrency{Reject: l.decl.RejectsWhenFull}
	c.Limit = exprFunc(l, b.Attr("limit"), "concurrency.limit", cty.Number, roomOf)
	if e := b.Attr("key"); e != nil {
		if l.check(e).ContainsMarked() {
			l.Errorf(e.Range, "Sensitive value in key", "concurrency.key is stored in clear and shown, so it cannot hold a sensitive value.")
		}
		c.Key = exprFunc(l, e, "concurrency.key", cty.String, keyOf)
	}
	return c
}
