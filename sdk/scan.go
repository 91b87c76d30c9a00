package sdk

import (
	"bytes"
	"encoding/json"
)

// scanDepth bounds the nesting that a scanner follows; deeper documents are
// left to encoding/json.
const scanDepth = 100

// A scanner reads JSON from its bytes. It knows only the common case: its
// methods report false where something is unusual or wrong, and then the
// document is parsed into a tree, which reads it or says what is wrong.
type scanner struct {
	src   []byte
	pos   int
	depth int
}

// peek returns the first byte that is not white space; 0 at the end.
func (s *scanner) peek() byte {
	for ; s.pos < len(s.src); s.pos++ {
		switch c := s.src[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take reads one byte, after white space.
func (s *scanner) take(c byte) bool {
	if s.peek() != c || s.pos >= len(s.src) {
		return false
	}
	s.pos++
	return true
}

// end reports whether nothing but white space is left.
func (s *scanner) end() bool {
	s.peek()
	return s.pos == len(s.src)
}

// text reads a string and returns it with its quotes. plain says that what
// stands between them is what they mean.
func (s *scanner) text() (raw []byte, plain, ok bool) {
	if s.peek() != '"' {
		return nil, false, false
	}
	plain = true
	for i := s.pos + 1; i < len(s.src); i++ {
		switch c := s.src[i]; {
		case c == '"':
			raw = s.src[s.pos : i+1]
			s.pos = i + 1
			return raw, plain, true
		case c == '\\':
			plain = false
			if i++; i < len(s.src) && bytes.IndexByte([]byte(`"\/bfnrtu`), s.src[i]) < 0 {
				return nil, false, false
			}
			if i < len(s.src) && s.src[i] == 'u' && !isHex(s.src, i+1) {
				return nil, false, false
			}
		case c < 0x20:
			return nil, false, false
		case c >= 0x7f:
			plain = false
		}
	}
	return nil, false, false
}

// isHex reports whether four hexadecimal digits stand in src.
func isHex(src []byte, from int) bool {
	if from+4 > len(src) {
		return false
	}
	for _, c := range src[from : from+4] {
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return true
}

// string reads a string and returns what it means.
func (s *scanner) string() (text string, ok bool) {
	raw, plain, ok := s.text()
	if !ok {
		return "", false
	}
	if plain {
		return string(raw[1 : len(raw)-1]), true
	}
	err := json.Unmarshal(raw, &text)
	return text, err == nil
}

// number reads a number as JSON's grammar has it.
func (s *scanner) number() (raw []byte, ok bool) {
	s.peek()
	i, src := s.pos, s.src
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
	raw = src[s.pos:i]
	s.pos = i
	return raw, true
}

// word reads null, true or false.
func (s *scanner) word(w string) bool {
	if s.peek(); !bytes.HasPrefix(s.src[s.pos:], []byte(w)) {
		return false
	}
	s.pos += len(w)
	return true
}

// list reads a list and calls each before every element, which reads it.
func (s *scanner) list(each func() bool) bool {
	if s.depth++; s.depth > scanDepth || !s.take('[') {
		return false
	}
	if s.peek() != ']' {
		for {
			if !each() {
				return false
			}
			if s.peek() != ',' {
				break
			}
			s.pos++
		}
	}
	s.depth--
	return s.take(']')
}

// object reads an object and calls each after every key, which reads the
// value. A key that is not plain, or that each does not want, ends it.
func (s *scanner) object(each func(key []byte) bool) bool {
	if s.depth++; s.depth > scanDepth || !s.take('{') {
		return false
	}
	if s.peek() != '}' {
		for {
			raw, plain, ok := s.text()
			if !ok || !plain || !s.take(':') || !each(raw[1:len(raw)-1]) {
				return false
			}
			if s.peek() != ',' {
				break
			}
			s.pos++
		}
	}
	s.depth--
	return s.take('}')
}

// skip passes over one value and reports whether it is JSON.
func (s *scanner) skip() bool {
	switch s.peek() {
	case '"':
		_, _, ok := s.text()
		return ok
	case '{':
		return s.object(func([]byte) bool { return s.skip() })
	case '[':
		return s.list(s.skip)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	_, ok := s.number()
	return ok
}

// tree reads one value as parseTree does.
func (s *scanner) tree() (tree any, ok bool) {
	switch s.peek() {
	case '"':
		return s.string()
	case '{':
		object := map[string]any{}
		return object, s.object(func(key []byte) bool {
			v, ok := s.tree()
			object[string(key)] = v
			return ok
		})
	case '[':
		list := []any{}
		return list, s.list(func() bool {
			v, ok := s.tree()
			list = append(list, v)
			return ok
		})
	case 't':
		return true, s.word("true")
	case 'f':
		return false, s.word("false")
	case 'n':
		return nil, s.word("null")
	}
	raw, ok := s.number()
	return json.Number(raw), ok
}
