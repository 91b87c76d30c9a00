package dsl

import (
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
		if out, ok := convertParts(v, ty); ok {
			return out, nil
		}
	}
	return convert.Convert(v, ty) // which also says what is wrong
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
// not do.
func convertParts(v cty.Value, ty cty.Type) (cty.Value, bool) {
	raw, marks := v.Unmark()
	from := raw.Type()
	if !raw.IsKnown() || raw.IsNull() || !from.IsTupleType() && !from.IsObjectType() || raw.LengthInt() == 0 {
		return cty.NilVal, false
	}
	switch {
	case from.IsTupleType() && (ty.IsListType() || ty.IsSetType()):
		list := make([]cty.Value, 0, raw.LengthInt())
		for it := raw.ElementIterator(); it.Next(); {
			_, e := it.Element()
			c, err := convertTo(e, ty.ElementType())
			if err != nil {
				return cty.NilVal, false
			}
			list = append(list, c)
		}
		if ty.IsSetType() {
			return cty.SetVal(list).WithMarks(marks), true
		}
		return cty.ListVal(list).WithMarks(marks), true
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
				return cty.NilVal, false
			}
			attrs[name] = c
		}
		if ty.IsMapType() {
			return cty.MapVal(attrs).WithMarks(marks), true
		}
		return cty.ObjectVal(attrs).WithMarks(marks), len(attrs) == len(ty.AttributeTypes())
	}
	return cty.NilVal, false
}
