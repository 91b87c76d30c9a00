package render_test

import (
	"regexp"
	"strconv"
	"strings"
)

// A screen understands as much of a terminal as the Terminal view uses: new
// lines, carriage return, cursor up, erase below. Everything else that is a
// control character is strange.
type screen struct {
	columns, height int
	lines           []string
	row             int
	ticks           int
	strange         string
}

func newScreen(columns, height int) *screen {
	return &screen{columns: columns, height: height, lines: []string{""}}
}

var escape = regexp.MustCompile(`^\x1b\[(\d*)([AJ])`)

func (s *screen) Write(b []byte) (int, error) {
	text := string(b)
	for text != "" {
		if m := escape.FindStringSubmatch(text); m != nil {
			text = text[len(m[0]):]
			s.control(m[1], m[2])
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch {
		case r == '\n':
			s.row++
			if s.row == len(s.lines) {
				s.lines = append(s.lines, "")
			}
		case r == '\r':
		case r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0:
			s.strange += string(r)
		default:
			s.lines[s.row] += string(r)
		}
	}
	return len(b), nil
}

func (s *screen) control(n, what string) {
	switch what {
	case "A":
		k, _ := strconv.Atoi(n)
		if k >= s.height { // a real cursor stops at the top of the screen
			s.strange += "cursor above the screen; "
		}
		s.row = max(0, s.row-k)
	case "J":
		s.lines = s.lines[:s.row+1]
		s.lines[s.row] = ""
	}
}

// narrow makes the screen narrower, as terminals do that keep all text: a line
// that does not fit any more goes on in the next row, and the cursor stays with
// its text.
func (s *screen) narrow(columns int) {
	var lines []string
	row := 0
	for i, text := range s.lines {
		if i == s.row {
			row = len(lines)
		}
		runes := []rune(text)
		for len(runes) > columns {
			lines = append(lines, string(runes[:columns]))
			runes = runes[columns:]
		}
		lines = append(lines, string(runes))
	}
	s.lines, s.row, s.columns = lines, row, columns
}

// shown returns the rows that are on the screen and not scrolled off it.
func (s *screen) shown() string {
	return strings.Join(s.lines[max(0, len(s.lines)-s.height):], "\n")
}

// String returns everything on the screen and scrolled off it.
func (s *screen) String() string {
	return strings.TrimRight(strings.Join(s.lines, "\n"), "\n") + "\n"
}
