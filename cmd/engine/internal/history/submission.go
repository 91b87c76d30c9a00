package history

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/intake"
)

// Submission returns the submission with the id in the parameter `run`, if the submission still
// waits for an engine, or if an engine has refused it. nil = there is no such submission.
func Submission(ctx context.Context, s *session.Session, run string) (*intake.Submission, error) {
	role, ok := intake.Of(s.Store)
	if !ok {
		return nil, nil
	}
	x, err := role.FindSubmission(ctx, run)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, s.Wrap("look for a submission", err)
	}
	return &x, nil
}

// SubmissionText returns three texts about a submission: what has become of it, why, and what a
// person should do next.
func SubmissionText(x *intake.Submission) (summary, why, next string) {
	if x.Refused == "" {
		return "Submission waits", fmt.Sprintf("There is no run %s yet: its submission of workflow %s waits for an engine since %s.",
			render.Clean(x.Run), render.Clean(x.Workflow), words.Stamp(x.At)), "`engine doctor` says whether an engine is alive."
	}
	again := fmt.Sprintf("SELECT engine.submit('%s', INPUT, '%s')", sqlText(x.Workflow), sqlText(x.Run))
	return "Submission was refused", fmt.Sprintf("There is no run %s: an engine refused its submission of workflow %s at %s: %s.",
			render.Clean(x.Run), render.Clean(x.Workflow), words.Stamp(x.RefusedAt), strings.TrimSuffix(render.Clean(x.Refused), ".")),
		fmt.Sprintf("Correct the cause, and submit it again: `%s`.", again)
}

// sqlText returns a text as it is written between quotes in SQL.
func sqlText(s string) string { return strings.ReplaceAll(render.Clean(s), "'", "''") }
