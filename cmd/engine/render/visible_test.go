package render_test

import (
	"testing"

	"github.com/saga-engine/engine/cmd/engine/render"
)

// A source file is shown with its lines, and with what could steer a terminal as
// escapes.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"a = 1\n\tb = \"ä\"\n": "a = 1\n\tb = \"ä\"\n",
		"a\r\nb\rc":            "a\r\nb\\u000dc",
		"\x1b[2J\x07\x00":      `\u001b[2J\u0007\u0000`,
		"\u202e\u2066\u061c":   `\u202e\u2066\u061c`,
		"\u009b\u2028\ufeff":   `\u009b\u2028\ufeff`,
		"\x9b\xff":             `\x9b\xff`,
		"\ufffd":               "\ufffd",
	} {
		if got := render.Visible(text); got != want {
			t.Errorf("Visible(%q) = %q, want %q", text, got, want)
		}
	}
}
