package dsl

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/metered"
)

// A literalDecoder reads arguments that must be constants.
type literalDecoder struct {
	*reporter
	m *module
}

// literalString returns the only argument of a call if it is a plain string.
func literalString(call *hclsyntax.FunctionCallExpr) (string, bool) {
	if len(call.Args) != 1 || call.ExpandFinal || len(call.Args[0].Variables()) > 0 || len(calls(call.Args[0])) > 0 {
		return "", false
	}
	v, diags := metered.EvaluateOnce(call.Args[0], nil, nil)
	if diags.HasErrors() || v.IsNull() || !v.IsKnown() || v.Type() != cty.String {
		return "", false
	}
	return v.AsString(), true
}

func (d literalDecoder) promise(b *block, name string) *bool {
	if b.attr(name) == nil {
		return nil
	}
	v := d.flag(b, name, false)
	return &v
}

// flag reads a literal bool.
func (d literalDecoder) flag(b *block, name string, def bool) bool {
	e := b.attr(name)
	if e == nil {
		return def
	}
	v, ok := d.literal(e, name)
	if !ok {
		return def
	}
	if v.Type() != cty.Bool || v.IsNull() {
		d.errorf(e.rng, "Invalid value for "+name, "%s is true or false.", name)
		return def
	}
	return v.True()
}

func (d literalDecoder) literalText(e *expr, name string) (string, bool) {
	v, ok := d.literal(e, name)
	if !ok {
		return "", false
	}
	if v.Type() != cty.String || v.IsNull() {
		d.errorf(e.rng, "Invalid value for "+name, "%s is a string.", name)
		return "", false
	}
	return v.AsString(), true
}

// text reads a description: a constant string, "" if absent.
func (d literalDecoder) text(b *block, name string) string {
	e := b.attr(name)
	if e == nil {
		return ""
	}
	v, ok := d.constant(e, name+" must be known before a run.")
	if !ok {
		return ""
	}
	s, err := convert.Convert(v, cty.String)
	if err != nil || s.IsNull() {
		d.errorf(e.rng, "Invalid value for "+name, "%s is a string.", name)
		return ""
	}
	return s.AsString()
}

// literal evaluates an attribute that must be written out: no references and
// no functions.
func (d literalDecoder) literal(e *expr, name string) (cty.Value, bool) {
	if e.bad {
		return cty.NilVal, false
	}
	if len(e.syn.Variables()) > 0 || len(calls(e.syn)) > 0 {
		d.errorf(e.rng, "Not a literal value",
			"%s must be known when the file is read, so it cannot refer to anything or call functions.", name)
		e.bad = true
		return cty.NilVal, false
	}
	v, diags := metered.EvaluateOnce(e.syn, nil, d.allowance())
	d.hcl(diags)
	if diags.HasErrors() {
		e.bad = true
		return cty.NilVal, false
	}
	return v, true
}

// constant evaluates an attribute in which functions may stand, references
// not.
func (d literalDecoder) constant(e *expr, why string) (cty.Value, bool) {
	if e.bad {
		return cty.NilVal, false
	}
	if vars := e.syn.Variables(); len(vars) > 0 {
		d.errorf(vars[0].SourceRange(), "Reference not available here", "%s", why)
		e.bad = true
		return cty.NilVal, false
	}
	for _, c := range calls(e.syn, "secret") {
		d.errorf(c.Range(), "secret() not allowed here", "%s", secretRule)
		e.bad = true
		return cty.NilVal, false
	}
	v, diags := metered.EvaluateOnce(e.syn, d.m.funcs, d.allowance())
	d.hcl(diags)
	if diags.HasErrors() {
		e.bad = true
		return cty.NilVal, false
	}
	return v, true
}

// typeOf reads a type constraint. In JSON it is a string.
func (d literalDecoder) typeOf(e *expr) (cty.Type, *typeexpr.Defaults, bool) {
	if e.bad {
		return cty.NilType, nil, false
	}
	var syn hcl.Expression = e.syn
	if e.raw != nil {
		start := hcl.Pos{Line: e.rng.Start.Line, Column: e.rng.Start.Column + 1, Byte: e.rng.Start.Byte + 1}
		if diag := prescan([]byte(*e.raw), e.rng.Filename); diag != nil {
			d.hcl(hcl.Diagnostics{diag})
			return cty.NilType, nil, false
		}
		x, diags := hclsyntax.ParseExpression([]byte(*e.raw), e.rng.Filename, start)
		d.hcl(diags)
		if diags.HasErrors() {
			return cty.NilType, nil, false
		}
		syn = x
	}
	ty, defs, diags := typeexpr.TypeConstraintWithDefaults(syn)
	for _, x := range diags {
		if strings.Contains(x.Detail, "is not a valid type specification") {
			name := hcl.ExprAsKeyword(syn)
			x.Detail += diag.DidYouMean(name, []string{"string", "number", "bool", "list", "set", "map", "object", "tuple", "any"})
		}
	}
	d.hcl(diags)
	return ty, defs, !diags.HasErrors()
}
