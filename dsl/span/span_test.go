package span

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
		got, err := Parse(text)
		if got != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}

// TestOffsets: a distance between two times may be zero or negative, and is exact.
func TestOffsets(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"2d": 48 * time.Hour, "-1d": -24 * time.Hour, "1d12h": 36 * time.Hour, "+90s": 90 * time.Second, "-1d12h": -36 * time.Hour, "-1.5h": -90 * time.Minute,
		"0": 0, "-0": 0, "0s": 0, "0.5ns": 0, "1h0.25s": time.Hour + 250*time.Millisecond, "2μs": 2 * time.Microsecond, ".5s": 500 * time.Millisecond, "0.29s": 290 * time.Millisecond, "0.1d": 8640 * time.Second, "0.123456789123456789123d": 10666666580266, "1.s": time.Second,
		"106751d23h47m16s854775807ns": 1<<63 - 1, "36500d1ns": 36500*24*time.Hour + 1,
	} {
		if got, err := Offset(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	const no, long = `a duration such as "90s", "36h" or "-2d" is required`, "a duration is at most 292 years"
	for text, want := range map[string]string{
		"": no, "-": no, "5": no, "--1d": no, "1d-1h": no, "1w": no, "d": no, ".s": no, "1.2.3s": no, "0.123456789123456789.5s": no, "1 d": no, "+-1s": no,
		"106752d": long, "106751d23h47m16s854775808ns": long, "99999999999999999999h": long, "100000d100000d": long, "9223372036854775807.9ns1ns": long,
	} {
		if got, err := Offset(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
}
