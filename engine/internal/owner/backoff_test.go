package owner

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// A message that comes while a run is looked at must not leave it in the backoff set:
// what was seen of it is out of date.
func TestShelfRestsOnlyWhatWasNotSpokenTo(t *testing.T) {
	now := time.Unix(0, 0)
	for _, c := range []struct {
		name  string
		hints bool // a hint comes between looking and resting
		want  bool
	}{
		{"nobody spoke", false, true},
		{"a message came meanwhile", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, run := &backoffSet{}, status.RunID(1)
			seen := s.Woken()
			if c.hints {
				s.WakeResting()
			}
			s.Rest(run, now.Add(time.Hour), seen)
			if got := s.Has(run, now); got != c.want {
				t.Errorf("on the shelf: %t, want %t", got, c.want)
			}
		})
	}
}
