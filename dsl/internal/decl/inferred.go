package decl

import (
	"errors"

	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// open reports whether the variable accepts any value, because neither a type nor a default
// restricts it.
func (v *Variable) open() bool {
	return !v.typed && v.Type == cty.DynamicPseudoType && v.kind == kindOpen
}

// infer gives a variable without a type the type of its default. If the default is a list or an
// object, it sets only the kind: then the variable accepts any list, or any object. If all
// elements of a default list have one primitive type, the elements of every value must have this
// type, too.
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

// commonPrimitive returns the primitive type that all elements have; cty.DynamicPseudoType if
// they have none in common.
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

// convertKind checks that a value has the kind of the default. If the type of the elements of a
// list is known, it converts them.
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
