// Package jsonscan reads JSON directly from its bytes. Only the method Tree builds a tree.
//
// In: a document. Out: the strings, numbers, lists and objects in the document. The package
// is for code that reads common documents fast and has another, slower parser for all others.
package jsonscan

import (
	"bytes"
	"encoding/json"
)

// MaxDepth is how deep lists and objects may be nested. The methods of a Scanner return false
// for deeper documents.
const MaxDepth = 100

// A Scanner reads JSON from Src. It handles only the common case: its methods return false
// for everything unusual or wrong. Then the caller must read the document with another
// parser, which also reports errors. A Scanner with Src set is ready to use.
type Scanner struct {
	Src []byte
	Pos int // index of the next byte in Src

	depth int
}

// Peek skips white space and returns the next byte. Afterwards Pos is still the index of that
// byte. Peek returns 0 at the end of the document.
func (s *Scanner) Peek() byte {
	for ; s.Pos < len(s.Src); s.Pos++ {
		switch c := s.Src[s.Pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// Take skips white space and reads the byte c. If the next byte is not c, Take does not read
// that byte, and returns false.
func (s *Scanner) Take(c byte) bool {
	if s.Peek() != c || s.Pos >= len(s.Src) {
		return false
	}
	s.Pos++
	return true
}

// End reports whether only white space is left.
func (s *Scanner) End() bool {
	s.Peek()
	return s.Pos == len(s.Src)
}

// Text reads a string and returns its bytes with the quotes. The result `plain` is true if the
// string has only ASCII characters below 0x7f and no escapes. If `plain` is true, the bytes between
// the quotes are the value of the string.
func (s *Scanner) Text() (raw []byte, plain, ok bool) {
	if s.Peek() != '"' {
		return nil, false, false
	}
	plain = true
	for i := s.Pos + 1; i < len(s.Src); i++ {
		switch c := s.Src[i]; {
		case c == '"':
			raw = s.Src[s.Pos : i+1]
			s.Pos = i + 1
			return raw, plain, true
		case c == '\\':
			plain = false
			if i++; i < len(s.Src) && bytes.IndexByte([]byte(`"\/bfnrtu`), s.Src[i]) < 0 {
				return nil, false, false
			}
			if i < len(s.Src) && s.Src[i] == 'u' && !isHex(s.Src, i+1) {
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

// isHex reports whether four bytes of src are hexadecimal digits. The parameter `from` is the index
// of the first of these bytes.
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

// String reads a string and returns its value.
func (s *Scanner) String() (text string, ok bool) {
	raw, plain, ok := s.Text()
	if !ok {
		return "", false
	}
	if plain {
		return string(raw[1 : len(raw)-1]), true
	}
	err := json.Unmarshal(raw, &text)
	return text, err == nil
}

// Number reads a number in the grammar of JSON, and returns its bytes.
func (s *Scanner) Number() (raw []byte, ok bool) {
	s.Peek()
	i, src := s.Pos, s.Src
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
	raw = src[s.Pos:i]
	s.Pos = i
	return raw, true
}

// Word reads the word w, which is null, true or false. If the document continues with other
// bytes, Word does not read them, and returns false.
func (s *Scanner) Word(w string) bool {
	if s.Peek(); !bytes.HasPrefix(s.Src[s.Pos:], []byte(w)) {
		return false
	}
	s.Pos += len(w)
	return true
}

// List reads a list. Before every element it calls the function `each`, which must read the
// element. List returns false if the bytes are not a list, if a call of `each` returns false, or if
// the nesting is deeper than MaxDepth.
func (s *Scanner) List(each func() bool) bool {
	if s.depth++; s.depth > MaxDepth || !s.Take('[') {
		return false
	}
	if s.Peek() != ']' {
		for {
			if !each() {
				return false
			}
			if s.Peek() != ',' {
				break
			}
			s.Pos++
		}
	}
	s.depth--
	return s.Take(']')
}

// Object reads an object. After every key it calls the function `each`, which must read the value.
// Object returns false if the bytes are not an object, or if a call of `each` returns false. It
// also returns false if a key is not plain, as the method Text says, or if the nesting is deeper
// than MaxDepth.
func (s *Scanner) Object(each func(key []byte) bool) bool {
	if s.depth++; s.depth > MaxDepth || !s.Take('{') {
		return false
	}
	if s.Peek() != '}' {
		for {
			raw, plain, ok := s.Text()
			if !ok || !plain || !s.Take(':') || !each(raw[1:len(raw)-1]) {
				return false
			}
			if s.Peek() != ',' {
				break
			}
			s.Pos++
		}
	}
	s.depth--
	return s.Take('}')
}

// Skip reads one value of any kind. It returns false if the bytes are not JSON, or if the value is
// unusual.
func (s *Scanner) Skip() bool {
	switch s.Peek() {
	case '"':
		_, _, ok := s.Text()
		return ok
	case '{':
		return s.Object(func([]byte) bool { return s.Skip() })
	case '[':
		return s.List(s.Skip)
	case 't':
		return s.Word("true")
	case 'f':
		return s.Word("false")
	case 'n':
		return s.Word("null")
	}
	_, ok := s.Number()
	return ok
}

// Tree reads one value and returns it as nil, bool, string, json.Number, []any or
// map[string]any.
func (s *Scanner) Tree() (tree any, ok bool) {
	switch s.Peek() {
	case '"':
		return s.String()
	case '{':
		object := map[string]any{}
		return object, s.Object(func(key []byte) bool {
			v, ok := s.Tree()
			object[string(key)] = v
			return ok
		})
	case '[':
		list := []any{}
		return list, s.List(func() bool {
			v, ok := s.Tree()
			list = append(list, v)
			return ok
		})
	case 't':
		return true, s.Word("true")
	case 'f':
		return false, s.Word("false")
	case 'n':
		return nil, s.Word("null")
	}
	raw, ok := s.Number()
	return json.Number(raw), ok
}
