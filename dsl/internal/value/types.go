package value

import (
	"fmt"
	"sort"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/saga-engine/engine/sdk/schema"
)

// TypeFrom translates a type of an agent's schema to a type of the evaluator (cty).
func TypeFrom(t schema.Type) (cty.Type, error) {
	switch t.Kind {
	case schema.KindAny:
		return cty.DynamicPseudoType, nil
	case schema.KindBool:
		return cty.Bool, nil
	case schema.KindNumber:
		return cty.Number, nil
	case schema.KindString:
		return cty.String, nil
	case schema.KindList, schema.KindSet, schema.KindMap:
		if t.Elem == nil {
			return cty.NilType, fmt.Errorf("type %s has no element type", t.Kind)
		}
		elem, err := TypeFrom(*t.Elem)
		if err != nil {
			return cty.NilType, err
		}
		switch t.Kind {
		case schema.KindList:
			return cty.List(elem), nil
		case schema.KindSet:
			return cty.Set(elem), nil
		}
		return cty.Map(elem), nil
	case schema.KindObject:
		return ObjectFrom(t.Fields)
	}
	return cty.NilType, fmt.Errorf("unknown type %q", t.Kind)
}

// ObjectFrom translates the fields of an agent's schema to an object type.
func ObjectFrom(fields []schema.Field) (cty.Type, error) {
	attrs := map[string]cty.Type{}
	var optional []string
	for _, f := range fields {
		ty, err := TypeFrom(f.Type)
		if err != nil {
			return cty.NilType, fmt.Errorf("field %q: %w", f.Name, err)
		}
		attrs[f.Name] = ty
		if f.Optional {
			optional = append(optional, f.Name)
		}
	}
	return cty.ObjectWithOptionalAttrs(attrs, optional), nil
}

// MarkFields returns v with its sensitive fields marked. The parameter v is an object with the
// given fields. If the elements of a list or map have a sensitive field, MarkFields marks the
// whole list or map.
func MarkFields(v cty.Value, fields []schema.Field) cty.Value {
	if v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() {
		return v
	}
	raw, marks := v.Unmark()
	attrs := raw.AsValueMap()
	if attrs == nil {
		return v
	}
	for _, f := range fields {
		if x, ok := attrs[f.Name]; ok {
			x = MarkType(x, f.Type)
			if f.Sensitive {
				x = x.Mark(SensitiveMark{})
			}
			attrs[f.Name] = x
		}
	}
	return cty.ObjectVal(attrs).WithMarks(marks)
}

// MarkType returns v with its sensitive parts marked. The parameter v has type t. If the
// elements of a list or map have a sensitive part, MarkType marks the whole list or map.
func MarkType(v cty.Value, t schema.Type) cty.Value {
	switch {
	case t.Kind == schema.KindObject:
		return MarkFields(v, t.Fields)
	case t.Elem != nil && HasSensitive(*t.Elem):
		return v.Mark(SensitiveMark{})
	}
	return v
}

// HasSensitive reports whether a type has a sensitive field at any depth.
func HasSensitive(t schema.Type) bool {
	if t.Elem != nil {
		return HasSensitive(*t.Elem)
	}
	for _, f := range t.Fields {
		if f.Sensitive || HasSensitive(f.Type) {
			return true
		}
	}
	return false
}

// TypeText returns the name of a type for messages.
func TypeText(ty cty.Type) string {
	if ty == cty.DynamicPseudoType {
		return "any"
	}
	return ty.FriendlyNameForConstraint()
}

// Assignable reports whether some value of the first type can be converted to the second type.
// Not every value needs to be convertible.
func Assignable(from, to cty.Type) bool {
	from, to = PlainType(from), to.WithoutOptionalAttributesDeep()
	if from == cty.DynamicPseudoType || to == cty.DynamicPseudoType || from.Equals(to) {
		return true
	}
	return convert.GetConversionUnsafe(from, to) != nil
}

// PlainType returns the type of the values that the type constraint ty allows. In the result, the
// optional attributes of ty are ordinary attributes. If ty contains the type "any" and is not an
// object type, PlainType returns cty.DynamicPseudoType.
func PlainType(ty cty.Type) cty.Type {
	if ty == cty.NilType || ty.HasDynamicTypes() && !ty.IsObjectType() {
		return cty.DynamicPseudoType
	}
	return ty.WithoutOptionalAttributesDeep()
}

// UnknownOf returns an unknown value of a type. For an object type it returns an object with
// unknown attributes. So a check finds references to attributes that do not exist.
func UnknownOf(ty cty.Type) cty.Value {
	switch {
	case ty.IsObjectType():
		attrs := map[string]cty.Value{}
		for name, at := range ty.AttributeTypes() {
			attrs[name] = UnknownOf(at)
		}
		return cty.ObjectVal(attrs)
	case ty.HasDynamicTypes():
		return cty.DynamicVal
	}
	return cty.UnknownVal(ty.WithoutOptionalAttributesDeep())
}

// AttributeNames returns the names of an object's attributes in ascending order; nil for any
// other type.
func AttributeNames(ty cty.Type) []string {
	if !ty.IsObjectType() {
		return nil
	}
	names := make([]string, 0, len(ty.AttributeTypes()))
	for n := range ty.AttributeTypes() {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
