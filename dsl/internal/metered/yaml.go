package metered

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// Limits of YAML texts. The decoder of YAML calls itself for each level of nesting, and
// a program cannot recover from a stack overflow. The decoder also copies the value of an
// alias each time that the alias is used. So CheckYAML checks a text before it is decoded.
const (
	maxYAMLColumn   = 200       // largest indentation, in columns
	maxYAMLBrackets = 1_000     // largest number of brackets that are not closed in their line
	maxYAMLExpanded = 1_000_000 // largest size of the text if each alias is replaced by its value, in bytes
)

// yamlBreaks replaces each line break of YAML by line feeds. It also replaces a byte order mark by
// spaces, because the decoder skips the mark and reads the indentation after the mark. The
// new text has as many bytes as the old text.
var yamlBreaks = strings.NewReplacer("\r", "\n", "\u0085", "\n\n", "\u2028", "\n\n\n", "\u2029", "\n\n\n", "\ufeff", "   ")

// CheckYAML returns an error if a YAML text exceeds a limit. It does not decode the text. It may
// overestimate the nesting of the text, but never underestimates the nesting.
func CheckYAML(text string) error {
	if yamlSize(text) > maxYAMLExpanded {
		return fmt.Errorf("a YAML text may hold at most %d bytes, those that its aliases repeat counted each time", maxYAMLExpanded)
	}
	if json.Valid([]byte(text)) { // JSON is YAML, too
		return value.CheckDepth([]byte(text))
	}
	open := 0
	for line := range strings.Lines(yamlBreaks.Replace(text)) {
		if n := len(line) - len(strings.TrimLeft(line, " \t-?:")); n > maxYAMLColumn {
			return fmt.Errorf("YAML may be indented at most by %d columns", maxYAMLColumn)
		}
		if open += openBrackets(line); open > maxYAMLBrackets {
			return errors.New("the YAML text is nested too deep, or holds too many brackets that are not closed in their line; JSON has no such limit")
		}
	}
	return nil
}

// openBrackets returns how many brackets a line opens and does not close. If the line has quotes
// or similar characters, a bracket may be part of a text. Then openBrackets ignores closing
// brackets and counts every opening bracket. If brackets in the line are nested deeper than
// value.MaxDepth, it returns the depth.
func openBrackets(line string) int {
	if strings.ContainsAny(line, "\"'#!&*\\") {
		return strings.Count(line, "[") + strings.Count(line, "{")
	}
	open, deepest := 0, 0
	for _, c := range line {
		switch c {
		case '[', '{':
			open++
			deepest = max(deepest, open)
		case ']', '}':
			open = max(open-1, 0)
		}
	}
	if deepest > value.MaxDepth {
		return deepest
	}
	return open
}

// yamlSize returns an upper limit for the size of a text, in bytes, after each alias is replaced by
// its value. The size is largest if the anchors form a chain, in which the value of each anchor
// uses the previous anchor, and if all anchors are used equally often. yamlSize assumes this case.
func yamlSize(text string) int64 {
	size := int64(len(text))
	text = yamlBreaks.Replace(text)
	anchors := min(named(text, '&'), 64)
	if anchors == 0 {
		return size
	}
	factor := 1 + (named(text, '*')+anchors-1)/anchors
	for range anchors {
		size = product(size, factor)
	}
	return size
}

// named returns how often the mark (& or *) is directly before a name in a text.
func named(text string, mark byte) int64 {
	n := int64(0)
	for i := 0; i+1 < len(text); i++ {
		if text[i] == mark && text[i+1] > ' ' && (i == 0 || strings.IndexByte(" \t\r\n,[{:-?", text[i-1]) >= 0) {
			n++
		}
	}
	return n
}
