package diag

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// RenderOptions choose how diagnostics are shown.
type RenderOptions struct {
	// true = use ANSI colours and underline the wrong text; false = write ^ marks below the text.
	Color bool
	Width int // width in columns at which details are wrapped; 0 = do not wrap
}

// Render writes diagnostics to w as text for people. It shows source lines, and separates the
// diagnostics by blank lines. It returns the first error of w.
func Render(w io.Writer, diags Diagnostics, o RenderOptions) error {
	out := bufio.NewWriter(w)
	for i, d := range diags {
		if i > 0 {
			out.WriteByte('\n')
		}
		o.diagnostic(out, d)
	}
	return out.Flush() // returns the first error of all writes
}

func (o RenderOptions) diagnostic(out *bufio.Writer, d Diagnostic) {
	title, colour := "Error", "31"
	switch d.Severity {
	case SeverityWarning:
		title, colour = "Warning", "33"
	case SeverityInfo:
		title, colour = "Info", "36"
	}
	fmt.Fprintf(out, "%s %s\n", o.style("1;"+colour, title+":"), o.style("1", printable(d.Summary)))
	if d.Range.File != "" {
		fmt.Fprintf(out, "  on %s line %d", printable(d.Range.File), d.Range.Start.Line)
		if d.Context != "" {
			out.WriteString(", " + printable(d.Context))
		}
		out.WriteString(":\n")
	}
	if s := d.Snippet; s != nil {
		before, marked, after := crop(s.Code[:s.HighlightStart], s.Code[s.HighlightStart:s.HighlightEnd], s.Code[s.HighlightEnd:])
		code := printable(before) + o.style("4", printable(marked)) + printable(after)
		number := fmt.Sprintf("%4d: ", s.StartLine)
		out.WriteString(number + code + "\n")
		if !o.Color {
			out.WriteString(blanks(number+printable(before)) + strings.Repeat("^", max(1, columns(printable(marked)))) + "\n")
		}
		for _, v := range s.Values {
			fmt.Fprintf(out, "      # %s %s\n", printable(v.Traversal), printable(v.Statement))
		}
	}
	if d.Detail != "" {
		for _, line := range strings.Split(d.Detail, "\n") {
			for _, part := range wrap(printable(line), o.Width) {
				out.WriteString(part + "\n")
			}
		}
	}
}

// blanks returns white space that is as wide as s. It keeps tabs, because only
// the terminal knows their width.
func blanks(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\t' {
			b.WriteByte('\t')
			continue
		}
		b.WriteString("  "[:runeColumns(r)])
	}
	return b.String()
}

// columns returns the width of s in a terminal, in columns.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

// runeColumns returns the width of a rune in most terminals, in columns.
func runeColumns(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul),
		r >= 0xff01 && r <= 0xff60, r >= 0x1f300 && r <= 0x1faff:
		return 2
	}
	return 1
}

// maxCode is the size in bytes of the longest source line that is shown whole.
const maxCode = 200

// crop shortens a source line that is longer than maxCode. The caller passes the line in three
// parts: before, inside and after the marked text. crop returns these parts, with "..." where
// it removed text.
func crop(before, marked, after string) (string, string, string) {
	if len(before)+len(marked)+len(after) <= maxCode {
		return before, marked, after
	}
	if len(before) > maxCode/4 {
		before = "..." + strings.ToValidUTF8(before[len(before)-maxCode/4:], "")
	}
	if len(marked) > maxCode/2 {
		marked = strings.ToValidUTF8(marked[:maxCode/2], "") + "..."
	}
	if len(after) > maxCode/4 {
		after = strings.ToValidUTF8(after[:maxCode/4], "") + "..."
	}
	return before, marked, after
}

func (o RenderOptions) style(code, text string) string {
	if !o.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// printable returns s, but replaces control characters, and characters that change the
// direction of text. Names and source lines may come from strangers, who could use such
// characters to control the terminal of the reader.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return r
		case r < 0x20, r == 0x7f, r >= 0x80 && r < 0xa0, r == utf8.RuneError:
			return '\ufffd'
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x061c, r == 0x200e, r == 0x200f, r == 0x2028, r == 0x2029, r == 0xfeff:
			return '\ufffd'
		}
		return r
	}, s)
}

// wrap breaks a line at blanks, into parts of at most `width` characters. Only a part that is
// a single long word is wider. If `width` is 0, wrap returns the line as one part.
func wrap(line string, width int) []string {
	if width <= 0 || utf8.RuneCountInString(line) <= width {
		return []string{line}
	}
	var out []string
	cur := ""
	for _, word := range strings.Fields(line) {
		switch {
		case cur == "":
			cur = word
		case utf8.RuneCountInString(cur)+1+utf8.RuneCountInString(word) > width:
			out = append(out, cur)
			cur = word
		default:
			cur += " " + word
		}
	}
	return append(out, cur)
}
