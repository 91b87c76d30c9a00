package fasteval

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk/schema"
)

// A canonicalWriter checks JSON against a shape and writes the canonical form of the JSON, in one
// pass and without building a tree. A canonicalWriter handles only the common case. It gives up
// (its method returns false) if a value must be converted, or if the JSON has an error. Then the
// general evaluator (package eval) converts the value or reports the error. If a canonicalWriter
// does not give up, it writes the same bytes as the general evaluator.
type canonicalWriter struct {
	value.Lexer
	out   []byte   // canonical JSON written so far
	depth int      // number of objects and lists that enclose the current value
	path  []byte   // JSON pointer of the current value; valid only if the shape of this value has sensitive parts
	marks []string // JSON pointers of the sensitive parts

	scratch []byte         // buffer that canonicalWriter.arrange reuses
	members []value.Member // the members of an object, found by canonicalWriter.attributes
}

// Canonical checks the JSON text in raw against the shape sh, and returns the canonical form of the
// text. The result `ok` is false if sh is nil, or if the general evaluator must convert the value
// or report an error.
func Canonical(sh *Shape, raw []byte) (v value.Value, ok bool) {
	if sh == nil {
		return value.Value{}, false
	}
	c := canonicalWriter{Lexer: value.Lex(raw), out: make([]byte, 0, len(raw))}
	if !c.value(sh, false) || !c.End() {
		return value.Value{}, false
	}
	slices.Sort(c.marks)
	return value.NewValue(c.out, c.marks, nil), true
}

// value copies one value. It returns false if the general evaluator must copy the value. If
// `hidden` is true, the value is inside of a part that is already marked as sensitive. Then the
// method does not mark the parts of the value once more.
func (c *canonicalWriter) value(sh *Shape, hidden bool) bool {
	if len(c.out) > value.MaxSize {
		return false
	}
	free := sh.kind == schema.KindAny
	switch c.Peek() {
	case '"':
		return (free || sh.kind == schema.KindString) && c.string()
	case '{':
		return (free || sh.kind == schema.KindObject || sh.kind == schema.KindMap) && c.object(sh, hidden)
	case '[':
		return (free || sh.kind == schema.KindList) && c.list(sh)
	case 't':
		return (free || sh.kind == schema.KindBool) && c.literal("true")
	case 'f':
		return (free || sh.kind == schema.KindBool) && c.literal("false")
	case 'n':
		return free && c.literal("null")
	}
	return (free || sh.kind == schema.KindNumber) && c.numeral()
}

func (c *canonicalWriter) literal(w string) bool {
	c.out = append(c.out, w...)
	return c.Word(w)
}

func (c *canonicalWriter) string() bool {
	raw, plain, ok := c.Text()
	if plain && ok {
		c.out = append(c.out, raw...)
		return true
	}
	if !ok {
		return false
	}
	var s string
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) && !hasControl(raw) {
		s = string(raw[1 : len(raw)-1])
	} else if json.Unmarshal(raw, &s) != nil {
		return false
	}
	c.out = value.AppendText(c.out, cty.NormalizeString(s))
	return true
}

func hasControl(b []byte) bool {
	return slices.ContainsFunc(b, func(c byte) bool { return c < 0x20 })
}

func (c *canonicalWriter) numeral() bool {
	raw, ok := c.Number()
	if !ok {
		return false
	}
	c.out, ok = appendNumber(c.out, raw)
	return ok
}

// shortNumber is the largest length, in bytes, of a number that appendNumber copies without
// parsing. For such a number, the general evaluator gives the same result, because it loses no
// digit either.
const shortNumber = 100

// appendNumber appends a number to the slice `out`, in the form that value.NumberText returns.
// The parameter `raw` is the text of the number. appendNumber returns the longer slice. It
// returns false if the number is not allowed.
func appendNumber(out, raw []byte) ([]byte, bool) {
	if len(raw) <= shortNumber && bytes.IndexByte(raw, 'e') < 0 && bytes.IndexByte(raw, 'E') < 0 {
		if bytes.IndexByte(raw, '.') >= 0 {
			raw = bytes.TrimSuffix(bytes.TrimRight(raw, "0"), []byte("."))
		}
		if string(raw) == "-0" {
			raw = raw[1:]
		}
		return append(out, raw...), true
	}
	v, err := value.ParseNumber(string(raw))
	if err != nil {
		return out, false
	}
	s, err := value.NumberText(v.AsBigFloat())
	return append(out, s...), err == nil
}

func (c *canonicalWriter) list(sh *Shape) bool {
	elem := Anything
	if sh.elem != nil {
		elem = sh.elem
	}
	if c.depth++; c.depth > value.MaxDepth {
		return false
	}
	c.Pos++
	c.out = append(c.out, '[')
	for first := true; ; first = false {
		if first && c.Peek() == ']' {
			break
		}
		if !c.value(elem, true) {
			return false
		}
		if c.Peek() != ',' {
			break
		}
		c.Pos++
		c.out = append(c.out, ',')
	}
	c.out = append(c.out, ']')
	c.depth--
	return c.Take(']')
}

func (c *canonicalWriter) object(sh *Shape, hidden bool) bool {
	if c.depth++; c.depth > value.MaxDepth {
		return false
	}
	start, n := len(c.out), 0 // n counts the attributes that stay in c.out
	c.Pos++
	c.out = append(c.out, '{')
	ordered := true
	var last []byte
	for first := true; !first || c.Peek() != '}'; first = false {
		key, ok := c.key()
		if !ok {
			return false
		}
		ordered = ordered && (first || bytes.Compare(last[1:len(last)-1], key[1:len(key)-1]) < 0)
		last = key
		at := len(c.out)
		if n > 0 {
			c.out = append(c.out, ',')
		}
		c.out = append(append(c.out, key...), ':')
		keep, ok := c.attribute(sh, key[1:len(key)-1], hidden)
		if !ok {
			return false
		}
		if keep {
			n++
		} else {
			c.out = c.out[:at]
		}
		if c.Peek() != ',' {
			break
		}
		c.Pos++
	}
	c.out = append(c.out, '}')
	if !ordered || sh.kind == schema.KindObject && n < len(sh.fields) {
		if !c.arrange(sh, start, hidden) {
			return false
		}
	}
	c.depth--
	return c.Take('}')
}

func (c *canonicalWriter) key() (raw []byte, ok bool) {
	if c.Peek() != '"' {
		return nil, false
	}
	raw, plain, ok := c.Text()
	return raw, ok && plain && c.Take(':')
}

// attribute copies the value of one attribute of an object or map. The result `keep` is false if
// the shape does not have the attribute. In this case the caller removes the attribute. The result
// `ok` is false if the general evaluator must copy the value.
func (c *canonicalWriter) attribute(sh *Shape, name []byte, hidden bool) (keep, ok bool) {
	switch sh.kind {
	case schema.KindAny:
		return true, c.value(Anything, true)
	case schema.KindMap:
		return true, c.value(sh.elem, true)
	}
	f := sh.field(name)
	if f == nil {
		return false, sh.open && c.value(Anything, true)
	}
	if f.hidden() && !hidden {
		c.mark(f.name)
	}
	if c.Peek() == 'n' && (f.optional || f.filled) {
		return true, f.optional && c.literal("null")
	}
	from, at := c.Pos, len(c.out)
	n := len(c.path)
	if f.shape.marked && !hidden {
		c.path = append(append(c.path, '/'), value.EscapePointer(f.name)...)
	}
	ok = c.value(f.shape, hidden || f.hidden()) && f.allows(bytes.TrimLeft(c.Src[from:c.Pos], " \t\r\n"), c.out[at:])
	c.path = c.path[:n]
	return true, ok
}

// allows reports whether the enum of f contains a value. If f has no enum, it returns true. The
// parameter `src` is the JSON of the value, and the parameter `out` is the canonical form of src.
// A string in src must already be in canonical form, because the general evaluator compares
// strings before it normalises Unicode.
func (f *shapeField) allows(src, out []byte) bool {
	if f.enum == nil {
		return true
	}
	return slices.Contains(f.enum, string(out)) && (out[0] != '"' || bytes.Equal(src, out))
}

func (c *canonicalWriter) mark(name string) {
	c.marks = append(c.marks, string(c.path)+"/"+value.EscapePointer(name))
}

// field finds an attribute by name; nil if there is none.
func (s *Shape) field(name []byte) *shapeField {
	lo, hi := 0, len(s.fields)
	for lo < hi {
		mid := (lo + hi) / 2
		if s.fields[mid].name < string(name) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(s.fields) && s.fields[lo].name == string(name) {
		return &s.fields[lo]
	}
	return nil
}

// attributes sets c.members to the members of a canonical object.
func (c *canonicalWriter) attributes(object []byte) {
	c.members = c.members[:0]
	l := value.Lex(object)
	for l.Pos = 1; l.Peek() == '"'; {
		from := l.Pos
		key, _, _ := l.Text()
		l.Pos++
		l.Skip()
		c.members = append(c.members, value.Member{Key: key[1 : len(key)-1], Whole: object[from:l.Pos]})
		l.Take(',')
	}
}

// arrange rewrites the object that begins at c.out[start]. It sorts the members by name, and
// writes null for missing optional members. It returns false if two members have the same name,
// or if a required member is missing. Then the general evaluator must copy the object.
func (c *canonicalWriter) arrange(sh *Shape, start int, hidden bool) bool {
	c.scratch = append(c.scratch[:0], c.out[start:]...)
	c.attributes(c.scratch)
	slices.SortFunc(c.members, func(a, b value.Member) int { return bytes.Compare(a.Key, b.Key) })
	for i := 1; i < len(c.members); i++ {
		if bytes.Equal(c.members[i-1].Key, c.members[i].Key) {
			return false
		}
	}
	c.out = append(c.out[:start], '{')
	absent := func(f *shapeField) bool {
		if !f.optional {
			return false
		}
		if f.hidden() && !hidden {
			c.mark(f.name)
		}
		c.out = append(append(append(c.out, '"'), f.name...), `":null,`...)
		return true
	}
	next := 0
	for _, m := range c.members {
		for ; next < len(sh.fields) && sh.fields[next].name < string(m.Key); next++ {
			if !absent(&sh.fields[next]) {
				return false
			}
		}
		next++
		c.out = append(append(c.out, m.Whole...), ',')
	}
	for ; next < len(sh.fields); next++ {
		if !absent(&sh.fields[next]) {
			return false
		}
	}
	if n := len(c.out); c.out[n-1] == ',' {
		c.out = c.out[:n-1]
	}
	c.out = append(c.out, '}')
	return true
}
