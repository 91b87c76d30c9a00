package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/store"
)

// people finds the runs that people mean, and checks what they may ask of them.
type people struct{ *session }

// findRun finds the run that a command means by RUN: the one of that name, else
// the newest one of that unique key.
func (a follower) findRun(ctx context.Context, s *session, name string) (store.RunRow, error) {
	row, err := s.store.Find(ctx, name)
	if err == nil {
		return row, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return row, s.wrap("find the run", err)
	}
	if name == "" {
		return row, s.people().unknownRun(ctx, name)
	}
	rows, err := s.store.Runs(ctx, store.RunFilter{Key: name, Limit: 10000})
	if err != nil {
		return row, s.wrap("find the run by its key", err)
	}
	if len(rows) == 0 {
		return row, s.people().unknownRun(ctx, name)
	}
	var newest []string // run of each workflow
	var seen []string
	for _, r := range rows {
		if !slices.Contains(seen, r.WorkflowName) {
			seen = append(seen, r.WorkflowName)
			newest = append(newest, render.Clean(r.Name)+" of workflow "+r.WorkflowName)
		}
	}
	if len(seen) > 1 {
		return row, failed("Key of several workflows", "%q is the unique key of runs of %d workflows. Name one of the runs: %s.",
			name, len(seen), strings.Join(newest, ", "))
	}
	if !a.json {
		which := "the run"
		if len(rows) > 1 {
			which = "the newest of " + render.Count(len(rows), "run")
		}
		a.note("%s is %s with the unique key %s.", rows[0].Name, which, name)
	}
	return rows[0], nil
}

// unknownRun says that there is no such run, and which one may have been meant
// among the newest.
func (s people) unknownRun(ctx context.Context, name string) error {
	const among = 1000
	rows, err := s.store.Runs(ctx, store.RunFilter{Limit: among})
	if err != nil {
		return s.wrap("find the run", err)
	}
	var names []string
	for _, r := range rows {
		names = append(names, render.Clean(r.Name))
		if r.Key != "" {
			names = append(names, render.Clean(r.Key))
		}
	}
	return failed("Unknown run", "There is no run %q in %s, and none with that unique key.%s `engine list` shows the runs.",
		name, s.shown, diag.DidYouMean(name, names))
}
