package metered

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// Limits on YAML. The library's decoder calls itself for each level, copies
// what an alias names each time it is named, and a stack that overflows cannot
// be recovered from: so a text is measured before it is decoded.
const (
	maxYAMLColumn   = 200       // of block indentation
	maxYAMLBrackets = 1_000     // that are not closed in their line
	maxYAMLNames    = 1_000_000 // bytes of the text after each alias is replaced by what it names
)

// yamlBreaks writes each line break of YAML as line feeds, and a byte order mark as
// spaces: a line behind a mark is nested as it is without the mark. The size of the text
// stays.
var yamlBreaks = strings.NewReplacer("\r", "\n", "\u0085", "\n\n", "\u2028", "\n\n\n", "\u2029", "\n\n\n", "\ufeff", "   ")

// payYAML pays for a document before it is decoded. One beyond the limits is
// refused by the call, at once.
func payYAML(p *payment) {
	text := p.text(0)
	if CheckYAML(text) == nil {
		n := yamlSize(text)
		p.m.pay(product(n, 1300), product(n, 100))
	}
}

// CheckYAML measures a text without decoding it. It never takes a text for
// flatter than it is.
func CheckYAML(text string) error {
	if yamlSize(text) > maxYAMLNames {
		return fmt.Errorf("a YAML text may hold at most %d bytes, those that its aliases repeat counted each time", maxYAMLNames)
	}
	if json.Valid([]byte(text)) { // which is YAML too
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

// openBrackets counts the brackets that a line opens and does not close. Where
// quotes or the like may make a bracket part of a text, none counts as closed.
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

// yamlSize bounds the size of a text after its aliases are replaced by what
// they name. With k anchors it grows most where each names the one before
// equally often.
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

// named counts the places where a mark stands before a name.
func named(text string, mark byte) int64 {
	n := int64(0)
	for i := 0; i+1 < len(text); i++ {
		if text[i] == mark && text[i+1] > ' ' && (i == 0 || strings.IndexByte(" \t\r\n,[{:-?", text[i-1]) >= 0) {
			n++
		}
	}
	return n
}
