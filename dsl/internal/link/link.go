package link

import (
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/argument"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/fasteval"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk/schema"
)

// A linker links one module.
type linker struct {
	*report.Reporter
	m         *decl.Module
	fileLevel *eval.Evaluator           // evaluator for the expressions outside of workflows
	agents    map[string]*linkedAgent   // agents by name
	known     map[string]bool           // names of the variables of all workflows
	libraries map[*decl.Module]*library // linked libraries whose agents or workflows the module uses
	// linked workflows, by name in the definition, with the workflows of groups and notifications;
	// without a workflow whose name an earlier workflow of its module has
	workflows map[string]*workflowLinker
	// true = do not use the fast evaluator. Tests set this field, to compare the results with and
	// without the fast evaluator.
	generalOnly bool
	// prefix is "LIBRARY." while a workflow of a library is linked; otherwise "". In the
	// definition, the names of the agents and workflows of this library begin with the prefix.
	prefix string
	failed bool // true = package decl has reported errors, in the module or in a library
}

// A linkedAgent is an agent of the module with its binary.
type linkedAgent struct {
	decl    *decl.Agent
	bin     noun.AgentBinary
	noun    *noun.Agent              // result of linking; nil = the agent has no binary
	actions map[string]*linkedAction // actions of the plugin that the module uses, by name
	// declared actions by name. A declared action has priority over an action of the plugin.
	declared map[string]*linkedAction
	missing  bool // true = the agent has no binary, and the error was reported
}

// A library holds the linker and the variables for the expressions in the agent blocks of a
// library.
type library struct {
	ctx  *workflowLinker // linker for the expressions
	vars value.Value     // object of the library's variables, which always have their defaults
}

// A linkedAction is an action that the module uses, with its schema.
type linkedAction struct {
	agent  *linkedAgent
	name   string
	schema schema.Action
	in     map[string]*argument.Spec // arguments by name
	out    cty.Type                  // object type of the output
	broken bool                      // true = the schema or the action block is invalid, and the error was reported
	// the action block of a declared action; nil = this is an action of the plugin
	form *actionForm
	asks *linkedAction // action in the attribute `lookup` of a declared action; nil = none
	// child holds the workflow of a child run; nil = this is the action of an agent
	child   *workflowLinker
	childIn cty.Type // object type of the variables of the child; only if the field `child` is not nil
}

// An actionForm is a linked action block. It turns the arguments of a declared action into the
// input of the plugin's action, and a reply of the plugin's action into the declared output.
//
// The expressions of the block have an Evaluator of their own with one step. This step describes
// the call: its field In is the type of `args`, and its field Out is the type of the reply.
type actionForm struct {
	decl  *decl.Action
	used  *linkedAction // action of the plugin that the declared action uses
	ev    *eval.Evaluator
	input *argument.List
	// vars replaces the variables of a run by the variables of the module that declares the agent.
	vars     func(value.Value) value.Value
	keyed    bool // true = the input uses self.key
	open     bool // true = some error codes of the plugin's action are known only in a run
	refusals []noun.Refusal
}

// linked returns the action with the given name: a declared action, or an action of the plugin. It
// returns nil if the module uses no such action.
func (la *linkedAgent) linked(name string) *linkedAction {
	if a := la.declared[name]; a != nil {
		return a
	}
	return la.actions[name]
}

// A workflowLinker links one workflow.
type workflowLinker struct {
	*linker
	decl  *decl.Workflow   // declaration of the workflow; nil = the expressions outside of workflows
	ev    *eval.Evaluator  // evaluator for the expressions of the workflow
	world *eval.CheckWorld // unknown values for the checks before a run
	out   *noun.Workflow   // result of linking
	steps []*linkedStep
	cur   int // index of the step that is being linked; -1 = none
	// instead is the value for the field Instead of argument.List; nil = this is not the workflow
	// of a notification
	instead func(*argument.Argument, *eval.Scope) (cty.Value, bool)
}

// A linkedStep is the declaration of a step together with the result of linking.
type linkedStep struct {
	decl     *decl.Step
	action   *linkedAction // action that the step calls; nil = there is no such action, or no call
	noun     *noun.Step    // result of linking
	readOnly bool          // true = the action is read-only, or the step calls no action
	// Settings of the step and of its undo, as they are in every run. nil = the settings depend on
	// the run or have errors, or the step has no undo.
	static, undoStatic *noun.Settings
	undoAction         *linkedAction // action of the compensate block; nil = the step has no valid block
	// computes the arguments that the workflow gives to the call; nil = the step calls no agent,
	// or is not linked yet
	given    noun.ValueFunc
	timer    time.Duration // constant duration of a timer; 0 = none, or it depends on the run
	interval time.Duration // constant interval of a repeat block; 0 = none, or it depends on the run
}

// An argumentLinker checks the arguments of blocks and compiles them.
type argumentLinker struct{ *workflowLinker }

// A codeLinker checks the error codes in steps. It compares them with the codes that the schemas
// of the actions declare.
type codeLinker struct{ *workflowLinker }

// A stepLinker links one step: its action, settings, conditions and for_each.
type stepLinker struct{ *workflowLinker }

// An undoLinker links the undo of steps, and checks that every step with an effect has an undo.
type undoLinker struct{ *workflowLinker }

// A nullChecker finds expressions that read an attribute of an output, although the whole output
// may be null.
type nullChecker struct{ *workflowLinker }

// docText returns the description s of an argument as the end of a message: a colon and s. It
// returns "" if s is empty.
func docText(s string) string {
	if s == "" {
		return ""
	}
	return ": " + trimStop(s)
}

// trimStop returns s without full stops at its end.
func trimStop(s string) string {
	for len(s) > 0 && s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return s
}

// upperFirst returns s with its first letter as a capital letter.
func upperFirst(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}

// fast compiles an expression for the fast evaluator. The parameter `to` is the shape that the
// result must have. The method `fast` returns nil if only the general evaluator can evaluate the
// expression.
func (l *workflowLinker) fast(e *eval.Expr, to *fasteval.Shape) *fasteval.Expr {
	if l.generalOnly {
		return nil
	}
	return fasteval.Compile(l.ev, max(l.cur, 0), e, to, l.Allowance())
}

// title returns the name of the action with its plugin and version, for messages.
func (a *linkedAction) title() string {
	if a.child != nil {
		return a.childTitle()
	}
	v := a.agent.bin.Version
	if v != "" {
		v = " " + v
	}
	return fmt.Sprintf("%s.%s (%s%s)", a.agent.decl.Name, a.name, a.agent.decl.Plugin, v)
}

// subject returns the name of the action with its kind, as the first words of a sentence.
func (a *linkedAction) subject() string {
	if a.child != nil {
		return upperFirst(a.title())
	}
	return "Action " + a.title()
}

func (a *linkedAction) short() string { return a.agent.decl.Name + "." + a.name }

// action returns the action of an agent. It reports an error and returns nil if the agent has no
// such action, or if the schema of the action is invalid (S73). If the agent is missing, or if the
// name is "", action only returns nil, because the error was reported already. So a step without
// its action is never linked without an error. This is important: the engine could not decide what
// such a step does.
func (l *linker) action(agent, name string, at hcl.Range) *linkedAction {
	la := l.agents[l.prefix+agent]
	if la == nil && name != "" && !l.failed {
		l.Errorf(at, "Unknown agent", "The engine did not find the agent %q of this action, although the module names it. This is a fault of the engine; please report it. If another step of the module calls an action of this agent, the engine finds the agent.", l.prefix+agent)
	}
	if la == nil || la.missing || name == "" {
		return nil
	}
	if a, ok := la.declared[name]; ok {
		if a.broken {
			return nil
		}
		return a
	}
	return l.pluginAction(la, name, at, sorted.Keys(la.declared)...)
}

// pluginAction returns an action of the agent's plugin. If the plugin has no such action, or if the
// schema of the action is invalid, pluginAction reports an error and returns nil. It reports an
// invalid schema only once. The parameter
// `others` has more names that the message may suggest, because the author of the workflow may have
// meant one of them.
func (l *linker) pluginAction(la *linkedAgent, name string, at hcl.Range, others ...string) *linkedAction {
	if a, ok := la.actions[name]; ok {
		if a.broken {
			return nil
		}
		return a
	}
	schema, ok := la.bin.Schema.Actions[name]
	if !ok {
		l.Errorf(at, "Unknown action", "Agent %q (%s %s) has no action %q.%s",
			la.decl.Name, la.decl.Plugin, la.bin.Version, name, diag.DidYouMean(name, append(sorted.Keys(la.bin.Schema.Actions), others...)))
		return nil
	}
	schema.Idempotent = schema.Idempotent || la.decl.Idempotent
	a := &linkedAction{agent: la, name: name, schema: schema}
	la.actions[name] = a
	var err error
	if a.in, err = argument.Specs(schema.Inputs); err == nil {
		a.out, err = value.ObjectFrom(schema.Outputs)
	}
	if err != nil {
		a.broken = true
		l.Errorf(at, "Invalid agent schema", "The schema of action %s is broken: %s.", a.title(), err)
		return nil
	}
	return a
}

// quietly evaluates an expression for the checks before a run, and returns its value. It does not
// report the errors in the expression, because they are reported later, when the step is linked. It
// returns an unknown value if e is nil or has an error.
func (l *workflowLinker) quietly(e *eval.Expr) cty.Value {
	if e == nil || e.Bad || e.Compiled == nil {
		return cty.DynamicVal
	}
	l.world.Next()
	v, diags := l.ev.Value(e.Compiled, l.world)
	if diags.HasErrors() {
		return cty.DynamicVal
	}
	return v
}

// unknownLike returns an unknown value of the type of v. If v is an object and is not sensitive as
// a whole, each attribute of the result is sensitive if this attribute of v has a sensitive part.
// For any other v, the whole result is sensitive if v has a sensitive part.
func unknownLike(v cty.Value) cty.Value {
	raw, _ := v.UnmarkDeep()
	out := value.UnknownOf(raw.Type())
	switch {
	case !v.ContainsMarked():
		return out
	case v.IsMarked() || v.IsNull() || !v.Type().IsObjectType():
		return out.Mark(value.SensitiveMark{})
	}
	attrs := out.AsValueMap()
	for name := range attrs {
		if v.GetAttr(name).ContainsMarked() {
			attrs[name] = attrs[name].Mark(value.SensitiveMark{})
		}
	}
	return cty.ObjectVal(attrs)
}

// calls reports whether the step calls an action or starts a child run.
func (s *linkedStep) calls() bool {
	return s.decl.Kind == decl.StepCalls || s.decl.Kind == decl.StepChild
}

// childTitle returns the name of the workflow or group of a child run with its kind, for messages.
func (a *linkedAction) childTitle() string {
	if d := a.child.decl; d.Outer != nil {
		return fmt.Sprintf("group %q", d.Holder.Name)
	}
	return fmt.Sprintf("workflow %q", a.name)
}

// argType returns the type of self.input: an object type with all arguments of the action. All
// attributes are optional.
func argType(specs map[string]*argument.Spec) cty.Type {
	attrs := map[string]cty.Type{}
	for n, s := range specs {
		attrs[n] = s.Type
	}
	return cty.ObjectWithOptionalAttrs(attrs, sorted.Keys(attrs))
}

// outputType returns the type of the output of a step. This is the type in the schema of the
// action, with one difference: an attribute that output_type names has the type in output_type.
// outputType reports attributes of output_type that do not fit the schema.
func (l *workflowLinker) outputType(s *decl.Step, a *linkedAction) cty.Type {
	if s.OutputType == cty.NilType {
		return a.out
	}
	attrs := map[string]cty.Type{}
	for n, ty := range a.out.AttributeTypes() {
		attrs[n] = ty
	}
	for _, n := range value.AttributeNames(s.OutputType) {
		declared, ok := attrs[n]
		want := s.OutputType.AttributeType(n)
		switch {
		case !ok:
			hint := diag.DidYouMean(n, value.AttributeNames(a.out))
			if hint == "" && attrs["json"] == cty.DynamicPseudoType {
				hint = fmt.Sprintf(" output_type describes the whole output; write object({ json = object({ %s = %s }) }).", n, value.TypeText(want))
			}
			l.Errorf(s.OutputAt, "Unsupported output attribute", "Action %s has no output %q.%s", a.title(), n, hint)
		case !value.Assignable(declared, want):
			l.Errorf(s.OutputAt, "Invalid output type", "Output %q of action %s is %s, which cannot become %s.", n, a.title(), value.TypeText(declared), value.TypeText(want))
		default:
			attrs[n] = want
		}
	}
	var optional []string
	for n := range attrs {
		narrowed := s.OutputType.HasAttribute(n) && !s.OutputType.AttributeOptional(n)
		if a.out.AttributeOptional(n) && !narrowed {
			optional = append(optional, n)
		}
	}
	return cty.ObjectWithOptionalAttrs(attrs, optional)
}

// unknownStep returns the value of step.NAME for the checks before a run. The parts of the value
// are unknown, but have their types. The parameter `output` is the output of the step or of one
// instance.
func unknownStep(shape eval.StepShape, output cty.Value) cty.Value {
	text := cty.UnknownVal(cty.String)
	one := cty.ObjectVal(map[string]cty.Value{
		"output": output, "status": text.RefineNotNull(), "attempts": cty.UnknownVal(cty.Number).RefineNotNull(),
		"error": cty.UnknownVal(eval.ErrorType), "started_at": text, "ended_at": text, "signal": text, "collected": cty.DynamicVal,
		"timed_out": cty.UnknownVal(cty.Bool).RefineNotNull(),
	})
	if shape.Each {
		return cty.UnknownVal(cty.Map(one.Type())).RefineNotNull()
	}
	return one
}

// check evaluates an expression with the values that are known before a run, and returns the
// result. It reports errors. It returns cty.DynamicVal after an error, or if e is nil.
func (l *workflowLinker) check(e *eval.Expr) cty.Value {
	if e == nil || e.Compiled == nil {
		return cty.DynamicVal
	}
	if e.Bad {
		l.checkReferences(e.Compiled)
		return cty.DynamicVal
	}
	before := len(l.List)
	l.world.Next()
	v, diags := l.ev.Value(e.Compiled, l.world)
	l.explain(diags)
	if !diags.HasErrors() && e.Compiled.Constant == nil {
		l.checkLoops(e)
	}
	if (l.List[before:]).HasErrors() {
		return cty.DynamicVal
	}
	return v
}

// checkReferences checks the references of an expression that cannot be evaluated. It evaluates
// each reference separately, so that one mistake does not hide the others. It does not check
// references inside of try() and can(), because a reference there may fail.
func (l *workflowLinker) checkReferences(c *eval.Compiled) {
	l.world.Next()
	ctx, diags := l.ev.Context(c, l.world)
	if diags.HasErrors() {
		return // a local has an error, and the check of the local reports this error
	}
	tolerant := eval.Calls(c.Syntax, "try", "can")
	for _, t := range c.Refs {
		if slices.ContainsFunc(tolerant, func(f *hclsyntax.FunctionCallExpr) bool { return f.Range().ContainsOffset(t.SourceRange().Start.Byte) }) {
			continue
		}
		_, diags := metered.Evaluate(&hclsyntax.ScopeTraversalExpr{Traversal: t, SrcRange: t.SourceRange()}, ctx)
		l.explain(diags)
	}
}

// explain reports the diagnostics of an evaluation. If a diagnostic says that the output of a step
// does not have an attribute, the message names the action and its outputs.
func (l *workflowLinker) explain(diags hcl.Diagnostics) {
	for _, d := range diags {
		name, ty, ok := report.MissingAttribute(d)
		if !ok {
			l.HCL(hcl.Diagnostics{d})
			continue
		}
		a := l.actionWithOutput(d, ty)
		if a == nil {
			l.HCL(hcl.Diagnostics{d})
			continue
		}
		hint := diag.DidYouMean(name, value.AttributeNames(a.out))
		if hint == "" && len(a.out.AttributeTypes()) > 0 {
			hint = " Its outputs are " + quotedList(value.AttributeNames(a.out)) + "."
		} else if hint == "" {
			hint = " It has no outputs."
		}
		l.Errorf(*d.Subject, "Unsupported output attribute", "%s has no output %q.%s", a.subject(), name, hint)
	}
}

func quotedList(names []string) string {
	out := ""
	for i, n := range names {
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprintf("%q", n)
	}
	return out
}

// actionWithOutput returns the action whose output caused the diagnostic d. The parameter `ty` is
// the type of the object in the diagnostic. If this object is not the output of an action, it
// returns nil.
func (l *workflowLinker) actionWithOutput(d *hcl.Diagnostic, ty cty.Type) *linkedAction {
	matches := func(i int) bool {
		return i >= 0 && i < len(l.steps) && l.steps[i].action != nil && value.UnknownOf(l.ev.Steps[i].Out).Type().Equals(ty)
	}
	if t, ok := d.Expression.(*hclsyntax.ScopeTraversalExpr); ok {
		switch root := t.Traversal.RootName(); {
		case root == "self" && matches(l.cur):
			return l.steps[l.cur].action
		case root == "step" && len(t.Traversal) > 1:
			if i, ok := l.decl.Index[eval.NameOf(t.Traversal[1])]; ok && matches(i) {
				return l.steps[i].action
			}
			return nil
		}
	}
	for i := range l.steps {
		if matches(i) {
			return l.steps[i].action
		}
	}
	return nil
}

// checkLoops checks the inner expressions of each "for" expression in e whose collection is a map,
// list or set that is not known before a run. The hcl library does not evaluate these inner
// expressions, so it finds no errors in them. If e calls secret(), checkLoops does nothing.
func (l *workflowLinker) checkLoops(e *eval.Expr) {
	if e.Compiled.Secrets {
		return
	}
	l.world.Next()
	ctx, diags := l.ev.Context(e.Compiled, l.world)
	if diags.HasErrors() {
		return // the method `check` has reported these errors
	}
	v := &loopVisitor{l: l, ctx: []*hcl.EvalContext{ctx}}
	v.l.HCL(hclsyntax.Walk(e.Syntax, v))
}

type loopVisitor struct {
	l   *workflowLinker
	ctx []*hcl.EvalContext // contexts of the enclosing "for" expressions, innermost last
}

// Enter adds the context of a "for" expression to v.ctx. If the collection is not known, but is a
// map, list or set, Enter evaluates the inner expressions of n in this context and reports errors.
func (v *loopVisitor) Enter(n hclsyntax.Node) hcl.Diagnostics {
	f, ok := n.(*hclsyntax.ForExpr)
	if !ok {
		return nil
	}
	parent := v.ctx[len(v.ctx)-1]
	child := parent.NewChild()
	key, val := cty.DynamicVal, cty.DynamicVal
	coll, diags := metered.Evaluate(metered.Of(f.CollExpr), parent)
	coll, _ = coll.Unmark()
	ty := coll.Type()
	open := !diags.HasErrors() && !coll.IsKnown() && (ty.IsMapType() || ty.IsListType() || ty.IsSetType())
	if open {
		val, key = cty.UnknownVal(ty.ElementType()), cty.UnknownVal(cty.String)
		if !ty.IsMapType() {
			key = cty.UnknownVal(cty.Number)
		}
	}
	child.Variables = map[string]cty.Value{f.ValVar: val}
	if f.KeyVar != "" {
		child.Variables[f.KeyVar] = key
	}
	v.ctx = append(v.ctx, child)
	if open {
		for _, part := range []hclsyntax.Expression{f.KeyExpr, f.ValExpr, f.CondExpr} {
			if part != nil {
				_, diags := metered.Evaluate(metered.Of(part), child)
				v.l.explain(diags)
			}
		}
	}
	return nil
}

// Exit removes the context of a "for" expression from v.ctx.
func (v *loopVisitor) Exit(n hclsyntax.Node) hcl.Diagnostics {
	if _, ok := n.(*hclsyntax.ForExpr); ok {
		v.ctx = v.ctx[:len(v.ctx)-1]
	}
	return nil
}
