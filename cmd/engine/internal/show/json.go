package show

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// JSON returns the JSON object of a run. It hides the sensitive values of inputs and outputs. If
// the parameter `events` is true, the object has the events of the run, too.
func JSON(r *history.Run, events bool, now func() time.Time) map[string]any {
	m := history.RowJSON(r.Row)
	f := r.State.Failure()
	m["started_by"] = r.State.Run().StartedBy
	m["trigger"] = r.State.Run().Trigger
	m["priority"] = r.State.Run().Line.Priority()
	if r.KeyWait != nil {
		m["waits_for_key"] = r.KeyWait.JSON()
	}
	if r.InLine != nil {
		m["room"] = r.InLine.JSON()
	}
	m["variables"] = render.Redact(r.State.Vars())
	m["outputs"] = render.Outputs(story.KnownOutputs(r.State, r.Flow))
	m["undone"], m["left_as_is"] = int(r.State.Run().Undone), int(r.State.Run().Left)
	m["not_undone_by_declaration"] = int(r.State.Run().Undeclared)
	if kept := story.KeptByDeclaration(r.State, r.Flow); len(kept) > 0 {
		m["kept_by_declaration"] = kept
	}
	m["overdue"] = r.State.Run().Overdue
	m["exit_code"] = exit.OfRun(r.State.Status(), int(r.State.Run().Left))
	if f.Code != "" {
		m["failure"] = map[string]string{"step": f.Step, "code": f.Code, "message": f.Message}
	}
	if d := r.State.Run().Deadline.Time(); !d.IsZero() {
		m["run_deadline"] = d
	}
	if d := r.State.Run().UndoDeadline.Time(); !d.IsZero() {
		m["compensation_deadline"] = d
	}
	if failures, blocked := story.UndoFailures(r.State, r.Flow); len(failures) > 0 {
		list := make([]map[string]string, len(failures))
		for i, f := range failures {
			list[i] = map[string]string{"step": f.Step, "code": f.Code, "message": f.Message}
		}
		m["undo_failures"], m["undo_blocked"] = list, blocked
	}
	m["steps"] = stepsJSON(r)
	if r.Omitted > 0 {
		m["child_runs_left_out"] = r.Omitted
	}
	alerts := []map[string]any{}
	for _, a := range r.Alerts {
		alerts = append(alerts, history.AlertJSON(a))
	}
	m["alerts"] = alerts
	m["notices"] = noticesJSON(r.Notices)
	m["goal_resets"] = resetsJSON(r.Resets)
	addRestarts(m, r)
	if r.Refused != nil {
		m["refused_submission"] = refusedJSON(r.Refused)
	}
	m["replies"] = repliesJSON(r)
	tablesOf(r).addStore(m)
	if events {
		m["events"] = Events(r, now)
	}
	return m
}

// Events returns the facts of a run as JSON objects, in the form in which `engine apply
// --json` prints them.
func Events(r *history.Run, now func() time.Time) []json.RawMessage {
	var b bytes.Buffer
	view := render.NewJSON(&b, cli.Version, exit.OfFact, now)
	view.Begin(render.Story{Run: r.Row.Name, Workflow: r.Row.WorkflowName})
	b.Reset() // remove the first line, which has the version of the stream
	view.Facts(1, r.Facts)
	out := []json.RawMessage{}
	for line := range bytes.Lines(b.Bytes()) {
		out = append(out, bytes.TrimSpace(line))
	}
	return out
}

// stepsJSON returns the steps of a run. A group has its own steps in the field `steps`.
func stepsJSON(r *history.Run) []map[string]any {
	steps := []map[string]any{}
	for _, n := range tablesOf(r).nodes() {
		step := nodeJSON(n)
		if g := r.Groups[n.Node]; g.Run != nil {
			step["steps"] = stepsJSON(g.Run)
		} else if g.Err != nil {
			step["steps_problem"] = g.Err.Error()
		}
		steps = append(steps, step)
	}
	return steps
}

func nodeJSON(n story.NodeView) map[string]any {
	m := map[string]any{
		"step": n.Name, "action": n.Action, "state": n.State.String(), "forward_state": n.Forward.String(),
		"effect": n.Effect.String(), "attempts": n.Attempts, "failure_count": n.Failures,
		"idempotency_key": n.IdempotencyKey, "left_as_is": n.LeftAsIs, "not_undone_by_declaration": n.NotUndoneByDeclaration,
	}
	if n.Each {
		m["for_each"] = true
		if n.Count >= 0 {
			m["instances"] = n.Count
		}
	}
	for name, t := range map[string]time.Time{
		"started_at": n.StartedAt, "finished_at": n.FinishedAt, "complete_by": n.CompleteBy, "step_deadline": n.Deadline,
		"undo_deadline": n.UndoDeadline, "until": n.Until, "undo_started_at": n.UndoStartedAt, "undo_finished_at": n.UndoFinishedAt,
	} {
		if !t.IsZero() {
			m[name] = t
		}
	}
	for name, s := range map[string]string{
		"code": n.Code, "message": n.Message, "undo_action": n.UndoAction,
		"undo_code": n.UndoCode, "undo_message": n.UndoMessage, "settled_by": n.By,
		"child_run": n.Child,
	} {
		if s != "" {
			m[name] = s
		}
	}
	if n.Iteration > 0 {
		m["iteration"] = n.Iteration
	}
	if n.Iterations > 0 {
		m["max_iterations"] = n.Iterations
	}
	if len(n.Awaits) > 0 {
		m["awaits"] = n.Awaits
	}
	if n.Signal != "" {
		m["signal"] = n.Signal
	}
	if !n.Data.IsNull() {
		m["error_data"] = render.Redact(n.Data)
	}
	if n.HeldBy != "" {
		m["held"] = map[string]string{"agent": n.HeldBy, "message": n.Why}
	}
	if n.UndoKey != "" {
		m["undo_idempotency_key"] = n.UndoKey
	}
	if n.UndoAttempts > 0 {
		m["undo_attempts"] = n.UndoAttempts
		m["undo_input"] = render.Redact(n.UndoInput)
	}
	if !n.Input.IsNull() {
		m["input"] = render.Redact(n.Input)
	}
	if n.OutputKnown {
		m["output"] = render.Redact(n.Output)
	}
	calls := []map[string]any{}
	for _, c := range n.Calls {
		call := map[string]any{
			"purpose": c.Purpose, "undo": c.Undo, "attempt": c.Number, "status": c.Status, "idempotency_key": c.Key,
			"started_at": c.StartedAt, "complete_by": c.CompleteBy,
		}
		if !c.EndedAt.IsZero() {
			call["ended_at"] = c.EndedAt
		}
		if c.Code != "" {
			call["code"], call["message"] = c.Code, c.Message
		}
		calls = append(calls, call)
	}
	m["calls"] = calls
	return m
}

// messageKind returns the kind of a message for --json.
func messageKind(m store.Message) string {
	if m.Kind == store.MessageReply {
		return "reply"
	}
	return "verb"
}
