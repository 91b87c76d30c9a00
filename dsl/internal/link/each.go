package link

import (
	"errors"
	"fmt"
	"sort"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/fasteval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// eachValue links for_each: it checks the attribute, and sets out.ForEach if it reports nothing. It
// returns the value of each.* for the checks before a run.
func (l stepLinker) eachValue(d *decl.Step, out *noun.Step) cty.Value {
	e := d.Attr("for_each")
	if e == nil {
		return eachBefore(cty.DynamicVal)
	}
	before := len(l.List)
	v := l.check(e)
	defer func() {
		if len(l.List) == before { // if this call of eachValue has reported nothing
			out.ForEach = l.forEach(e)
		}
	}()
	if e.Bad {
		return eachBefore(cty.DynamicVal)
	}
	raw, marks := v.Unmark()
	ty := raw.Type()
	switch {
	case len(marks) > 0:
		l.Errorf(e.Range, "Sensitive for_each", "The keys of for_each become names of instances and are shown, so they cannot be sensitive. Use nonsensitive(), or a map with sensitive values only.")
	case ty.IsListType() || ty.IsTupleType():
		l.listHint(e, ty)
	case ty.IsSetType() && ty.ElementType() != cty.String && ty.ElementType() != cty.DynamicPseudoType:
		l.Errorf(e.Range, "Invalid for_each", "for_each takes a map, or a set of strings; this is %s. Use { for x in ... : x.id => x }.", ty.FriendlyName())
	case ty.IsPrimitiveType():
		l.Errorf(e.Range, "Invalid for_each", "for_each takes a map, or a set of strings; this is a %s.", ty.FriendlyName())
	}
	return eachBefore(v)
}

// eachBefore returns the value of each.* for the checks before a run. The parameter `v` is the
// value of for_each. The parts of the result are unknown, but have their types if the type of v
// is known.
func eachBefore(v cty.Value) cty.Value {
	key := cty.UnknownVal(cty.String).RefineNotNull()
	elem := cty.DynamicVal
	raw, _ := v.Unmark()
	switch ty := raw.Type(); {
	case ty.IsMapType():
		elem = value.UnknownOf(ty.ElementType())
	case ty.IsSetType() && ty.ElementType() == cty.String:
		elem = key
	case ty.IsObjectType():
		elem = commonElement(ty)
	}
	return cty.ObjectVal(map[string]cty.Value{"key": key, "value": elem})
}

// forEach returns the function that evaluates for_each in a run. If for_each is a single
// reference, this function splits the stored JSON of the map without decoding the JSON.
func (l stepLinker) forEach(e *eval.Expr) func(*eval.Scope) (noun.Each, error) {
	general := exprFunc(l.workflowLinker, e, "for_each", cty.DynamicPseudoType, eachOf)
	d, ev, self := l.fast(e, fasteval.Anything), l.ev, max(l.cur, 0)
	if !d.Refers() || e.Compiled.Constant != nil {
		return general
	}
	return func(s *eval.Scope) (noun.Each, error) {
		if keys, values, ok := d.Each(&fasteval.Context{Evaluator: ev, Scope: s, Self: self}); ok {
			return noun.Each{Keys: keys, Values: values}, nil
		}
		return general(s)
	}
}

func (l stepLinker) listHint(e *eval.Expr, ty cty.Type) {
	elem := cty.DynamicPseudoType
	if ty.IsListType() {
		elem = ty.ElementType()
	} else if types := ty.TupleElementTypes(); len(types) > 0 {
		elem = types[0]
	}
	hint := "toset(...)"
	if elem.IsObjectType() || elem.IsMapType() {
		hint = "{ for x in ... : x.id => x }"
	} else if elem == cty.DynamicPseudoType {
		hint = "toset(...), or { for x in ... : x.id => x }"
	}
	l.Errorf(e.Range, "Invalid for_each", "for_each takes a map, or a set of strings, because keys name the instances; this is a list. Use %s.", hint)
}

// commonElement returns an unknown value of the type that all attributes of an object type have.
// If the attributes have different types, or if there are no attributes, commonElement returns
// cty.DynamicVal.
func commonElement(ty cty.Type) cty.Value {
	var common cty.Type
	for _, at := range ty.AttributeTypes() {
		if common != cty.NilType && !common.Equals(at) {
			return cty.DynamicVal
		}
		common = at
	}
	if common == cty.NilType {
		return cty.DynamicVal
	}
	return value.UnknownOf(common)
}

// eachOf converts the value of for_each to a noun.Each. The value must be a map, an object or a
// set of strings. A sensitive, null or unknown value is an error.
func eachOf(v cty.Value) (noun.Each, error) {
	raw, marks := v.Unmark()
	ty := raw.Type()
	switch {
	case len(marks) > 0:
		return noun.Each{}, errors.New("the keys cannot be sensitive")
	case raw.IsNull():
		return noun.Each{}, errors.New("a map or a set of strings is required, this is null")
	case !raw.IsKnown():
		return noun.Each{}, errors.New("the value is not known")
	case ty.IsSetType():
		return eachOfSet(raw)
	case ty.IsMapType(), ty.IsObjectType():
		attrs := raw.AsValueMap()
		out := noun.Each{Keys: sorted.Keys(attrs)}
		for _, k := range out.Keys {
			val, err := value.Encode(attrs[k], false)
			if err != nil {
				return noun.Each{}, fmt.Errorf("element %q: %w", k, err)
			}
			out.Values = append(out.Values, val)
		}
		return out, nil
	}
	return noun.Each{}, fmt.Errorf("a map or a set of strings is required, this is %s; use toset(), or { for x in ... : x.id => x }", ty.FriendlyName())
}

func eachOfSet(set cty.Value) (noun.Each, error) {
	out := noun.Each{}
	for _, x := range set.AsValueSlice() {
		if x.IsNull() || x.Type() != cty.String {
			return noun.Each{}, errors.New("a set must hold strings only")
		}
		out.Keys = append(out.Keys, x.AsString())
	}
	sort.Strings(out.Keys)
	for _, k := range out.Keys {
		v, err := value.Encode(cty.StringVal(k), false)
		if err != nil {
			return noun.Each{}, err
		}
		out.Values = append(out.Values, v)
	}
	return out, nil
}
