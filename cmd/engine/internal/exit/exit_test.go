package exit

import (
	"testing"

	"github.com/saga-engine/engine/engine/machine/status"
)

func TestExitRun(t *testing.T) {
	for _, c := range []struct {
		state status.RunState
		left  int
		want  int
	}{
		{status.RunSucceeded, 0, OK},
		{status.RunSucceeded, 1, Human},
		{status.RunFailed, 0, Clean},
		{status.RunCompensated, 0, Clean},
		{status.RunCompensated, 2, Human},
		{status.RunCancelled, 0, Clean},
		{status.RunCancelled, 1, Human},
		{status.RunParked, 0, Human},
		{status.RunCompensationFailed, 0, Human},
		{status.RunRunning, 0, Open},
		{status.RunCompensating, 1, Open},
		{status.RunPaused, 0, Open},
		{status.RunQueued, 0, Open},
	} {
		if got := OfRun(c.state, c.left); got != c.want {
			t.Errorf("exitRun(%s, %d) = %d, want %d", c.state, c.left, got, c.want)
		}
	}
}
