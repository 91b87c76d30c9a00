package value

import (
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/saga-engine/engine/dsl/internal/sorted"
)

// Conform converts a value to a type constraint. It differs from the conversion of the library cty
// in one point. Where the constraint says `any`, the value keeps its type, also inside of lists and
// maps: ["a", 1] does not become ["a", "1"].
func Conform(v cty.Value, ty cty.Type) (cty.Value, error) {
	if ty == cty.DynamicPseudoType {
		return v, nil
	}
	if !ty.HasDynamicTypes() {
		return ConvertTo(v, ty)
	}
	raw, marks := v.Unmark()
	out, err := conformDynamic(raw, ty)
	if err != nil {
		return cty.NilVal, err
	}
	return out.WithMarks(marks), nil
}

func conformDynamic(v cty.Value, ty cty.Type) (cty.Value, error) {
	switch {
	case v.IsNull():
		return cty.NullVal(cty.DynamicPseudoType), nil
	case !v.IsKnown():
		if v.Type() == cty.DynamicPseudoType || v.Type().IsObjectType() == ty.IsObjectType() {
			return cty.DynamicVal, nil
		}
		return convert.Convert(v, ty)
	case ty.IsListType():
		items, err := Sequence(v)
		if err != nil {
			return cty.NilVal, err
		}
		for i := range items {
			if items[i], err = Conform(items[i], ty.ElementType()); err != nil {
				return cty.NilVal, fmt.Errorf("element %d: %w", i, err)
			}
		}
		return cty.TupleVal(items), nil
	case ty.IsMapType():
		if !v.Type().IsMapType() && !v.Type().IsObjectType() {
			return cty.NilVal, fmt.Errorf("a map is required, this is %s", v.Type().FriendlyName())
		}
		attrs := v.AsValueMap()
		out := make(map[string]cty.Value, len(attrs))
		for _, k := range sorted.Keys(attrs) { // sorted, so that equal values give the same error
			c, err := Conform(attrs[k], ty.ElementType())
			if err != nil {
				return cty.NilVal, fmt.Errorf("element %q: %w", k, err)
			}
			out[k] = c
		}
		return cty.ObjectVal(out), nil
	case ty.IsObjectType():
		return conformObject(v, ty)
	}
	return convert.Convert(v, ty)
}

func conformObject(v cty.Value, ty cty.Type) (cty.Value, error) {
	if !v.Type().IsMapType() && !v.Type().IsObjectType() {
		return cty.NilVal, fmt.Errorf("an object is required, this is %s", v.Type().FriendlyName())
	}
	attrs := v.AsValueMap()
	out := map[string]cty.Value{}
	for _, name := range AttributeNames(ty) {
		at := ty.AttributeType(name)
		x, ok := attrs[name]
		if !ok {
			if !ty.AttributeOptional(name) {
				return cty.NilVal, fmt.Errorf("attribute %q is required", name)
			}
			x = cty.NullVal(cty.DynamicPseudoType)
		}
		c, err := Conform(x, at)
		if err != nil {
			return cty.NilVal, fmt.Errorf("attribute %q: %w", name, err)
		}
		out[name] = c
	}
	return cty.ObjectVal(out), nil
}

// ConvertTo converts a value to a type. The type must not contain the type `any`. ConvertTo
// converts each element of a list separately. The library cty would also compare the types of all
// elements, which takes long.
func ConvertTo(v cty.Value, ty cty.Type) (cty.Value, error) {
	if ty.IsPrimitiveType() {
		return ConvertScalar(v, ty)
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
	return convert.Convert(v, ty) // if the conversion is not possible, the error of the library cty says why
}

// maxComparisons is the largest number of comparisons that are allowed to make one set. The
// library cty compares all pairs of elements with the same hash. Numbers have the same hash if
// their first ten digits are the same. A million comparisons take 0.25 s.
const maxComparisons = 4_000_000

var errAlike = errors.New("the set has too many numbers whose first ten digits are the same: use a set of strings, or a list")

// distinguishable returns errAlike if it would take more than maxComparisons comparisons to
// make a set of the elements of v.
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

// ConvertScalar converts a value to a string, a number or a boolean. It refuses a number whose
// text would fill the memory, and a text that would take minutes to parse as a number.
func ConvertScalar(v cty.Value, ty cty.Type) (cty.Value, error) {
	raw, _ := v.Unmark()
	switch {
	case ty == cty.String && Exponent(raw) > 8*MaxDigits:
		return cty.NilVal, ErrDigits
	case ty == cty.Number && raw.Type() == cty.String && raw.IsKnown() && !raw.IsNull() && Numeral(raw.AsString()) > 8*MaxDigits:
		return cty.NilVal, ErrDigits
	}
	return convert.Convert(v, ty)
}

// convertParts converts a tuple or an object to ty, element by element. It returns false if it
// cannot convert v. Then the caller tries the library cty, unless the error is errAlike: v
// contains too many similar numbers for a set.
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
			c, err := ConvertTo(e, ty.ElementType())
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
				continue // ty does not have this attribute: leave it out
			}
			c, err := ConvertTo(raw.GetAttr(name), want)
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

// Sequence returns the elements of a list, set or tuple. It returns an error for any other type.
func Sequence(v cty.Value) ([]cty.Value, error) {
	ty := v.Type()
	if !ty.IsListType() && !ty.IsSetType() && !ty.IsTupleType() {
		return nil, fmt.Errorf("a list is required, this is %s", ty.FriendlyName())
	}
	return v.AsValueSlice(), nil
}
