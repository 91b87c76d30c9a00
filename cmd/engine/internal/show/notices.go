package show

import (
	"fmt"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/notice"
)

// noticeLines returns a line for each notification of a run: the state that it announces, and its
// status. It also returns a line for each notice that has no notification yet.
func noticeLines(all []notice.Sent) []string {
	var out []string
	for _, n := range all {
		if len(n.Notifications) == 0 && !n.Done {
			out = append(out, n.State+": not sent yet")
		}
		for _, r := range n.Notifications {
			out = append(out, fmt.Sprintf("%s: %s, run %s", n.State, history.StatusText(r), r.Name))
		}
	}
	return out
}

// resetsJSON returns, for --json, the resets of the goals that the run had reached.
func resetsJSON(all []goals.Reset) []map[string]any {
	out := []map[string]any{}
	for _, x := range all {
		out = append(out, map[string]any{"key": x.Key, "at": x.At.UTC().Format(time.RFC3339Nano), "by": x.By, "reason": x.Reason})
	}
	return out
}

// noticesJSON returns the notices of a run for --json.
func noticesJSON(all []notice.Sent) []map[string]any {
	out := []map[string]any{}
	for _, n := range all {
		runs := []map[string]any{}
		for _, r := range n.Notifications {
			runs = append(runs, map[string]any{"run": r.Name, "status": r.State.String(), "workflow": r.WorkflowName})
		}
		out = append(out, map[string]any{"state": n.State, "sent": n.Done, "notifications": runs})
	}
	return out
}
