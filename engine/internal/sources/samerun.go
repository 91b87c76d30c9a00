package sources

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/intake"
	"github.com/saga-engine/engine/engine/internal/submit"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
)

// A takenError says why a submission was refused: another run has its name.
type takenError struct {
	run, workflow string   // the run with the name, and its workflow
	other         []string // variables to which the submission gives other values; nil = the run has another workflow
}

// Error names the run, says in what it differs from the submission, and says what to do.
func (e *takenError) Error() string {
	how := fmt.Sprintf("and is a run of workflow %q", e.workflow)
	if len(e.other) > 0 {
		how = "and was started with other values of " + strings.Join(e.other, ", ")
	}
	return fmt.Sprintf("run %s exists already, %s: `engine show %s` shows it. Submit with another id", e.run, how, e.run)
}

// sameRun compares a submission with the run in `res`, which has the name of the submission. It
// returns nil if that run was started by this submission: then the run has the same workflow, and
// the same value of each variable to which the submission gives a value. If the workflow or a value
// differs, sameRun returns a *takenError. If sameRun cannot read the run now, it returns an error
// that says nothing about the submission.
func (s *Sources) sameRun(ctx context.Context, r intake.Run, res store.Submitted) error {
	row, err := s.all.Run(ctx, res.Run)
	if err != nil {
		return &submit.Unanswered{Err: fmt.Errorf("read run %s, which has the name of a submission: %w", res.Name, err)}
	}
	if row.WorkflowName != r.Workflow {
		return &takenError{run: res.Name, workflow: row.WorkflowName}
	}
	if len(r.Given) == 0 {
		return nil
	}
	loaded, err := journal.Load(ctx, s.cfg.Store, s.cfg.Sealer, s.cfg.Defs, res.Run)
	if err != nil {
		return &submit.Unanswered{Err: fmt.Errorf("read run %s, which has the name of a submission: %w", res.Name, err)}
	}
	other, err := differing(r.Given, r.Vars, loaded.State.Vars())
	switch {
	case err != nil:
		return &submit.Unanswered{Err: err}
	case len(other) > 0:
		return &takenError{run: res.Name, workflow: row.WorkflowName, other: other}
	}
	return nil
}

// differing compares two objects with the values of variables. It returns those of the given names
// whose value in a differs from the value in b. It leaves out a name that has no value in b.
func differing(names []string, a, b dsl.Value) ([]string, error) {
	var now, then map[string]json.RawMessage
	if err := json.Unmarshal(a.JSON(), &now); err != nil {
		return nil, fmt.Errorf("read the values of variables: %w", err)
	}
	if err := json.Unmarshal(b.JSON(), &then); err != nil {
		return nil, fmt.Errorf("read the values of variables: %w", err)
	}
	var out []string
	for _, name := range names {
		if was, ok := then[name]; ok && !bytes.Equal(was, now[name]) {
			out = append(out, name)
		}
	}
	return out, nil
}
