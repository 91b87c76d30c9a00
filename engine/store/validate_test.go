package store

import (
	"testing"

	"github.com/saga-engine/engine/engine/machine/status"
)

// The states of runs are those that the machine has.
func TestRunStates(t *testing.T) {
	for _, s := range []status.RunState{1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13} {
		if !validRunState(s) {
			t.Errorf("%v is no state", s)
		}
	}
	for _, s := range []status.RunState{0, 8, 9, 14} {
		if validRunState(s) {
			t.Errorf("%v is a state", s)
		}
	}
}
