package words

import (
	"testing"
	"time"
)

// A flag takes every duration that a workflow may have, and zero only where zero has a meaning.
func TestSpan(t *testing.T) {
	const format, zero, long = `a duration is a string such as "500ms", "90s", "36h" or "2d"`, "a duration is greater than zero", "a duration is at most 100 years"
	for _, c := range []struct {
		text, refused string
		want          time.Duration
	}{
		{"90s", "", 90 * time.Second},
		{"1.5h", "", 90 * time.Minute},
		{"2d", "", 48 * time.Hour},
		{"1d12h", "", 36 * time.Hour},
		{"1h1d", "", 25 * time.Hour},
		{"0s", zero, 0},
		{"0d", zero, 0},
		{"0", format, 0},
		{"2", format, 0},
		{"-1h", format, 0},
		{"1d-25h", format, 0},
		{"d", format, 0},
		{"soon", format, 0},
		{"", format, 0},
		{"99999d", long, 0},
	} {
		t.Run(c.text, func(t *testing.T) {
			for _, orZero := range []bool{false, true} {
				got := time.Duration(-1)
				flag, want, refused := Span(&got), c.want, c.refused
				if orZero {
					flag = SpanOrZero(&got, -1)
					if c.text == "0" || refused == zero {
						refused = ""
					}
				}
				if refused != "" {
					want = -1 // what was there before
				}
				text := ""
				if err := flag.Set(c.text); err != nil {
					text = err.Error()
				}
				if text != refused || got != want {
					t.Errorf("zero allowed %t: %s, error %q; want %s, error %q", orZero, got, text, want, refused)
				}
			}
		})
	}
}

// The default of a flag is its value until it is given, and help shows it in units that Set reads.
func TestSpanDefault(t *testing.T) {
	var d time.Duration
	flag := SpanOrZero(&d, 36*time.Hour)
	if text := flag.String(); d != 36*time.Hour || text != "1d12h" || flag.Set(text) != nil || d != 36*time.Hour {
		t.Errorf("default %s, shown as %q", d, text)
	}
	if text := SpanOrZero(&d, 0).String(); text != "" {
		t.Errorf("no default is shown as %q", text)
	}
}
