package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/cron"
	"github.com/saga-engine/engine/dsl/selection"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/selects"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/refusal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/firings"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// ErrNoSelections says that the store has no business tables, so a select block cannot read them.
var ErrNoSelections = errors.New("engine: a select block reads business tables of the same PostgreSQL database, and this store has none; use a state in PostgreSQL (--dsn)")

// A Publisher publishes workflows on a store.
type Publisher struct {
	Store  store.Store
	Sealer crypt.Sealer // nil = a workflow with sensitive values is refused
}

// Selection returns the selection of a published schedule, and the schedule itself. The first
// result is nil if the schedule has no select block.
func (c Publisher) Selection(ctx context.Context, r schedules.Row) (*selection.Selection, *cron.Schedule, error) {
	def, err := journal.NewDefinitions(c.Store, c.Sealer).Definition(ctx, r.ID)
	if err != nil {
		return nil, nil, err
	}
	if wf := def.Workflow(r.Workflow); wf != nil {
		for _, s := range wf.Schedules {
			switch {
			case s.Name != r.Name:
			case s.Select == nil:
				return nil, &s.Schedule, nil
			default:
				return &s.Select.Selection, &s.Schedule, nil
			}
		}
	}
	return nil, nil, fmt.Errorf("the published definition of %q has no schedule %q; publish it again", r.Workflow, r.Name)
}

// checkSelections returns an error if the database of the store does not accept the query of a
// selection, or if the query does not return a column that the selection uses.
func checkSelections(ctx context.Context, st store.Store, wf *dsl.Workflow) error {
	for _, s := range wf.Schedules {
		if s.Select == nil {
			continue
		}
		if err := checkSelection(ctx, st, &s.Select.Selection); err != nil {
			return &refusal.SelectionError{Workflow: wf.Name, Schedule: s.Name, Err: err}
		}
	}
	for _, on := range wf.OnEvents {
		if on.Select == nil {
			continue
		}
		if err := checkSelection(ctx, st, &on.Select.Selection); err != nil {
			return &refusal.SelectionError{Workflow: wf.Name, OnEvent: on.Name, Err: err}
		}
	}
	return nil
}

// checkSelection does the work of checkSelections for one select block.
func checkSelection(ctx context.Context, st store.Store, s *selection.Selection) error {
	role, ok := firings.Of(st)
	if !ok {
		return ErrNoSelections
	}
	q, err := selects.QueryOf(s, nil)
	if err != nil {
		return err
	}
	columns, err := role.Columns(ctx, q)
	if err != nil {
		return err
	}
	for _, c := range s.Columns {
		if !slices.Contains(columns, c) {
			return fmt.Errorf("the query returns no column %q, which the block uses; it returns %s", c, strings.Join(columns, ", "))
		}
	}
	return nil
}
