package render

import (
	"io"
	"strings"
)

// A Table is a text with columns. The method Write replaces control characters in the cells.
type Table struct {
	Head []string
	rows [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Len returns the number of rows. The head does not count.
func (t *Table) Len() int { return len(t.rows) }

// Write writes the table. Each column is as wide as its widest cell. Write adds no spaces
// after the last column.
func (t *Table) Write(w io.Writer) error {
	all := append([][]string{t.Head}, t.rows...)
	widths := make([]int, len(t.Head))
	for _, r := range all {
		for i, c := range r {
			if i < len(widths) {
				widths[i] = max(widths[i], Width(Clean(c)))
			}
		}
	}
	var b strings.Builder
	for _, r := range all {
		var line strings.Builder
		for i, c := range r {
			if i > 0 {
				line.WriteString("  ")
			}
			c = Clean(c)
			if i < len(widths) && i < len(r)-1 {
				c = pad(c, widths[i])
			}
			line.WriteString(c)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
