package fastjson

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/saga-engine/engine/sdk/jsonscan"
	"github.com/saga-engine/engine/sdk/schema"
)

// mostFields is the largest number of fields of an object that this package handles. The package
// marks each field that it has read with one bit of a uint64.
const mostFields = 64

// Holds reports whether `raw` is certainly a JSON object that fits the schemas in the parameter
// `fields`. If Holds returns false, raw may still fit, and the caller must check it with another
// parser.
func Holds(fields []schema.Field, raw json.RawMessage) bool {
	s := jsonscan.Scanner{Src: raw}
	return hasFields(&s, fields) && s.End()
}

func hasFields(s *jsonscan.Scanner, fields []schema.Field) bool {
	if len(fields) > mostFields {
		return false
	}
	seen, next := uint64(0), 0
	ok := s.Object(func(key []byte) bool {
		i := fieldFrom(fields, key, next)
		if i < 0 || !hasField(s, &fields[i]) {
			return false
		}
		seen |= 1 << i
		next = i + 1
		return true
	})
	for i := range fields {
		if seen&(1<<i) == 0 && !fields[i].Optional {
			return false
		}
	}
	return ok
}

// fieldFrom returns the index of a field with this name; -1 if there is none. The search starts
// at the index in the parameter `guess`, because the name is probably there.
func fieldFrom(fields []schema.Field, name []byte, guess int) int {
	for k := range fields {
		i := (guess + k) % len(fields)
		if fields[i].Name == string(name) {
			return i
		}
	}
	return -1
}

func hasField(s *jsonscan.Scanner, f *schema.Field) bool {
	if f.Optional && s.Peek() == 'n' {
		return s.Word("null")
	}
	if len(f.Enum) == 0 {
		return hasType(s, f.Type)
	}
	s.Peek()
	from := s.Pos
	if !hasType(s, f.Type) {
		return false
	}
	return slices.ContainsFunc(f.Enum, func(e json.RawMessage) bool { return bytes.Equal(e, s.Src[from:s.Pos]) })
}

func hasType(s *jsonscan.Scanner, t schema.Type) bool {
	switch t.Kind {
	case schema.KindAny:
		return s.Skip()
	case schema.KindBool:
		if s.Peek() == 't' {
			return s.Word("true")
		}
		return s.Word("false")
	case schema.KindNumber:
		_, ok := s.Number()
		return ok
	case schema.KindString:
		_, _, ok := s.Text()
		return ok
	case schema.KindObject:
		return hasFields(s, t.Fields)
	case schema.KindList, schema.KindSet:
		return t.Elem != nil && s.List(func() bool { return hasType(s, *t.Elem) })
	case schema.KindMap:
		return t.Elem != nil && s.Object(func([]byte) bool { return hasType(s, *t.Elem) })
	}
	return false
}
