package link

import (
	"bytes"
	"encoding/json"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/sdk/schema"
)

// skeletonFunc returns the function noun.Action.Skeleton of an action. The parameter `wanted` is
// the type of the action's output. The function returns JSON text with one entry for each attribute
// of this type. Each entry says which values are allowed.
func skeletonFunc(fields []schema.Field, wanted cty.Type) func() string {
	return func() string {
		tree := skeletonOf(wanted)
		if object, ok := tree.(map[string]any); ok {
			for _, f := range fields {
				describeField(object, f)
			}
		}
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		if err := e.Encode(tree); err != nil {
			return "{}" // this never happens, because maps and lists of strings can always be encoded
		}
		return string(bytes.TrimSpace(out.Bytes()))
	}
}

// describeField changes the entry of a field in the skeleton object. If the schema has an enum for
// the field, the values of the enum replace the name of the type. If the field is optional,
// describeField adds "or null".
func describeField(object map[string]any, f schema.Field) {
	kind, plain := object[f.Name].(string)
	if !plain {
		return
	}
	for k, raw := range f.Enum {
		var value any
		text := string(raw)
		if json.Unmarshal(raw, &value) == nil {
			if s, ok := value.(string); ok {
				text = s
			}
		}
		if k == 0 {
			kind = text
		} else {
			kind += " or " + text
		}
	}
	if f.Optional {
		kind += " or null"
	}
	object[f.Name] = kind
}

// skeletonOf returns a JSON tree with the attribute names of a type. For each string, number or
// boolean, the tree contains the name of the type in capitals.
func skeletonOf(ty cty.Type) any {
	switch {
	case ty == cty.String:
		return "STRING"
	case ty == cty.Number:
		return "NUMBER"
	case ty == cty.Bool:
		return "BOOL"
	case ty.IsObjectType():
		out := map[string]any{}
		for name, inner := range ty.AttributeTypes() {
			out[name] = skeletonOf(inner)
		}
		return out
	case ty.IsMapType():
		return map[string]any{"KEY": skeletonOf(ty.ElementType())}
	case ty.IsListType(), ty.IsSetType():
		return []any{skeletonOf(ty.ElementType())}
	case ty.IsTupleType():
		out := []any{}
		for _, inner := range ty.TupleElementTypes() {
			out = append(out, skeletonOf(inner))
		}
		return out
	}
	return "ANY"
}
