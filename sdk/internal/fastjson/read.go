package fastjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/saga-engine/engine/sdk/internal/jsontree"
	"github.com/saga-engine/engine/sdk/internal/typed"
	"github.com/saga-engine/engine/sdk/jsonscan"
)

// Decode converts a JSON object to a struct. It returns the same result and the same error
// as p.Decode.
func Decode(p *typed.Plan, raw json.RawMessage) (reflect.Value, error) {
	v := reflect.New(p.Go).Elem()
	if s := (jsonscan.Scanner{Src: raw}); read(p, &s, v) && s.End() {
		return v, nil
	}
	return p.Decode(raw)
}

// read reads the JSON value at the position of s and stores it in v. Before the call, v must
// be the zero value. If ok is false, the JSON is unusual or wrong, and v must not be used.
func read(p *typed.Plan, s *jsonscan.Scanner, v reflect.Value) (ok bool) {
	if s.Peek() == 'n' {
		return s.Word("null") && p.AssignNull(v, "") == nil
	}
	switch p.Form {
	case typed.Any:
		tree, ok := s.Tree()
		if ok {
			v.Set(reflect.ValueOf(tree))
		}
		return ok
	case typed.Raw:
		tree, ok := s.Tree()
		if !ok {
			return false
		}
		raw, ok := appendTree(nil, tree, 0)
		v.SetBytes(raw)
		return ok
	case typed.Pointer:
		v.Set(reflect.New(p.Go.Elem()))
		return read(p.Elem, s, v.Elem())
	case typed.Bool:
		v.SetBool(s.Peek() == 't')
		return s.Word("true") || s.Word("false")
	case typed.String, typed.Duration, typed.Text:
		text, ok := s.String()
		return ok && p.AssignString(text, v, "") == nil
	case typed.Int, typed.Uint, typed.Float, typed.Number:
		raw, ok := s.Number()
		return ok && p.AssignNumber(string(raw), v, "") == nil
	case typed.List:
		return readList(p, s, v)
	case typed.Map:
		return readMap(p, s, v)
	case typed.Struct:
		return readStruct(p, s, v)
	}
	return false
}

func readList(p *typed.Plan, s *jsonscan.Scanner, v reflect.Value) bool {
	v.Set(reflect.MakeSlice(p.Go, 0, 0))
	return s.List(func() bool {
		n := v.Len()
		v.Grow(1)
		v.SetLen(n + 1)
		return read(p.Elem, s, v.Index(n))
	})
}

func readMap(p *typed.Plan, s *jsonscan.Scanner, v reflect.Value) bool {
	v.Set(reflect.MakeMap(p.Go))
	return s.Object(func(key []byte) bool {
		elem := reflect.New(p.Go.Elem()).Elem()
		if !read(p.Elem, s, elem) {
			return false
		}
		v.SetMapIndex(reflect.ValueOf(string(key)).Convert(p.Go.Key()), elem)
		return true
	})
}

func readStruct(p *typed.Plan, s *jsonscan.Scanner, v reflect.Value) bool {
	if len(p.Fields) > mostFields {
		return false
	}
	seen := uint64(0)
	ok := s.Object(func(key []byte) bool {
		i := fieldAt(p, key)
		if i < 0 || seen&(1<<i) != 0 {
			return false
		}
		seen |= 1 << i
		return readField(&p.Fields[i], s, v)
	})
	if !ok {
		return false
	}
	for i := range p.Fields {
		f := &p.Fields[i]
		if seen&(1<<i) == 0 && (!f.Schema.Optional || !preset(f, v)) {
			return false
		}
	}
	return true
}

// fieldAt returns the index of a field with this name; -1 if there is none.
func fieldAt(p *typed.Plan, name []byte) int {
	lo, hi := 0, len(p.Fields)
	for lo < hi {
		mid := (lo + hi) / 2
		if p.Fields[mid].Schema.Name < string(name) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(p.Fields) || p.Fields[lo].Schema.Name != string(name) {
		return -1
	}
	return lo
}

// readField reads the value of one field and stores it in the struct v. It returns false if
// the value is unusual or wrong.
func readField(f *typed.Field, s *jsonscan.Scanner, v reflect.Value) bool {
	s.Peek()
	from := s.Pos
	if f.Schema.Optional && s.Word("null") {
		return preset(f, v)
	}
	if f.Words != nil || !read(f.Plan, s, v.FieldByIndex(f.Index)) {
		return false
	}
	return len(f.Schema.Enum) == 0 || slices.ContainsFunc(f.Schema.Enum, func(e json.RawMessage) bool { return bytes.Equal(e, s.Src[from:s.Pos]) })
}

// preset stores the default of the optional field f in the struct v. It is called if the field is
// missing or null in the JSON. If the field has no default, preset does nothing and returns true.
// If the default is wrong, preset returns false.
func preset(f *typed.Field, v reflect.Value) bool {
	if f.Schema.Default == nil {
		return true
	}
	tree, err := jsontree.Parse(f.Schema.Default)
	return err == nil && f.Plan.Assign(tree, v.FieldByIndex(f.Index), "") == nil
}
