package line

import (
	"testing"
	"time"
)

// S71: a run with a higher priority comes first, and no run is overtaken without end: a run that
// was accepted the distance of the priorities times PerPoint later comes later.
func TestS71RankBoundsHowLongARunIsOvertaken(t *testing.T) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for p := range 101 {
		for q := range 101 {
			bound := time.Duration(max(q-p, 0)) * PerPoint
			for _, after := range []time.Duration{0, time.Microsecond, bound - time.Microsecond, bound, bound + time.Microsecond, time.Hour} {
				if after < 0 {
					continue
				}
				first, second := Line{Lift: int32(p - DefaultPriority)}.Rank(at), Line{Lift: int32(q - DefaultPriority)}.Rank(at.Add(after))
				overtaken := second.Before(first)
				if want := q > p && after < bound; overtaken != want {
					t.Fatalf("priority %d, accepted %s after a run with %d: overtakes %v, want %v", q, after, p, overtaken, want)
				}
			}
		}
	}
	if most := 100 * PerPoint; most != 10*time.Minute {
		t.Errorf("the documented bound is 10 minutes, not %s", most)
	}
}
