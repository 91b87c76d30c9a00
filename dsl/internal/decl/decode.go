package decl

import (
	"fmt"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// A decoder turns blocks into declarations.
type decoder struct {
	*report.Reporter
	lit           literalDecoder
	m             *Module    // module to which the decoder adds the declarations
	libs          *libraries // libraries of the main module
	source        readSource // source of the results of file(), env() and similar functions
	engineVersion string     // version to compare with required_version; "" = do not compare
}

// duplicate reports an error: another declaration already uses the name of the block b. The
// parameter `first` is the position of the other declaration. The decoder still checks b for other
// errors, but nothing can refer to b.
func (d *decoder) duplicate(b *syntax.Block, first hcl.Range) {
	d.Errorf(b.DefRange, fmt.Sprintf("Duplicate %s %q", b.Kind, b.Label), "The first one is at %s.", report.Range(first))
}

func (d *decoder) engine(b *syntax.Block) {
	e := b.Attr("required_version")
	if e == nil {
		return
	}
	text, ok := d.lit.literalText(e, "required_version")
	if !ok {
		return
	}
	c, err := version.NewConstraint(text)
	if err != nil {
		d.Errorf(e.Range, "Invalid version constraint", "Write a constraint such as \">= 0.3\" or \"~> 1.2\".")
		return
	}
	if d.engineVersion == "" {
		return
	}
	v, err := version.NewVersion(d.engineVersion)
	if err != nil {
		d.Warnf(e.Range, "Engine version not checked", "This engine calls itself %q, which is not a version.", d.engineVersion)
		return
	}
	if !c.Check(v.Core()) {
		d.Errorf(e.Range, "Unsupported engine version", "This module needs engine %s; this is %s.", text, d.engineVersion)
	}
}

// variable reads a variable block, adds the variable to the map `into` and returns nil. If the
// map already has a variable with this name, the method reports an error, does not change the
// map, and returns the new variable. The parameter `deployment` is true if the block is
// outside of workflows.
func (d *decoder) variable(b *syntax.Block, into map[string]*Variable, deployment bool) (twin *Variable) {
	first, dup := into[b.Label]
	if dup && first.Deployment == deployment {
		d.duplicate(b, first.Where)
	} else if dup {
		d.Errorf(b.DefRange, "Variable shadows another",
			"Variable %q is declared for the whole module at %s. There is one namespace var; use another name.",
			b.Label, report.Range(first.Where))
	}
	v := &Variable{
		Name: b.Label, Where: b.DefRange, Deployment: deployment, Type: cty.DynamicPseudoType,
		TypeText: "any", Nullable: true, Description: d.lit.text(b, "description"),
	}
	v.Sensitive = d.lit.flag(b, "sensitive", false)
	v.Nullable = d.lit.flag(b, "nullable", true)
	if e := b.Attr("type"); e != nil {
		if ty, defs, ok := d.lit.typeOf(e); ok {
			v.Type, v.defaults, v.typed = ty, defs, true
			v.TypeText = typeexpr.TypeString(ty)
		}
	}
	if e := b.Attr("default"); e != nil {
		d.variableDefault(v, e)
	}
	for _, c := range b.All("validation") {
		v.Validations = append(v.Validations, conditionOf(c))
	}
	if dup {
		return v
	}
	into[b.Label] = v
	return nil
}

// variableDefault evaluates the default e of a variable and sets v.Default. A default may call
// functions, but must not contain references.
func (d *decoder) variableDefault(v *Variable, e *eval.Expr) {
	val, ok := d.lit.constant(e, "A default cannot refer to anything.")
	if !ok {
		v.Default = cty.NullVal(v.Type.WithoutOptionalAttributesDeep()) // a default exists, but is invalid
		return
	}
	val, err := v.Convert(val)
	if err != nil {
		d.Errorf(e.Range, "Invalid default value", "The default of variable %q does not fit its type %s: %s.", v.Name, v.TypeText, err)
	} else if val.IsNull() && !v.Nullable {
		d.Errorf(e.Range, "Invalid default value", "Variable %q is not nullable, so its default cannot be null.", v.Name)
	}
	v.Default = val
	if !d.m.Older {
		v.infer()
	}
}

func conditionOf(b *syntax.Block) *Condition {
	return &Condition{Where: b.DefRange, Condition: b.Attr("condition"), Message: b.Attr("error_message"), Code: b.Attr("error_code")}
}

// localsBlock reads a locals block and adds its locals to the map `into`. It returns the locals of
// the block, also the locals whose name is already used. It leaves out locals with an invalid name.
// The parameter `file` is true if the block is outside of workflows.
func (d *decoder) localsBlock(b *syntax.Block, into map[string]*eval.Local, file bool) []*eval.Local {
	var own []*eval.Local
	for _, a := range b.Args {
		if !syntax.ValidName(a.Name) {
			d.Errorf(a.Where, "Invalid name", "A local value's name holds only letters, digits, _ and -.")
			continue
		}
		l := &eval.Local{Name: a.Name, Where: a.Where, Expr: a.Expr, File: file}
		if first, dup := into[a.Name]; dup {
			d.Errorf(a.Where, fmt.Sprintf("Duplicate local value %q", a.Name), "The first one is at %s.", report.Range(first.Where))
		} else {
			into[a.Name] = l
		}
		own = append(own, l)
	}
	return own
}

func (d *decoder) step(b *syntax.Block) *Step {
	s := &Step{Name: b.Label, Where: b.DefRange, Block: b, After: map[int]hcl.Range{}, OutputType: cty.NilType, InputAt: b.DefRange}
	d.kind(s)
	s.Pivot = d.lit.flag(b, "pivot", false)
	s.Idempotent = d.lit.promise(b, "idempotent")
	s.ReadOnly = d.lit.promise(b, "read_only")
	s.OnRerun = d.rerun(b.Attr("on_rerun"))
	if c := b.One("input"); c != nil {
		s.Input, s.InputAt = c.Args, c.DefRange
	}
	if e := b.Attr("output_type"); e != nil {
		s.OutputAt = e.Range
		if ty, _, ok := d.lit.typeOf(e); ok {
			if ty.IsObjectType() {
				s.OutputType = ty
			} else {
				d.Errorf(e.Range, "Invalid output type", "output_type describes the whole output and is an object({ ... }).")
			}
		}
	}
	stated := false
	if e := b.Attr("compensation"); e != nil {
		// Set this also for an invalid word, so that no second error says that the undo is missing.
		s.NoUndo = true
		text, ok := d.lit.literalText(e, "compensation")
		stated = ok && text == "none"
		if ok && !stated {
			d.Errorf(e.Range, "Invalid value for compensation",
				"The only value is \"none\". To say how the step is undone write a compensate block.")
		}
	}
	for _, c := range b.All("precondition") {
		s.Pre = append(s.Pre, conditionOf(c))
	}
	for _, c := range b.All("fail_when") {
		s.FailWhen = append(s.FailWhen, &Refusal{*conditionOf(c), d.lit.flag(c, "permanent", false)})
	}
	for _, c := range b.All("postcondition") {
		s.Post = append(s.Post, conditionOf(c))
	}
	s.Catch = b.One("catch")
	d.repeat(s)
	if c := b.One("compensate"); c != nil {
		s.Undo = d.undo(c)
		if stated {
			d.Errorf(c.DefRange, "Compensation stated twice", "The step says compensation = \"none\" and has a compensate block.")
		}
	}
	return s
}

// rerun reads the argument `on_rerun`. It returns noun.RerunDefault if the argument is missing or
// invalid.
func (d *decoder) rerun(e *eval.Expr) noun.Rerun {
	if e == nil {
		return noun.RerunDefault
	}
	text, ok := d.lit.literalText(e, "on_rerun")
	if !ok {
		return noun.RerunDefault
	}
	for r, name := range noun.RerunNames {
		if text == name {
			return r
		}
	}
	d.Errorf(e.Range, "Invalid value for on_rerun", "on_rerun is \"continue\" or \"undo_first\".%s",
		diag.DidYouMean(text, []string{"continue", "undo_first"}))
	return noun.RerunDefault
}

func (d *decoder) undo(b *syntax.Block) *Undo {
	u := &Undo{Where: b.DefRange, Block: b, InputAt: b.DefRange}
	u.Agent, u.Action, u.ActionAt = d.action(b)
	u.Idempotent = d.lit.promise(b, "idempotent")
	u.ByKey = d.lit.promise(b, "by_key")
	if c := b.One("input"); c != nil {
		u.Input, u.InputAt = c.Args, c.DefRange
	}
	return u
}

// action reads the attribute `action` of a step, a compensate block or a notify block:
// agent.NAME.ACTION, or library.LIBRARY.agent.NAME.ACTION. It returns "" for both names if the
// attribute is missing or invalid. The result `at` is the position of the attribute, or of the
// block b if the attribute is missing.
func (d *decoder) action(b *syntax.Block) (agent, action string, at hcl.Range) {
	e := b.Attr("action")
	if e == nil {
		return "", "", b.DefRange
	}
	t := e.Traversal()
	if len(t) == 3 && t.RootName() == "agent" {
		x, okX := t[1].(hcl.TraverseAttr)
		y, okY := t[2].(hcl.TraverseAttr)
		if okX && okY && x.Name == noun.ChildAgent && !d.m.Older {
			e.Bad = true
			d.Errorf(e.Range, "Reserved name", "No agent has the name %q. To start a child run write workflow = workflow.%s.", noun.ChildAgent, y.Name)
			return "", "", e.Range
		}
		if okX && okY && syntax.ValidName(x.Name) && syntax.ValidName(y.Name) {
			return x.Name, y.Name, e.Range
		}
	}
	if len(t) > 0 && t.RootName() == "library" {
		agent, action = libraryDecoder{d}.action(e, t)
		return agent, action, e.Range
	}
	e.Bad = true
	d.Errorf(e.Range, "Invalid action", "An action is written agent.NAME.ACTION, without quotes.")
	return "", "", e.Range
}
