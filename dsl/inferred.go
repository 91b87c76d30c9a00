package dsl

import (
	"errors"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A valueKind is as much as a default that is written as a list or an object
// says about other values of its variable.
type valueKind uint8

const (
	kindOpen valueKind = iota // nothing
	kindList
	kindObject
)

// open reports whether neither a type nor a default says what the variable
// holds.
func (v *variableDecl) open() bool {
	return !v.typed && v.typ == cty.DynamicPseudoType && v.kind == kindOpen
}

// infer gives a variable without type the type of its default. A list or an
// object that is written out fixes only what it is, because others may be
// longer or have further attributes; the elements of a list of strings, of
// numbers or of bools are such too.
func (v *variableDecl) infer() {
	if v.typed || v.def == cty.NilVal || v.def.IsNull() {
		return
	}
	switch ty := v.def.Type(); {
	case ty.IsTupleType():
		v.kind, v.element = kindList, commonPrimitive(ty.TupleElementTypes())
		v.typeText = "list(" + value.TypeText(v.element) + ")"
	case ty.IsObjectType():
		v.kind, v.typeText = kindObject, "object"
	case !ty.HasDynamicTypes():
		v.typ, v.typeText = ty, typeexpr.TypeString(ty)
	}
}

// commonPrimitive is the primitive type that all elements have; any if there
// is none.
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

// convertKind checks a value against the kind of the default.
func (v *variableDecl) convertKind(x cty.Value) (cty.Value, error) {
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

// collectionOrText takes a text that is a list or an object as one, and any
// other as the string that it is.
func collectionOrText(a noun.Assignment) cty.Value {
	if text := strings.TrimSpace(a.Text); strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		if x, err := parseText(a); err == nil {
			return x
		}
	}
	return cty.StringVal(a.Text)
}
