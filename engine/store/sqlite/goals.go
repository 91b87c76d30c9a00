package sqlite

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
	// contextHeld says whether the run `r` holds the unique key in the row `c` of the table
	// `context` at the time ?3 (naming.KeyScope.Holds).
	contextHeld = `(r.state < 10 OR c.reset_at IS NULL AND (c.scope = 2 OR c.scope = 0 AND coalesce(r.state, c.ended) = 10
  AND (c.retain IS NULL OR coalesce(r.finished_at, c.ended_at) + c.retain > ?3)))`
	goalFields = `
SELECT c.workflow, c.key, c.run_id, coalesce(n.name, c.run, ''), r.run_id IS NULL, coalesce(r.state, c.ended, 11), coalesce(r.finished_at, c.ended_at, 0),
  c.scope, coalesce(c.retain, 0), c.reset_at IS NOT NULL,
  (SELECT count(*) FROM goal_reset x WHERE x.workflow = c.workflow AND x.key = c.key),
  coalesce(l.run_id, 0), coalesce(l.run, ''), coalesce(l.at, 0), coalesce(l.who, ''), coalesce(l.reason, ''),
  coalesce(w.run_id, 0), coalesce(wn.name, '')
FROM context c LEFT JOIN run r ON r.run_id = c.run_id LEFT JOIN run_name n ON n.run_id = c.run_id
LEFT JOIN run w ON w.run_id = c.next_run AND w.state < 10 LEFT JOIN run_name wn ON wn.run_id = w.run_id
LEFT JOIN goal_reset l ON l.id = (SELECT x.id FROM goal_reset x WHERE x.workflow = c.workflow AND x.key = c.key ORDER BY x.id DESC LIMIT 1)`
	goalOne   = goalFields + ` WHERE c.workflow = ?1 AND c.key = ?2 AND (c.workflow, c.key) > (?3, ?4) LIMIT ?5`
	goalsOf   = goalFields + ` WHERE c.workflow = ?1 AND ?2 = '' AND (c.workflow, c.key) > (?3, ?4) ORDER BY c.workflow, c.key LIMIT ?5`
	goalsAll  = goalFields + ` WHERE ?1 = '' AND ?2 = '' AND (c.workflow, c.key) > (?3, ?4) ORDER BY c.workflow, c.key LIMIT ?5`
	goalReset = `UPDATE context SET reset_at = ?3 WHERE workflow = ?1 AND key = ?2`
	// goalDrop removes the row of a unique key from the table `context`, unless ?3 is 0. It is for
	// a key whose run was removed by retention and for which no run waits. If the run held the key
	// without a limit of time, retention would never remove this row.
	goalDrop    = `DELETE FROM context WHERE workflow = ?1 AND key = ?2 AND ?3 <> 0`
	resetAdd    = `INSERT INTO goal_reset (workflow, key, run_id, run, at, who, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`
	resetsOfRun = `SELECT workflow, key, run_id, run, at, who, reason FROM goal_reset WHERE run_id = ?1 ORDER BY id LIMIT 1000`
)

// contexts is the part of a Store that shows and frees unique keys. It implements goals.Keeper.
type contexts struct{ *file }

// Goals returns the goals that a filter selects, ascending by workflow and key.
func (s *contexts) Goals(ctx context.Context, f goals.Filter) ([]goals.Goal, error) {
	query := goalsAll
	switch {
	case f.Key != "":
		query = goalOne
	case f.Workflow != "":
		query = goalsOf
	}
	var out []goals.Goal
	at := now()
	err := s.query(ctx, "list goals", query, []any{f.Workflow, f.Key, f.AfterWorkflow, f.AfterKey, f.Limit}, func(r row) error {
		g, err := scanGoal(r, at)
		out = append(out, g)
		return err
	})
	return out, err
}

// scanGoal reads one row of goalFields.
func scanGoal(r row, at time.Time) (goals.Goal, error) {
	var (
		g                                      goals.Goal
		run, state, ended, scope, retain, last int64
		next                                   int64
		resetAt                                int64
		reset                                  bool
		l                                      goals.Reset
	)
	err := r.Scan(&g.Workflow, &g.Key, &run, &g.Name, &g.Gone, &state, &ended, &scope, &retain, &reset, &g.Resets,
		&last, &l.Name, &resetAt, &l.By, &l.Reason, &next, &g.NextName)
	if err != nil {
		return g, err
	}
	g.Next = status.RunID(next)
	g.Run, g.RunState = status.RunID(run), status.RunState(state)
	g.KeyScope = naming.KeyScope{Scope: naming.Scope(scope), Retain: time.Duration(retain) * time.Microsecond}
	if g.Name == "" {
		g.Name = naming.RunName(g.Run)
	}
	g.SetState(time.UnixMicro(ended).UTC(), reset, at)
	if last != 0 {
		l.Workflow, l.Key, l.Run, l.At = g.Workflow, g.Key, status.RunID(last), time.UnixMicro(resetAt).UTC()
		g.LastReset = l
	}
	return g, nil
}

// ResetGoal frees the key of a goal that was reached, and records who did it and why.
func (s *contexts) ResetGoal(ctx context.Context, r goals.Reset) (g goals.Goal, err error) {
	if err := r.Validate(); err != nil {
		return g, err
	}
	err = s.writeUnowned(ctx, "reset a goal", func(x *tx) (err error) {
		at := now()
		g, err = scanGoal(x.row(goalOne, r.Workflow, r.Key, "", "", 1), at)
		if errors.Is(err, sql.ErrNoRows) {
			return store.ErrNotFound
		}
		if err == nil {
			err = g.Resettable()
		}
		if err != nil {
			return err
		}
		if _, err := x.exec(resetAdd, r.Workflow, r.Key, int64(g.Run), g.Name, micros(at), r.By, r.Reason); err != nil {
			return err
		}
		free := goalReset
		if g.Gone && g.Next == 0 {
			free = goalDrop
		}
		_, err = x.exec(free, r.Workflow, r.Key, micros(at))
		return err
	})
	return g, err
}

// Resets returns the resets of the goals that the given run had reached, oldest first.
func (s *contexts) Resets(ctx context.Context, run status.RunID) ([]goals.Reset, error) {
	var out []goals.Reset
	err := s.query(ctx, "list resets", resetsOfRun, []any{int64(run)}, func(r row) error {
		var (
			x      goals.Reset
			id, at int64
		)
		err := r.Scan(&x.Workflow, &x.Key, &id, &x.Name, &at, &x.By, &x.Reason)
		x.Run, x.At = status.RunID(id), time.UnixMicro(at).UTC()
		out = append(out, x)
		return err
	})
	return out, err
}
