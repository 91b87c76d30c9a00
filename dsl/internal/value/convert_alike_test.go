package value

import (
	"errors"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// A set of numbers that the library can only tell apart one by one is refused, whatever
// it is made of; a list of them, and a set of some, is not.
func TestSetsOfAlikeNumbers(t *testing.T) {
	numbers := func(n int) []cty.Value {
		list := make([]cty.Value, n)
		for i := range list {
			list[i] = cty.NumberIntVal(1_000_000_000_000_000 + int64(i))
		}
		return list
	}
	set := cty.Set(cty.Number)
	for _, c := range []struct {
		name  string
		v     cty.Value
		ty    cty.Type
		alike bool
	}{
		{"some", cty.TupleVal(numbers(2000)), set, false},
		{"many", cty.TupleVal(numbers(5000)), set, true},
		{"a list of many", cty.ListVal(numbers(5000)), set, true},
		{"many in an object", cty.ObjectVal(map[string]cty.Value{"a": cty.TupleVal(numbers(5000))}), cty.Object(map[string]cty.Type{"a": set}), true},
		{"many in a list", cty.TupleVal([]cty.Value{cty.TupleVal(numbers(5000))}), cty.List(set), true},
		{"many as a list", cty.TupleVal(numbers(5000)), cty.List(cty.Number), false},
	} {
		if _, err := ConvertTo(c.v, c.ty); errors.Is(err, errAlike) != c.alike || !c.alike && err != nil {
			t.Errorf("%s: %v, want errAlike: %t", c.name, err, c.alike)
		}
	}
}
