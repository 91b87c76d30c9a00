package decl

import (
	"fmt"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"slices"
	"strings"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// maxChildDepth limits how deep child runs may be nested. The child of a run that a person starts
// has the depth 1.
const maxChildDepth = 8

// maxAgents limits the number of agents of a module that starts workflows of libraries. The agents
// that the module takes from libraries count, too. For any other module there is no such limit.
const maxAgents = 10_000

// A childDecoder reads steps that start child runs.
type childDecoder struct{ *decoder }

// resolve finds the workflow of each step with a child run. It reports workflows that start each
// other in a cycle, and child runs that are nested too deep. A step without a compensate block
// becomes a pivot if the workflow of the step's child has a pivot.
func (d childDecoder) resolve() {
	own := workflowsOf(d.m)
	for _, w := range d.m.Workflows {
		d.findAll(w, own)
	}
	for _, w := range d.m.Workflows {
		d.visit(w, nil)
	}
}

// findAll finds the workflows of all child runs of w, and of the groups in w. If w is the workflow
// of a group, findAll also reports a step or local of w whose name is already used outside of the
// group: by a step or local of a workflow that contains the group.
func (d childDecoder) findAll(w *Workflow, own map[string]*Workflow) {
	if w.Outer != nil {
		groupDecoder(d).shadows(w)
	}
	for _, s := range w.Steps {
		switch {
		case s.Child == nil || s.Child.Name == "":
		case s.Child.Group:
			d.findAll(s.Child.Workflow, own)
		default:
			d.find(s, own)
		}
	}
}

// find sets the workflow of the child of step s. A child from the same module gets the values of
// all variables of the module. The parameter `own` holds the workflows of the module by name.
func (d childDecoder) find(s *Step, own map[string]*Workflow) {
	c := s.Child
	if c.Library != "" {
		d.inLibrary(s)
		return
	}
	w, ok := own[c.Name]
	if !ok {
		d.Errorf(c.Where, "Reference to undeclared workflow", "There is no workflow named %q in this module.%s", c.Name, diag.DidYouMean(c.Name, sorted.Keys(own)))
		return
	}
	c.Workflow = w
	for _, name := range sorted.Keys(d.m.Variables) {
		c.Passed = append(c.Passed, syntax.Arg{Name: name, Where: c.Where, Expr: referenceTo(c.Where, "var", name)})
	}
}

// inLibrary sets the workflow of the child of step s to a workflow of a library. It adds the agents
// of this workflow, and of its own children, to the agents of the module.
func (d childDecoder) inLibrary(s *Step) {
	c := s.Child
	lib, ok := d.m.Libraries[c.Library]
	if !ok {
		d.Errorf(c.Where, "Reference to undeclared library", "There is no library named %q.%s", c.Library, diag.DidYouMean(c.Library, sorted.Keys(d.m.Libraries)))
		return
	}
	if lib.Module == nil || lib.Module.Partial {
		return // the errors of the library have been reported already
	}
	own := workflowsOf(lib.Module)
	w, ok := own[c.Name]
	if !ok {
		d.Errorf(c.Where, "Reference to undeclared workflow", "Library %q has no workflow named %q.%s", c.Library, c.Name, diag.DidYouMean(c.Name, sorted.Keys(own)))
		return
	}
	c.Workflow = w
	names := w.agents()
	if len(names)+len(d.m.Agents) > maxAgents {
		d.Errorf(c.Where, "Too many agents", "The workflows of libraries that this module starts use more than %d agents. Use fewer libraries.", maxAgents)
		c.Workflow = nil
		return
	}
	for _, name := range names {
		key := c.Library + "." + name
		a := lib.Module.Agents[name]
		if d.m.Agents[key] != nil || a == nil || d.m.kept != nil && !d.m.kept[key] {
			continue
		}
		used := *a
		if used.Name = key; used.Library == nil {
			used.Library = lib.Module
		}
		d.m.Agents[key] = &used
	}
}

// workflowsOf returns the workflows of a module by name. It leaves out a workflow whose name
// another workflow already has.
func workflowsOf(m *Module) map[string]*Workflow {
	out := map[string]*Workflow{}
	for _, w := range m.Workflows {
		if !w.Twin {
			out[w.Name] = w
		}
	}
	return out
}

// agents returns the names of all agents that a run of the workflow needs: for its steps and undos,
// for its notifications, and for the steps, undos and notifications of its child runs. An agent of
// a library has the name LIBRARY.AGENT.
func (w *Workflow) agents() []string {
	if w.used != nil {
		return w.used
	}
	all := map[string]bool{}
	for _, s := range w.Steps {
		if len(all) > maxAgents {
			break // inLibrary reports that there are too many agents
		}
		all[s.Agent] = true
		if s.Undo != nil {
			all[s.Undo.Agent] = true
		}
		if s.Child == nil || s.Child.Workflow == nil {
			continue
		}
		for _, name := range s.Child.Workflow.agents() {
			if s.Child.Library != "" {
				name = s.Child.Library + "." + name
			}
			all[name] = true
		}
	}
	for _, n := range w.Notifies {
		all[n.Flow.Steps[0].Agent] = true
	}
	delete(all, "")
	w.used = sorted.Keys(all)
	return w.used
}

// visit sets the height of workflow w: how deep its child runs are nested. It reports a cycle, and
// a child run that is nested too deep. A step without a compensate block becomes a pivot if the
// workflow of the step's child has a pivot. The parameter `chain` holds the workflows that lead to
// w: each workflow in the list starts the next one, and the last workflow starts w.
func (d childDecoder) visit(w *Workflow, chain []*Workflow) {
	if w.visited {
		return
	}
	chain = append(slices.Clone(chain), w)
	for _, s := range w.Steps {
		if s.Child == nil || s.Child.Workflow == nil {
			continue
		}
		c := s.Child.Workflow
		if i := slices.Index(chain, c); i >= 0 {
			d.Errorf(s.Child.Where, "Cycle of workflows", "Workflows start each other as child runs without end: %s.", chainText(append(chain[i:], c)))
			s.Child.Workflow = nil
			continue
		}
		d.visit(c, chain)
		if c.height+1 > maxChildDepth && !d.m.Older {
			d.Errorf(s.Child.Where, "Child runs nested too deep", "Child runs and groups may be nested %d deep at most, and this is one more. Let an outer workflow do more of the work itself.", maxChildDepth)
			s.Child.Workflow = nil
			continue
		}
		w.height = max(w.height, c.height+1)
		s.Pivot = s.Pivot || s.Undo == nil && slices.ContainsFunc(c.Steps, func(s *Step) bool { return s.Pivot })
	}
	w.visited = true
}

func chainText(chain []*Workflow) string {
	out := make([]string, len(chain))
	for i, w := range chain {
		out[i] = fmt.Sprintf("%q", w.Name)
	}
	return strings.Join(out, " → ")
}

// secrets reports an error for each call of secret() in the input block of a step with a child run.
func (d childDecoder) secrets(s *Step) {
	if s.Kind != StepChild {
		return
	}
	for _, a := range s.Input {
		for _, call := range eval.Calls(a.Expr.Syntax, "secret") {
			a.Expr.Bad = true
			d.Errorf(call.Range(), "secret() not allowed here", "The input of a child run is stored with that run, so it cannot hold a secret. Write secret(...) in the input of a step of the child.")
		}
	}
}
