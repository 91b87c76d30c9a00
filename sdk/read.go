package sdk

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
)

// read fills v, which is zero, from the JSON that s is at. It is decode
// without a tree; ok is false where something is unusual or wrong, and then v
// is of no use.
func (p *plan) read(s *scanner, v reflect.Value) (ok bool) {
	if s.peek() == 'n' {
		return s.word("null") && p.assignNull(v, "") == nil
	}
	switch p.form {
	case formAny:
		tree, ok := s.tree()
		if ok {
			v.Set(reflect.ValueOf(tree))
		}
		return ok
	case formRaw:
		tree, ok := s.tree()
		if !ok {
			return false
		}
		raw, ok := appendTree(nil, tree, 0)
		v.SetBytes(raw)
		return ok
	case formPointer:
		v.Set(reflect.New(p.rt.Elem()))
		return p.elem.read(s, v.Elem())
	case formBool:
		v.SetBool(s.peek() == 't')
		return s.word("true") || s.word("false")
	case formString, formDuration, formText:
		text, ok := s.string()
		return ok && p.assignString(text, v, "") == nil
	case formInt, formUint, formFloat, formNumber:
		raw, ok := s.number()
		return ok && p.assignNumber(string(raw), v, "") == nil
	case formList:
		return p.readList(s, v)
	case formMap:
		return p.readMap(s, v)
	case formStruct:
		return p.readStruct(s, v)
	}
	return false
}

func (p *plan) readList(s *scanner, v reflect.Value) bool {
	v.Set(reflect.MakeSlice(p.rt, 0, 0))
	return s.list(func() bool {
		n := v.Len()
		v.Grow(1)
		v.SetLen(n + 1)
		return p.elem.read(s, v.Index(n))
	})
}

func (p *plan) readMap(s *scanner, v reflect.Value) bool {
	v.Set(reflect.MakeMap(p.rt))
	return s.object(func(key []byte) bool {
		elem := reflect.New(p.rt.Elem()).Elem()
		if !p.elem.read(s, elem) {
			return false
		}
		v.SetMapIndex(reflect.ValueOf(string(key)).Convert(p.rt.Key()), elem)
		return true
	})
}

func (p *plan) readStruct(s *scanner, v reflect.Value) bool {
	if len(p.fields) > 64 {
		return false
	}
	seen := uint64(0)
	ok := s.object(func(key []byte) bool {
		i := p.fieldAt(key)
		if i < 0 || seen&(1<<i) != 0 {
			return false
		}
		seen |= 1 << i
		return p.fields[i].read(s, v)
	})
	if !ok {
		return false
	}
	for i := range p.fields {
		f := &p.fields[i]
		if seen&(1<<i) == 0 && (!f.field.Optional || !f.preset(v)) {
			return false
		}
	}
	return true
}

// fieldAt finds a field by name; -1 if there is none.
func (p *plan) fieldAt(name []byte) int {
	lo, hi := 0, len(p.fields)
	for lo < hi {
		mid := (lo + hi) / 2
		if p.fields[mid].field.Name < string(name) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(p.fields) || p.fields[lo].field.Name != string(name) {
		return -1
	}
	return lo
}

// read fills the field of the struct v.
func (f *planField) read(s *scanner, v reflect.Value) bool {
	s.peek()
	from := s.pos
	if f.field.Optional && s.word("null") {
		return f.preset(v)
	}
	if f.words != nil || !f.plan.read(s, v.FieldByIndex(f.index)) {
		return false
	}
	return len(f.enum) == 0 || slices.ContainsFunc(f.field.Enum, func(e json.RawMessage) bool { return bytes.Equal(e, s.src[from:s.pos]) })
}

// preset fills an optional field of the struct v that was left out or null.
func (f *planField) preset(v reflect.Value) bool {
	if f.field.Default == nil {
		return true
	}
	tree, err := parseTree(f.field.Default)
	return err == nil && f.plan.assign(tree, v.FieldByIndex(f.index), "") == nil
}
