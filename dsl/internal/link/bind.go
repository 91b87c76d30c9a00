package link

import (
	"fmt"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/rule"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A bind holds the parts of the declarations that Workflow.Bind needs.
type bind struct {
	ev      *eval.Evaluator
	decls   map[string]*decl.Variable // variables of the workflow and of the module, by name
	known   map[string]bool           // names of the variables of all workflows; nil for a child run or a library
	sources map[string][]byte         // source files by name, for messages
	blocks  report.BlockRanges        // positions of the blocks, for messages
}

// values does the work of Workflow.Bind, and has the same results.
func (b *bind) values(assigned []noun.Assignment) (value.Value, diag.Diagnostics) {
	return b.some(b.decls, assigned)
}

// deployed does the work of Workflow.BindDeployed, and has the same results.
func (b *bind) deployed(assigned []noun.Assignment) (value.Value, diag.Diagnostics) {
	outside := map[string]*decl.Variable{}
	for name, v := range b.decls {
		if v.Deployment {
			outside[name] = v
		}
	}
	return b.some(outside, assigned)
}

// The method `some` gives values to the variables in the map `wanted`, and returns them as one
// object.
func (b *bind) some(wanted map[string]*decl.Variable, assigned []noun.Assignment) (value.Value, diag.Diagnostics) {
	r := &report.Reporter{Sources: map[string][]byte{}, Blocks: b.blocks}
	for n, src := range b.sources {
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
	for _, name := range sorted.Keys(wanted) {
		a, given := last[name]
		if v, ok := b.one(r, wanted[name], a, given); ok {
			vals[name] = v
		}
	}
	if !(diag.Diagnostics(r.List)).HasErrors() {
		b.validate(r, wanted, vals, last)
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

func (b *bind) declared(r *report.Reporter, a noun.Assignment) bool {
	if b.decls[a.Name] != nil {
		return true
	}
	if b.known[a.Name] && a.Source != "--var" {
		return false // the variable belongs to another workflow of the module
	}
	assignmentError(r, a, "Value for undeclared variable", "%s gives a value to %q, but there is no such variable.%s",
		sourceOf(a), a.Name, diag.DidYouMean(a.Name, sorted.Keys(b.decls)))
	return false
}

func sourceOf(a noun.Assignment) string {
	if a.Source == "" {
		return "An assignment"
	}
	return a.Source
}

// assignmentError adds an error about an assignment to r. If the position of the assignment is
// known, the error contains it.
func assignmentError(r *report.Reporter, a noun.Assignment, summary, format string, args ...any) {
	r.Push(diag.Diagnostic{Severity: diag.SeverityError, Summary: summary, Detail: fmt.Sprintf(format, args...), Range: a.Where})
}

func (b *bind) one(r *report.Reporter, v *decl.Variable, a noun.Assignment, given bool) (cty.Value, bool) {
	x := v.Default
	if given {
		raw, err := v.Value(a)
		if err == nil {
			raw, err = v.Convert(raw)
		}
		if err != nil {
			detail := fmt.Sprintf("%s gives variable %q a value that does not fit its type %s: %s.", sourceOf(a), v.Name, v.TypeText, err)
			if v.Sensitive {
				detail = fmt.Sprintf("%s gives variable %q a value that does not fit its type %s.", sourceOf(a), v.Name, v.TypeText)
			}
			assignmentError(r, a, "Invalid value for variable", "%s", detail)
			return cty.NilVal, false
		}
		x = raw
		if x.IsNull() && !v.Nullable && v.Default != cty.NilVal {
			x = v.Default // this variable must not be null, so the value null selects the default
		}
	}
	switch {
	case x == cty.NilVal:
		hint := v.Description
		if hint != "" {
			hint = " (" + strings.TrimSuffix(hint, ".") + ")"
		}
		r.Errorf(v.Where, "No value for required variable", "Variable %q has no default, so it needs a value%s: --var %s=VALUE, a values file, or the environment variable ENGINE_VAR_%s.",
			v.Name, hint, v.Name, v.Name)
		return cty.NilVal, false
	case x.IsNull() && !v.Nullable:
		assignmentError(r, a, "Invalid value for variable", "%s gives variable %q the value null, which it does not allow.", sourceOf(a), v.Name)
		return cty.NilVal, false
	}
	if _, err := value.Encode(x, false); err != nil {
		assignmentError(r, a, "Invalid value for variable", "%s gives variable %q a value that cannot be stored: %s.", sourceOf(a), v.Name, err)
		return cty.NilVal, false
	}
	if v.Sensitive {
		x = x.Mark(value.SensitiveMark{})
	}
	return x, true
}

// validate checks the validation blocks of the variables in the map `wanted`, and reports each
// condition that is not met. The map `vals` holds the value of each variable. The map `last`
// holds, for each variable, the assignment from which the value comes.
func (b *bind) validate(r *report.Reporter, wanted map[string]*decl.Variable, vals map[string]cty.Value, last map[string]noun.Assignment) {
	w := &eval.CheckWorld{Evaluator: b.ev, Vars: cty.ObjectVal(vals), Locals: map[*eval.Local]eval.KeptLocal{}, Effort: r.Allowance()}
	for _, name := range sorted.Keys(wanted) {
		v := wanted[name]
		for _, c := range v.Validations {
			if c.Condition == nil || c.Condition.Compiled == nil {
				continue
			}
			w.Next()
			cond, diags := b.ev.Value(c.Condition.Compiled, w)
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
				assignmentError(r, a, "Invalid value for variable", "%s\nThis was checked by the validation rule at %s.", detail, report.Range(c.Where))
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

// message returns the value of error_message as a text, or another text if there is no such value.
// The block c has no error_message only if package decl has reported this.
func (b *bind) message(w eval.World, c *decl.Condition) string {
	if c.Message == nil || c.Message.Compiled == nil {
		return "The condition is not met."
	}
	v, diags := b.ev.Value(c.Message.Compiled, w)
	if diags.HasErrors() {
		return "The condition is not met, and its error message cannot be evaluated."
	}
	return messageText(v)
}

// messageText converts the value of error_message to a text. If the value is sensitive or is not
// a string, messageText returns another text that says so.
func messageText(v cty.Value) string {
	if v.ContainsMarked() {
		return "The condition is not met. The message is hidden, because it holds a sensitive value."
	}
	s, err := value.StringOf(v)
	if err != nil {
		return "The condition is not met, and its error message is not a string."
	}
	return s
}

// variableList converts the declarations to a list of noun.Variable, sorted by name.
func variableList(decls map[string]*decl.Variable) []noun.Variable {
	out := make([]noun.Variable, 0, len(decls))
	for _, v := range decls {
		form, err := v.Type.MarshalJSON()
		if err != nil {
			panic(err) // cty writes every type that a variable can have
		}
		out = append(out, noun.Variable{
			Form: form,
			Name: v.Name, Description: v.Description, Type: v.TypeText, Sensitive: v.Sensitive,
			Nullable: v.Nullable, HasDefault: v.Default != cty.NilVal, Deployment: v.Deployment,
			Rules: rulesOf(v, decls),
		})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// rulesOf returns the rules of a variable. If the variable is sensitive, or is declared outside of
// workflows, rulesOf returns none. For any other variable, it returns a rule for each condition
// that can become a rule. A condition cannot become a rule if it refers to a sensitive variable or
// to a variable outside of workflows, for example.
func rulesOf(v *decl.Variable, decls map[string]*decl.Variable) (out []noun.Rule) {
	if v.Deployment || v.Sensitive {
		return nil
	}
	types := func(name string) cty.Type {
		if d := decls[name]; d != nil && !d.Deployment && !d.Sensitive {
			return d.Type
		}
		return cty.NilType
	}
	for _, c := range v.Validations {
		if c.Condition == nil || c.Condition.Bad || c.Message == nil {
			continue
		}
		if check := rule.Of(c.Condition.Syntax, types); check != nil {
			out = append(out, noun.Rule{Check: check, Message: plainMessage(c)})
		}
	}
	return out
}

// plainMessage returns the text of error_message. If error_message has references or cannot be
// evaluated, plainMessage returns a general text.
func plainMessage(c *decl.Condition) string {
	if len(c.Message.Syntax.Variables()) == 0 {
		if v, diags := c.Message.Syntax.Value(nil); !diags.HasErrors() {
			return messageText(v)
		}
	}
	return "the condition of its validation block is not met"
}

// variableShapes returns the type of each variable, and whether the variable is sensitive.
func variableShapes(decls map[string]*decl.Variable) map[string]eval.VariableShape {
	out := make(map[string]eval.VariableShape, len(decls))
	for name, v := range decls {
		out[name] = eval.VariableShape{Type: v.Type, Sensitive: v.Sensitive}
	}
	return out
}
