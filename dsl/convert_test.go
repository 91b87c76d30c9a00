package dsl

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// TestConvertAgrees: a conversion part by part gives what the library gives.
func TestConvertAgrees(t *testing.T) {
	str, num := cty.StringVal, cty.NumberIntVal
	values := []cty.Value{
		cty.EmptyTupleVal, cty.EmptyObjectVal, str("1"), num(1), cty.True, cty.DynamicVal, cty.NullVal(cty.DynamicPseudoType),
		cty.TupleVal([]cty.Value{num(1), str("2"), cty.True}), cty.TupleVal([]cty.Value{num(1), cty.NullVal(cty.String)}),
		cty.TupleVal([]cty.Value{num(1), cty.DynamicVal}), cty.TupleVal([]cty.Value{num(1), num(1), str("1").Mark(sensitiveMark{})}),
		cty.TupleVal([]cty.Value{cty.TupleVal([]cty.Value{num(1)}), cty.EmptyTupleVal}), cty.TupleVal([]cty.Value{str("x")}).Mark(sensitiveMark{}),
		cty.ObjectVal(map[string]cty.Value{"a": num(1), "b": str("2")}), cty.ObjectVal(map[string]cty.Value{"a": cty.TupleVal([]cty.Value{num(1)})}),
		cty.ObjectVal(map[string]cty.Value{"a": num(1), "c": num(2)}), cty.ListVal([]cty.Value{num(1), num(2)}), cty.UnknownVal(cty.List(cty.Number)),
		cty.TupleVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"a": num(1), "b": num(2)}), cty.ObjectVal(map[string]cty.Value{"a": str("3")})}),
	}
	object := cty.Object(map[string]cty.Type{"a": cty.String, "b": cty.Number})
	types := []cty.Type{
		cty.String, cty.Number, cty.Bool, cty.List(cty.String), cty.Set(cty.String), cty.Set(cty.Number), cty.Map(cty.String), cty.Map(cty.List(cty.Number)),
		cty.List(cty.List(cty.String)), object, cty.List(object), cty.Tuple([]cty.Type{cty.String}), cty.Object(map[string]cty.Type{"a": cty.List(cty.String)}),
		cty.ObjectWithOptionalAttrs(map[string]cty.Type{"a": cty.String, "b": cty.Number}, []string{"b"}),
		cty.List(cty.ObjectWithOptionalAttrs(map[string]cty.Type{"a": cty.String, "b": cty.Number}, []string{"b"})),
	}
	for _, v := range values {
		for _, ty := range types {
			got, err := convertTo(v, ty)
			want, wantErr := convert.Convert(v, ty)
			if (err == nil) != (wantErr == nil) || err == nil && !got.RawEquals(want) {
				t.Errorf("%#v as %#v:\n got  %#v, %v\n want %#v, %v", v, ty, got, err, want, wantErr)
			}
		}
	}
}

// TestLongNumbers: a text that is too long for a number is not read as one,
// and a number with too many digits is not written out.
func TestLongNumbers(t *testing.T) {
	long := cty.StringVal(strings.Repeat("9", 4<<20))
	if _, err := conform(long, cty.Number); !errors.Is(err, errDigits) {
		t.Errorf("as a number: %v", err)
	}
	if _, err := numberOf(long); !errors.Is(err, errDigits) {
		t.Errorf("of a setting: %v", err)
	}
	huge := cty.MustParseNumberVal("1e900")
	for range 15 {
		huge = huge.Multiply(huge)
	}
	if _, err := stringOf(huge); !errors.Is(err, errDigits) {
		t.Errorf("as a text: %v", err)
	}
	if _, err := conform(huge, cty.String); !errors.Is(err, errDigits) {
		t.Errorf("as a string: %v", err)
	}
}

// TestLockComputesNothing: a lock file holds plain values; what computes is
// refused before it is evaluated.
func TestLockComputesNothing(t *testing.T) {
	loops := strings.Repeat("[for a in [1, 2, 3, 4, 5, 6, 7, 8, 9] : ", 40) + "a" + strings.Repeat("]", 40)
	for _, version := range []string{loops, `"${1e900000000}"`, `"a${1e900000000}"`, "true ? \"1\" : \"2\"", `"%{ for x in [1] }x%{ endfor }"`} {
		_, diags := ReadLock([]byte("agent \"a\" {\n  version = "+version+"\n  hashes = []\n}\n"), "engine.lock.hcl")
		if !strings.Contains(fmt.Sprint(diags.Err()), "Not a literal value") {
			t.Errorf("%.60s: %v", version, diags.Err())
		}
	}
}
