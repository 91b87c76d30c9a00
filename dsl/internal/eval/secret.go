package eval

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// secretTree evaluates an expression that contains secret(). Parse has already
// reported an error for each secret() that SecretRule does not allow.
func secretTree(e hclsyntax.Expression, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	if len(Calls(e, "secret")) == 0 {
		return metered.Evaluate(metered.Of(e), ctx)
	}
	switch e := e.(type) {
	case *hclsyntax.FunctionCallExpr:
		ref, _ := LiteralString(e)
		return value.SecretValue([]value.SecretPart{{Ref: ref}}), nil
	case *hclsyntax.TemplateWrapExpr:
		return secretTree(e.Wrapped, ctx)
	case *hclsyntax.ParenthesesExpr:
		return secretTree(e.Expression, ctx)
	case *hclsyntax.TemplateExpr:
		return secretTemplate(e, ctx)
	case *hclsyntax.ObjectConsExpr:
		attrs := map[string]cty.Value{}
		for _, item := range e.Items {
			k, diags := metered.Evaluate(metered.Of(item.KeyExpr), ctx)
			if diags.HasErrors() {
				return cty.DynamicVal, diags
			}
			key, err := value.StringOf(k)
			if err != nil {
				if !k.IsKnown() {
					return cty.DynamicVal, nil
				}
				return cty.DynamicVal, metered.ExprError(item.KeyExpr.Range(), "Invalid key", err.Error())
			}
			v, diags := secretTree(item.ValueExpr, ctx)
			if diags.HasErrors() {
				return cty.DynamicVal, diags
			}
			attrs[key] = v
		}
		return cty.ObjectVal(attrs), nil
	case *hclsyntax.TupleConsExpr:
		items := make([]cty.Value, len(e.Exprs))
		for i, x := range e.Exprs {
			v, diags := secretTree(x, ctx)
			if diags.HasErrors() {
				return cty.DynamicVal, diags
			}
			items[i] = v
		}
		return cty.TupleVal(items), nil
	}
	return cty.DynamicVal, metered.ExprError(e.Range(), "secret() not allowed here", SecretRule)
}

func secretTemplate(e *hclsyntax.TemplateExpr, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	var parts []value.SecretPart
	for _, p := range e.Parts {
		if call, ok := p.(*hclsyntax.FunctionCallExpr); ok && call.Name == "secret" {
			ref, _ := LiteralString(call)
			parts = append(parts, value.SecretPart{Ref: ref})
			continue
		}
		v, diags := metered.Evaluate(metered.Of(p), ctx)
		if diags.HasErrors() {
			return cty.DynamicVal, diags
		}
		if !v.IsKnown() {
			continue // unknown values occur only while a definition is checked
		}
		for m := range v.Marks() {
			if _, ok := m.(value.SecretMark); ok {
				return cty.DynamicVal, metered.ExprError(p.Range(), "secret() not allowed here", "A secret of another value can only be passed on as it is.")
			}
		}
		text, err := value.StringOf(v)
		if err != nil {
			return cty.DynamicVal, metered.ExprError(p.Range(), "Invalid template interpolation value", "This text holds a secret, so its other values must be strings, numbers or bools: "+err.Error()+".")
		}
		if n := len(parts); n > 0 && parts[n-1].Ref == "" {
			parts[n-1].Text += text
		} else if text != "" {
			parts = append(parts, value.SecretPart{Text: text})
		}
	}
	return value.SecretValue(parts), nil
}
