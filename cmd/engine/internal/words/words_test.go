package words

import (
	"slices"
	"testing"
	"time"
)

// A quoted argument is the same argument for a shell.
func TestQuote(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"order-7", "order-7"},
		{"", "''"},
		{"two words", "'two words'"},
		{"it's", `'it'\''s'`},
		{`seat["B7"]`, `'seat["B7"]'`},
		{"$(rm -rf x)", "'$(rm -rf x)'"},
		{"a`b`", "'a`b`'"},
		{"~/x", "'~/x'"},
	} {
		if got := Quote(c.text); got != c.want {
			t.Errorf("Quote(%q) = %s, want %s", c.text, got, c.want)
		}
	}
}

func TestTexts(t *testing.T) {
	if got := Join(": ", "", "charge", "", "declined"); got != "charge: declined" {
		t.Errorf("Join = %q", got)
	}
	if got := Join(": ", "", ""); got != "" {
		t.Errorf("Join of nothing = %q", got)
	}
	if got := Short("0123456789"); got != "0123…" {
		t.Errorf("Short = %q", got)
	}
	if got := Short("012"); got != "012" {
		t.Errorf("Short of a short digest = %q", got)
	}
	if got := UpperFirst("élan vital"); got != "Élan vital" {
		t.Errorf("UpperFirst = %q", got)
	}
	at := time.Date(2026, 3, 14, 1, 2, 3, 4, time.FixedZone("", 3600))
	if got := Stamp(at); got != "2026-03-14 00:02:03Z" {
		t.Errorf("Stamp = %q, want UTC", got)
	}
	if got := Sorted(map[string]int{"b": 1, "a": 2, "c": 0}); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("Sorted = %q", got)
	}
}
