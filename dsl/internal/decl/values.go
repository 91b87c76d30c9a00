package decl

import (
	"errors"
	"fmt"
	"sort"
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
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// collectionOrText takes a text that is a list or an object as one, and any
// other as the string that it is.
func collectionOrText(a noun.Assignment) cty.Value {
	if text := strings.TrimSpace(a.Text); strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		if x, err := parseText(a); err == nil {
			return x
		}
	}
	return cty.StringVal(a.Text)
}

// A variableReader reads values that people give to variables.
type variableReader struct{ *report.Reporter }

// ParseVars reads a values file.
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

// convert brings a value to the variable's type, with defaults of optional
// attributes filled in.
func (v *Variable) convert(x cty.Value) (cty.Value, error) {
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

// value evaluates one assignment.
func (v *Variable) value(a noun.Assignment) (cty.Value, error) {
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
	if err != nil && v.Type.IsPrimitiveType() { // let the conversion speak: "a number is required"
		return cty.StringVal(a.Text), nil
	}
	return x, err
}

// parseText reads the text of a flag or variable as an expression.
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
	x, diags := metered.EvaluateOnce(e, nil, nil)
	if diags.HasErrors() {
		return cty.NilVal, errors.New(strings.TrimSuffix(diags[0].Detail, "."))
	}
	return x, nil
}

// Bind is what Bind needs of the declarations.
type Bind struct {
	Ev      *eval.Evaluator
	Decls   map[string]*Variable
	Known   map[string]bool // variables of the other workflows of the module
	Sources map[string][]byte
	Places  report.Places
}

// Values is Workflow.Bind.
func (b *Bind) Values(assigned []noun.Assignment) (value.Value, diag.Diagnostics) {
	r := &report.Reporter{Sources: map[string][]byte{}, Places: b.Places}
	for n, src := range b.Sources {
		r.Sources[n] = src
	}
	last := map[string]noun.Assignment{}
	for _, a := range assigned {
		if _, src := noun.WrittenValue(a); src != nil {
			r.Sources[a.Where.File] = src
		}
		if b.declared(r, a) {
			last[a.Name] = a
		}
	}
	vals := map[string]cty.Value{}
	for _, name := range sorted.Keys(b.Decls) {
		a, given := last[name]
		if v, ok := b.one(r, b.Decls[name], a, given); ok {
			vals[name] = v
		}
	}
	if !(diag.Diagnostics(r.List)).HasErrors() {
		b.validate(r, vals, last)
	}
	if diags := r.Finish(); diags.HasErrors() {
		return value.Value{}, diags
	}
	out, err := value.Encode(cty.ObjectVal(vals), false)
	if err != nil {
		r.Errorf(hcl.Range{}, "Invalid value", "The variables cannot be stored: %s.", err)
	}
	return out, r.Finish()
}

func (b *Bind) declared(r *report.Reporter, a noun.Assignment) bool {
	if b.Decls[a.Name] != nil {
		return true
	}
	if b.Known[a.Name] && a.Source != "--var" {
		return false // for another workflow of the module
	}
	placed(r, a, "Value for undeclared variable", "%s gives a value to %q, but there is no such variable.%s",
		sourceOf(a), a.Name, diag.DidYouMean(a.Name, sorted.Keys(b.Decls)))
	return false
}

func sourceOf(a noun.Assignment) string {
	if a.Source == "" {
		return "An assignment"
	}
	return a.Source
}

// placed reports an error about an assignment at its place, if it has one.
func placed(r *report.Reporter, a noun.Assignment, summary, format string, args ...any) {
	r.Push(diag.Diagnostic{Severity: diag.SeverityError, Summary: summary, Detail: fmt.Sprintf(format, args...), Range: a.Where})
}

func (b *Bind) one(r *report.Reporter, v *Variable, a noun.Assignment, given bool) (cty.Value, bool) {
	x := v.Default
	if given {
		raw, err := v.value(a)
		if err == nil {
			raw, err = v.convert(raw)
		}
		if err != nil {
			detail := fmt.Sprintf("%s gives variable %q a value that does not fit its type %s: %s.", sourceOf(a), v.name, v.typeText, err)
			if v.Sensitive {
				detail = fmt.Sprintf("%s gives variable %q a value that does not fit its type %s.", sourceOf(a), v.name, v.typeText)
			}
			placed(r, a, "Invalid value for variable", "%s", detail)
			return cty.NilVal, false
		}
		x = raw
		if x.IsNull() && !v.Nullable && v.Default != cty.NilVal {
			x = v.Default // null means: as if not given
		}
	}
	switch {
	case x == cty.NilVal:
		hint := v.description
		if hint != "" {
			hint = " (" + strings.TrimSuffix(hint, ".") + ")"
		}
		r.Errorf(v.where, "No value for required variable", "Variable %q has no default, so it needs a value%s: --var %s=VALUE, a values file, or the environment variable ENGINE_VAR_%s.",
			v.name, hint, v.name, v.name)
		return cty.NilVal, false
	case x.IsNull() && !v.Nullable:
		placed(r, a, "Invalid value for variable", "%s gives variable %q the value null, which it does not allow.", sourceOf(a), v.name)
		return cty.NilVal, false
	}
	if _, err := value.Encode(x, false); err != nil {
		placed(r, a, "Invalid value for variable", "%s gives variable %q a value that cannot be stored: %s.", sourceOf(a), v.name, err)
		return cty.NilVal, false
	}
	if v.Sensitive {
		x = x.Mark(value.SensitiveMark{})
	}
	return x, true
}

// validate runs the validation blocks with the values in place.
func (b *Bind) validate(r *report.Reporter, vals map[string]cty.Value, last map[string]noun.Assignment) {
	w := &eval.CheckWorld{Evaluator: b.Ev, Vars: cty.ObjectVal(vals), Locals: map[*eval.Local]eval.KeptLocal{}, Effort: r.Allowance()}
	for _, name := range sorted.Keys(b.Decls) {
		v := b.Decls[name]
		for _, c := range v.Validations {
			if c.Condition == nil || c.Condition.Compiled == nil {
				continue
			}
			w.Next()
			cond, diags := b.Ev.Value(c.Condition.Compiled, w)
			if diags.HasErrors() {
				r.HCL(diags)
				continue
			}
			ok, err := value.BoolOf(cond)
			if err != nil {
				r.Errorf(c.Condition.Range, "Invalid condition", "The condition must be true or false: %s.", err)
				continue
			}
			if ok {
				continue
			}
			a := last[name]
			w.Next()
			detail := b.message(w, c)
			if a.Where.File != "" {
				placed(r, a, "Invalid value for variable", "%s\nThis was checked by the validation rule at %s.", detail, report.Range(c.Where))
				continue
			}
			if a.Name != "" {
				detail += "\nThe value comes from " + sourceOf(a) + "."
			}
			r.HCL(hcl.Diagnostics{{
				Severity: hcl.DiagError, Summary: "Invalid value for variable", Detail: detail,
				Subject: &c.Condition.Range, Expression: c.Condition.Syntax,
				EvalContext: &hcl.EvalContext{Variables: map[string]cty.Value{"var": w.Vars}},
			}})
		}
	}
}

func (b *Bind) message(w eval.World, c *Condition) string {
	v, diags := b.Ev.Value(c.Message.Compiled, w)
	if diags.HasErrors() {
		return "The condition is not met, and its error message cannot be evaluated."
	}
	return MessageText(v)
}

// MessageText returns an error message, unless it would show something
// sensitive.
func MessageText(v cty.Value) string {
	if v.ContainsMarked() {
		return "The condition is not met. The message is hidden, because it holds a sensitive value."
	}
	s, err := value.StringOf(v)
	if err != nil {
		return "The condition is not met, and its error message is not a string."
	}
	return s
}

// VariableList describes the variables in order of name.
func VariableList(decls map[string]*Variable) []noun.Variable {
	out := make([]noun.Variable, 0, len(decls))
	for _, v := range decls {
		out = append(out, noun.Variable{
			Name: v.name, Description: v.description, Type: v.typeText, Sensitive: v.Sensitive,
			Nullable: v.Nullable, HasDefault: v.Default != cty.NilVal, Deployment: v.deployment,
		})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}
