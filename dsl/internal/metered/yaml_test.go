package metered

import (
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// The limits of YAML hold exactly, and count brackets that a text may hide.
func TestYAMLLimits(t *testing.T) {
	brackets := func(n int, open string) string { return strings.Repeat(open, n) }
	for _, c := range []struct {
		rule, text string
		ok         bool
	}{
		{"200 columns", strings.Repeat(" ", 200) + "a", true},
		{"201 columns", strings.Repeat(" ", 201) + "a", false},
		{"lists in lists, in one line", strings.Repeat("- ", 101) + "a", false},
		{"a byte order mark before the indentation", "\ufeff" + strings.Repeat(" ", 198) + "a", false},
		{"an indentation after each kind of line break", "a\u2028" + strings.Repeat(" ", 201) + "b", false},
		{"after a carriage return", "a\r" + strings.Repeat(" ", 201) + "b", false},
		{"after a next line", "a\u0085" + strings.Repeat(" ", 201) + "b", false},
		{"1,000 brackets over many lines", strings.Repeat("[\n", 1000), true},
		{"1,001 brackets over many lines", strings.Repeat("[\n", 1001), false},
		{"braces count, too", strings.Repeat("{\n", 1001), false},
		{"closed brackets do not count", strings.Repeat("[]\n", 2000), true},
		{"closing brackets first give no credit", strings.Repeat("]", 500) + "\n" + strings.Repeat("]][\n", 1001), false},
		{"a bracket behind a comment mark", strings.Repeat("a # [\n", 1001), false},
		{"a closing bracket in a comment closes nothing", strings.Repeat("[ # ]\n", 1001), false},
		{"a closing bracket in a text closes nothing", strings.Repeat("[ ']'\n", 1001), false},
		{"200 levels in one line", "a: " + brackets(value.MaxDepth, "[") + brackets(value.MaxDepth, "]"), true},
		{"deep and closed in one line, many times", strings.Repeat("a: "+brackets(300, "[")+brackets(300, "]")+"\n", 4), false},
		{"JSON has its own limit", brackets(value.MaxDepth, "[") + brackets(value.MaxDepth, "]"), true},
		{"JSON that is deeper", brackets(value.MaxDepth+1, "[") + brackets(value.MaxDepth+1, "]"), false},
		{"JSON with many brackets in texts", `["` + brackets(5000, "[") + `"]`, true},
		{"a million bytes", strings.Repeat("a", maxYAMLExpanded), true},
		{"a byte more", strings.Repeat("a", maxYAMLExpanded+1), false},
	} {
		if err := CheckYAML(c.text); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.rule, err)
		}
	}
}

// The size of a text with aliases is at least its size with each alias replaced.
func TestYAMLSizeOfAliases(t *testing.T) {
	for _, c := range []struct {
		text  string
		least int64
	}{
		{"a: 1", 4},
		{"a: &x 12345678\nb: [*x, *x, *x]", 3 * 8},
		{"a: &x [1]\nb: &y [*x, *x]\nc: [*y, *y, *y]", 6},
		{"a: &x " + strings.Repeat("1", 1000) + "\nb: &y [*x, *x]\nc: &z [*y, *y]\nd: [*z, *z]", 8 * 1000},
		{"a: &x " + strings.Repeat("1", 1000) + "\nb: *x", 2 * 1000},
		{"a: &x 1\nb: &y 2\nc: &z [*x]", 3},
	} {
		if got := yamlSize(c.text); got < c.least || got < int64(len(c.text)) {
			t.Errorf("%.60s: %d bytes, at least %d are possible", c.text, got, c.least)
		}
	}
	// Three anchors that use one alias: the alias can double the text only once, and is not lost.
	if got, text := yamlSize("&a &b &c *a"), int64(len("&a &b &c *a")); got < 2*text {
		t.Errorf("one alias for three anchors: %d bytes, the text has %d", got, text)
	}
	for text, want := range map[string]int64{"a & b": 0, "a&b": 0, "&a": 1, "x: &a 1": 1, "[&a,&b]": 2, "- &a": 1, "{&a": 1, "&": 0, "?&a": 1, "\n&a\n": 1} {
		if got := named(text, '&'); got != want {
			t.Errorf("%q: %d anchors, want %d", text, got, want)
		}
	}
}
