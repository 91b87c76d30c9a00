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

// Workflows links the workflows of a module. It returns no workflows if parsing or linking found
// errors. It reports to r, and returns all findings of r.
func Workflows(m *decl.Module, agents map[string]noun.AgentBinary, r *report.Reporter) ([]*noun.Workflow, diag.Diagnostics) {
	return linkedBy(&linker{Reporter: r, m: m, agents: map[string]*linkedAgent{}}, agents)
}

// GeneralWorkflows is Workflows without the fast evaluator. Tests compare the results of both.
func GeneralWorkflows(m *decl.Module, agents map[string]noun.AgentBinary, r *report.Reporter) ([]*noun.Workflow, diag.Diagnostics) {
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
		l.Effort = metered.NewAllowance(math.MaxInt64) // the definition was checked when it was stored
	}
	l.fileLevel = &eval.Evaluator{Funcs: m.Funcs, Vars: variableShapes(m.Variables), Shared: true}
	// Link agents with a name that is already used first. Below, the first agent with the name,
	// which is the one that is used, replaces them in l.agents.
	for _, a := range m.TwinAgents {
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

func (l *linker) workflow(w *decl.Workflow) *noun.Workflow {
	ev := &eval.Evaluator{Funcs: l.m.Funcs, Vars: variableShapes(w.Variables)}
	wl := &workflowLinker{
		linker: l, decl: w, ev: ev, cur: -1,
		world: &eval.CheckWorld{Evaluator: ev, Vars: unknownVars(w.Variables), Locals: map[*eval.Local]eval.KeptLocal{}, Effort: l.Allowance()},
		out: &noun.Workflow{
			Name: w.Name, Description: w.Description, Pivot: -1, Order: w.Order,
			CompensationMode: w.Mode, Agents: map[string]*noun.Agent{}, Variables: variableList(w.Variables),
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
