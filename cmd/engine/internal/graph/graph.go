package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
)

// A Graph is the drawing of a workflow.
type Graph struct {
	Workflow string `json:"workflow"`
	Nodes    []Node `json:"nodes"`
	Edges    []Edge `json:"edges"`
}

// A Node is a step in the drawing.
type Node struct {
	Name    string `json:"name"`
	Action  string `json:"action"`
	ForEach bool   `json:"for_each,omitempty"`
	Repeat  bool   `json:"repeat,omitempty"`
	// If Limited is true, a concurrency block limits the child runs of the step.
	Limited bool   `json:"limited,omitempty"`
	When    bool   `json:"when,omitempty"`
	Pivot   bool   `json:"pivot,omitempty"`
	Undo    string `json:"undo,omitempty"`
	// Group is the drawing of the steps inside of a group; nil = the step is no group.
	Group *Graph `json:"group,omitempty"`
}

// An Edge leads from one step to another step, which waits for the first one.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// New makes the drawing of a workflow. If `undo` is true, it draws the order of the undos.
func New(wf *dsl.Workflow, undo bool) Graph {
	g := Graph{Workflow: wf.Name, Nodes: []Node{}, Edges: []Edge{}}
	shown := func(s *dsl.Step) bool { return !undo || UndoneBy(wf, s) }
	for _, i := range wf.Order {
		s := wf.Steps[i]
		if !shown(s) {
			continue
		}
		n := Node{Name: s.Name, Action: Does(s), ForEach: s.ForEach != nil, Repeat: s.Repeat != nil && !undo, When: s.When != nil || s.WhenEach != nil, Pivot: s.Pivot}
		n.Limited = s.Child != nil && s.Child.Workflow.Concurrency != nil && !undo
		if s.Undo != nil {
			n.Undo = UndoName(s)
		}
		if undo {
			n.Action, n.Undo = n.Undo, ""
		}
		if s.Child != nil && s.Child.Group {
			inner := New(s.Child.Workflow, undo)
			n.Group = &inner
		}
		g.Nodes = append(g.Nodes, n)
		for _, from := range nearest(wf, s, shown) {
			e := Edge{From: wf.Steps[from].Name, To: s.Name}
			if undo {
				e.From, e.To = e.To, e.From
			}
			g.Edges = append(g.Edges, e)
		}
	}
	return g
}

// UndoneBy reports whether the step's effect is undone when the run turns back.
func UndoneBy(wf *dsl.Workflow, s *dsl.Step) bool {
	return s.Undo != nil && !AfterPivot(wf, s)
}

// AfterPivot reports whether the step is the pivot or starts after the pivot.
func AfterPivot(wf *dsl.Workflow, s *dsl.Step) bool {
	if wf.Pivot < 0 {
		return false
	}
	seen := map[int]bool{}
	var reaches func(i int) bool
	reaches = func(i int) bool {
		if i == wf.Pivot {
			return true
		}
		if seen[i] {
			return false
		}
		seen[i] = true
		for _, before := range wf.Steps[i].After {
			if reaches(before) {
				return true
			}
		}
		return false
	}
	return reaches(s.Index)
}

// nearest returns the indexes of the steps for which the step s waits. A step is hidden if the
// function `shown` returns false for it. In place of a hidden step, nearest returns the steps for
// which the hidden step waits.
func nearest(wf *dsl.Workflow, s *dsl.Step, shown func(*dsl.Step) bool) []int {
	var out []int
	seen := map[int]bool{}
	var look func(s *dsl.Step)
	look = func(s *dsl.Step) {
		for _, i := range s.After {
			if seen[i] {
				continue
			}
			seen[i] = true
			if shown(wf.Steps[i]) {
				out = append(out, i)
			} else {
				look(wf.Steps[i])
			}
		}
	}
	look(s)
	return out
}

// ActionName returns the name of an action in messages: AGENT.ACTION.
func ActionName(d *dsl.Action) string { return d.Agent + "." + d.Name }

// UndoName returns the name of the undo of a step. The step must have an undo. A child run undoes
// its own steps, so its undo has the same name as the child run.
func UndoName(s *dsl.Step) string {
	if s.Child != nil && s.Undo.Declared {
		return Does(s)
	}
	return ActionName(s.Undo.Do)
}

// Does returns what a step does, for people. For a call it is AGENT.ACTION, and for a child run
// workflow.NAME. For other steps it is `group`, `value`, `timer`, or a text with the signals for
// which the step waits.
func Does(s *dsl.Step) string {
	switch {
	case s.Child != nil && s.Child.Group:
		return "group"
	case s.Calls():
		return ActionName(s.Do)
	case s.Wait == nil:
		return s.Does()
	case s.Wait.Names == nil:
		return "wait for a signal"
	}
	return "wait for " + strings.Join(s.Wait.Names, " or ")
}

// caption returns the second line of a node in the drawing.
func (n Node) caption() string {
	s := n.Action
	if n.ForEach {
		s += " for each"
	}
	if n.Repeat {
		s += ", repeated"
	}
	if n.Limited {
		s += ", limited"
	}
	if n.Pivot {
		s += " (pivot)"
	}
	return render.Clean(s)
}

// DOT returns the drawing in the language of Graphviz. A frame is drawn around each group and
// its steps. Edges begin and end at the box of the group, and not at the frame.
func (g Graph) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir = LR;\n  node [shape = box];\n", quoteDOT(g.Workflow))
	g.dot(&b, "", "  ")
	return b.String() + "}\n"
}

func quoteDOT(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(render.Clean(s)) + `"`
}

// dot writes nodes and edges. If they are inside of groups, the parameter `in` names these groups,
// such as "outer/inner/"; "" = no group. Each line begins with the parameter `space`.
func (g Graph) dot(b *strings.Builder, in, space string) {
	for _, n := range g.Nodes {
		label := quoteDOT(n.Name)
		label = label[:len(label)-1] + `\n` + quoteDOT(n.caption())[1:]
		style := ""
		if n.When {
			style = ", style = dashed"
		}
		node := fmt.Sprintf("%s [label = %s%s];\n", quoteDOT(in+n.Name), label, style)
		if n.Group == nil {
			b.WriteString(space + node)
			continue
		}
		fmt.Fprintf(b, "%ssubgraph %s {\n%s  %s", space, quoteDOT("cluster_"+in+n.Name), space, node)
		n.Group.dot(b, in+n.Name+"/", space+"  ")
		for _, first := range n.Group.first() {
			fmt.Fprintf(b, "%s  %s -> %s;\n", space, quoteDOT(in+n.Name), quoteDOT(in+n.Name+"/"+first))
		}
		b.WriteString(space + "}\n")
	}
	for _, e := range g.Edges {
		fmt.Fprintf(b, "%s%s -> %s;\n", space, quoteDOT(in+e.From), quoteDOT(in+e.To))
	}
}

// first returns the names of the nodes to which no edge leads.
func (g Graph) first() []string {
	var out []string
	for _, n := range g.Nodes {
		if !slices.ContainsFunc(g.Edges, func(e Edge) bool { return e.To == n.Name }) {
			out = append(out, n.Name)
		}
	}
	return out
}

// Mermaid returns the drawing in the language of Mermaid. It shows groups in the same way as
// DOT.
func (g Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	g.mermaid(&b, "s", "  ")
	return b.String()
}

// mermaid writes nodes and edges. The id of each node begins with the parameter `id`, and each line
// begins with the parameter `space`.
func (g Graph) mermaid(b *strings.Builder, id, space string) {
	quote := func(s string) string {
		return strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;").Replace(render.Clean(s))
	}
	ids := map[string]string{}
	for i, n := range g.Nodes {
		own := fmt.Sprintf("%s%d", id, i)
		ids[n.Name] = own
		node := fmt.Sprintf("%s[\"%s<br/>%s\"]\n", own, quote(n.Name), quote(n.caption()))
		if n.Group == nil {
			b.WriteString(space + node)
			continue
		}
		fmt.Fprintf(b, "%ssubgraph g%s[\"%s\"]\n%s  %s", space, own, quote(n.Name), space, node)
		n.Group.mermaid(b, own+"_", space+"  ")
		for _, first := range n.Group.first() {
			at := slices.IndexFunc(n.Group.Nodes, func(n Node) bool { return n.Name == first })
			fmt.Fprintf(b, "%s  %s --> %s_%d\n", space, own, own, at)
		}
		b.WriteString(space + "end\n")
	}
	for _, e := range g.Edges {
		fmt.Fprintf(b, "%s%s --> %s\n", space, ids[e.From], ids[e.To])
	}
}
