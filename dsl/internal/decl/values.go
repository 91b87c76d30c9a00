package decl

import (
	"errors"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A variableReader reads files with values of variables.
type variableReader struct{ *report.Reporter }

// ParseVars parses a values file, which is a file with values of variables, and returns the values.
// The parameter `src` is the text of the file.
func ParseVars(filename string, src []byte) ([]noun.Assignment, diag.Diagnostics) {
	r := &report.Reporter{Sources: map[string][]byte{filename: src}}
	out := variableReader{r}.parseVars(filename, src)
	return out, r.Finish()
}

func (r variableReader) parseVars(name string, src []byte) []noun.Assignment {
	var f *hcl.File
	var diags hcl.Diagnostics
	scan, parse := syntax.Prescan, func() { f, diags = hclsyntax.ParseConfig(src, name, hcl.InitialPos) }
	if strings.HasSuffix(name, ".json") {
		scan, parse = syntax.PrescanJSON, func() { f, diags = hcljson.Parse(src, name) }
	}
	if d := scan(src, name); d != nil {
		r.HCL(hcl.Diagnostics{d})
		return nil
	}
	parse()
	r.HCL(diags)
	if diags.HasErrors() {
		return nil
	}
	b := &syntax.Block{Kind: "values"}
	syntax.Reader{Reporter: r.Reporter}.ReadFree(f.Body, b)
	var out []noun.Assignment
	for _, a := range b.Args {
		if a.Expr.Bad {
			continue
		}
		if v := a.Expr.Syntax.Variables(); len(v) > 0 {
			r.Errorf(v[0].SourceRange(), "Reference not available here", "A values file holds plain values; it cannot refer to anything.")
			continue
		}
		if c := eval.Calls(a.Expr.Syntax); len(c) > 0 {
			r.Errorf(c[0].Range(), "Function not available here", "A values file holds plain values; it cannot call functions.")
			continue
		}
		at := report.Range(a.Where)
		out = append(out, noun.AssignmentIn(a.Name, at, a.Expr.Syntax, src))
	}
	return out
}

// Convert converts x to the type of the variable. If the type has optional attributes with
// defaults, Convert adds these defaults.
func (v *Variable) Convert(x cty.Value) (cty.Value, error) {
	if v.defaults != nil && !x.IsNull() {
		if !x.Type().IsPrimitiveType() {
			x = v.defaults.Apply(x)
		}
	}
	if x.IsNull() {
		return cty.NullVal(value.PlainType(v.Type)), nil
	}
	if v.kind != 0 {
		return v.convertKind(x)
	}
	return value.Conform(x, v.Type)
}

// Value returns the value of an assignment, before its conversion to the type of the variable.
func (v *Variable) Value(a noun.Assignment) (cty.Value, error) {
	if e, _ := noun.WrittenValue(a); e != nil {
		x, diags := metered.EvaluateOnce(e, nil, nil)
		if diags.HasErrors() {
			return cty.NilVal, errors.New(diags[0].Detail)
		}
		return x, nil
	}
	switch {
	case v.Type == cty.String:
		return cty.StringVal(a.Text), nil
	case v.open():
		return collectionOrText(a), nil
	}
	x, err := parseText(a)
	// Return the text and no error here. The later conversion of the text gives a better error,
	// such as "a number is required".
	if err != nil && !errors.Is(err, value.ErrDigits) && v.Type.IsPrimitiveType() {
		return cty.StringVal(a.Text), nil
	}
	return x, err
}

// parseText parses the text of a flag or an environment variable as an expression, and returns
// the value. An expression with references or function calls is an error.
func parseText(a noun.Assignment) (cty.Value, error) {
	name := "<" + a.Source + ">"
	if d := syntax.Prescan([]byte(a.Text), name); d != nil {
		return cty.NilVal, errors.New(strings.TrimSuffix(d.Detail, "."))
	}
	e, diags := hclsyntax.ParseExpression([]byte(a.Text), name, hcl.InitialPos)
	if !diags.HasErrors() && (len(e.Variables()) > 0 || len(eval.Calls(e)) > 0) {
		diags = hcl.Diagnostics{{Severity: hcl.DiagError, Detail: "only plain values may stand here; strings inside it are written in double quotes"}}
	}
	if diags.HasErrors() {
		return cty.NilVal, errors.New(strings.TrimSuffix(diags[0].Detail, "."))
	}
	var err error
	_ = hclsyntax.VisitAll(e, func(n hclsyntax.Node) hcl.Diagnostics { // the callback returns no diagnostics
		if n, ok := n.(*hclsyntax.LiteralValueExpr); ok && err == nil {
			err = syntax.ExactNumber(n, []byte(a.Text))
		}
		return nil
	})
	if err != nil {
		return cty.NilVal, err
	}
	x, diags := metered.EvaluateOnce(e, nil, nil)
	if diags.HasErrors() {
		return cty.NilVal, errors.New(strings.TrimSuffix(diags[0].Detail, "."))
	}
	return x, nil
}

// collectionOrText parses the text of an assignment. If the text is a valid list or object,
// collectionOrText returns this list or object. For any other text, it returns the text as a
// string.
func collectionOrText(a noun.Assignment) cty.Value {
	if text := strings.TrimSpace(a.Text); strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		if x, err := parseText(a); err == nil {
			return x
		}
	}
	return cty.StringVal(a.Text)
}
