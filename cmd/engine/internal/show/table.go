package show

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// runTables makes the tables that show a run.
type runTables struct{ *history.Run }

func tablesOf(r *history.Run) runTables { return runTables{r} }

// nodes returns the rows of the tables: one row for each step, and below the row of a for_each step
// one row for each known instance.
func (r runTables) nodes() []story.NodeView {
	var steps []story.NodeView
	parts := map[int][]story.NodeView{}
	for n := range story.Nodes(r.State, r.Flow) {
		if n.Key == "" && n.Node < len(r.Flow.Steps) {
			steps = append(steps, n)
		} else {
			parts[n.Step] = append(parts[n.Step], n)
		}
	}
	var out []story.NodeView
	for _, s := range steps {
		out = append(out, s)
		out = append(out, parts[s.Step]...)
	}
	return out
}

func (r runTables) stepTable() *render.Table {
	t := &render.Table{Head: []string{"STEP", "ACTION", "STATE", "EFFECT", "ATTEMPTS", "COMPLETE BY", "UNDO", "DETAIL"}}
	r.addSteps(t, "")
	return t
}

// addSteps adds a row for each step. The text in the parameter `indent` comes before the names of
// the steps. The steps of a group are below the group, two columns to the right.
func (r runTables) addSteps(t *render.Table, indent string) {
	for _, n := range r.nodes() {
		if n.Each && n.Count > 0 {
			t.Add(indent+n.Name, n.Action, n.State.String(), "", "", "", "", render.Count(n.Count, "instance"))
			continue
		}
		by := ""
		if !n.CompleteBy.IsZero() {
			by = words.Stamp(n.CompleteBy)
		}
		detail, group := r.nodeDetail(n), r.Groups[n.Node]
		if group.Err != nil {
			detail = words.Join("; ", detail, "its steps cannot be read: `engine show "+group.Name+"` says why")
		}
		t.Add(indent+n.Name, n.Action, n.State.String(), n.Effect.String(), strconv.Itoa(n.Attempts), by, undoState(n), detail)
		if group.Run != nil {
			tablesOf(group.Run).addSteps(t, indent+"  ")
		}
	}
}

// undoState returns a short text about the undo of a node.
func undoState(n story.NodeView) string {
	switch {
	case n.State == status.StepUndone, n.State == status.StepUndoing, n.State == status.StepUndoFailed:
		s := n.UndoAction
		if n.UndoAttempts > 1 {
			s += fmt.Sprintf(" (%d tries)", n.UndoAttempts)
		}
		if n.LeftAsIs || n.NotUndoneByDeclaration {
			s += "; some effects stay"
		}
		return s
	case (n.LeftAsIs || n.NotUndoneByDeclaration) && n.UndoAction != "" && n.FinishedAt.IsZero():
		// An earlier child run of the step keeps its effects. The step runs again, and the effects
		// of the new child run can be undone.
		return n.UndoAction + " if needed; earlier effects stay"
	case n.LeftAsIs:
		return "left as is"
	case n.NotUndoneByDeclaration:
		return "none by declaration"
	case n.UndoAction != "":
		return n.UndoAction + " if needed"
	}
	return ""
}

// nodeDetail returns the text in the column DETAIL of a node.
func (r runTables) nodeDetail(n story.NodeView) string {
	var parts []string
	if why := words.Join(": ", n.Code, n.Message); why != "" {
		parts = append(parts, why)
	}
	if n.State == status.StepUndoFailed || n.State == status.StepUndoing {
		if why := words.Join(": ", n.UndoCode, n.UndoMessage); why != "" {
			parts = append(parts, "undo "+why)
		}
	}
	if n.State == status.StepHeld {
		if r.stopped() {
			parts = append(parts, "starts when the run continues")
		} else {
			parts = append(parts, strings.TrimPrefix(r.heldText(machine.HeldAgent{Agent: n.HeldBy, Why: n.Why}), "agent "))
		}
	}
	if n.Child != "" {
		parts = append(parts, "child run "+n.Child)
	}
	if n.Iteration > 0 {
		parts = append(parts, story.IterationText(n.Iteration, n.Iterations))
	}
	if len(n.Awaits) > 0 {
		parts = append(parts, "waits for "+strings.Join(n.Awaits, " or "))
	}
	if !n.Deadline.IsZero() && !forwardOver(n) {
		parts = append(parts, "step by "+words.Stamp(n.Deadline))
	}
	if !n.UndoDeadline.IsZero() && n.State == status.StepUndoing {
		parts = append(parts, "undo by "+words.Stamp(n.UndoDeadline))
	}
	if !n.Until.IsZero() && (n.State == status.StepHeld || n.State == status.StepBackoff || n.State == status.StepWaiting) {
		parts = append(parts, "until "+words.Stamp(n.Until))
	}
	return words.Join("; ", parts...)
}

// forwardOver reports whether the step makes no more attempts, except for its undo. Then the
// deadline of the step does not count any more.
func forwardOver(n story.NodeView) bool {
	return !n.FinishedAt.IsZero() || n.State == status.StepUndoing
}

func (r runTables) callTable() *render.Table {
	t := &render.Table{Head: []string{"CALL OF", "PURPOSE", "TRY", "STATUS", "STARTED", "TOOK", "COMPLETE BY", "KEY", "DETAIL"}}
	for _, n := range r.nodes() {
		for _, c := range n.Calls {
			took := ""
			if !c.EndedAt.IsZero() {
				took = render.Took(c.EndedAt.Sub(c.StartedAt))
			}
			t.Add(n.Name, string(c.Purpose), strconv.Itoa(c.Number), c.Status, words.Stamp(c.StartedAt), took, clock(c.CompleteBy),
				c.Key, words.Join(": ", c.Code, c.Message))
		}
	}
	return t
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05Z") }

// stopped reports whether the run starts nothing, because it is paused or parked. Then its steps do
// not wait for their agents.
func (r runTables) stopped() bool {
	st := r.State.Status()
	return st == status.RunPaused || st == status.RunParked
}

// heldText returns a text about an agent for which steps wait. If the steps wait for the start of a
// child run, the text names no agent, because the engine itself starts child runs.
func (r runTables) heldText(h machine.HeldAgent) string {
	s := "agent " + h.Agent
	if h.Agent == r.Flow.ChildAgent() {
		s = "the start of a child run"
	}
	switch h.Why {
	case "":
	case "full":
		s += ": no slot is free"
	default:
		s += ": " + h.Why
	}
	if !h.Until.IsZero() {
		s += " until " + words.Stamp(h.Until)
	}
	return s
}

// variableLines returns one line for each variable of the run. It hides sensitive values.
func variableLines(v dsl.Value) []string {
	var doc map[string]json.RawMessage
	if json.Unmarshal(render.Redact(v), &doc) != nil {
		return nil
	}
	var out []string
	for _, name := range words.Sorted(doc) {
		out = append(out, name+" = "+render.Cut(render.Literal(doc[name], ""), 120))
	}
	return out
}
