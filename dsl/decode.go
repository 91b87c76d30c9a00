package dsl

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
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/secret"
)

// A decoder turns blocks into declarations.
type decoder struct {
	*report.Reporter
	lit           literalDecoder
	m             *module
	source        readSource
	engineVersion string
}

// module reads the top level. What is needed to understand the rest (file()
// and env(), then variables and locals) comes first.
func (d *decoder) module(blocks []*syntax.Block) {
	for _, b := range blocks {
		d.recordReads(b)
	}
	d.m.agents = map[string]*agentDecl{}
	d.m.variables = map[string]*variableDecl{}
	d.m.locals = map[string]*eval.Local{}
	for _, b := range blocks {
		switch b.Kind {
		case "variable":
			if twin := d.variable(b, d.m.variables, true); twin != nil {
				d.m.twinVariables = append(d.m.twinVariables, twin)
			}
		case "locals":
			d.m.ownLocals = append(d.m.ownLocals, d.localsBlock(b, d.m.locals, true)...)
		}
	}
	seen := map[string]hcl.Range{}
	if d.tooMany(blocks) {
		return
	}
	for _, b := range blocks {
		switch b.Kind {
		case "engine":
			d.engine(b)
		case "agent":
			a := d.agent(b)
			if first, dup := d.m.agents[b.Label]; dup {
				d.duplicate(b, first.where)
				d.m.twinAgents = append(d.m.twinAgents, a)
				continue
			}
			d.m.agents[b.Label] = a
		case "workflow":
			w := d.workflow(b)
			first, dup := seen[b.Label]
			if dup {
				d.duplicate(b, first)
				w.twin = true
			} else {
				seen[b.Label] = b.DefRange
			}
			d.m.workflows = append(d.m.workflows, w)
		}
	}
}

// maxShared bounds how many declarations of the file level all workflows
// together see: each workflow checks them again.
const maxShared = 1_000_000

// tooMany reports whether the module has too many workflows for what it
// declares for all of them.
func (d *decoder) tooMany(blocks []*syntax.Block) bool {
	n := 0
	for _, b := range blocks {
		if b.Kind == "workflow" {
			n++
		}
	}
	shared := len(d.m.variables) + len(d.m.locals)
	if d.m.older || n <= maxWorkflows && n*shared <= maxShared {
		return false
	}
	d.Errorf(hcl.Range{}, "Too many workflows",
		"The module declares %d workflows and %d variables and local values for all of them. It may declare at most %d workflows, and workflows times such declarations may be at most %d. Split the module.",
		n, shared, maxWorkflows, maxShared)
	return true
}

const maxWorkflows = 10_000

// duplicate reports a name that is taken. What bears it is a twin: it is
// checked like any other, so that its own errors show at once, but nothing can
// refer to it.
func (d *decoder) duplicate(b *syntax.Block, first hcl.Range) {
	d.Errorf(b.DefRange, fmt.Sprintf("Duplicate %s %q", b.Kind, b.Label), "The first one is at %s.", report.Range(first))
}

// recordReads performs every file() and env() of a block once.
func (d *decoder) recordReads(b *syntax.Block) {
	for _, name := range sorted.Keys(b.Attrs) {
		d.recordExpr(b.Attrs[name])
	}
	for _, a := range b.Args {
		d.recordExpr(a.Expr)
	}
	for _, c := range b.Blocks {
		d.recordReads(c)
	}
}

func (d *decoder) recordExpr(e *eval.Expr) {
	for _, call := range eval.Calls(e.Syntax, "file", "env") {
		text, ok := eval.LiteralString(call)
		if !ok {
			e.Bad = true
			d.Errorf(call.Range(), "Not a literal argument",
				"%s() is read once, when the definition is loaded, so its argument must be a plain string.", call.Name)
			continue
		}
		if call.Name == "env" && d.lit.reservedEnv(text) {
			e.Bad = true
			d.Errorf(call.Range(), "Reserved variable", "env(%q): %s.", text, secret.ReservedEnvRule)
			continue
		}
		if call.Name == "env" {
			d.source.readEnv(text)
			continue
		}
		if err := d.source.readFile(text); err != nil {
			e.Bad = true
			d.Errorf(call.Range(), "Cannot read file", "file(%q): %s.", text, err)
		}
	}
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

// variable reads a declaration into a map. It returns it if its name is taken.
func (d *decoder) variable(b *syntax.Block, into map[string]*variableDecl, deployment bool) (twin *variableDecl) {
	first, dup := into[b.Label]
	if dup && first.deployment == deployment {
		d.duplicate(b, first.where)
	} else if dup {
		d.Errorf(b.DefRange, "Variable shadows another",
			"Variable %q is declared for the whole module at %s. There is one namespace var; use another name.",
			b.Label, report.Range(first.where))
	}
	v := &variableDecl{
		name: b.Label, where: b.DefRange, deployment: deployment, typ: cty.DynamicPseudoType,
		typeText: "any", nullable: true, description: d.lit.text(b, "description"),
	}
	v.sensitive = d.lit.flag(b, "sensitive", false)
	v.nullable = d.lit.flag(b, "nullable", true)
	if e := b.Attr("type"); e != nil {
		if ty, defs, ok := d.lit.typeOf(e); ok {
			v.typ, v.defaults, v.typed = ty, defs, true
			v.typeText = typeexpr.TypeString(ty)
		}
	}
	if e := b.Attr("default"); e != nil {
		d.variableDefault(v, e)
	}
	for _, c := range b.All("validation") {
		v.validations = append(v.validations, condition(c))
	}
	if dup {
		return v
	}
	into[b.Label] = v
	return nil
}

// variableDefault evaluates a default: functions may stand in it, references
// may not.
func (d *decoder) variableDefault(v *variableDecl, e *eval.Expr) {
	val, ok := d.lit.constant(e, "A default cannot refer to anything.")
	if !ok {
		v.def = cty.NullVal(v.typ.WithoutOptionalAttributesDeep()) // not missing, only broken
		return
	}
	val, err := v.convert(val)
	if err != nil {
		d.Errorf(e.Range, "Invalid default value", "The default of variable %q does not fit its type %s: %s.", v.name, v.typeText, err)
	} else if val.IsNull() && !v.nullable {
		d.Errorf(e.Range, "Invalid default value", "Variable %q is not nullable, so its default cannot be null.", v.name)
	}
	v.def = val
	if !d.m.older {
		v.infer()
	}
}

func condition(b *syntax.Block) *conditionDecl {
	return &conditionDecl{where: b.DefRange, condition: b.Attr("condition"), message: b.Attr("error_message"), code: b.Attr("error_code")}
}

// localsBlock reads declarations into a map, and returns all of them, also
// those whose name is taken.
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

func (d *decoder) workflow(b *syntax.Block) *workflowDecl {
	w := &workflowDecl{
		name: b.Label, where: b.DefRange, block: b, mode: noun.ModeAutomatic,
		description: d.lit.text(b, "description"), deadline: b.Attr("deadline"),
		variables: map[string]*variableDecl{}, locals: map[string]*eval.Local{}, index: map[string]int{}, outputAt: map[string]hcl.Range{},
		retry: b.One("retry"), unique: b.One("unique").Attr("key"),
	}
	for n, v := range d.m.variables {
		w.variables[n] = v
	}
	for n, l := range d.m.locals {
		w.locals[n] = l
	}
	for _, c := range b.Blocks {
		switch c.Kind {
		case "variable":
			if twin := d.variable(c, w.variables, false); twin != nil {
				w.twinVariables = append(w.twinVariables, twin)
			}
		case "locals":
			w.ownLocals = append(w.ownLocals, d.localsBlock(c, w.locals, false)...)
		case "step":
			s := d.step(c)
			s.index = len(w.steps)
			w.steps = append(w.steps, s)
			if first, dup := w.index[c.Label]; dup {
				d.duplicate(c, w.steps[first].where)
				s.pivot = s.pivot && !w.steps[first].pivot // a second one is no news
				continue
			}
			w.index[s.name] = s.index
		case "output":
			d.output(w, c)
		case "compensation":
			w.compDeadline = c.Attr("deadline")
			w.mode = d.mode(c.Attr("mode"))
		}
	}
	if len(w.steps) > maxSteps {
		d.Errorf(b.DefRange, "Too many steps", "A workflow may hold at most %d steps.", maxSteps)
	}
	return w
}

const maxSteps = 10_000

func (d *decoder) output(w *workflowDecl, b *syntax.Block) {
	if first, dup := w.outputAt[b.Label]; dup {
		d.duplicate(b, first)
	} else {
		w.outputAt[b.Label] = b.DefRange
	}
	w.outputs = append(w.outputs, &outputDecl{
		name: b.Label, where: b.DefRange, value: b.Attr("value"),
		description: d.lit.text(b, "description"), sensitive: d.lit.flag(b, "sensitive", false),
	})
}

func (d *decoder) mode(e *eval.Expr) noun.Mode {
	if e == nil {
		return noun.ModeAutomatic
	}
	v, ok := d.lit.constant(e, "compensation.mode must be known before a run.")
	if ok && v.Type() == cty.String && !v.IsNull() {
		switch v.AsString() {
		case "automatic":
			return noun.ModeAutomatic
		case "manual":
			return noun.ModeManual
		}
		d.Errorf(e.Range, "Invalid value for mode", "mode is \"automatic\" or \"manual\".%s",
			diag.DidYouMean(v.AsString(), []string{"automatic", "manual"}))
	} else if ok {
		d.Errorf(e.Range, "Invalid value for mode", "mode is \"automatic\" or \"manual\".")
	}
	return noun.ModeAutomatic
}

func (d *decoder) step(b *syntax.Block) *stepDecl {
	s := &stepDecl{name: b.Label, where: b.DefRange, block: b, after: map[int]hcl.Range{}, outputType: cty.NilType, inputAt: b.DefRange}
	s.agent, s.action, s.actionAt = d.action(b)
	s.pivot = d.lit.flag(b, "pivot", false)
	s.idempotent = d.lit.promise(b, "idempotent")
	s.readOnly = d.lit.promise(b, "read_only")
	s.onRerun = d.rerun(b.Attr("on_rerun"))
	if c := b.One("input"); c != nil {
		s.input, s.inputAt = c.Args, c.DefRange
	}
	if e := b.Attr("output_type"); e != nil {
		s.outputAt = e.Range
		if ty, _, ok := d.lit.typeOf(e); ok {
			if ty.IsObjectType() {
				s.outputType = ty
			} else {
				d.Errorf(e.Range, "Invalid output type", "output_type describes the whole output and is an object({ ... }).")
			}
		}
	}
	stated := false
	if e := b.Attr("compensation"); e != nil {
		s.noUndo = true // also where the word is wrong: something was meant
		text, ok := d.lit.literalText(e, "compensation")
		stated = ok && text == "none"
		if ok && !stated {
			d.Errorf(e.Range, "Invalid value for compensation",
				"The only value is \"none\". To say how the step is undone write a compensate block.")
		}
	}
	for _, c := range b.All("precondition") {
		s.pre = append(s.pre, condition(c))
	}
	for _, c := range b.All("postcondition") {
		s.post = append(s.post, condition(c))
	}
	s.catch = b.One("catch")
	if c := b.One("compensate"); c != nil {
		s.undo = d.undo(c)
		if stated {
			d.Errorf(c.DefRange, "Compensation stated twice", "The step says compensation = \"none\" and has a compensate block.")
		}
	}
	return s
}

// rerun reads on_rerun.
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

func (d *decoder) undo(b *syntax.Block) *undoDecl {
	u := &undoDecl{where: b.DefRange, block: b, inputAt: b.DefRange}
	u.agent, u.action, u.actionAt = d.action(b)
	u.idempotent = d.lit.promise(b, "idempotent")
	u.byKey = d.lit.promise(b, "by_key")
	if c := b.One("input"); c != nil {
		u.input, u.inputAt = c.Args, c.DefRange
	}
	return u
}

// action reads agent.NAME.ACTION.
func (d *decoder) action(b *syntax.Block) (agent, action string, at hcl.Range) {
	e := b.Attr("action")
	if e == nil {
		if b.Kind == "step" && !b.Broken {
			d.Errorf(b.DefRange, "Missing required argument", "A step needs an action: action = agent.NAME.ACTION.")
		}
		return "", "", b.DefRange
	}
	t := e.Traversal()
	if len(t) == 3 && t.RootName() == "agent" {
		x, okX := t[1].(hcl.TraverseAttr)
		y, okY := t[2].(hcl.TraverseAttr)
		if okX && okY && syntax.ValidName(x.Name) && syntax.ValidName(y.Name) {
			return x.Name, y.Name, e.Range
		}
	}
	e.Bad = true
	d.Errorf(e.Range, "Invalid action", "An action is written agent.NAME.ACTION, without quotes.")
	return "", "", e.Range
}
