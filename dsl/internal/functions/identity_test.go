package functions

import (
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// TestIdentity: two values share their identity exactly if they are equal.
func TestIdentity(t *testing.T) {
	num := func(s string) cty.Value { return cty.MustParseNumberVal(s) }
	values := []cty.Value{
		cty.StringVal(""), cty.StringVal("1"), num("1"), num("1.0"), num("10").Divide(num("10")), num("-0"), cty.Zero, num("0.1"), cty.True, cty.False,
		cty.StringVal("true"), cty.EmptyTupleVal, cty.EmptyObjectVal, cty.ListValEmpty(cty.String), cty.MapValEmpty(cty.String),
		cty.TupleVal([]cty.Value{num("1")}), cty.TupleVal([]cty.Value{num("1"), num("1")}), cty.TupleVal([]cty.Value{cty.TupleVal([]cty.Value{num("1")})}),
		cty.ListVal([]cty.Value{num("1")}), cty.SetVal([]cty.Value{num("1")}), cty.TupleVal([]cty.Value{cty.StringVal("a:1"), cty.StringVal("b")}),
		cty.TupleVal([]cty.Value{cty.StringVal("a"), cty.StringVal(":1b")}), cty.ObjectVal(map[string]cty.Value{"a": num("1")}),
		cty.MapVal(map[string]cty.Value{"a": num("1")}), cty.ObjectVal(map[string]cty.Value{"b": num("1")}), num("1e500"), num("1e501"),
	}
	for _, a := range values {
		for _, b := range values {
			equal := a.Equals(b)
			if same := identity(a) == identity(b); same != (equal.IsKnown() && equal.True()) {
				t.Errorf("%#v and %#v: same identity %t", a, b, same)
			}
		}
	}
}
