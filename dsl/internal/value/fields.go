package value

import (
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/sdk/schema"
)

var errTuple = errors.New("a tuple has no place in the schema of an agent; use a list")

// SchemaOf translates a type of the evaluator (cty) to a type of a schema. It is the inverse of
// TypeFrom. It returns an error if the type contains a tuple, because schemas have no tuples.
func SchemaOf(ty cty.Type) (schema.Type, error) {
	switch {
	case ty == cty.DynamicPseudoType:
		return schema.Type{Kind: schema.KindAny}, nil
	case ty == cty.Bool:
		return schema.Type{Kind: schema.KindBool}, nil
	case ty == cty.Number:
		return schema.Type{Kind: schema.KindNumber}, nil
	case ty == cty.String:
		return schema.Type{Kind: schema.KindString}, nil
	case ty.IsObjectType():
		fields, err := FieldsOf(ty)
		return schema.Type{Kind: schema.KindObject, Fields: fields}, err
	case ty.IsTupleType():
		return schema.Type{}, errTuple
	}
	kind := schema.KindMap
	switch {
	case ty.IsListType():
		kind = schema.KindList
	case ty.IsSetType():
		kind = schema.KindSet
	case !ty.IsMapType():
		return schema.Type{}, fmt.Errorf("type %s has no place in the schema of an agent", TypeText(ty))
	}
	elem, err := SchemaOf(ty.ElementType())
	return schema.Type{Kind: kind, Elem: &elem}, err
}

// FieldsOf translates an object type to the fields of a schema, sorted by name. It is the inverse
// of ObjectFrom. It returns an error if the type contains a tuple.
func FieldsOf(ty cty.Type) ([]schema.Field, error) {
	var out []schema.Field
	for _, name := range AttributeNames(ty) {
		t, err := SchemaOf(ty.AttributeType(name))
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", name, err)
		}
		out = append(out, schema.Field{Name: name, Type: t, Optional: ty.AttributeOptional(name)})
	}
	return out, nil
}
