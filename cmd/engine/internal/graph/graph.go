package graph

import (
	"fmt"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
)

// A Graph is the drawing of a workflow.
type Graph struct {
	Workflow string
	Nodes    []Node
	Edges    []Edge
}

// A Node is a step in the drawing.
type Node struct {
	Name    string `json:"name"`
	Action  string `json:"action"`
	ForEach bool   `json:"for_each,omitempty"`
	Repeat  bool   `json:"repeat,omitempty"`
	When    bool   `json:"when,omitempty"`
	Pivot   bool   `json:"pivot,omitempty"`
	Undo    string `json:"undo,omitempty"`
}

// An Edge leads from one step to another step, which waits for the first one.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// New makes the drawing of a workflow. If undo is true, it draws the order of the undos.
func New(wf *dsl.Workflow, undo bool) Graph {
	g := Graph{Workflow: wf.Name, Nodes: []Node{}, Edges: []Edge{}}
	shown := func(s *dsl.Step) bool { return !undo || UndoneBy(wf, s) }
	for _, i := range wf.Order {
		s := wf.Steps[i]
		if !shown(s) {
			continue
		}
		n := Node{Name: s.Name, Action: Does(s), ForEach: s.ForEach != nil, Repeat: s.Repeat != nil && !undo, When: s.When != nil || s.WhenEach != nil, Pivot: s.Pivot}
		if s.Undo != nil {
			n.Undo = ActionName(s.Undo.Do)
		}
		if undo {
			n.Action, n.Undo = n.Undo, ""
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

// nearest returns the indexes of the steps for which the step s waits. The parameter shown is a
// function: if it returns false for such a step, the step is hidden. In place of a hidden step,
// nearest returns the steps for which the hidden step waits.
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

// Does returns what a step does, for people. For a call it is AGENT.ACTION. For other steps it is
// `value`, `timer`, or a text with the signals for which the step waits.
func Does(s *dsl.Step) string {
	switch {
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
	if n.Pivot {
		s += " (pivot)"
	}
	return render.Clean(s)
}

// DOT returns the drawing in the language of Graphviz.
func (g Graph) DOT() string {
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(render.Clean(s)) + `"`
	}
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir = LR;\n  node [shape = box];\n", quote(g.Workflow))
	for _, n := range g.Nodes {
		label := quote(n.Name)
		label = label[:len(label)-1] + `\n` + quote(n.caption())[1:]
		style := ""
		if n.When {
			style = ", style = dashed"
		}
		fmt.Fprintf(&b, "  %s [label = %s%s];\n", quote(n.Name), label, style)
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  %s -> %s;\n", quote(e.From), quote(e.To))
	}
	return b.String() + "}\n"
}

// Mermaid returns the drawing in the language of Mermaid.
func (g Graph) Mermaid() string {
	quote := func(s string) string {
		return strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;").Replace(render.Clean(s))
	}
	ids := map[string]string{}
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for i, n := range g.Nodes {
		ids[n.Name] = fmt.Sprintf("s%d", i)
		fmt.Fprintf(&b, "  %s[\"%s<br/>%s\"]\n", ids[n.Name], quote(n.Name), quote(n.caption()))
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  %s --> %s\n", ids[e.From], ids[e.To])
	}
	return b.String()
}
