package rule

import (
	"fmt"
	"regexp/syntax"
	"strings"
)

// maxRepeat is the largest number in a repetition such as {2,5} that PostgreSQL accepts.
const maxRepeat = 255

// patternOf translates a regular expression of Go to one of PostgreSQL. Both expressions match the
// same texts, as long as the texts have only printable characters of ASCII. patternOf returns false
// for an expression that PostgreSQL might read differently.
func patternOf(source string) (string, bool) {
	re, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return "", false
	}
	var b strings.Builder
	if !write(&b, re) {
		return "", false
	}
	return b.String(), true
}

// write appends the translation of re, which is a part of a regular expression. It ignores whether
// a repetition prefers the shortest text, because this does not change whether a text matches.
func write(b *strings.Builder, re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpEmptyMatch:
		b.WriteString("(?:)")
	case syntax.OpLiteral:
		return literal(b, re)
	case syntax.OpCharClass:
		return class(b, re.Rune)
	case syntax.OpAnyCharNotNL, syntax.OpAnyChar:
		b.WriteByte('.')
	case syntax.OpBeginText:
		b.WriteByte('^')
	case syntax.OpEndText:
		b.WriteByte('$')
	case syntax.OpCapture:
		return re.Name == "" && group(b, re.Sub[0])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		return repeat(b, re)
	case syntax.OpConcat, syntax.OpAlternate:
		for i, sub := range re.Sub {
			if i > 0 && re.Op == syntax.OpAlternate {
				b.WriteByte('|')
			}
			if !group(b, sub) {
				return false
			}
		}
	default: // boundaries of words and lines
		return false
	}
	return true
}

// group appends a part in parentheses.
func group(b *strings.Builder, re *syntax.Regexp) bool {
	b.WriteString("(?:")
	ok := write(b, re)
	b.WriteByte(')')
	return ok
}

func literal(b *strings.Builder, re *syntax.Regexp) bool {
	if re.Flags&syntax.FoldCase != 0 {
		return false
	}
	for _, c := range re.Rune {
		if c < ' ' || c > '~' {
			return false
		}
		char(b, c)
	}
	return true
}

// char appends a character. In a regular expression of PostgreSQL, a backslash before a character
// means this character itself, unless the character is a letter or a digit.
func char(b *strings.Builder, c rune) {
	if c != ' ' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
		b.WriteByte('\\')
	}
	b.WriteRune(c)
}

// class appends the printable characters of a set of characters. The parameter `ranges` has the
// first and the last character of each range of the set. class returns false if no character is
// printable.
func class(b *strings.Builder, ranges []rune) bool {
	empty := true
	b.WriteByte('[')
	for i := 0; i < len(ranges); i += 2 {
		from, to := max(ranges[i], ' '), min(ranges[i+1], '~')
		if from > to {
			continue
		}
		empty = false
		char(b, from)
		if from < to {
			b.WriteByte('-')
			char(b, to)
		}
	}
	b.WriteByte(']')
	return !empty
}

func repeat(b *strings.Builder, re *syntax.Regexp) bool {
	if !group(b, re.Sub[0]) || re.Min > maxRepeat || re.Max > maxRepeat {
		return false
	}
	switch {
	case re.Op == syntax.OpStar:
		b.WriteByte('*')
	case re.Op == syntax.OpPlus:
		b.WriteByte('+')
	case re.Op == syntax.OpQuest:
		b.WriteByte('?')
	case re.Max < 0:
		fmt.Fprintf(b, "{%d,}", re.Min)
	default:
		fmt.Fprintf(b, "{%d,%d}", re.Min, re.Max)
	}
	return true
}
