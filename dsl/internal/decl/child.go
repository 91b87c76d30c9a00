package decl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// maxChildDepth limits how deep child runs may be nested. The child of a run that a person starts
// has the depth 1.
const maxChildDepth = 8

// A Child is what a step with a child run says about this run.
type Child struct {
	Library string // name of the library that has the workflow; "" = the module itself has it
	Name    string // name of the workflow in its module; "" = the attribute `workflow` is invalid
	Group   bool   // true = the workflow is the inside of a group
	Where   hcl.Range
	// Workflow is the workflow of the child run; nil = there is no such workflow, and the error was
	// reported.
	Workflow *Workflow
	// Passed holds the values of those variables of the child that the input block of the step cannot
	// set. Their values come from the run of the step.
	Passed []syntax.Arg
}

// Key returns the name of the child's workflow in the definition: NAME, or LIBRARY.NAME for a
// workflow of a library.
func (c *Child) Key() string {
	if c.Library == "" {
		return c.Name
	}
	return c.Library + "." + c.Name
}

// A childDecoder reads steps that start child runs.
type childDecoder struct{ *decoder }

// refusedOfChild holds the advice about attributes and blocks that a step with a child run must not
// have. The key is the name.
var refusedOfChild = map[string]string{
	"timeout":           `A child run may take any time. Write deadline = "..." in this step, or in the workflow of the child.`,
	"heartbeat_timeout": `A child run sends no heartbeats. Write deadline = "..." in this step, or in the workflow of the child.`,
	"retry":             `A child run is not started again after it has failed. Write retry in the steps of the child, or a repeat block in this step.`,
	"idempotency_key":   `The engine gives each child run a key of its own. To have one run at a time for one key write unique { key = ... } in the workflow of the child.`,
	"idempotent":        `The engine never starts a child run twice for one step. Remove it.`,
	"read_only":         `Whether a child run changes anything is known from its steps. Remove it.`,
	"on_rerun":          `A child run continues where it was, on any engine. Remove it.`,
	"output_type":       `The outputs of a child run are the output blocks of its workflow. Remove it.`,
	"fail_when":         `A child run that has succeeded has changed things. Write a postcondition block: if it fails, the child is undone.`,
}

// step reads the attribute `workflow` of the step s, and reports attributes and blocks that make no
// sense in a step with a child run.
func (d childDecoder) step(s *Step) {
	s.Child = &Child{}
	e := s.Attr("workflow")
	s.Child.Where = e.Range
	t := e.Traversal()
	var names []string
	for _, part := range t[min(1, len(t)):] {
		if attr, ok := part.(hcl.TraverseAttr); ok && syntax.ValidName(attr.Name) {
			names = append(names, attr.Name)
		}
	}
	switch {
	case len(t) == 2 && len(names) == 1 && t.RootName() == "workflow":
		s.Child.Name = names[0]
	case len(t) == 4 && len(names) == 3 && t.RootName() == "library" && names[1] == "workflow":
		s.Child.Library, s.Child.Name = names[0], names[2]
	default:
		e.Bad = true
		d.Errorf(e.Range, "Invalid workflow", "The workflow of a child run is written workflow.NAME, or library.LIBRARY.workflow.NAME, without quotes.")
	}
	for _, name := range sorted.Keys(refusedOfChild) {
		at, written := writtenArgument(name)(s.Block)
		if !written {
			at, written = writtenBlock(name)(s.Block)
		}
		if written {
			d.Errorf(at, "Not allowed with a child run", "A step with workflow = ... cannot have %s. %s", name, refusedOfChild[name])
		}
	}
}

// secrets returns the permission to call secret() in the input block of the step. The input of a
// child run is stored with that run, so it must not hold secrets.
func (s *Step) secrets() allow {
	if s.Kind == StepChild {
		return 0
	}
	return allowSecret
}

// pivotAt returns the place that makes the step a pivot: its attribute `pivot`, or its child run.
func (s *Step) pivotAt() hcl.Range {
	if e := s.Attr("pivot"); e != nil {
		return e.Range
	}
	if s.Child != nil {
		return s.Child.Where
	}
	return s.Where
}

// resolve finds the workflow of each step with a child run. It reports workflows that start each
// other in a cycle, and child runs that are nested too deep. It makes a step a pivot if the
// workflow of its child has a pivot.
func (d childDecoder) resolve() {
	own := map[string]*Workflow{}
	for _, w := range d.m.Workflows {
		if !w.Twin {
			own[w.Name] = w
		}
	}
	for _, w := range d.m.Workflows {
		d.findAll(w, own)
	}
	for _, w := range d.m.Workflows {
		d.visit(w, nil)
	}
}

// findAll finds the workflows of all child runs of w, and of the groups in w.
func (d childDecoder) findAll(w *Workflow, own map[string]*Workflow) {
	if w.Outer != nil {
		groupDecoder{d.decoder}.shadows(w)
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

// find sets the workflow of the child of step s. The parameter own holds the workflows of the module
// by name.
func (d childDecoder) find(s *Step, own map[string]*Workflow) {
	c := s.Child
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

// referenceTo returns the expression ROOT.NAME. The parameter at is its place in messages.
func referenceTo(at hcl.Range, root, name string) *eval.Expr {
	return &eval.Expr{Range: at, Syntax: &hclsyntax.ScopeTraversalExpr{SrcRange: at, Traversal: hcl.Traversal{
		hcl.TraverseRoot{Name: root, SrcRange: at}, hcl.TraverseAttr{Name: name, SrcRange: at},
	}}}
}

// visit sets the height of workflow w: how deep its child runs are nested. The list chain holds the
// workflows from a workflow of the module to the one that starts w.
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
