package dsl

import (
	"errors"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// convertTo converts a value to a type that is known in full. The library
// compares the types of all elements of a list with each other, although all
// were converted to one type; here each element is converted, and no more.
func convertTo(v cty.Value, ty cty.Type) (cty.Value, error) {
	if ty.IsPrimitiveType() {
		return convertScalar(v, ty)
	}
	if ty.Equals(ty.WithoutOptionalAttributesDeep()) {
		out, ok, err := convertParts(v, ty)
		if ok || errors.Is(err, errAlike) {
			return out, err
		}
	}
	if ty.IsSetType() {
		if err := distinguishable(v); err != nil {
			return cty.NilVal, err
		}
	}
	return convert.Convert(v, ty) // which also says what is wrong
}

// maxComparisons is how many elements may be compared with each other to make a set.
// The library compares all that have one hash, and numbers have one if their first ten
// digits are the same. A million comparisons take a quarter of a second.
const maxComparisons = 4_000_000

var errAlike = errors.New("the set has too many numbers whose first ten digits are the same: use a set of strings, or a list")

// distinguishable returns errAlike if it would take too long to make a set of the
// elements of v.
func distinguishable(v cty.Value) error {
	raw, _ := v.UnmarkDeep()
	if !raw.IsKnown() || raw.IsNull() || !raw.CanIterateElements() || raw.LengthInt() < 1000 {
		return nil
	}
	buckets, sum := map[int]int{}, 0
	for it := raw.ElementIterator(); it.Next(); {
		_, e := it.Element()
		h := e.Hash()
		if sum += buckets[h]; sum > maxComparisons {
			return errAlike
		}
		buckets[h]++
	}
	return nil
}

// convertScalar converts a value to a string, a number or a boolean. A number
// may be so large that its text fills the memory, and a text so long that
// reading it as a number takes minutes.
func convertScalar(v cty.Value, ty cty.Type) (cty.Value, error) {
	raw, _ := v.Unmark()
	switch {
	case ty == cty.String && exponent(raw) > 8*maxDigits:
		return cty.NilVal, errDigits
	case ty == cty.Number && raw.Type() == cty.String && raw.IsKnown() && !raw.IsNull() && numeral(raw.AsString()) > 8*maxDigits:
		return cty.NilVal, errDigits
	}
	return convert.Convert(v, ty)
}

// convertParts converts the parts of a tuple or an object; false if that does
// not do. Returns errAlike.
func convertParts(v cty.Value, ty cty.Type) (cty.Value, bool, error) {
	raw, marks := v.Unmark()
	from := raw.Type()
	if !raw.IsKnown() || raw.IsNull() || !from.IsTupleType() && !from.IsObjectType() || raw.LengthInt() == 0 {
		return cty.NilVal, false, nil
	}
	switch {
	case from.IsTupleType() && (ty.IsListType() || ty.IsSetType()):
		list := make([]cty.Value, 0, raw.LengthInt())
		for it := raw.ElementIterator(); it.Next(); {
			_, e := it.Element()
			c, err := convertTo(e, ty.ElementType())
			if err != nil {
				return cty.NilVal, false, err
			}
			list = append(list, c)
		}
		if ty.IsSetType() {
			if err := distinguishable(cty.TupleVal(list)); err != nil {
				return cty.NilVal, false, err
			}
			return cty.SetVal(list).WithMarks(marks), true, nil
		}
		return cty.ListVal(list).WithMarks(marks), true, nil
	case from.IsObjectType() && (ty.IsMapType() || ty.IsObjectType()):
		attrs := make(map[string]cty.Value, raw.LengthInt())
		for name := range from.AttributeTypes() {
			want := ty
			switch {
			case ty.IsMapType():
				want = ty.ElementType()
			case ty.HasAttribute(name):
				want = ty.AttributeType(name)
			default:
				continue // the conversion drops it
			}
			c, err := convertTo(raw.GetAttr(name), want)
			if err != nil {
				return cty.NilVal, false, err
			}
			attrs[name] = c
		}
		if ty.IsMapType() {
			return cty.MapVal(attrs).WithMarks(marks), true, nil
		}
		return cty.ObjectVal(attrs).WithMarks(marks), len(attrs) == len(ty.AttributeTypes()), nil
	}
	return cty.NilVal, false, nil
}
