package functions

import (
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/sorted"
)

// templateFunction returns a function of the language that renders a template. The parameter
// `param` is the name of its first argument, and the parameter `text` finds the template for
// that argument. A call of the returned function may have a Meter as a third argument, which
// limits the cost.
func templateFunction(param string, text func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: param, Type: cty.String}, dynamic("vars")},
		VarParam: &function.Parameter{Name: "more", Type: cty.DynamicPseudoType},
		Type:     function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			m, ok := metered.MeterIn(args[2:])
			vars := args[1]
			switch {
			case !ok:
				return cty.NilVal, function.NewArgErrorf(2, "at most two arguments are allowed")
			case !vars.IsWhollyKnown():
				return cty.UnknownVal(cty.String), nil
			case !named(vars):
				return cty.NilVal, function.NewArgErrorf(1, "an object or a map with the values for the template is required, this is %s", vars.Type().FriendlyName())
			}
			template, err := text(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			values := vars.AsValueMap()
			out, err := m.Render(template, values, pure, func(syn hclsyntax.Expression) error { return checkTree(syn, sorted.Keys(values)) })
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return out, nil
		},
	})
}

// CheckTemplate returns an error if a template cannot be parsed, calls a function that templates
// may not call, or uses a name that is not in the given list. If the list is nil, CheckTemplate
// does not check which names the template uses. The Meter m limits the cost of parsing.
func CheckTemplate(m *metered.Meter, text string, names []string) error {
	syn, err := m.ParseTemplate(text)
	if err != nil {
		return err
	}
	return checkTree(syn, names)
}

func checkTree(syn hclsyntax.Expression, names []string) error {
	diags := hclsyntax.VisitAll(syn, func(n hclsyntax.Node) hcl.Diagnostics {
		c, ok := n.(*hclsyntax.FunctionCallExpr)
		if !ok {
			return nil
		}
		_, allowed := pure[c.Name]
		switch {
		case allowed:
			return nil
		case Known(c.Name):
			return hcl.Diagnostics{{Detail: fmt.Sprintf("line %d of the template: a template cannot call %s(). Call it outside, and give the value to the template by a name", c.NameRange.Start.Line, c.Name)}}
		}
		return hcl.Diagnostics{{Detail: fmt.Sprintf("line %d of the template: there is no function named %q%s", c.NameRange.Start.Line, c.Name, hint(c.Name, sorted.Keys(pure)))}}
	})
	if len(diags) > 0 {
		return errors.New(diags[0].Detail)
	}
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	for _, t := range syn.Variables() {
		if name := t.RootName(); names != nil && !known[name] {
			return fmt.Errorf("line %d of the template: there is no value for the name %q%s", t.SourceRange().Start.Line, name, hint(name, names))
		}
	}
	return nil
}
