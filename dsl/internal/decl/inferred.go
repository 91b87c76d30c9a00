package decl

import (
	"errors"

	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// open reports whether the variable accepts any value, because neither a declared type nor a
// default restricts the values.
func (v *Variable) open() bool {
	return !v.typed && v.Type == cty.DynamicPseudoType && v.kind == kindOpen
}

// infer sets the type of a variable without a declared type to the type of its default. If the
// default is a tuple such as [1, 2] or an object, infer sets only the kind: the variable then
// accepts any list, or any object. There is one more rule for a tuple whose elements all have the
// same primitive type. If the default is such a tuple, the elements of every value of the variable
// must have this type, too. If the default is null, infer does nothing.
func (v *Variable) infer() {
	if v.typed || v.Default == cty.NilVal || v.Default.IsNull() {
		return
	}
	switch ty := v.Default.Type(); {
	case ty.IsTupleType():
		v.kind, v.element = kindList, commonPrimitive(ty.TupleElementTypes())
		v.TypeText = "list(" + value.TypeText(v.element) + ")"
	case ty.IsObjectType():
		v.kind, v.TypeText = kindObject, "object"
	case !ty.HasDynamicTypes():
		v.Type, v.TypeText = ty, typeexpr.TypeString(ty)
	}
}

// commonPrimitive returns the primitive type that all elements have. It returns
// cty.DynamicPseudoType if there are no elements, or if their types differ or are not primitive.
func commonPrimitive(elements []cty.Type) cty.Type {
	if len(elements) == 0 || !elements[0].IsPrimitiveType() {
		return cty.DynamicPseudoType
	}
	for _, ty := range elements {
		if !ty.Equals(elements[0]) {
			return cty.DynamicPseudoType
		}
	}
	return elements[0]
}

// convertKind converts x to a value that the variable may have. It returns an error if x does not
// have the same kind as the default. If x is a list and v.element is known, convertKind converts
// the elements.
func (v *Variable) convertKind(x cty.Value) (cty.Value, error) {
	ty := x.Type()
	switch list := ty.IsTupleType() || ty.IsListType() || ty.IsSetType(); {
	case v.kind == kindList && !list:
		return cty.NilVal, errors.New("a list is required, as its default is one")
	case v.kind == kindObject && !ty.IsObjectType() && !ty.IsMapType():
		return cty.NilVal, errors.New("an object is required, as its default is one")
	case v.kind == kindList && v.element != cty.DynamicPseudoType:
		return value.Conform(x, cty.List(v.element))
	}
	return x, nil
}
