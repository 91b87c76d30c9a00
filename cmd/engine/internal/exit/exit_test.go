package exit

import (
	"testing"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
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

// A fact ends the command only if the run has ended or needs a human. A status that this
// version does not know needs a human.
func TestOfFact(t *testing.T) {
	for _, c := range []struct {
		name string
		fact story.Fact
		want int
	}{
		{"succeeded", story.Fact{Kind: story.FactRunFinished, Status: "succeeded"}, OK},
		{"effects were left", story.Fact{Kind: story.FactRunFinished, Status: "cancelled", LeftAsIs: 1}, Human},
		{"parked", story.Fact{Kind: story.FactRunParked, Status: "parked"}, Human},
		{"unknown status", story.Fact{Kind: story.FactRunFinished, Status: "dissolved"}, Human},
		{"an attempt", story.Fact{Kind: story.FactAttemptFinished, Status: "succeeded"}, -1},
	} {
		if got := OfFact(c.fact); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
