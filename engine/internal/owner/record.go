package owner

import (
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// AddRecord copies some parts of a record into the transition t: the status of the run, the changed
// steps, the names of new instances, the definition to which the run was moved, the alerts, the
// replies, and the states that a notify block of the workflow announces. The views of the store
// show these parts. The parameter `before` is the run's state before the record. The parameter
// `flow` is the workflow of the run; if it is nil, AddRecord adds no states to announce.
func AddRecord(t *store.Transition, rec machine.Record, before *machine.State, flow *dsl.Workflow) {
	if flow != nil && flow.Announces() {
		announce(t, rec, flow)
	}
	if state, ok := rec.RunState(); ok {
		t.State = state
	}
	post(t, rec, before)
	noteRoom(t, rec, before, flow)
	var few [4]machine.StepRow
	for _, row := range rec.AppendSteps(few[:0], before) {
		setStep(t, store.StepRow{Node: int32(row.Node), State: row.State, Failures: row.Failures, Attempt: row.Attempt, CompleteBy: row.CompleteBy})
	}
	addNodes(t, &rec)
	if to := rec.MovedTo(); to != 0 {
		t.Moved = store.WorkflowID(to)
	}
	for _, c := range rec.Commands() {
		if a, ok := c.(machine.Alert); ok {
			t.Alerts = append(t.Alerts, store.Alert{Kind: a.Kind, Step: a.Step, Code: naming.CleanText(a.Code), Message: naming.CleanText(a.Message)})
		}
	}
}

// addNodes adds the names of the record's new nodes to the transition. If the transition has a name
// of a node already, from an earlier record, the new name replaces it.
func addNodes(t *store.Transition, rec *machine.Record) {
	nodes := rec.NewNodes()
	if len(nodes) == 0 {
		return
	}
	known := make(map[int32]int, len(t.NewNodes))
	for i, n := range t.NewNodes {
		known[n.Node] = i
	}
	for _, n := range nodes {
		row := store.NodeName{Node: int32(n.Node), Step: int32(n.Step), Name: n.Name}
		if i, ok := known[row.Node]; ok {
			t.NewNodes[i] = row
			continue
		}
		t.NewNodes = append(t.NewNodes, row)
	}
}

// announce adds to the transition those states that the run reaches with the record, if a notify
// block of the workflow announces them.
func announce(t *store.Transition, rec machine.Record, flow *dsl.Workflow) {
	for _, state := range rec.Reached() {
		if len(flow.Notifications(state)) > 0 && !slices.Contains(t.Announce, state) {
			t.Announce = append(t.Announce, state)
		}
	}
}

// post adds to the transition the replies that follow from the record.
func post(t *store.Transition, rec machine.Record, before *machine.State) {
	to, states := rec.Replies(before)
	if len(states) == 0 {
		return
	}
	if t.Post == nil {
		t.Post = &naming.Post{Sink: to.Sink, Correlation: to.Correlation}
	}
	t.Post.States = append(t.Post.States, states...)
}

// setStep adds the row of a step to the transition. If the transition already has a row of
// the same step, setStep replaces that row.
func setStep(t *store.Transition, row store.StepRow) {
	if len(t.Steps) < 64 { // in a longer list both rows stay, and views use the later row
		for i := range t.Steps {
			if t.Steps[i].Node == row.Node {
				t.Steps[i] = row
				return
			}
		}
	}
	if t.Steps == nil {
		t.Steps = make([]store.StepRow, 0, 2) // usually one step ends and the next one begins
	}
	t.Steps = append(t.Steps, row)
}

// endsWork reports whether the transition ends a step, an undo or the run, or makes the run
// wait for a person.
func endsWork(t *store.Transition) bool {
	if t.State.Final() || t.State.NeedsHuman() {
		return true
	}
	return slices.ContainsFunc(t.Steps, func(s store.StepRow) bool {
		return s.State >= status.StepSucceeded && s.State != status.StepUndoing
	})
}
