package metered

import (
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// sameNames reports whether two object types have the same attribute names. For two such types, the
// library go-cty compares the types of the attributes that have the same name.
func sameNames(a, b cty.Type) bool {
	if len(a.AttributeTypes()) != len(b.AttributeTypes()) {
		return false
	}
	for name := range a.AttributeTypes() {
		if !b.HasAttribute(name) {
			return false
		}
	}
	return true
}

// payAlike charges for finding a common type of the given types. The library go-cty does this work.
// Its cost depends on the types. If all are tuples of the same length, or objects with the same
// names, go-cty compares them element by element. If the lengths or the names differ, go-cty
// converts the values to lists or maps. For this conversion it compares the types of all elements
// with each other. So two tuples of 20,000 elements need 20,000 comparisons if their lengths are
// equal, and approximately 800 million if their lengths differ slightly.
func (m *Meter) payAlike(types []cty.Type) {
	if len(types) < 2 {
		return
	}
	m.pay(int64(len(types))*20, int64(len(types))*16)
	first := types[0]
	switch {
	case all(types, cty.Type.IsTupleType):
		if !all(types, func(ty cty.Type) bool { return len(ty.TupleElementTypes()) == len(first.TupleElementTypes()) }) {
			m.payAlike(m.elementTypes(types))
			return
		}
		for i := range first.TupleElementTypes() {
			m.payAlike(across(types, func(ty cty.Type) cty.Type { return ty.TupleElementTypes()[i] }))
		}
	case all(types, cty.Type.IsObjectType):
		m.pay(product(int64(len(types)), sequenceLength(first), 50), 0)
		if !all(types, func(ty cty.Type) bool { return sameNames(ty, first) }) {
			m.payAlike(m.elementTypes(types))
			return
		}
		for name := range first.AttributeTypes() {
			m.payAlike(across(types, func(ty cty.Type) cty.Type { return ty.AttributeType(name) }))
		}
	case all(types, cty.Type.IsListType), all(types, cty.Type.IsSetType), all(types, cty.Type.IsMapType):
		m.payAlike(across(types, cty.Type.ElementType))
	case all(types, func(ty cty.Type) bool { return ty.IsListType() || ty.IsTupleType() || ty == cty.DynamicPseudoType }),
		all(types, func(ty cty.Type) bool { return ty.IsMapType() || ty.IsObjectType() || ty == cty.DynamicPseudoType }):
		m.payAlike(m.elementTypes(types))
		m.payEach(types)
	default:
		m.payEach(types)
	}
}

// payEach charges for a comparison of each type with every other type.
func (m *Meter) payEach(types []cty.Type) {
	var w weight
	for _, ty := range types {
		m.addType(&w, ty, 1)
	}
	n := int64(len(types))
	m.pay(product(n, n, 6, 1+w.nodes/n), product(n, n, 3))
}

// elementTypes returns the element types of the given tuple, object, list, set and map types. It
// charges for this work.
func (m *Meter) elementTypes(types []cty.Type) (out []cty.Type) {
	for _, ty := range types {
		m.pay(sequenceLength(ty)*20, sequenceLength(ty)*32)
		switch {
		case ty.IsTupleType():
			out = append(out, ty.TupleElementTypes()...)
		case ty.IsObjectType():
			for _, e := range ty.AttributeTypes() {
				out = append(out, e)
			}
		case ty.IsCollectionType():
			out = append(out, ty.ElementType())
		}
	}
	return out
}

// equalCost returns the cost of one comparison of ty with another type. Even for a large type the
// cost is low, because the comparison ends at the first difference.
func equalCost(ty cty.Type) int64 {
	if ty.IsPrimitiveType() {
		return 20
	}
	return 100
}

func all(types []cty.Type, is func(cty.Type) bool) bool {
	return !slices.ContainsFunc(types, func(ty cty.Type) bool { return !is(ty) })
}

// across calls the function `part` with each of the types, and returns the results in the order
// of the types.
func across(types []cty.Type, part func(cty.Type) cty.Type) []cty.Type {
	out := make([]cty.Type, len(types))
	for i, ty := range types {
		out[i] = part(ty)
	}
	return out
}

// sequenceLength returns the number of element types of a tuple or an object, and 1 for any other
// type. The library go-cty may compare all these element types with each other.
func sequenceLength(ty cty.Type) int64 {
	switch {
	case ty.IsTupleType():
		return int64(len(ty.TupleElementTypes()))
	case ty.IsObjectType():
		return int64(len(ty.AttributeTypes()))
	}
	return 1
}
