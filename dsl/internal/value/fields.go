package value

import (
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2/ext/typeexpr"
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
		fields, err := FieldsOf(ty, nil)
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

// FieldsOf translates an object type to the fields of a schema, sorted by name. defaults holds the
// defaults of optional attributes; nil = none. FieldsOf returns an error if the type contains a
// tuple, or if a default does not fit its type.
func FieldsOf(ty cty.Type, defaults *typeexpr.Defaults) ([]schema.Field, error) {
	var out []schema.Field
	for _, name := range AttributeNames(ty) {
		t, err := SchemaOf(ty.AttributeType(name))
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", name, err)
		}
		f := schema.Field{Name: name, Type: t, Optional: ty.AttributeOptional(name)}
		if v, ok := presetOf(defaults, name); ok {
			if v, err = Conform(v, ty.AttributeType(name)); err != nil {
				return nil, fmt.Errorf("default of %q: %w", name, err)
			}
			text, err := Encode(v, false)
			if err != nil {
				return nil, fmt.Errorf("default of %q: %w", name, err)
			}
			f.Default = text.JSON()
		}
		out = append(out, f)
	}
	return out, nil
}

// presetOf returns the default of an attribute, with the defaults inside of it filled in. It
// returns false if the attribute has no default.
func presetOf(defaults *typeexpr.Defaults, name string) (cty.Value, bool) {
	if defaults == nil {
		return cty.NilVal, false
	}
	v, ok := defaults.DefaultValues[name]
	if inner := defaults.Children[name]; ok && inner != nil && !v.IsNull() {
		v = inner.Apply(v)
	}
	return v, ok
}
