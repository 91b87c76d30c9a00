package value

import "github.com/saga-engine/engine/sdk/jsonscan"

// A Lexer reads a document that is known to be valid JSON. So its methods Text and Skip check
// less than the methods of a Scanner. A method returns false if it cannot read the next part.
// Then the caller uses a decoder, which reports the error.
type Lexer struct{ jsonscan.Scanner }

// Lex returns a Lexer whose position is the beginning of src.
func Lex(src []byte) Lexer { return Lexer{jsonscan.Scanner{Src: src}} }

// Text reads a string and returns it with its quotes. The result `plain` is true if the string
// has only printable ASCII characters and no escapes. A plain string is in canonical form
// already. The result `ok` is false if the string has no end.
func (l *Lexer) Text() (raw []byte, plain, ok bool) {
	plain = true
	for i := l.Pos + 1; i < len(l.Src); i++ {
		switch c := l.Src[i]; {
		case c == '"':
			raw = l.Src[l.Pos : i+1]
			l.Pos = i + 1
			return raw, plain, true
		case c == '\\':
			plain = false
			i++
		case c < 0x20 || c >= 0x7f:
			plain = false
		}
	}
	return nil, false, false
}

// Skip reads one value of a document and returns its bytes. The result `ok` is false if the
// value is missing or has no end.
func (l *Lexer) Skip() (raw []byte, ok bool) {
	l.Peek()
	from, depth := l.Pos, 0
	for l.Pos < len(l.Src) {
		switch c := l.Src[l.Pos]; c {
		case '"':
			if _, _, ok := l.Text(); !ok {
				return nil, false
			}
		case '{', '[':
			depth++
			l.Pos++
		case '}', ']', ',':
			if depth == 0 {
				return l.Src[from:l.Pos], l.Pos > from
			}
			if c != ',' {
				depth--
			}
			l.Pos++
		default:
			l.Pos++
			continue
		}
		if depth == 0 {
			return l.Src[from:l.Pos], true
		}
	}
	return l.Src[from:l.Pos], depth == 0 && l.Pos > from
}

// IsPlain reports whether a text needs no escapes as a JSON string: it has only printable ASCII
// characters, and neither quotes nor backslashes.
func IsPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
