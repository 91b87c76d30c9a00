package model

import (
	"strconv"

	"github.com/saga-engine/engine/dsl"
)

// NodeName returns the name of a node as people write it: step, or step["key"]. If wf does not
// have the step, NodeName writes # and the index of the step.
func NodeName(wf *dsl.Workflow, i int, n *Node) string {
	name := "#" + strconv.Itoa(int(n.Step))
	if wf != nil && int(n.Step) < len(wf.Steps) {
		name = wf.Steps[n.Step].Name
	}
	if n.Item {
		name += "[" + strconv.Quote(n.Key) + "]"
	}
	return name
}

var noAction = dsl.Action{}

// ActionOf returns the action that a call of the given kind invokes for node n. It returns an
// action without a name if the step calls no agent, if `wf` is nil, or if `wf` does not have the
// step.
func ActionOf(wf *dsl.Workflow, n *Node, kind CallKind) *dsl.Action {
	if wf == nil || n.Of() >= len(wf.Steps) {
		return &noAction
	}
	step := wf.Steps[n.Step]
	return CalledAction(step, kind)
}

// CalledAction returns the action that a call of this kind invokes for a step. A lookup may invoke
// another action than the call that it asks about. For the forward calls of a step that calls no
// agent, the result is an action without a name (noun.NoCall).
func CalledAction(step *dsl.Step, kind CallKind) *dsl.Action {
	act := step.Do
	if (kind == CallUndo || kind == CallUndoLookup) && step.Undo != nil {
		act = step.Undo.Do
	}
	if (kind == CallLookup || kind == CallUndoLookup) && act != nil {
		return act.Asked()
	}
	return act
}

// ActionName returns the action of a call in the form AGENT.ACTION. For a step that calls no agent,
// it returns the kind of the step: value, timer or wait. It returns "" if `wf` is nil or does not
// have the step.
func ActionName(wf *dsl.Workflow, n *Node, kind CallKind) string {
	if wf != nil && n.Of() < len(wf.Steps) && !wf.Steps[n.Step].Calls() {
		return wf.Steps[n.Step].Does()
	}
	act := ActionOf(wf, n, kind)
	if act == nil || act.Name == "" {
		return ""
	}
	return act.Agent + "." + act.Name
}
