package dsl

import (
	"fmt"
	"math"
	"slices"

	"github.com/hashicorp/go-version"
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

// An AgentUse is an agent that a module uses: declared by a block, or implied
// by an action that names it.
type AgentUse struct {
	Name       string     // of the block, as in agent.NAME.ACTION
	Plugin     string     // of the binary engine-agent-PLUGIN
	Constraint string     // on its version; "" = any
	Where      diag.Range // the plugin argument, else the block, else the first use
	// Similar is, of an agent that is only implied, the declared one whose name
	// is most like it: perhaps that was meant. "" = none is.
	Similar string
}

// Agents returns the agents the module uses, by name.
func (mod *Module) Agents() []AgentUse {
	m := mod.m
	out := make([]AgentUse, 0, len(m.Agents))
	var declared []string
	for _, n := range sorted.Keys(m.Agents) {
		if !m.Agents[n].Implied {
			declared = append(declared, n)
		}
	}
	for _, n := range sorted.Keys(m.Agents) {
		a := m.Agents[n]
		use := AgentUse{Name: a.Name, Plugin: a.Plugin, Constraint: a.Constraint, Where: report.Range(a.PluginAt)}
		if a.Implied {
			use.Similar = diag.Nearest(n, declared)
		}
		out = append(out, use)
	}
	return out
}

// Link checks a module against the schemas of its agents, by name of the
// agent block, and makes a definition of it. The definition is nil if there
// are errors, or were any in Parse; the diagnostics do not repeat those.
func Link(m *Module, agents map[string]noun.AgentBinary) (*Definition, diag.Diagnostics) {
	r := &report.Reporter{Sources: m.m.Sources, Places: m.m.Places}
	workflows, diags := linkModule(m.m, agents, r)
	if workflows == nil {
		return nil, diags
	}
	def := &Definition{workflows: map[string]*noun.Workflow{}, module: m.m}
	for _, wf := range workflows {
		def.workflows[wf.Name] = wf
		def.names = append(def.names, wf.Name)
	}
	if err := def.seal(agents); err != nil {
		r.Errorf(hcl.Range{}, "Cannot store the definition", "%s.", err)
		return nil, r.Finish()
	}
	for _, wf := range def.workflows {
		wf.Digest = def.digest
	}
	def.Warnings = diags
	return def, diags
}

// linkModule links the workflows of a module. They are nil if there are errors, or were
// any before. It reports to r, and returns what r has found.
func linkModule(m *decl.Module, agents map[string]noun.AgentBinary, r *report.Reporter) ([]*noun.Workflow, diag.Diagnostics) {
	return linkedBy(&linker{Reporter: r, m: m, agents: map[string]*linkedAgent{}}, agents)
}

// linkGeneral is linkModule without the fast evaluator, for tests that compare the two.
func linkGeneral(m *decl.Module, agents map[string]noun.AgentBinary, r *report.Reporter) ([]*noun.Workflow, diag.Diagnostics) {
	return linkedBy(&linker{Reporter: r, m: m, agents: map[string]*linkedAgent{}, undirected: true}, agents)
}

func linkedBy(l *linker, agents map[string]noun.AgentBinary) (out []*noun.Workflow, diags diag.Diagnostics) {
	if !l.Bounded(func() { out, diags = l.link(agents) }) {
		return nil, l.Finish()
	}
	return out, diags
}

// link links everything. It returns an empty list, which is not nil, for a module without
// workflows.
func (l *linker) link(agents map[string]noun.AgentBinary) ([]*noun.Workflow, diag.Diagnostics) {
	m := l.m
	if m.Partial {
		return nil, nil
	}
	l.known = knownVariables(m)
	if m.Older {
		l.Effort = metered.NewAllowance(math.MaxInt64) // it was checked when it was stored
	}
	l.fileLevel = &eval.Evaluator{Funcs: m.Funcs, Vars: variableShapes(m.Variables), Shared: true}
	for _, a := range m.TwinAgents { // before those that the names stand for
		if _, found := agents[a.Name]; found && a.Plugin == m.Agents[a.Name].Plugin {
			l.agent(a, agents)
		}
	}
	for _, n := range sorted.Keys(m.Agents) {
		l.agent(m.Agents[n], agents)
	}
	out := make([]*noun.Workflow, 0, len(m.Workflows))
	for _, w := range m.Workflows {
		out = append(out, l.workflow(w))
	}
	diags := l.Finish()
	if m.Failed || diags.HasErrors() {
		return nil, diags
	}
	return out, diags
}

// A linker links one module.
type linker struct {
	*report.Reporter
	m         *decl.Module
	fileLevel *eval.Evaluator
	agents    map[string]*linkedAgent
	known     map[string]bool // variables of all workflows
	// undirected leaves every expression to the evaluator: tests compare.
	undirected bool
}

type linkedAgent struct {
	decl    *decl.Agent
	bin     noun.AgentBinary
	noun    *noun.Agent
	actions map[string]*linkedAction
	missing bool
}

type linkedAction struct {
	agent  *linkedAgent
	name   string
	schema schema.Action
	in     map[string]*argument.Spec
	out    cty.Type
	broken bool // the schema itself makes no sense
}

// direct compiles an expression for the fast evaluator; nil if the evaluator must evaluate
// it.
func (l *workflowLinker) direct(e *eval.Expr, to *fasteval.Shape) *fasteval.Expr {
	if l.undirected {
		return nil
	}
	return fasteval.Compile(l.ev, max(l.cur, 0), e, to, l.Allowance())
}

// title names the action with its plugin, for messages.
func (a *linkedAction) title() string {
	v := a.agent.bin.Version
	if v != "" {
		v = " " + v
	}
	return fmt.Sprintf("%s.%s (%s%s)", a.agent.decl.Name, a.name, a.agent.decl.Plugin, v)
}

func (a *linkedAction) short() string { return a.agent.decl.Name + "." + a.name }

func (l *linker) agent(d *decl.Agent, bins map[string]noun.AgentBinary) {
	la := &linkedAgent{decl: d, actions: map[string]*linkedAction{}}
	l.agents[d.Name] = la
	bin, ok := bins[d.Name]
	if !ok {
		la.missing = true
		l.Errorf(d.PluginAt, fmt.Sprintf("Agent %q not found", d.Name),
			"No binary engine-agent-%s is known for it. Run engine init to look for it and lock it.", d.Plugin)
		return
	}
	la.bin = bin
	la.noun = &noun.Agent{
		Name: d.Name, Plugin: d.Plugin, Version: bin.Version, Checksum: bin.Checksum,
		Instances: d.Instances, MaxConcurrency: d.Concurrency, Env: d.Env, Breaker: d.Breaker,
	}
	l.constraint(la)
	specs, err := argument.Specs(bin.Schema.Config)
	if err != nil {
		l.Errorf(d.Where, "Invalid agent schema", "The schema of engine-agent-%s is broken: config: %s.", d.Plugin, err)
		return
	}
	ctx := l.fileContext()
	at := d.Where
	if b := d.Block.One("config"); b != nil {
		at = b.DefRange
	}
	args := argumentLinker{ctx}.arguments(specs, d.Config, at, "agent "+d.Name, false)
	if len(d.Config) > 0 || len(specs) > 0 {
		la.noun.Config = args.Eval
	}
}

func (l *linker) constraint(la *linkedAgent) {
	if la.decl.Constraint == "" || la.bin.Version == "" {
		return
	}
	c, err := version.NewConstraint(la.decl.Constraint)
	if err != nil {
		return // reported by Parse
	}
	v, err := version.NewVersion(la.bin.Version)
	if err != nil || !c.Check(v.Core()) {
		l.Errorf(la.decl.Where, "Unsupported agent version", "Agent %q needs engine-agent-%s %s; the one found is %s. Run engine init --upgrade to choose again.",
			la.decl.Name, la.decl.Plugin, la.decl.Constraint, la.bin.Version)
	}
}

// fileContext evaluates what stands outside of workflows.
func (l *linker) fileContext() *workflowLinker {
	return &workflowLinker{
		linker: l, ev: l.fileLevel, cur: -1,
		world: &eval.CheckWorld{Evaluator: l.fileLevel, Vars: unknownVars(l.m.Variables), Locals: map[*eval.Local]eval.KeptLocal{}, Effort: l.Allowance()},
	}
}

// variableShapes is what the evaluator has to know of variables.
func variableShapes(decls map[string]*decl.Variable) map[string]eval.VariableShape {
	out := make(map[string]eval.VariableShape, len(decls))
	for name, v := range decls {
		out[name] = eval.VariableShape{Type: v.Type, Sensitive: v.Sensitive}
	}
	return out
}

// unknownVars is the object of all variables, of which only types are known.
func unknownVars(decls map[string]*decl.Variable) cty.Value {
	attrs := map[string]cty.Value{}
	for name, v := range decls {
		x := value.UnknownOf(v.Type)
		if v.Type.IsObjectType() && v.Nullable {
			x = cty.UnknownVal(value.PlainType(v.Type)) // may be null as a whole
		}
		if v.Sensitive {
			x = x.Mark(value.SensitiveMark{})
		}
		attrs[name] = x
	}
	return cty.ObjectVal(attrs)
}

// action finds an action; nil after reporting that there is none (S73).
func (l *linker) action(agent, name string, at hcl.Range) *linkedAction {
	la := l.agents[agent]
	if la == nil || la.missing || name == "" {
		return nil
	}
	if a, ok := la.actions[name]; ok {
		if a.broken {
			return nil
		}
		return a
	}
	schema, ok := la.bin.Schema.Actions[name]
	if !ok {
		l.Errorf(at, "Unknown action", "Agent %q (%s %s) has no action %q.%s",
			agent, la.decl.Plugin, la.bin.Version, name, diag.DidYouMean(name, sorted.Keys(la.bin.Schema.Actions)))
		return nil
	}
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

// A workflowLinker links one workflow.
type workflowLinker struct {
	*linker
	decl  *decl.Workflow
	ev    *eval.Evaluator
	world *eval.CheckWorld
	out   *noun.Workflow
	steps []*linkedStep
	cur   int // step being linked; -1 = none
}

type linkedStep struct {
	decl     *decl.Step
	action   *linkedAction // nil if unknown
	noun     *noun.Step
	readOnly bool
	// The settings of the step and of its undo; nil where they depend on the run.
	static, undoStatic *noun.Settings
}

func (l *linker) workflow(w *decl.Workflow) *noun.Workflow {
	ev := &eval.Evaluator{Funcs: l.m.Funcs, Vars: variableShapes(w.Variables)}
	wl := &workflowLinker{
		linker: l, decl: w, ev: ev, cur: -1,
		world: &eval.CheckWorld{Evaluator: ev, Vars: unknownVars(w.Variables), Locals: map[*eval.Local]eval.KeptLocal{}, Effort: l.Allowance()},
		out: &noun.Workflow{
			Name: w.Name, Description: w.Description, Pivot: -1, Order: w.Order,
			CompensationMode: w.Mode, Agents: map[string]*noun.Agent{}, Variables: decl.VariableList(w.Variables),
		},
	}
	wl.shapes()
	stepLinker{wl}.validations()
	for _, loc := range w.OwnLocals {
		wl.check(loc.Expr)
	}
	stepLinker{wl}.limits()
	for i := range w.Steps {
		stepLinker{wl}.step(i)
	}
	stepLinker{wl}.outputs()
	undoLinker{wl}.soundness()
	wl.out.Shortest = stepLinker{wl}.shortest()
	wl.out.Confidential = confidential(wl)
	b := &decl.Bind{Ev: ev, Decls: w.Variables, Known: l.known, Sources: l.m.Sources, Places: l.m.Places}
	noun.SetBind(wl.out, b.Values)
	return wl.out
}

// knownVariables names all variables that any workflow declares.
func knownVariables(m *decl.Module) map[string]bool {
	out := map[string]bool{}
	for _, w := range m.Workflows {
		for n := range w.Variables {
			out[n] = true
		}
	}
	return out
}

// shapes finds the action of every step and what its result looks like.
func (l *workflowLinker) shapes() {
	for _, s := range l.decl.Steps {
		a := l.action(s.Agent, s.Action, s.ActionAt)
		shape := eval.StepShape{Name: s.Name, Each: s.Each(), Out: cty.DynamicPseudoType, In: cty.DynamicPseudoType}
		if a != nil {
			shape.Out = l.outputType(s, a)
			shape.In = argType(a.in)
			l.out.Agents[s.Agent] = a.agent.noun
		}
		l.steps = append(l.steps, &linkedStep{decl: s, action: a})
		l.ev.Steps = append(l.ev.Steps, shape)
		l.world.Steps = append(l.world.Steps, l.unknownStep(shape, a))
	}
}

// argType is the type of a step's arguments as self.input shows them.
func argType(specs map[string]*argument.Spec) cty.Type {
	attrs := map[string]cty.Type{}
	for n, s := range specs {
		attrs[n] = s.Type
	}
	return cty.ObjectWithOptionalAttrs(attrs, sorted.Keys(attrs))
}

// outputType narrows the declared outputs by output_type.
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

// unknownStep is step.NAME before a run.
func (l *workflowLinker) unknownStep(shape eval.StepShape, a *linkedAction) cty.Value {
	output := cty.DynamicVal
	if a != nil {
		output = value.MarkFields(value.UnknownOf(shape.Out), a.schema.Outputs)
	}
	one := cty.ObjectVal(map[string]cty.Value{
		"output": output, "status": cty.UnknownVal(cty.String).RefineNotNull(), "attempts": cty.UnknownVal(cty.Number).RefineNotNull(),
		"error": cty.UnknownVal(eval.ErrorType), "started_at": cty.UnknownVal(cty.String), "timed_out": cty.UnknownVal(cty.Bool).RefineNotNull(),
	})
	if shape.Each {
		return cty.UnknownVal(cty.Map(one.Type())).RefineNotNull()
	}
	return one
}

// check evaluates an expression with unknown values and reports what cannot
// work. It returns cty.DynamicVal where nothing is known.
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

// checkReferences looks at the references of an expression that cannot be
// evaluated, each alone, so that one mistake does not hide the others.
// Those inside try() and can() may fail.
func (l *workflowLinker) checkReferences(c *eval.Compiled) {
	l.world.Next()
	ctx, diags := l.ev.Context(c, l.world)
	if diags.HasErrors() {
		return // a local value's, reported there
	}
	bearing := eval.Calls(c.Syntax, "try", "can")
	for _, t := range c.Refs {
		if slices.ContainsFunc(bearing, func(f *hclsyntax.FunctionCallExpr) bool { return f.Range().ContainsOffset(t.SourceRange().Start.Byte) }) {
			continue
		}
		_, diags := metered.Evaluate(&hclsyntax.ScopeTraversalExpr{Traversal: t, SrcRange: t.SourceRange()}, ctx)
		l.explain(diags)
	}
}

// explain reports diagnostics of an evaluation; where the result of a step
// lacks an attribute it names the action.
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
		l.Errorf(*d.Subject, "Unsupported output attribute", "Action %s has no output %q.%s", a.title(), name, hint)
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

// actionWithOutput finds the action whose output was looked at in vain.
func (l *workflowLinker) actionWithOutput(d *hcl.Diagnostic, ty cty.Type) *linkedAction {
	matches := func(i int) bool {
		return i >= 0 && i < len(l.steps) && l.steps[i].action != nil && value.UnknownOf(l.ev.Steps[i].Out).Type().Equals(ty)
	}
	if t, ok := d.Expression.(*hclsyntax.ScopeTraversalExpr); ok {
		switch root := t.Traversal.RootName(); {
		case root == "self" && matches(l.cur):
			return l.steps[l.cur].action
		case root == "step" && len(t.Traversal) > 1:
			if attr, ok := t.Traversal[1].(hcl.TraverseAttr); ok {
				if i, ok := l.decl.Index[attr.Name]; ok && matches(i) {
					return l.steps[i].action
				}
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

// checkLoops looks inside for expressions over collections that are not known
// yet, which the library does not evaluate.
func (l *workflowLinker) checkLoops(e *eval.Expr) {
	if e.Compiled.Secrets {
		return
	}
	l.world.Next()
	ctx, diags := l.ev.Context(e.Compiled, l.world)
	if diags.HasErrors() {
		return // reported already
	}
	v := &loopVisitor{l: l, ctx: []*hcl.EvalContext{ctx}}
	v.l.HCL(hclsyntax.Walk(e.Syntax, v))
}

type loopVisitor struct {
	l   *workflowLinker
	ctx []*hcl.EvalContext
}

// Enter opens the scope of a for expression and evaluates its parts in it.
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

// Exit closes the scope of a for expression.
func (v *loopVisitor) Exit(n hclsyntax.Node) hcl.Diagnostics {
	if _, ok := n.(*hclsyntax.ForExpr); ok {
		v.ctx = v.ctx[:len(v.ctx)-1]
	}
	return nil
}
