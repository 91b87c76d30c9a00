package story

import (
	"testing"
	"time"
)

func TestExplainWords(t *testing.T) {
	for text, want := range map[string]string{
		"o-1": "o-1", "team/x:1": "team/x:1", `a["k"]`: `'a["k"]'`, "it's": `'it'\''s'`, "": "''",
	} {
		if got := word(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		1400 * time.Millisecond: "1.4s", 100 * time.Second: "1m40s", 2*time.Hour + 29*time.Second: "2h0m",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}
