package decl

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/secret"
)

// A literalDecoder reads arguments that must be constants.
type literalDecoder struct {
	*report.Reporter
	m *Module
}

func (d literalDecoder) promise(b *syntax.Block, name string) *bool {
	if b.Attr(name) == nil {
		return nil
	}
	v := d.flag(b, name, false)
	return &v
}

// flag returns the value of an attribute that must be a literal bool. It returns the
// parameter `def` if the block does not have the attribute, or if the attribute is invalid.
func (d literalDecoder) flag(b *syntax.Block, name string, def bool) bool {
	e := b.Attr(name)
	if e == nil {
		return def
	}
	v, ok := d.literal(e, name)
	if !ok {
		return def
	}
	if v.Type() != cty.Bool || v.IsNull() {
		d.Errorf(e.Range, "Invalid value for "+name, "%s is true or false.", name)
		return def
	}
	return v.True()
}

func (d literalDecoder) literalText(e *eval.Expr, name string) (string, bool) {
	if t := e.Traversal(); len(t) == 1 && !e.Bad && e.Raw == nil && t.RootName() != "null" {
		d.Errorf(e.Range, "Missing quotes", "%s is a string, which is written in quotes: %s = %q.", name, name, t.RootName())
		e.Bad = true
		return "", false
	}
	v, ok := d.literal(e, name)
	if !ok {
		return "", false
	}
	if v.Type() != cty.String || v.IsNull() {
		d.Errorf(e.Range, "Invalid value for "+name, "%s is a string.", name)
		return "", false
	}
	return v.AsString(), true
}

// text returns the value of an attribute that must be a constant string, such as description. It
// returns "" if the block does not have the attribute, or if the attribute is invalid.
func (d literalDecoder) text(b *syntax.Block, name string) string {
	e := b.Attr(name)
	if e == nil {
		return ""
	}
	v, ok := d.constant(e, name+" must be known before a run.")
	if !ok {
		return ""
	}
	s, err := convert.Convert(v, cty.String)
	if err != nil || s.IsNull() {
		d.Errorf(e.Range, "Invalid value for "+name, "%s is a string.", name)
		return ""
	}
	return s.AsString()
}

// literal returns the value of an attribute that must not contain references or function calls. If
// the attribute is invalid, literal reports an error and returns false.
func (d literalDecoder) literal(e *eval.Expr, name string) (cty.Value, bool) {
	if e.Bad {
		return cty.NilVal, false
	}
	if len(e.Syntax.Variables()) > 0 || len(eval.Calls(e.Syntax)) > 0 {
		d.Errorf(e.Range, "Not a literal value",
			"%s must be known when the file is read, so it cannot refer to anything or call functions.", name)
		e.Bad = true
		return cty.NilVal, false
	}
	v, diags := metered.EvaluateOnce(e.Syntax, nil, d.Allowance())
	d.HCL(diags)
	if diags.HasErrors() {
		e.Bad = true
		return cty.NilVal, false
	}
	return v, true
}

// constant returns the value of an attribute that may call functions, but must not contain
// references. If the attribute contains a reference, constant reports an error with the text in the
// parameter `why`. The method `constant` returns false after any error.
func (d literalDecoder) constant(e *eval.Expr, why string) (cty.Value, bool) {
	if e.Bad {
		return cty.NilVal, false
	}
	if vars := e.Syntax.Variables(); len(vars) > 0 {
		d.Errorf(vars[0].SourceRange(), "Reference not available here", "%s", why)
		e.Bad = true
		return cty.NilVal, false
	}
	for _, c := range eval.Calls(e.Syntax, "secret") {
		d.Errorf(c.Range(), "secret() not allowed here", "%s", eval.SecretRule)
		e.Bad = true
		return cty.NilVal, false
	}
	v, diags := metered.EvaluateOnce(e.Syntax, d.m.Funcs, d.Allowance())
	d.HCL(diags)
	if diags.HasErrors() {
		e.Bad = true
		return cty.NilVal, false
	}
	return v, true
}

// typeOf reads a type constraint, such as list(string). It returns the type and the defaults of
// optional attributes. In a JSON file the type constraint is a string. After an error typeOf
// returns false.
func (d literalDecoder) typeOf(e *eval.Expr) (cty.Type, *typeexpr.Defaults, bool) {
	if e.Bad {
		return cty.NilType, nil, false
	}
	var syn hcl.Expression = e.Syntax
	if e.Raw != nil {
		start := hcl.Pos{Line: e.Range.Start.Line, Column: e.Range.Start.Column + 1, Byte: e.Range.Start.Byte + 1}
		if diag := syntax.Prescan([]byte(*e.Raw), e.Range.Filename); diag != nil {
			d.HCL(hcl.Diagnostics{diag})
			return cty.NilType, nil, false
		}
		x, diags := hclsyntax.ParseExpression([]byte(*e.Raw), e.Range.Filename, start)
		d.HCL(diags)
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
	d.HCL(diags)
	return ty, defs, !diags.HasErrors()
}

// reservedEnv reports whether a definition must not read an environment variable, because the
// variable belongs to the engine. An older definition, stored before this rule existed, may name
// such a variable. In this definition env() still has its stored result, but agents and secrets
// do not get the variable.
func (d literalDecoder) reservedEnv(name string) bool { return !d.m.Older && secret.ReservedEnv(name) }

// reservedSecret reports whether ref, a reference to a secret such as env:NAME, names a variable
// that reservedEnv refuses. It returns false for a reference such as file:PATH.
func (d literalDecoder) reservedSecret(ref string) bool {
	name, env := strings.CutPrefix(ref, "env:")
	return env && d.reservedEnv(name)
}
