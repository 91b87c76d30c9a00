package functions

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// The set functions of the language. Their running time is proportional to the number of elements.
// The same functions in the library cty need a time that grows with the square of this number.
var (
	setUnionFunc = setFunction(stdlib.SetUnionFunc, func(_ bool, others int) bool { return true })
	// The second argument is nil: the result has the elements that are in all sets.
	setIntersectionFunc = setFunction(stdlib.SetIntersectionFunc, nil)
	setSubtractFunc     = setFunction(stdlib.SetSubtractFunc, func(first bool, others int) bool { return first && others == 0 })
)

// setFunction returns a function of the language for sets. The function `keep` decides for each
// element whether the result contains it. The parameter `first` of `keep` says whether the first
// set has the element, and the parameter `others` says how many of the other sets have it. If
// `keep` is nil, the result contains the elements that are in all sets. If an argument is not known
// yet, or cannot be converted to the type of the result, the returned function calls f, a function
// of the Go package stdlib. It also calls f if the type of the result contains "any".
func setFunction(f function.Function, keep func(first bool, others int) bool) function.Function {
	return function.New(&function.Spec{
		Params: f.Params(), VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) { return f.ReturnTypeForValues(args) },
		Impl: func(args []cty.Value, ret cty.Type) (cty.Value, error) {
			var order []cty.Value
			seen := map[string]int{}
			first := make([]bool, 0)
			others := make([]int, 0)
			for i, a := range args {
				c, err := value.ConvertTo(a, ret)
				if err != nil || !a.IsWhollyKnown() || ret.HasDynamicTypes() {
					return f.Call(args)
				}
				for _, e := range c.AsValueSlice() {
					id := identity(e)
					at, ok := seen[id]
					if !ok {
						at = len(order)
						seen[id] = at
						order, first, others = append(order, e), append(first, false), append(others, 0)
					}
					if i == 0 {
						first[at] = true
					} else {
						others[at]++
					}
				}
			}
			var out []cty.Value
			for at, e := range order {
				if keep == nil && first[at] && others[at] == len(args)-1 || keep != nil && keep(first[at], others[at]) {
					out = append(out, e)
				}
			}
			if len(out) == 0 {
				return cty.SetValEmpty(ret.ElementType()), nil
			}
			return cty.SetVal(out), nil
		},
	})
}
