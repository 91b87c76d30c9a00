package graph

import (
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
)

// flow has the steps a, b and c, one after the other. b has no undo.
func flow(pivot int) *dsl.Workflow {
	do := &dsl.Action{Agent: "mock", Name: "do"}
	undo := &dsl.Undo{Do: &dsl.Action{Agent: "mock", Name: "undo"}}
	return &dsl.Workflow{Name: "w", Pivot: pivot, Order: []int{0, 1, 2}, Steps: []*dsl.Step{
		{Index: 0, Name: "a", Do: do, Undo: undo},
		{Index: 1, Name: "b", Do: do, After: []int{0}},
		{Index: 2, Name: "c", Do: do, Undo: undo, After: []int{1}},
	}}
}

func edges(g Graph) string {
	var out []string
	for _, e := range g.Edges {
		out = append(out, e.From+">"+e.To)
	}
	return strings.Join(out, " ")
}

// The drawing of the undo leads backwards, and past steps that are not undone.
func TestNew(t *testing.T) {
	if got := edges(New(flow(-1), false)); got != "a>b b>c" {
		t.Errorf("forward: %s", got)
	}
	back := New(flow(-1), true)
	if got := edges(back); got != "c>a" || len(back.Nodes) != 2 || back.Nodes[0].Action != "mock.undo" {
		t.Errorf("undo: %s, %+v", got, back.Nodes)
	}
}

// A loop is drawn with the step, and not with its undo: a loop is undone once.
func TestLoopIsDrawn(t *testing.T) {
	wf := flow(-1)
	wf.Steps[0].Repeat = &dsl.Repeat{}
	g := New(wf, false)
	if !g.Nodes[0].Repeat || g.Nodes[1].Repeat || !strings.Contains(g.DOT(), "mock.do, repeated") || !strings.Contains(g.Mermaid(), "mock.do, repeated") {
		t.Errorf("%+v\n%s%s", g.Nodes, g.DOT(), g.Mermaid())
	}
	if back := New(wf, true); back.Nodes[1].Repeat || strings.Contains(back.DOT(), "repeated") {
		t.Errorf("undo: %+v", back.Nodes)
	}
}

// Steps from the pivot on are not undone.
func TestUndoneBy(t *testing.T) {
	for pivot, want := range map[int]string{-1: "a c", 0: "", 1: "a", 2: "a"} {
		wf := flow(pivot)
		var got []string
		for _, s := range wf.Steps {
			if UndoneBy(wf, s) {
				got = append(got, s.Name)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("pivot %d: %q is undone, want %q", pivot, text, want)
		}
	}
}

// Names cannot leave their quotes in either language.
func TestQuoting(t *testing.T) {
	g := Graph{Workflow: `w"]; evil [label="`, Nodes: []Node{
		{Name: `a"\`, Action: "mock.do", ForEach: true, When: true},
		{Name: "<script>", Action: "mock.do", Pivot: true},
	}, Edges: []Edge{{From: `a"\`, To: "<script>"}}}
	dot := g.DOT()
	for _, want := range []string{
		`digraph "w\"]; evil [label=\"" {`, `"a\"\\" [label = "a\"\\\nmock.do for each", style = dashed];`, `"a\"\\" -> "<script>";`, "mock.do (pivot)",
	} {
		if !strings.Contains(dot, want) {
			t.Errorf("no %s in\n%s", want, dot)
		}
	}
	mermaid := g.Mermaid()
	for _, want := range []string{"s0[\"a#quot;\\<br/>mock.do for each\"]", "#lt;script#gt;", "s0 --> s1"} {
		if !strings.Contains(mermaid, want) {
			t.Errorf("no %s in\n%s", want, mermaid)
		}
	}
}
