package dsl

import "bytes"

// A lexer walks over a JSON document without making anything of it. Its
// methods report false for what is not JSON; why, is for the decoder to say.
type lexer struct {
	src []byte
	pos int
}

// peek returns the first byte that is not white space; 0 at the end.
func (l *lexer) peek() byte {
	for ; l.pos < len(l.src); l.pos++ {
		switch c := l.src[l.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take reads one byte, after white space.
func (l *lexer) take(c byte) bool {
	if l.peek() != c || l.pos >= len(l.src) {
		return false
	}
	l.pos++
	return true
}

// end reports whether nothing but white space is left.
func (l *lexer) end() bool {
	l.peek()
	return l.pos == len(l.src)
}

// text reads a string and returns it with its quotes. plain says that it holds
// nothing but printable ASCII and no escapes: that it is its own canonical form.
func (l *lexer) text() (raw []byte, plain, ok bool) {
	plain = true
	for i := l.pos + 1; i < len(l.src); i++ {
		switch c := l.src[i]; {
		case c == '"':
			raw = l.src[l.pos : i+1]
			l.pos = i + 1
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

// number reads a number as JSON's grammar has it.
func (l *lexer) number() (raw []byte, ok bool) {
	i, src := l.pos, l.src
	digits := func() bool {
		from := i
		for i < len(src) && src[i]-'0' <= 9 {
			i++
		}
		return i > from
	}
	if i < len(src) && src[i] == '-' {
		i++
	}
	first := i
	if !digits() || src[first] == '0' && i > first+1 {
		return nil, false
	}
	if i < len(src) && src[i] == '.' {
		if i++; !digits() {
			return nil, false
		}
	}
	if i < len(src) && src[i]|0x20 == 'e' {
		if i++; i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		if !digits() {
			return nil, false
		}
	}
	raw = src[l.pos:i]
	l.pos = i
	return raw, true
}

// word reads null, true or false.
func (l *lexer) word(w string) bool {
	if !bytes.HasPrefix(l.src[l.pos:], []byte(w)) {
		return false
	}
	l.pos += len(w)
	return true
}

// skip passes over one value of a document that is known to be JSON, and
// returns it.
func (l *lexer) skip() (raw []byte, ok bool) {
	l.peek()
	from, depth := l.pos, 0
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; c {
		case '"':
			if _, _, ok := l.text(); !ok {
				return nil, false
			}
		case '{', '[':
			depth++
			l.pos++
		case '}', ']', ',':
			if depth == 0 {
				return l.src[from:l.pos], l.pos > from
			}
			if c != ',' {
				depth--
			}
			l.pos++
		default:
			l.pos++
			continue
		}
		if depth == 0 {
			return l.src[from:l.pos], true
		}
	}
	return l.src[from:l.pos], depth == 0 && l.pos > from
}
