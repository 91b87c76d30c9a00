// Package contexts shows and frees unique keys in PostgreSQL.
//
// In: the calls of the role goals.Keeper. Out: statements on the tables engine.context and
// engine.goal_reset. In engine.context, a reset writes only the column reset_at, or deletes the
// row. Commits and retention write the other columns. A reset locks the row of the key first, as a
// submission does. So a reset and a submission of the same key never run at the same time.
package contexts

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/naming"
)

const (
	goalFields = `
SELECT c.workflow, c.key, c.run_id, coalesce(n.name, c.run, ''), r.run_id IS NULL, coalesce(r.state, c.ended), coalesce(r.finished_at, c.ended_at),
  c.scope, coalesce(c.retain, 0), c.reset_at IS NOT NULL, pg_catalog.clock_timestamp(),
  (SELECT pg_catalog.count(*) FROM engine.goal_reset x WHERE x.workflow = c.workflow AND x.key = c.key),
  l.run_id, l.run, l.at, l.who, l.reason, coalesce(w.run_id, 0), coalesce(wn.name, '')
FROM engine.context c LEFT JOIN engine.run r ON r.run_id = c.run_id LEFT JOIN engine.run_name n ON n.run_id = c.run_id
LEFT JOIN engine.run w ON w.run_id = c.next_run AND w.state < 10 LEFT JOIN engine.run_name wn ON wn.run_id = w.run_id
LEFT JOIN LATERAL (SELECT * FROM engine.goal_reset x WHERE x.workflow = c.workflow AND x.key = c.key ORDER BY x.id DESC LIMIT 1) l ON true`
	goalOne   = goalFields + ` WHERE c.workflow = $1 AND c.key = $2 AND (c.workflow, c.key) > ($3, $4) LIMIT $5`
	goalsOf   = goalFields + ` WHERE c.workflow = $1 AND $2 = '' AND (c.workflow, c.key) > ($3, $4) ORDER BY c.workflow, c.key LIMIT $5`
	goalsAll  = goalFields + ` WHERE $1 = '' AND $2 = '' AND (c.workflow, c.key) > ($3, $4) ORDER BY c.workflow, c.key LIMIT $5`
	goalLock  = `SELECT 1 FROM engine.context WHERE workflow = $1 AND key = $2 FOR UPDATE`
	goalReset = `UPDATE engine.context SET reset_at = pg_catalog.clock_timestamp() WHERE workflow = $1 AND key = $2`
	// goalDrop removes the row of a unique key. It is used if retention has removed the run that
	// took the key, and no run waits for the key. Without goalDrop, this row could stay for ever.
	goalDrop    = `DELETE FROM engine.context WHERE workflow = $1 AND key = $2`
	resetAdd    = `INSERT INTO engine.goal_reset (workflow, key, run_id, run, at, who, reason) VALUES ($1, $2, $3, $4, pg_catalog.clock_timestamp(), $5, $6)`
	resetsOfRun = `SELECT workflow, key, run_id, run, at, who, reason FROM engine.goal_reset WHERE run_id = $1 ORDER BY id LIMIT 1000`
)

// Contexts is the part of a Store that shows and frees unique keys. It implements goals.Keeper. All
// fields are required.
type Contexts struct {
	DB    func() *sql.DB // returns the pool for reads
	Begin func(ctx context.Context) (*sql.Tx, error)
	Wrap  func(what string, err error) error // adds the name of the operation to the text of an error that is not nil
}

var _ goals.Keeper = (*Contexts)(nil)

// Goals returns the goals that a filter selects, ascending by workflow and key.
func (s *Contexts) Goals(ctx context.Context, f goals.Filter) ([]goals.Goal, error) {
	query := goalsAll
	switch {
	case f.Key != "":
		query = goalOne
	case f.Workflow != "":
		query = goalsOf
	}
	rows, err := s.DB().QueryContext(ctx, query, f.Workflow, f.Key, f.AfterWorkflow, f.AfterKey, f.Limit)
	if err != nil {
		return nil, s.Wrap("list goals", err)
	}
	defer rows.Close()
	var out []goals.Goal
	for rows.Next() {
		g, err := scan(rows)
		if err != nil {
			return nil, s.Wrap("list goals", err)
		}
		out = append(out, g)
	}
	if err := rows.Err(); err != nil {
		return nil, s.Wrap("list goals", err)
	}
	return out, nil
}

// scan reads one row of goalFields.
func scan(row interface{ Scan(...any) error }) (goals.Goal, error) {
	var (
		g              goals.Goal
		run, retain    int64
		next           int64
		state          sql.NullInt16
		ended, at      sql.NullTime
		reset          bool
		now            time.Time
		last           sql.NullInt64
		name, who, why sql.NullString
	)
	err := row.Scan(&g.Workflow, &g.Key, &run, &g.Name, &g.Gone, &state, &ended, &g.KeyScope.Scope, &retain, &reset, &now, &g.Resets,
		&last, &name, &at, &who, &why, &next, &g.NextName)
	if g.Next = status.RunID(next); g.Next != 0 && g.NextName == "" {
		g.NextName = naming.RunName(g.Next)
	}
	g.Run, g.RunState, g.KeyScope.Retain = status.RunID(run), status.RunFailed, time.Duration(retain)*time.Microsecond
	if state.Valid {
		g.RunState = status.RunState(state.Int16)
	}
	if g.Name == "" {
		g.Name = naming.RunName(g.Run)
	}
	g.SetState(ended.Time, reset, now)
	if last.Valid {
		g.LastReset = goals.Reset{Workflow: g.Workflow, Key: g.Key, Run: status.RunID(last.Int64), Name: name.String, At: at.Time, By: who.String, Reason: why.String}
	}
	return g, err
}

// ResetGoal frees the key of a goal that was reached, and records who did it and why.
func (s *Contexts) ResetGoal(ctx context.Context, r goals.Reset) (goals.Goal, error) {
	if err := r.Validate(); err != nil {
		return goals.Goal{}, err
	}
	tx, err := s.Begin(ctx)
	if err != nil {
		return goals.Goal{}, s.Wrap("reset a goal", err)
	}
	g, err := reset(ctx, tx, r)
	if err != nil {
		if e := tx.Rollback(); e != nil && !errors.Is(e, sql.ErrTxDone) {
			err = errors.Join(err, e)
		}
		if errors.Is(err, goals.ErrOpen) || errors.Is(err, goals.ErrNotReached) || errors.Is(err, goals.ErrEver) {
			return g, err // the goal cannot be reset, which is no failure of the database
		}
		return g, s.Wrap("reset a goal", err)
	}
	return g, s.Wrap("reset a goal", tx.Commit())
}

// reset runs the statements of a reset. The first statement waits for submissions of the key that
// are not committed yet. Only the later statements see what those submissions commit.
func reset(ctx context.Context, tx *sql.Tx, r goals.Reset) (g goals.Goal, err error) {
	var one int
	err = tx.QueryRowContext(ctx, goalLock, r.Workflow, r.Key).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return g, store.ErrNotFound
	}
	if err == nil {
		g, err = scan(tx.QueryRowContext(ctx, goalOne, r.Workflow, r.Key, "", "", 1))
	}
	if err == nil {
		err = g.Resettable()
	}
	if err != nil {
		return g, err
	}
	if _, err := tx.ExecContext(ctx, resetAdd, r.Workflow, r.Key, int64(g.Run), g.Name, r.By, r.Reason); err != nil {
		return g, err
	}
	free := goalReset
	if g.Gone && g.Next == 0 {
		free = goalDrop
	}
	_, err = tx.ExecContext(ctx, free, r.Workflow, r.Key)
	return g, err
}

// Resets returns the resets of the goals that the given run had reached, oldest first.
func (s *Contexts) Resets(ctx context.Context, run status.RunID) ([]goals.Reset, error) {
	rows, err := s.DB().QueryContext(ctx, resetsOfRun, int64(run))
	if err != nil {
		return nil, s.Wrap("list resets", err)
	}
	defer rows.Close()
	var out []goals.Reset
	for rows.Next() {
		var (
			x  goals.Reset
			id int64
		)
		if err := rows.Scan(&x.Workflow, &x.Key, &id, &x.Name, &x.At, &x.By, &x.Reason); err != nil {
			return nil, s.Wrap("list resets", err)
		}
		x.Run = status.RunID(id)
		out = append(out, x)
	}
	if err := rows.Err(); err != nil {
		return nil, s.Wrap("list resets", err)
	}
	return out, nil
}
