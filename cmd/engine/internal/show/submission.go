package show

import (
	"fmt"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/store/intake"
)

// PrintSubmission prints whether a submission without a run waits or was refused. It returns an
// exit code as an error: exit.Human for a submission that was refused, and exit.Open for a
// submission that still waits.
func PrintSubmission(a *cli.App, x *intake.Submission) error {
	status, code := "submitted", exit.Open
	if x.Refused != "" {
		status, code = "refused", exit.Human
	}
	_, why, next := history.SubmissionText(x)
	if !a.JSON {
		if err := a.Print("%s\n%s\n", why, next); err != nil {
			return err
		}
		return exit.Code(code)
	}
	m := map[string]any{
		"run": x.Run, "workflow": x.Workflow, "status": status, "submitted_by": x.By, "submitted_at": x.At,
		"reason": x.Refused, "next": next, "exit_code": code,
	}
	if x.Refused != "" {
		m["refused_at"] = x.RefusedAt
	}
	if err := a.PrintJSON(m); err != nil {
		return err
	}
	return exit.Code(code)
}

// refusedText returns the text about a refused submission that has the id of an existing run.
func refusedText(x *intake.Submission) string {
	return fmt.Sprintf("%s: another submission with this id, of workflow %s by %s: %s", words.Stamp(x.RefusedAt),
		render.Clean(x.Workflow), render.Clean(x.By), strings.TrimSuffix(render.Clean(x.Refused), "."))
}

// refusedJSON returns the JSON object of a refused submission that has the id of an existing run.
func refusedJSON(x *intake.Submission) map[string]any {
	return map[string]any{
		"workflow": x.Workflow, "submitted_by": x.By, "submitted_at": x.At, "refused_at": x.RefusedAt, "reason": x.Refused,
	}
}
