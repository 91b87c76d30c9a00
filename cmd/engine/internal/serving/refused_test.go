package serving

import (
	"context"
	"errors"
	"testing"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/intake"
	"github.com/saga-engine/engine/engine/store/memory"
)

// A desk is the role intake.Store; the metrics call only RefusedSubmissions.
type desk = intake.Store

// A refusing store has refused submissions, or does not answer.
type refusing struct {
	store.Store
	desk
	count int
	err   error
}

// RefusedSubmissions is a method of intake.Store.
func (r refusing) RefusedSubmissions(context.Context) (intake.Refusals, error) {
	return intake.Refusals{Count: r.count}, r.err
}

// The metric of refused submissions is missing, and not 0, if their number is not known.
func TestRefusedCount(t *testing.T) {
	mem := memory.New(memory.Options{})
	for name, c := range map[string]struct {
		store store.Store
		want  int
	}{
		"three are refused":                      {refusing{Store: mem, count: 3}, 3},
		"the store does not answer":              {refusing{Store: mem, err: errors.New("down")}, -1},
		"the store has no submissions like that": {mem, -1},
	} {
		if got := refusedCount(t.Context(), store.Complete(c.store)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
