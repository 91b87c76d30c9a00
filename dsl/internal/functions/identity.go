package functions

import (
	"strconv"

	"github.com/zclconf/go-cty/cty"
)

// identity returns a text for a known value. Two known values have the same text if and only if
// they are equal. So a function can look up a value in a Go map, and need not compare the value
// with all others.
func identity(v cty.Value) string { return string(appendIdentity(nil, v)) }

func appendIdentity(out []byte, v cty.Value) []byte {
	ty := v.Type()
	switch {
	case v.IsNull():
		return append(out, 'n')
	case ty == cty.String:
		return appendSized(out, 's', v.AsString())
	case ty == cty.Bool:
		return strconv.AppendBool(out, v.True())
	case ty == cty.Number:
		f := v.AsBigFloat()
		if f.Sign() == 0 {
			return append(out, '0') // -0 equals 0, so both have the same text
		}
		return appendSized(out, 'f', f.Text('p', 0))
	case !v.CanIterateElements():
		return append(out, '?')
	}
	// A list, a set, a map, a tuple and an object are never equal, so each kind has its own letter.
	kind := byte('o')
	switch {
	case ty.IsListType():
		kind = 'l'
	case ty.IsSetType():
		kind = 'e'
	case ty.IsMapType():
		kind = 'm'
	case ty.IsTupleType():
		kind = 't'
	}
	out = append(strconv.AppendInt(append(out, kind), int64(v.LengthInt()), 10), ':')
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		if kind == 'o' || kind == 'm' {
			out = appendSized(out, 'k', k.AsString())
		}
		out = appendIdentity(out, e)
	}
	return out
}

func appendSized(out []byte, kind byte, s string) []byte {
	out = strconv.AppendInt(append(out, kind), int64(len(s)), 10)
	return append(append(out, ':'), s...)
}
