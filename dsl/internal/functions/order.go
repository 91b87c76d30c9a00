package functions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// sortByFunc sorts a list by one or more keys. A key is the name of an attribute of the elements,
// or a list with one value for each element. Elements with equal keys stay in their order.
var sortByFunc = function.New(&function.Spec{
	Params:   []function.Parameter{dynamic("list"), dynamic("key")},
	VarParam: &function.Parameter{Name: "key", Type: cty.DynamicPseudoType},
	Type:     func([]cty.Value) (cty.Type, error) { return cty.DynamicPseudoType, nil },
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		for _, a := range args {
			if !a.IsWhollyKnown() {
				return cty.DynamicVal, nil
			}
		}
		items, err := value.Sequence(args[0])
		if err != nil {
			return cty.NilVal, function.NewArgError(0, err)
		}
		columns := make([][]cty.Value, len(args)-1)
		for i, key := range args[1:] {
			if columns[i], err = sortColumn(items, key); err != nil {
				return cty.NilVal, function.NewArgError(1+i, err)
			}
		}
		order := make([]int, len(items))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			for _, column := range columns {
				if c := compareScalars(column[a], column[b]); c != 0 {
					return c
				}
			}
			return 0
		})
		sorted := make([]cty.Value, len(items))
		for i, at := range order {
			sorted[i] = items[at]
		}
		switch ty := args[0].Type(); {
		case ty.IsTupleType():
			return cty.TupleVal(sorted), nil
		case len(sorted) == 0:
			return cty.ListValEmpty(ty.ElementType()), nil
		}
		return cty.ListVal(sorted), nil
	},
})

// sortColumn returns the values by which the elements of `items` are sorted: one value for each
// element. All values are numbers, or all are strings, or all are bools. For any other values
// it returns an error.
func sortColumn(items []cty.Value, key cty.Value) (column []cty.Value, err error) {
	if key.Type() == cty.String {
		column, err = attributeOf(items, key.AsString())
	} else if column, err = value.Sequence(key); err != nil {
		err = fmt.Errorf("a key is the name of an attribute, or a list with a value for each element; this is %s", key.Type().FriendlyName())
	}
	if err != nil {
		return nil, err
	}
	if len(column) != len(items) {
		return nil, fmt.Errorf("the list of keys has %d values, and the list to sort has %d elements", len(column), len(items))
	}
	for i, v := range column {
		switch {
		case v.IsNull():
			return nil, fmt.Errorf("the key of element %d is null; write coalesce() around it, or leave the element out", i)
		case !v.Type().IsPrimitiveType():
			return nil, fmt.Errorf("the key of element %d is %s; a key is a number, a string or a bool", i, v.Type().FriendlyName())
		case v.Type() != column[0].Type():
			return nil, fmt.Errorf("the key of element %d is a %s, and that of element 0 is a %s; all keys have one type", i, v.Type().FriendlyName(), column[0].Type().FriendlyName())
		}
	}
	return column, nil
}

// attributeOf returns, for each element of items, the value of the attribute with the given name.
// It returns an error if an element does not have this attribute.
func attributeOf(items []cty.Value, name string) ([]cty.Value, error) {
	column := make([]cty.Value, len(items))
	for i, item := range items {
		ty := item.Type()
		switch {
		case item.IsNull():
			return nil, fmt.Errorf("element %d is null, so it has no attribute %q", i, name)
		case ty.IsMapType() && item.HasIndex(cty.StringVal(name)).True():
			column[i] = item.Index(cty.StringVal(name))
		case ty.IsObjectType() && ty.HasAttribute(name):
			column[i] = item.GetAttr(name)
		case ty.IsObjectType():
			return nil, fmt.Errorf("element %d has no attribute %q%s", i, name, hint(name, value.AttributeNames(ty)))
		default:
			return nil, fmt.Errorf("element %d has no attribute %q: it is %s", i, name, ty.FriendlyName())
		}
	}
	return column, nil
}

// hint returns the end of a message that suggests the most similar name. It returns "" if no name
// is similar.
func hint(name string, names []string) string {
	if s := diag.Nearest(name, names); s != "" {
		return fmt.Sprintf("; did you mean %q?", s)
	}
	return ""
}

// compareScalars returns -1 if a is less than b, 0 if they are equal, and 1 if a is greater.
// The values a and b must have the same type. The function compares numbers by their size and
// strings by their bytes. The value false is less than true.
func compareScalars(a, b cty.Value) int {
	switch a.Type() {
	case cty.Number:
		return a.AsBigFloat().Cmp(b.AsBigFloat())
	case cty.String:
		return strings.Compare(a.AsString(), b.AsString())
	}
	switch {
	case a.True() == b.True():
		return 0
	case b.True():
		return -1
	}
	return 1
}

// deepMergeFunc merges objects and maps. If two arguments have a value with the same name, the
// result has the value of the later argument. But if both values are objects or maps, the result
// has the merge of both values.
var deepMergeFunc = function.New(&function.Spec{
	VarParam: &function.Parameter{Name: "maps", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true},
	Type:     func([]cty.Value) (cty.Type, error) { return cty.DynamicPseudoType, nil },
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		out := cty.EmptyObjectVal
		for i, a := range args {
			switch {
			case !a.IsWhollyKnown():
				return cty.DynamicVal, nil
			case a.IsNull(): // null counts as an empty object; it may be an optional attribute that is missing
			case !named(a):
				return cty.NilVal, function.NewArgErrorf(i, "an object or a map is required, this is %s", a.Type().FriendlyName())
			default:
				out = deepMerge(out, a)
			}
		}
		return out, nil
	},
})

// named reports whether a value is an object or a map, and not null.
func named(v cty.Value) bool { return !v.IsNull() && (v.Type().IsObjectType() || v.Type().IsMapType()) }

func deepMerge(under, over cty.Value) cty.Value {
	out := under.AsValueMap()
	if out == nil {
		out = map[string]cty.Value{}
	}
	for name, v := range over.AsValueMap() {
		if old, ok := out[name]; ok && named(old) && named(v) {
			v = deepMerge(old, v)
		}
		out[name] = v
	}
	return cty.ObjectVal(out)
}

// typeFunc returns the type of a value as a text, in the form of the argument `type` of a variable.
var typeFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true}},
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		switch v := args[0]; {
		case !v.IsWhollyKnown():
			return cty.UnknownVal(cty.String), nil
		case v.IsNull() && v.Type() == cty.DynamicPseudoType:
			return cty.StringVal("null"), nil
		default:
			return cty.StringVal(typeexpr.TypeString(v.Type())), nil
		}
	},
})
