package fastjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/saga-engine/engine/sdk/internal/jsontree"
	"github.com/saga-engine/engine/sdk/internal/typed"
	"github.com/saga-engine/engine/sdk/jsonscan"
)

// Encode converts a struct to a JSON object. It returns the same result and the same error as
// p.Encode.
func Encode(p *typed.Plan, v reflect.Value) (json.RawMessage, error) {
	if out, ok := write(p, make([]byte, 0, 128), v); ok {
		return out, nil
	}
	return p.Encode(v)
}

// write appends v to out as JSON. If ok is false, a value is unusual or wrong, and the
// returned bytes must not be used.
func write(p *typed.Plan, out []byte, v reflect.Value) (_ []byte, ok bool) {
	switch p.Form {
	case typed.Any:
		if v.IsNil() {
			return append(out, "null"...), true
		}
		return appendTree(out, v.Interface(), 0)
	case typed.Raw:
		return writeRaw(out, v.Bytes())
	case typed.Pointer:
		if v.IsNil() {
			return append(out, "null"...), true
		}
		return write(p.Elem, out, v.Elem())
	case typed.Bool:
		return strconv.AppendBool(out, v.Bool()), true
	case typed.Int:
		return strconv.AppendInt(out, v.Int(), 10), true
	case typed.Uint:
		return strconv.AppendUint(out, v.Uint(), 10), true
	case typed.Float:
		if p.Go.NumMethod() > 0 {
			return out, false // package typed encodes v, because its type may have its own method for encoding
		}
		return appendFloat(out, v.Float(), p.Go.Bits())
	case typed.Number:
		return appendTree(out, json.Number(v.String()), 0)
	case typed.String:
		return appendText(out, v.String()), true
	case typed.Duration:
		return appendText(out, time.Duration(v.Int()).String()), true
	case typed.Text:
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		return appendText(out, string(text)), err == nil
	case typed.List:
		return writeList(p, out, v)
	case typed.Map:
		return writeMap(p, out, v)
	case typed.Struct:
		return writeStruct(p, out, v)
	}
	return out, false
}

func writeRaw(out, raw []byte) ([]byte, bool) {
	if len(raw) == 0 {
		return append(out, "null"...), true
	}
	s := jsonscan.Scanner{Src: raw}
	tree, ok := s.Tree()
	if !ok || !s.End() {
		return out, false
	}
	return appendTree(out, tree, 0)
}

func writeList(p *typed.Plan, out []byte, v reflect.Value) (_ []byte, ok bool) {
	out = append(out, '[')
	for i := range v.Len() {
		if i > 0 {
			out = append(out, ',')
		}
		if out, ok = write(p.Elem, out, v.Index(i)); !ok {
			return out, false
		}
	}
	return append(out, ']'), true
}

func writeMap(p *typed.Plan, out []byte, v reflect.Value) (_ []byte, ok bool) {
	keys := make([]string, 0, v.Len())
	for iter := v.MapRange(); iter.Next(); {
		key := iter.Key().String()
		if !utf8.ValidString(key) {
			return out, false
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	out = append(out, '{')
	for i, key := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, key), ':')
		if out, ok = write(p.Elem, out, v.MapIndex(reflect.ValueOf(key).Convert(p.Go.Key()))); !ok {
			return out, false
		}
	}
	return append(out, '}'), true
}

// writeStruct appends a struct as a JSON object with all its fields, sorted by name.
func writeStruct(p *typed.Plan, out []byte, v reflect.Value) (_ []byte, ok bool) {
	out = append(out, '{')
	for i := range p.Fields {
		f := &p.Fields[i]
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), f.Schema.Name...), '"', ':')
		value := v.FieldByIndex(f.Index)
		if len(f.Schema.Enum) > 0 && f.Schema.Optional && value.IsZero() {
			out = append(out, "null"...) // the zero value of an optional enum becomes null
			continue
		}
		from := len(out)
		if out, ok = write(f.Plan, out, value); !ok {
			return out, false
		}
		if len(f.Schema.Enum) > 0 && !slices.ContainsFunc(f.Schema.Enum, func(e json.RawMessage) bool { return bytes.Equal(e, out[from:]) }) {
			return out, false
		}
	}
	return append(out, '}'), true
}

// appendTree appends the JSON of the value `tree` to out, and returns the longer slice. Object keys
// are sorted, as in encoding/json. The author's code made the value, so it may have any Go type. If
// ok is false, the value is unusual or wrong.
func appendTree(out []byte, tree any, depth int) (_ []byte, ok bool) {
	if depth > jsonscan.MaxDepth {
		// So many levels can mean that the value contains itself.
		return out, false
	}
	switch x := tree.(type) {
	case nil:
		return append(out, "null"...), true
	case bool:
		return strconv.AppendBool(out, x), true
	case string:
		return appendText(out, x), utf8.ValidString(x)
	case json.Number:
		s := jsonscan.Scanner{Src: []byte(x)}
		raw, ok := s.Number()
		return append(out, raw...), ok && len(raw) == len(x)
	case int:
		return strconv.AppendInt(out, int64(x), 10), true
	case int64:
		return strconv.AppendInt(out, x, 10), true
	case float64:
		return appendFloat(out, x, 64)
	case []any:
		return appendList(out, x, depth)
	case map[string]any:
		return appendObject(out, x, depth)
	}
	return out, false
}

func appendList(out []byte, list []any, depth int) (_ []byte, ok bool) {
	if list == nil {
		return append(out, "null"...), true
	}
	out = append(out, '[')
	for i, e := range list {
		if i > 0 {
			out = append(out, ',')
		}
		if out, ok = appendTree(out, e, depth+1); !ok {
			return out, false
		}
	}
	return append(out, ']'), true
}

func appendObject(out []byte, object map[string]any, depth int) (_ []byte, ok bool) {
	if object == nil {
		return append(out, "null"...), true
	}
	out = append(out, '{')
	for i, key := range slices.Sorted(maps.Keys(object)) {
		if !utf8.ValidString(key) {
			return out, false
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, key), ':')
		if out, ok = appendTree(out, object[key], depth+1); !ok {
			return out, false
		}
	}
	return append(out, '}'), true
}

// appendText appends a string as encoding/json does, but without the escapes for HTML.
func appendText(out []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			raw, err := jsontree.Marshal(s)
			if err != nil { // cannot happen: a string can always be encoded
				return append(out, `""`...)
			}
			return append(out, raw...)
		}
	}
	return append(append(append(out, '"'), s...), '"')
}

// appendFloat appends a float as encoding/json does: very small and very large numbers have an
// exponent. The result `ok` is false for infinity and NaN, which JSON does not have.
func appendFloat(out []byte, f float64, bits int) (_ []byte, ok bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return out, false
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 {
		if bits == 64 && (abs < 1e-6 || abs >= 1e21) || bits == 32 && (float32(abs) < 1e-6 || float32(abs) >= 1e21) {
			format = 'e'
		}
	}
	out = strconv.AppendFloat(out, f, format, -1, bits)
	if n := len(out); format == 'e' && n >= 4 && out[n-4] == 'e' && out[n-3] == '-' && out[n-2] == '0' {
		out[n-2] = out[n-1] // write 1e-9 instead of 1e-09
		out = out[:n-1]
	}
	return out, true
}
