package link

import (
	"math"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
)

// Workflows links the workflows of a module. It adds its findings to r, and returns all findings
// of r. If parsing or linking has found errors, the list of workflows is nil.
func Workflows(m *decl.Module, agents map[string]noun.AgentBinary, r *report.Reporter) ([]*noun.Workflow, diag.Diagnostics) {
	return linkedBy(&linker{Reporter: r, m: m, workflows: map[string]*workflowLinker{}, libraries: map[*decl.Module]*library{}, agents: map[string]*linkedAgent{}}, agents)
}

// GeneralWorkflows does the same as Workflows, but without the fast evaluator. Tests compare the
// results of both functions.
func GeneralWorkflows(m *decl.Module, agents map[string]noun.AgentBinary, r *report.Reporter) ([]*noun.Workflow, diag.Diagnostics) {
	return linkedBy(&linker{Reporter: r, m: m, workflows: map[string]*workflowLinker{}, libraries: map[*decl.Module]*library{}, agents: map[string]*linkedAgent{}, generalOnly: true}, agents)
}

func linkedBy(l *linker, agents map[string]noun.AgentBinary) (out []*noun.Workflow, diags diag.Diagnostics) {
	if !l.Bounded(func() { out, diags = l.link(agents) }) {
		return nil, l.Finish()
	}
	return out, diags
}

// link links all agents and workflows of the module. The list of workflows is nil after an error.
// For a module without workflows the list is empty, but not nil.
func (l *linker) link(agents map[string]noun.AgentBinary) ([]*noun.Workflow, diag.Diagnostics) {
	m := l.m
	if m.Partial {
		return nil, nil
	}
	l.known, l.failed = knownVariables(m), m.Failed
	if m.Older {
		// There is no limit: the check was cheap enough when the definition was stored.
		l.Effort = metered.NewAllowance(math.MaxInt64)
	}
	l.fileLevel = &eval.Evaluator{Funcs: m.Funcs, Vars: variableShapes(m.Variables), Shared: true}
	// First link the duplicates: agents whose name is already used. The next loop replaces each
	// duplicate in l.agents by the valid agent with this name.
	for _, a := range m.TwinAgents {
		if _, found := agents[a.Name]; found && a.Plugin == m.Agents[a.Name].Plugin {
			l.agent(a, agents)
		}
	}
	for _, n := range sorted.Keys(m.Agents) {
		l.agent(m.Agents[n], agents)
		actionLinker{l}.actions(l.agents[n])
	}
	out := make([]*noun.Workflow, 0, len(m.Workflows))
	sinks := replySinks(l)
	for _, w := range m.Workflows {
		wf := l.workflow(w).out
		wf.ReplySinks = sinks
		out = append(out, wf)
	}
	for _, name := range sorted.Keys(l.workflows) {
		if wl := l.workflows[name]; wl.out.Inner {
			out = append(out, wl.out)
		}
	}
	diags := l.Finish()
	if m.Failed || diags.HasErrors() {
		return nil, diags
	}
	return out, diags
}

// workflow links a workflow. The first call for w links it, and later calls return the same result.
func (l *linker) workflow(w *decl.Workflow) *workflowLinker {
	if wl := l.workflows[l.prefix+w.Name]; wl != nil && wl.decl == w {
		return wl
	}
	wl := l.newWorkflow(w)
	wl.link()
	return wl
}

// newWorkflow returns a linker for a workflow, without linking it. It reports an error if another
// workflow has the same name in the definition.
func (l *linker) newWorkflow(w *decl.Workflow) *workflowLinker {
	ev := &eval.Evaluator{Funcs: l.m.Funcs, Vars: variableShapes(w.Variables)}
	wl := &workflowLinker{
		linker: l, decl: w, ev: ev, cur: -1,
		world: &eval.CheckWorld{Evaluator: ev, Vars: unknownVars(w.Variables), Locals: map[*eval.Local]eval.KeptLocal{}, Effort: l.Allowance()},
		out: &noun.Workflow{
			Name: l.prefix + w.Name, Description: w.Description, Pivot: -1, Order: w.Order, Inner: l.prefix != "" || w.Outer != nil,
			Retention: w.Retention, CompensationMode: w.Mode, Moved: w.Moved, Agents: map[string]*noun.Agent{}, Variables: variableList(w.Variables),
		},
	}
	if first := l.workflows[wl.out.Name]; first != nil && !w.Twin && !first.decl.Twin {
		l.Errorf(w.Where, "Name used twice", "In the definition, this and the one at %s both have the name %q. Rename a workflow, a library or a group.", report.Range(first.decl.Where), wl.out.Name)
	}
	if !w.Twin {
		l.workflows[wl.out.Name] = wl
	}
	return wl
}

// link links the parts of the workflow.
func (l *workflowLinker) link() {
	w := l.decl
	l.shapes()
	stepLinker{l}.validations()
	for _, loc := range w.OwnLocals {
		l.check(loc.Expr)
	}
	stepLinker{l}.limits()
	for i := range w.Steps {
		stepLinker{l}.step(i)
	}
	stepLinker{l}.outputs()
	undoLinker{l}.soundness()
	l.out.Shortest = stepLinker{l}.shortest()
	l.out.Confidential = l.out.Confidential || confidential(l)
	b := l.bindings()
	scheduleLinker{l}.schedules(b)
	eventLinker{l}.events(b)
	notifications(l)
}

// bindings sets two kinds of functions in the linked workflow: functions that give values to
// variables, and functions that evaluate lines of the console. It returns the bind of the workflow.
func (l *workflowLinker) bindings() *bind {
	b := &bind{ev: l.ev, decls: l.decl.Variables, known: l.known, sources: l.m.Sources, blocks: l.m.Blocks}
	noun.SetBind(l.out, b.values, b.deployed)
	noun.SetLines(l.out, lines{l.m, l.decl, l.ev})
	return b
}

// knownVariables returns the names of the variables of all workflows.
func knownVariables(m *decl.Module) map[string]bool {
	out := map[string]bool{}
	for _, w := range m.Workflows {
		for n := range w.Variables {
			out[n] = true
		}
	}
	return out
}
