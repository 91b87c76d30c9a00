package value

import (
	"testing"
	"time"
)

// TestDurations: the written forms of durations.
func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "36h": 36 * time.Hour, "2d": 48 * time.Hour, "1h30m": 90 * time.Minute,
		"500ms": 500 * time.Millisecond, "1.5h": 90 * time.Minute, "1d12h": 36 * time.Hour,
		"": 0, "5": 0, "s": 0, "-1s": 0, "0s": 0, "1 h": 0, "1w": 0, "1e9s": 0, "999999999h": 0, "..s": 0,
	} {
		got, err := ParseSpan(text)
		if got != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}
