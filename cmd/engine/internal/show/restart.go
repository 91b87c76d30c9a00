package show

import (
	"fmt"

	"github.com/saga-engine/engine/cmd/engine/internal/history"
)

// restarts returns the texts of the field Restarted. They name the run from which this run has
// taken over results, and the heir of this run.
func restarts(r *history.Run) []string {
	var out []string
	if from := r.State.Run().Origin(); from != nil {
		text := fmt.Sprintf("from step %s, with results of run %s", from.From, from.Name)
		if from.Reason != "" {
			text += ": " + from.Reason
		}
		out = append(out, text)
	}
	if r.Heir != "" {
		out = append(out, "as run "+r.Heir)
	}
	return out
}

// addRestarts adds two things to the JSON object of a run: the run from which this run has taken
// over results, and the heir of this run.
func addRestarts(m map[string]any, r *history.Run) {
	if from := r.State.Run().Origin(); from != nil {
		taken := []string{}
		for i, s := range r.Flow.Steps {
			if was, _ := r.State.Run().Legacy(int32(i)); was != nil {
				taken = append(taken, s.Name)
			}
		}
		m["restarted_from"] = map[string]any{"run": from.Name, "step": from.From, "reason": from.Reason, "taken_over": taken}
	}
	if r.Heir != "" {
		m["heir"] = r.Heir
	}
}
