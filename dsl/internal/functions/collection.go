package functions

import (
	"errors"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
)

func dynamic(name string) function.Parameter {
	return function.Parameter{Name: name, Type: cty.DynamicPseudoType}
}

var (
	sumFunc = function.New(&function.Spec{
		Params: []function.Parameter{dynamic("list")},
		Type:   function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if !args[0].IsWhollyKnown() {
				return cty.UnknownVal(cty.Number), nil
			}
			items, err := value.Sequence(args[0])
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			total := cty.Zero
			for _, x := range items {
				n, err := convert.Convert(x, cty.Number)
				if err != nil || n.IsNull() {
					return cty.NilVal, function.NewArgErrorf(0, "every element must be a number")
				}
				total = total.Add(n)
			}
			return total, nil
		},
	})

	allTrueFunc = boolFold(true)
	anyTrueFunc = boolFold(false)

	// coalesceFunc returns the first argument that is neither null nor "".
	coalesceFunc = function.New(&function.Spec{
		VarParam: &function.Parameter{Name: "vals", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowDynamicType: true, AllowNull: true},
		Type: func(args []cty.Value) (cty.Type, error) {
			types := make([]cty.Type, len(args))
			for i, a := range args {
				types[i] = a.Type()
			}
			ty, _ := convert.UnifyUnsafe(types)
			if ty == cty.NilType {
				return cty.NilType, errors.New("all arguments must have the same type")
			}
			return ty, nil
		},
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			for _, a := range args {
				v, err := convert.Convert(a, ret)
				switch {
				case err != nil:
					return cty.NilVal, err
				case !v.IsKnown():
					return cty.UnknownVal(ret), nil
				case v.IsNull() || v.Type() == cty.String && v.AsString() == "":
					continue
				}
				return v, nil
			}
			return cty.NilVal, errors.New("no argument has a value that is neither null nor empty")
		},
	})

	indexFunc = function.New(&function.Spec{
		Params: []function.Parameter{dynamic("list"), dynamic("value")},
		Type:   function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if !args[0].IsWhollyKnown() || !args[1].IsWhollyKnown() {
				return cty.UnknownVal(cty.Number), nil
			}
			items, err := value.Sequence(args[0])
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			wanted := identity(args[1])
			for i, x := range items {
				if identity(x) == wanted {
					return cty.NumberIntVal(int64(i)), nil
				}
			}
			return cty.NilVal, function.NewArgErrorf(1, "the value is not in the list")
		},
	})

	lengthFunc = function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowDynamicType: true}},
		Type: func(args []cty.Value) (cty.Type, error) {
			ty := args[0].Type()
			if ty == cty.String || ty.IsCollectionType() || ty.IsTupleType() || ty.IsObjectType() || ty == cty.DynamicPseudoType {
				return cty.Number, nil
			}
			return cty.NilType, function.NewArgErrorf(0, "a string, a collection or an object is required")
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v := args[0]
			ty := v.Type()
			switch {
			case ty == cty.DynamicPseudoType:
				return cty.UnknownVal(cty.Number), nil
			case ty.IsTupleType():
				return cty.NumberIntVal(int64(len(ty.TupleElementTypes()))), nil
			case ty.IsObjectType():
				return cty.NumberIntVal(int64(len(ty.AttributeTypes()))), nil
			case !v.IsKnown():
				return cty.UnknownVal(cty.Number), nil
			case ty == cty.String:
				return stdlib.Strlen(v)
			}
			return v.Length(), nil
		},
	})

	lookupFunc = function.New(&function.Spec{
		Params:   []function.Parameter{dynamic("map"), {Name: "key", Type: cty.String}},
		VarParam: &function.Parameter{Name: "default", Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true, AllowDynamicType: true},
		Type:     func([]cty.Value) (cty.Type, error) { return cty.DynamicPseudoType, nil },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			m, key := args[0], args[1].AsString()
			switch {
			case len(args) > 3:
				return cty.NilVal, errors.New("at most three arguments are allowed")
			case !m.IsKnown():
				return cty.DynamicVal, nil
			case m.Type().IsObjectType():
				if m.Type().HasAttribute(key) {
					return m.GetAttr(key), nil
				}
			case m.Type().IsMapType():
				if m.HasIndex(args[1]).True() {
					return m.Index(args[1]), nil
				}
			default:
				return cty.NilVal, function.NewArgErrorf(0, "a map or an object is required")
			}
			if len(args) == 3 {
				return args[2], nil
			}
			return cty.NilVal, function.NewArgErrorf(1, "the key is not in the map, and no default was given")
		},
	})

	matchkeysFunc = function.New(&function.Spec{
		Params: []function.Parameter{dynamic("values"), dynamic("keys"), dynamic("searchset")},
		Type:   func([]cty.Value) (cty.Type, error) { return cty.DynamicPseudoType, nil },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			for _, a := range args {
				if !a.IsWhollyKnown() {
					return cty.DynamicVal, nil
				}
			}
			var lists [3][]cty.Value
			for i, a := range args {
				list, err := value.Sequence(a)
				if err != nil {
					return cty.NilVal, function.NewArgError(i, err)
				}
				lists[i] = list
			}
			vals, keys, search := lists[0], lists[1], lists[2]
			if len(vals) != len(keys) {
				return cty.NilVal, function.NewArgErrorf(1, "values and keys must have the same length")
			}
			wanted := map[string]bool{}
			for _, s := range search {
				wanted[identity(s)] = true
			}
			var out []cty.Value
			for i, k := range keys {
				if wanted[identity(k)] {
					out = append(out, vals[i])
				}
			}
			return cty.TupleVal(out), nil
		},
	})

	distinctFunc = function.New(&function.Spec{
		Params:       []function.Parameter{{Name: "list", Type: cty.List(cty.DynamicPseudoType)}},
		Type:         func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		RefineResult: func(b *cty.RefinementBuilder) *cty.RefinementBuilder { return b.NotNull() },
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			if !args[0].IsWhollyKnown() {
				return cty.UnknownVal(ret), nil
			}
			seen := map[string]bool{}
			var out []cty.Value
			for it := args[0].ElementIterator(); it.Next(); {
				_, x := it.Element()
				if id := identity(x); !seen[id] {
					seen[id] = true
					out = append(out, x)
				}
			}
			if len(out) == 0 {
				return cty.ListValEmpty(ret.ElementType()), nil
			}
			return cty.ListVal(out), nil
		},
	})

	oneFunc = function.New(&function.Spec{
		Params: []function.Parameter{dynamic("list")},
		Type:   func([]cty.Value) (cty.Type, error) { return cty.DynamicPseudoType, nil },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if !args[0].IsWhollyKnown() {
				return cty.DynamicVal, nil
			}
			items, err := value.Sequence(args[0])
			switch {
			case err != nil:
				return cty.NilVal, function.NewArgError(0, err)
			case len(items) == 0:
				return cty.NullVal(cty.DynamicPseudoType), nil
			case len(items) > 1:
				return cty.NilVal, function.NewArgErrorf(0, "the list must have no element or one")
			}
			return items[0], nil
		},
	})

	transposeFunc = function.New(&function.Spec{
		Params: []function.Parameter{{Name: "values", Type: cty.Map(cty.List(cty.String))}},
		Type:   function.StaticReturnType(cty.Map(cty.List(cty.String))),
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			if !args[0].IsWhollyKnown() {
				return cty.UnknownVal(ret), nil
			}
			lists := map[string][]cty.Value{}
			given := args[0].AsValueMap()
			for _, key := range sorted.Keys(given) {
				list := given[key]
				if list.IsNull() {
					return cty.NilVal, function.NewArgErrorf(0, "a list must not be null")
				}
				for _, x := range list.AsValueSlice() {
					if x.IsNull() {
						return cty.NilVal, function.NewArgErrorf(0, "an element must not be null")
					}
					lists[x.AsString()] = append(lists[x.AsString()], cty.StringVal(key))
				}
			}
			if len(lists) == 0 {
				return cty.MapValEmpty(cty.List(cty.String)), nil
			}
			out := map[string]cty.Value{}
			for k, l := range lists {
				out[k] = cty.ListVal(l)
			}
			return cty.MapVal(out), nil
		},
	})

	jsonEncodeFunc = function.New(&function.Spec{
		Params: []function.Parameter{{Name: "val", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if !args[0].IsWhollyKnown() {
				return cty.UnknownVal(cty.String), nil
			}
			v, err := value.Encode(args[0], false)
			if err != nil {
				return cty.NilVal, err
			}
			return cty.StringVal(string(v.JSON())), nil
		},
	})
	jsonDecodeFunc = function.New(&function.Spec{
		Params: []function.Parameter{{Name: "str", Type: cty.String}},
		// The type of the result depends on the text. To find this type here, the function would
		// have to decode the text twice.
		Type: function.StaticReturnType(cty.DynamicPseudoType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return value.DecodeJSON([]byte(args[0].AsString()))
		},
	})
)

func boolFold(all bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			unknown := false
			for _, x := range args[0].AsValueSlice() {
				switch {
				case !x.IsKnown():
					unknown = true
				case !x.IsNull() && x.True() != all:
					return cty.BoolVal(!all), nil
				case x.IsNull() && all:
					return cty.False, nil
				}
			}
			if unknown {
				return cty.UnknownVal(cty.Bool), nil
			}
			return cty.BoolVal(all), nil
		},
	})
}

func markFunction(impl func(cty.Value) cty.Value) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{
			Name: "value", Type: cty.DynamicPseudoType,
			AllowUnknown: true, AllowNull: true, AllowMarked: true, AllowDynamicType: true,
		}},
		Type: func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return impl(args[0]), nil },
	})
}

var (
	sensitiveFunc    = markFunction(func(v cty.Value) cty.Value { return v.Mark(value.SensitiveMark{}) })
	nonsensitiveFunc = markFunction(func(v cty.Value) cty.Value {
		raw, marks := v.Unmark()
		delete(marks, value.SensitiveMark{}) // a value from secret() keeps its SecretMark
		return raw.WithMarks(marks)
	})
	isSensitiveFunc = function.New(&function.Spec{
		Params: []function.Parameter{{
			Name: "value", Type: cty.DynamicPseudoType,
			AllowUnknown: true, AllowNull: true, AllowMarked: true, AllowDynamicType: true,
		}},
		Type: function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if !args[0].IsKnown() {
				return cty.UnknownVal(cty.Bool), nil // the value may be sensitive once it is known
			}
			return cty.BoolVal(args[0].HasMark(value.SensitiveMark{})), nil
		},
	})
)
