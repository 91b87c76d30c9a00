package history

import (
	"strconv"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// StatusText returns a run's status. It adds "(no engine)" if an engine should work on the
// run, but no living engine owns it. Otherwise it adds "(waits for room)" if the run waits for
// a place under its concurrency limit.
func StatusText(r store.RunRow) string {
	if !r.State.Final() && !r.State.NeedsHuman() && !r.OwnerAlive {
		return r.State.String() + " (no engine)"
	}
	if r.InLine {
		return r.State.String() + " (waits for room)"
	}
	return r.State.String()
}

// RowJSON returns the row of a run for --json.
func RowJSON(r store.RunRow) map[string]any {
	m := map[string]any{
		"run": r.Name, "id": strconv.FormatInt(int64(r.Run), 10), "workflow": r.WorkflowName, "definition": r.Digest,
		"status": r.State.String(), "key": r.Key, "created_at": r.CreatedAt.UTC(), "owner_alive": r.OwnerAlive, "trigger": r.Trigger.String(),
	}
	if r.InLine {
		m["waits_for_room"] = true
	}
	if !r.FinishedAt.IsZero() {
		m["finished_at"] = r.FinishedAt.UTC()
	}
	return m
}

// AlertJSON returns an alert for --json.
func AlertJSON(al store.AlertRow) map[string]any {
	return map[string]any{"at": al.At.In(time.UTC), "kind": al.Kind, "step": al.Step, "code": al.Code, "message": al.Message}
}
