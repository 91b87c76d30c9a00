package storekit

import (
	"testing"

	"github.com/saga-engine/engine/engine/machine/status"
)

// S53: final states absorb, and no run returns to the queue.
func TestCanBecome(t *testing.T) {
	states := []status.RunState{1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13}
	for _, from := range states {
		for _, to := range states {
			undone := to == status.RunCompensating || to == status.RunPaused || to == status.RunCompensationFailed || to == status.RunFailed || to == status.RunCompensated
			want := from == to || from == status.RunSucceeded && undone || !from.Final() && to != status.RunQueued
			if got := CanBecome(from, to); got != want {
				t.Errorf("%v to %v: %v, want %v", from, to, got, want)
			}
		}
	}
}

// I11: only a run that left nothing behind frees its key.
func TestHoldsKey(t *testing.T) {
	for s, want := range map[status.RunState]bool{
		status.RunQueued: true, status.RunRunning: true, status.RunWaiting: true, status.RunPaused: true, status.RunCompensating: true,
		status.RunParked: true, status.RunCompensationFailed: true, status.RunSucceeded: true,
		status.RunFailed: false, status.RunCompensated: false, status.RunCancelled: false,
	} {
		if got := HoldsKey(s); got != want {
			t.Errorf("%v holds its key: %v, want %v", s, got, want)
		}
	}
}
