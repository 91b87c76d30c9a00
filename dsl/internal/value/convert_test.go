package value

import (
	"errors"
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
		cty.TupleVal([]cty.Value{num(1), cty.DynamicVal}), cty.TupleVal([]cty.Value{num(1), num(1), str("1").Mark(SensitiveMark{})}),
		cty.TupleVal([]cty.Value{cty.TupleVal([]cty.Value{num(1)}), cty.EmptyTupleVal}), cty.TupleVal([]cty.Value{str("x")}).Mark(SensitiveMark{}),
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
			got, err := ConvertTo(v, ty)
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
	if _, err := Conform(long, cty.Number); !errors.Is(err, ErrDigits) {
		t.Errorf("as a number: %v", err)
	}
	if _, err := NumberOf(long); !errors.Is(err, ErrDigits) {
		t.Errorf("of a setting: %v", err)
	}
	huge := cty.MustParseNumberVal("1e900")
	for range 15 {
		huge = huge.Multiply(huge)
	}
	if _, err := StringOf(huge); !errors.Is(err, ErrDigits) {
		t.Errorf("as a text: %v", err)
	}
	if _, err := Conform(huge, cty.String); !errors.Is(err, ErrDigits) {
		t.Errorf("as a string: %v", err)
	}
}
