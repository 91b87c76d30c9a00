package render

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Clean makes a text that does not come from the engine safe to show on one line of a terminal. It
// replaces control characters, escape sequences and characters that change the direction of text.
// Line breaks become spaces (T20).
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case r < 0x20, r == 0x7f, r >= 0x80 && r < 0xa0, r == utf8.RuneError:
			return '\ufffd'
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x061c, r == 0x200e, r == 0x200f, r == 0x2028, r == 0x2029, r == 0xfeff:
			return '\ufffd'
		}
		return r
	}, s)
}

// Visible makes a text of several lines, such as a source file, safe to show on a terminal. In
// place of a character that Clean would replace, it writes an escape such as \u001b. In place of a
// byte that is not valid UTF-8, it writes an escape such as \x9b. Line breaks and tabs stay.
func Visible(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\n', r == '\t', r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
			b.WriteRune(r)
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, "\\x%02x", s[i])
		case r == '\r', Clean(string(r)) != string(r):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// Took formats how long something took or will take: "0.2s", "1m41s".
func Took(d time.Duration) string {
	if d < 0 {
		d = 0
	}
	if d < time.Minute-50*time.Millisecond {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return Span(d)
}

// Span formats a limit or an estimate in its two largest units: "5s", "4m33s", "3d4h". If the
// smaller unit is zero, Span leaves it out: "2h". Days are a unit only from 48 hours on. A span
// below one minute may have tenths of a second, such as "5.3s", and a span below one second has
// milliseconds.
func Span(d time.Duration) string {
	if d < 0 {
		d = 0
	}
	if d < time.Second {
		if d == 0 {
			return "0s"
		}
		return d.Round(time.Millisecond).String()
	}
	if d < time.Minute && d%time.Second >= 50*time.Millisecond {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + "s"
	}
	units := []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}}
	if d < 48*time.Hour {
		units = units[1:]
	}
	for i, u := range units {
		if d < u.size {
			continue
		}
		out := fmt.Sprintf("%d%s", d/u.size, u.name)
		if i+1 < len(units) {
			if rest := d % u.size / units[i+1].size; rest > 0 {
				out += fmt.Sprintf("%d%s", rest, units[i+1].name)
			}
		}
		return out
	}
	return "0s"
}

// Clock formats the time t in UTC, such as "10:00:03Z". The parameter `now` is the present time. If
// t is not on the same day as `now`, Clock puts the date in front.
func Clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05Z")
	}
	return t.Format("2006-01-02T15:04:05Z")
}

// Count formats a number with a noun: "1 step", "3 steps".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Width returns the number of terminal columns that s takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// runeWidth returns the number of columns of a character. It is 2 for East Asian wide characters
// and pictographs, 0 for combining marks, and 1 for others. In doubt it returns the larger number,
// so that no line becomes longer than expected.
func runeWidth(r rune) int {
	switch {
	case r >= 0x0300 && r <= 0x036f, r == 0x200b, r == 0x200c, r == 0x200d, r >= 0xfe00 && r <= 0xfe0f:
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60,
		r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd,
		r == '⏱':
		return 2
	}
	return 1
}

// Cut shortens s to at most width columns. If it removes anything, s ends in an ellipsis. If width
// is 0 or less, Cut returns s unchanged.
func Cut(s string, width int) string {
	if width <= 0 || Width(s) <= width {
		return s
	}
	n := 0
	for i, r := range s {
		if n+runeWidth(r) > width-1 {
			return s[:i] + "…"
		}
		n += runeWidth(r)
	}
	return s
}

// pad appends spaces to the text s until it takes the given width on the screen, in columns.
func pad(s string, width int) string {
	if w := Width(s); w < width {
		return s + strings.Repeat(" ", width-w)
	}
	return s
}

// reason joins a code and a message, such as "unavailable: gateway 503". If one of them is
// empty, or if both are equal, it returns only one.
func reason(code, message string) string {
	code, message = Clean(code), Clean(message)
	switch {
	case message == "" || message == code:
		return code
	case code == "":
		return message
	}
	return code + ": " + message
}
