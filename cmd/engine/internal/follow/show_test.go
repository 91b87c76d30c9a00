package follow

import (
	"context"
	"testing"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
)

// oneRun is a store in which a run has a given state.
type oneRun struct {
	*memory.Store
	state status.RunState
}

func (s oneRun) Runs(context.Context, store.RunFilter) ([]store.RunRow, error) {
	return []store.RunRow{row(s.state)}, nil
}

func row(state status.RunState) store.RunRow {
	return store.RunRow{Head: store.Head{Name: "r", State: state}}
}

// TestAbandoned: a run without an engine is abandoned only if it is still open when no
// engine is found. An apply ends right after its run, so the state that the command read
// before may be old.
func TestAbandoned(t *testing.T) {
	for name, tc := range map[string]struct {
		read, now status.RunState
		engines   int
		want      bool
	}{
		"open":                     {status.RunRunning, status.RunRunning, 0, true},
		"open, an engine is alive": {status.RunRunning, status.RunRunning, 1, false},
		"ended meanwhile":          {status.RunRunning, status.RunSucceeded, 0, false},
		"parked meanwhile":         {status.RunRunning, status.RunParked, 0, false},
		"ended before":             {status.RunSucceeded, status.RunSucceeded, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memory.New(memory.Options{})
			for range tc.engines {
				if _, err := mem.Join(t.Context(), "here", time.Hour, 1); err != nil {
					t.Fatal(err)
				}
			}
			s := &session.Session{Store: store.Complete(oneRun{mem, tc.now})}
			if got := abandoned(t.Context(), s, row(tc.read)); got != tc.want {
				t.Errorf("abandoned=%t, want %t", got, tc.want)
			}
		})
	}
}
