package syntax

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// maxTokens is the limit of package metered for the tokens of one text.
const maxTokens = 300_000

func place(d *hcl.Diagnostic) string {
	if d == nil {
		return "-"
	}
	return fmt.Sprintf("%s at %d:%d", d.Summary, d.Subject.Start.Line, d.Subject.Start.Column)
}

// Each limit of a source text holds exactly, and is reported at the token that exceeds it.
func TestPrescanLimits(t *testing.T) {
	r := strings.Repeat
	for _, c := range []struct{ rule, text, want string }{
		{"200 brackets", "a = " + r("[", 199) + r("]", 199), "-"},
		{"201 brackets", "a = \n" + r("[", 200) + r("]", 200), "Nesting too deep at 2:200"},
		{"operators in front of a value", "a = " + r("!", 199) + "true", "-"},
		{"one operator more", "a = " + r("!", 200) + "true", "Nesting too deep at 1:204"},
		{"operators that are not next to each other", "a = " + r("!true && ", 300) + "true", "-"},
		{"directives that end", `a = "` + r("%{ if true }x%{ endif }", 400) + `"`, "-"},
		{"loops that end", `a = "` + r("%{ for i in x }x%{ endfor }", 400) + `"`, "-"},
		{"directives inside of each other", `a = "` + r("%{ if true }", 200) + `"`, "Nesting too deep at 1:2370"},
		{"ends of directives give no credit", `a = "` + r("%{ endif }", 300) + r("%{ if true }", 200) + `"`, "-"},
		{"an else", `a = "` + r("%{ if true }a%{ else }b%{ endif }", 300) + `"`, "-"},
		{"1,000 operators", "a = 1" + r("+1", 999) + "\n", "-"},
		{"1,001 operators", "a = 1" + r("+1", 1000) + "\n", "Expression too long at 1:2004"},
		{"elements of a list", "a = [" + r("1+1,", 2000) + "]", "-"},
		{"a list of long expressions", "a = [" + r("1"+r("+1", 999)+",", 3) + "]", "-"},
		{"a line begins a new expression", "a {\n" + r("b = 1+1\n", 2000) + "}", "-"},
		{"a line in brackets does not", "a = (1" + r("\n+1", 1100) + ")", "Expression too long at 1002:1"},
		{"nor in a list", "a = [1" + r("\n+1", 1100) + "]", "Expression too long at 1002:1"},
		{"parts of a template", `a = "` + r("${b}", 2000) + `"`, "-"},
		{"calls after each other", "a = x" + r(".b[0]", 600), "Expression too long at 1:2503"},
		{"digits of a number", "a = " + r("9", 2*value.MaxDigits), "-"},
		{"one digit more", "a = " + r("9", 2*value.MaxDigits+1), "Number too long at 1:5"},
		{"brackets that nothing opens", r("]", 500) + r("[", 199), "-"},
		{"a comment is no operator", r("a = 1 # + + +\n", 2000), "-"},
		{"a comment ends its line", r("a = 1 + 1 // why\n", 2000), "-"},
		{"a comment in brackets does not", "a = (1" + r(" # why\n+1", 1100) + ")", "Expression too long at 1002:1"},
		{"a comment inside of a line does not", "a = 1" + r(" /* why */ + 1", 1100), "Expression too long at 1:14003"},
	} {
		if got := place(Prescan([]byte(c.text), "a.hcl")); got != c.want {
			t.Errorf("%s: %s, want %s", c.rule, got, c.want)
		}
	}
}

// A file has at most 300,000 tokens and at most 1 MiB, whatever its tokens are.
func TestPrescanSizes(t *testing.T) {
	for _, c := range []struct {
		rule, text, want string
	}{
		{"300,000 tokens", strings.Repeat("\"a\"\n", maxTokens/4-1), "-"},
		{"tokens that are counted only by the lexer", strings.Repeat("\"\"\n", maxTokens/3), "File too large at 100001:1"},
		{"words", strings.Repeat("a ", maxTokens+1), "File too large at 1:1"},
		{"lines", strings.Repeat("\n", maxTokens+1), "File too large at 1:1"},
		{"a file of 1 MiB", "#" + strings.Repeat("x", MaxSource-1), "-"},
		{"a byte more", "#" + strings.Repeat("x", MaxSource), "File too large at 1:1"},
	} {
		if got := place(Prescan([]byte(c.text), "a.hcl")); got != c.want {
			t.Errorf("%s: %s, want %s", c.rule, got, c.want)
		}
	}
}

// A JSON text has the same limits. Brackets in strings do not count, and an error names its line.
func TestPrescanJSONLimits(t *testing.T) {
	r := strings.Repeat
	for _, c := range []struct{ rule, text, want string }{
		{"200 levels", r("[", 200) + r("]", 200), "-"},
		{"201 levels", r("[", 201) + r("]", 201), "Nesting too deep at 1:1"},
		{"the line of the bracket", "{\n\"a\":\r\n" + r("[", 150) + "\n" + r("{", 60), "Nesting too deep at 4:1"},
		{"brackets of both kinds", r(`{"a":[`, 100) + r("]}", 100), "-"},
		{"brackets of both kinds, deeper", r(`{"a":[`, 101), "Nesting too deep at 1:1"},
		{"brackets in a string", `["` + r("[", 500) + `"]`, "-"},
		{"a quote in a string", `["\"` + r("[", 500) + `"]`, "-"},
		{"a backslash at the end of a string", `["\\"` + r(",[", 201), "Nesting too deep at 1:1"},
		{"lists after each other", "[" + r("[],", 1000) + "1]", "-"},
		{"1 MiB", `"` + r("x", MaxSource-2) + `"`, "-"},
		{"a byte more", `"` + r("x", MaxSource-1) + `"`, "File too large at 1:1"},
	} {
		if got := place(PrescanJSON([]byte(c.text), "a.json")); got != c.want {
			t.Errorf("%s: %s, want %s", c.rule, got, c.want)
		}
	}
}

// The template in a JSON string has the limits of an expression, at its place in the file.
func TestPrescanTemplate(t *testing.T) {
	start := hcl.Pos{Line: 3, Column: 10, Byte: 40}
	for text, want := range map[string]string{
		"plain":                                  "-",
		strings.Repeat("[", 5000):                "-",
		"${a" + strings.Repeat("+1", 1100) + "}": "Expression too long at 3:2013",
		"${" + strings.Repeat("[", 200) + "}":    "Nesting too deep at 3:210",
	} {
		if got := place(prescanTemplate([]byte(text), "a.json", start)); got != want {
			t.Errorf("%.20s: %s, want %s", text, got, want)
		}
	}
}

// The parser copies a heredoc once for each of its lines, so many lines are refused before it runs.
func TestPrescanHeredocs(t *testing.T) {
	text := func(lines, width int) []byte {
		return []byte("locals {\n a = <<EOT\n" + strings.Repeat(strings.Repeat("a", width)+"\n", lines) + "EOT\n}\n")
	}
	for _, ok := range [][2]int{{1, 1 << 19}, {2_000, 100}, {10_000, 3}} {
		if d := Prescan(text(ok[0], ok[1]), "a.hcl"); d != nil {
			t.Errorf("%d lines of %d bytes: %s", ok[0], ok[1], d.Summary)
		}
	}
	for _, long := range [][2]int{{100_000, 1}, {8_000, 100}} {
		if d := Prescan(text(long[0], long[1]), "a.hcl"); d == nil || d.Summary != "Heredoc too long" || d.Subject.Start.Line != 2 {
			t.Errorf("%d lines of %d bytes: %v", long[0], long[1], d)
		}
	}
	// Several heredocs share the limit.
	if d := Prescan([]byte(strings.Repeat(string(text(6_000, 6)), 3)), "a.hcl"); d == nil || d.Summary != "Heredoc too long" {
		t.Errorf("three heredocs: %v", d)
	}
}
