package typed

import (
	"math"
	"testing"
	"time"
)

// An input may have days, as every duration in a workflow.
func TestDurationWithDays(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "-1h30m": -90 * time.Minute, "0s": 0, "0": 0,
		"2d": 2 * day, "1.5d": 36 * time.Hour, "1d12h": 36 * time.Hour, "-1d12h": -36 * time.Hour, "+1d": day, "0d": 0, "-0d1s": -time.Second,
		"0d1s": time.Second, "106751d": 106751 * day, "106751d23h47m16s854775807ns": math.MaxInt64,
	} {
		if got, ok := parseDuration(text); !ok || got != want {
			t.Errorf("%q: %s, %t; want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "d", "5", "1h2d", "1d-2h", "1d+2h", "1d2d", "d1h", "1 d", "106752d", "106751d23h47m16s854775808ns", "-106751d23h47m17s", "1hd", "soon"} {
		if got, ok := parseDuration(text); ok {
			t.Errorf("%q: %s, want none", text, got)
		}
	}
}
