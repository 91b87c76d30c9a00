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
	return linkedBy(&linker{Reporter: r, m: m, agents: map[string]*linkedAgent{}}, agents)
}

// GeneralWorkflows does the same as Workflows, but without the fast evaluator. Tests compare the
// results of both functions.
func GeneralWorkflows(m *decl.Module, agents map[string]noun.AgentBinary, r *report.Reporter) ([]*noun.Workflow, diag.Diagnostics) {
	return linkedBy(&linker{Reporter: r, m: m, agents: map[string]*linkedAgent{}, undirected: true}, agents)
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
	l.known = knownVariables(m)
	if m.Older {
		l.Effort = metered.NewAllowance(math.MaxInt64) // no limit: the check was cheap enough when the definition was stored
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
	for _, w := range m.Workflows {
		out = append(out, l.workflow(w))
	}
	diags := l.Finish()
	if m.Failed || diags.HasErrors() {
		return nil, diags
	}
	return out, diags
}

func (l *linker) workflow(w *decl.Workflow) *noun.Workflow {
	ev := &eval.Evaluator{Funcs: l.m.Funcs, Vars: variableShapes(w.Variables)}
	wl := &workflowLinker{
		linker: l, decl: w, ev: ev, cur: -1,
		world: &eval.CheckWorld{Evaluator: ev, Vars: unknownVars(w.Variables), Locals: map[*eval.Local]eval.KeptLocal{}, Effort: l.Allowance()},
		out: &noun.Workflow{
			Name: w.Name, Description: w.Description, Pivot: -1, Order: w.Order,
			CompensationMode: w.Mode, Moved: w.Moved, Agents: map[string]*noun.Agent{}, Variables: variableList(w.Variables),
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
	b := &bind{ev: ev, decls: w.Variables, known: l.known, sources: l.m.Sources, places: l.m.Places}
	noun.SetBind(wl.out, b.values)
	noun.SetLines(wl.out, lines{l.m, w, ev})
	return wl.out
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
