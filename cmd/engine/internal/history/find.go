package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/goals"
)

// Find returns the run that the argument RUN names. This is the run whose name is RUN. If
// there is no such run, it is the newest run whose unique key is RUN. If several workflows
// have runs with this key, Find returns an error.
func Find(ctx context.Context, a *cli.App, s *session.Session, name string) (store.RunRow, error) {
	row, err := s.Store.Find(ctx, name)
	if err == nil {
		return row, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return row, s.Wrap("find the run", err)
	}
	if name == "" {
		return row, unknownRun(ctx, s, name)
	}
	rows, err := s.Store.Runs(ctx, store.RunFilter{Key: name, Limit: 10000})
	if err != nil {
		return row, s.Wrap("find the run by its key", err)
	}
	if len(rows) == 0 {
		return row, unknownRun(ctx, s, name)
	}
	// The slice `newest` has a text for each workflow that has runs with this key. Each text names
	// the newest of these runs of the workflow.
	var newest []string
	var seen []string
	for _, r := range rows {
		if !slices.Contains(seen, r.WorkflowName) {
			seen = append(seen, r.WorkflowName)
			newest = append(newest, render.Clean(r.Name)+" of workflow "+r.WorkflowName)
		}
	}
	if len(seen) > 1 {
		return row, cli.Failed("Key of several workflows", "%q is the unique key of runs of %d workflows. Name one of the runs: %s.",
			name, len(seen), strings.Join(newest, ", "))
	}
	if !a.JSON {
		which := "the run"
		if len(rows) > 1 {
			which = "the newest of " + render.Count(len(rows), "run")
		}
		a.Note("%s is %s with the unique key %s.", rows[0].Name, which, name)
	}
	return rows[0], nil
}

// unknownRun returns the error that there is no run with this name or key. If the run was
// submitted, the error says what has become of the submission. If it was not submitted, the error
// suggests a similar name or key of one of the newest runs.
func unknownRun(ctx context.Context, s *session.Session, name string) error {
	if x, err := Submission(ctx, s, name); err != nil {
		return err
	} else if x != nil {
		summary, why, next := SubmissionText(x)
		return cli.Failed(summary, "%s %s", why, next)
	}
	const among = 1000
	rows, err := s.Store.Runs(ctx, store.RunFilter{Limit: among})
	if err != nil {
		return s.Wrap("find the run", err)
	}
	var names []string
	for _, r := range rows {
		names = append(names, render.Clean(r.Name))
		if r.Key != "" {
			names = append(names, render.Clean(r.Key))
		}
	}
	return cli.Failed("Unknown run", "There is no run %q in %s, and none with that unique key.%s `engine list` shows the runs.",
		name, s.Shown, diag.DidYouMean(name, names))
}

// Holder returns the run that holds a unique key now, or the run that waits for the key. It
// returns nil if there is no such run, or if retention has removed it.
func Holder(ctx context.Context, s *session.Session, workflow, key string) (*store.RunRow, error) {
	g, err := goals.Find(ctx, s.Store, workflow, key)
	if errors.Is(err, store.ErrNotFound) || err == nil && (!g.Held() || g.Gone) {
		return nil, nil
	}
	if err != nil {
		return nil, s.Wrap("look up the key", err)
	}
	name := g.Name
	if g.State == goals.Open && g.RunState.Final() {
		name = g.NextName
	}
	row, err := s.Store.Find(ctx, name)
	if errors.Is(err, store.ErrNotFound) { // retention has just removed the run
		return nil, nil
	}
	if err != nil {
		return nil, s.Wrap("look up the key", err)
	}
	return &row, nil
}

// Arg returns a run's name, quoted as an argument of a command line.
func Arg(row store.RunRow) string { return words.Quote(render.Clean(row.Name)) }

// EndedText returns a sentence that says how and when a run has ended.
func EndedText(row store.RunRow) string {
	s := fmt.Sprintf("Run %s has ended: %s", render.Clean(row.Name), row.State)
	if !row.FinishedAt.IsZero() {
		s += " at " + words.Stamp(row.FinishedAt)
	}
	return s + "."
}
