package storekit

import (
	"testing"

	"github.com/saga-engine/engine/engine/machine"
)

// S53: final states absorb, and no run returns to the queue.
func TestCanBecome(t *testing.T) {
	states := []machine.RunState{1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13}
	for _, from := range states {
		for _, to := range states {
			want := from == to || from == machine.RunSucceeded && to == machine.RunCompensating || !from.Final() && to != machine.RunQueued
			if got := CanBecome(from, to); got != want {
				t.Errorf("%v to %v: %v, want %v", from, to, got, want)
			}
		}
	}
}

// I11: only a run that left nothing behind frees its key.
func TestHoldsKey(t *testing.T) {
	for s, want := range map[machine.RunState]bool{
		machine.RunQueued: true, machine.RunRunning: true, machine.RunWaiting: true, machine.RunPaused: true, machine.RunCompensating: true,
		machine.RunParked: true, machine.RunCompensationFailed: true, machine.RunSucceeded: true,
		machine.RunFailed: false, machine.RunCompensated: false, machine.RunCancelled: false,
	} {
		if got := HoldsKey(s); got != want {
			t.Errorf("%v holds its key: %v, want %v", s, got, want)
		}
	}
}
