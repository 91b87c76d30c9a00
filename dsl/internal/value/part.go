package value

import (
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// A PathStep is one element of a path in a document. It selects an attribute of an object by
// name, or an element of a list by index.
type PathStep struct {
	Name  string // name of the attribute; "" if Index is not -1
	Index int    // index of the element, from 0; -1 = the PathStep selects an attribute
}

// MarksAt reports whether the part of v at the JSON pointer ptr is sensitive as a whole. The result
// `ok` is false if the answer is neither yes nor no: only some inner part is sensitive, or the part
// contains a secret or belongs to a secret.
func MarksAt(v Value, ptr string) (sensitive, ok bool) {
	if !v.marked() {
		return false, true
	}
	for _, s := range v.d.marks.Secrets {
		if below(ptr, s.Path) || below(s.Path, ptr) {
			return false, false
		}
	}
	for _, p := range v.d.marks.Sensitive {
		switch {
		case below(ptr, p):
			sensitive = true
		case below(p, ptr):
			return false, false
		}
	}
	return sensitive, true
}

// below reports whether the JSON pointer `ptr` points to the part at the JSON pointer `outer`, or
// into this part.
func below(ptr, outer string) bool {
	return strings.HasPrefix(ptr, outer) && (len(ptr) == len(outer) || ptr[len(outer)] == '/')
}

// FarPart is the smallest size of a large document, in bytes. In a large document, PartOf finds an
// attribute by an index. If the value of this attribute is large, too, PartOf does not search
// inside of it, because it is cheaper to decode the document once for the whole run.
const FarPart = 4 << 10

// PartOf returns the JSON of the part of v at the path. The result `ok` is false if v has no
// such part, or if the search would be expensive (see FarPart).
func PartOf(v Value, path []PathStep) (raw []byte, ok bool) {
	raw = v.JSON()
	for i, p := range path {
		if i == 0 && p.Index < 0 && len(raw) >= FarPart {
			raw, ok = v.d.attribute(p.Name)
		} else if len(raw) >= FarPart {
			return nil, false
		} else {
			l := Lex(raw)
			raw, ok = l.part(p)
		}
		if !ok {
			return nil, false
		}
	}
	return raw, true
}

// part reads the object or list that begins at the position of l. It returns the JSON of the value
// that p selects from it. The result `ok` is false if there is no such value.
func (l *Lexer) part(p PathStep) (raw []byte, ok bool) {
	switch open := l.Peek(); {
	case open == '{' && p.Index < 0:
	case open == '[' && p.Index >= 0:
	default:
		return nil, false
	}
	l.Pos++
	for i := 0; ; i++ {
		found := i == p.Index
		if p.Index < 0 {
			if l.Peek() != '"' {
				return nil, false
			}
			key, _, ok := l.Text()
			if !ok || !l.Take(':') {
				return nil, false
			}
			found = string(key[1:len(key)-1]) == p.Name
		} else if l.Peek() == ']' {
			return nil, false
		}
		raw, ok = l.Skip()
		if found || !ok {
			return raw, ok
		}
		if !l.Take(',') {
			return nil, false
		}
	}
}

// attribute returns the JSON of one attribute of a large object. The first call makes an index
// of the attributes. The result `ok` is false if the index does not have the attribute.
func (d *valueData) attribute(name string) (raw []byte, ok bool) {
	index := d.index.Load()
	if index == nil {
		index = &[]Member{}
		for l := Lex(d.json); l.Take('{') || l.Take(','); {
			key, _, ok := l.Text()
			if !ok || !l.Take(':') {
				break
			}
			raw, ok := l.Skip()
			if !ok {
				break
			}
			*index = append(*index, Member{key[1 : len(key)-1], raw})
			if len(*index) > maxIndex {
				break
			}
		}
		d.index.Store(index)
	}
	for _, m := range *index {
		if string(m.Key) == name {
			return m.Whole, true
		}
	}
	return nil, false
}

// maxIndex limits the number of attributes in valueData.index: it has at most maxIndex+1. The
// method `attribute` does not find the attributes after these. An object with more attributes
// usually holds data, and not variables or outputs.
const maxIndex = 200

// Split makes a Value from each member of an object, and returns the keys and the values. The
// values share the bytes of the object.
func Split(members []Member) (keys []string, values []Value) {
	keys, values = make([]string, len(members)), make([]Value, len(members))
	data := make([]valueData, len(members))
	for i, m := range members {
		from := len(m.Key) + len(`"":`)
		data[i].json = m.Whole[from:len(m.Whole):len(m.Whole)]
		keys[i], values[i] = string(m.Key), Value{&data[i]}
	}
	return keys, values
}

// WithMember returns the object v with one more attribute. The parameter `name` is the name of
// this attribute. The parameter `member` is its value: an object whose attributes are texts.
// If v is null, the result has only this attribute.
func WithMember(v Value, name string, member map[string]string) (Value, error) {
	raw, err := Decode(v)
	if err != nil {
		return Value{}, fmt.Errorf("decode an object: %w", err)
	}
	raw, whole := raw.Unmark() // if the whole object is sensitive, each attribute is sensitive, too
	all := map[string]cty.Value{}
	if !raw.IsNull() && raw.Type().IsObjectType() {
		for attr, x := range raw.AsValueMap() {
			all[attr] = x.WithMarks(whole)
		}
	}
	texts := map[string]cty.Value{}
	for attr, text := range member {
		texts[attr] = cty.StringVal(text)
	}
	all[name] = cty.ObjectVal(texts)
	out, err := Encode(cty.ObjectVal(all), true)
	if err != nil {
		return Value{}, fmt.Errorf("encode an object: %w", err)
	}
	return out, nil
}
