package postgres

import (
	"context"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

const (
	// handHold stores the list of runs that an engine has in hand. It stores nothing for an
	// engine that was declared dead, because the deaths for the runs in its list were
	// counted already.
	handHold = `
INSERT INTO engine.hand AS h (engine, runs) SELECT $1::int4, $2::int8[] FROM engine.member WHERE engine = $1 AND NOT dead
ON CONFLICT (engine) DO UPDATE SET runs = excluded.runs`
	handDrop    = `DELETE FROM engine.hand WHERE engine = $1`
	suspectList = `
SELECT run_id, deaths, false FROM engine.suspect WHERE run_id = ANY ($1::int8[])
UNION ALL SELECT v.run_id, 0, true FROM engine.hand h CROSS JOIN LATERAL pg_catalog.unnest(h.runs) v(run_id) WHERE h.engine <> $2 AND v.run_id = ANY ($1::int8[])`
	suspectAbsolve = `DELETE FROM engine.suspect WHERE run_id = ANY ($1::int8[])`
)

// hands is the part of a Store that records which runs each engine has in hand.
type hands struct{ *access }

// Hold replaces the list of runs that an engine has in hand. It returns ErrFenced if the
// engine was declared dead.
func (s *hands) Hold(ctx context.Context, id store.EngineID, runs []status.RunID) error {
	res, err := s.db.ExecContext(ctx, handHold, int64(id), runArray(runs))
	if err != nil {
		return wrap("note runs in hand", err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return wrap("note runs in hand", err)
	}
	if n == 0 {
		return store.ErrFenced
	}
	return nil
}

// Suspects returns, for each run, the number of deaths, and whether another engine than the
// parameter self has the run in hand. A run with no deaths and no such engine is not in the
// result.
func (s *hands) Suspects(ctx context.Context, self store.EngineID, runs []status.RunID) (map[status.RunID]store.Suspicion, error) {
	rows, err := s.db.QueryContext(ctx, suspectList, runArray(runs), int64(self))
	if err != nil {
		return nil, wrap("look for suspect runs", err)
	}
	defer rows.Close()
	found := map[status.RunID]store.Suspicion{}
	for rows.Next() {
		var (
			run    int64
			deaths int
			held   bool
		)
		if err := rows.Scan(&run, &deaths, &held); err != nil {
			return nil, wrap("look for suspect runs", err)
		}
		x := found[status.RunID(run)]
		x.Deaths, x.Held = max(x.Deaths, deaths), x.Held || held
		found[status.RunID(run)] = x
	}
	if err := rows.Err(); err != nil {
		return nil, wrap("look for suspect runs", err)
	}
	return found, nil
}

// Absolve resets the number of deaths of each run to 0.
func (s *hands) Absolve(ctx context.Context, runs ...status.RunID) error {
	if _, err := s.db.ExecContext(ctx, suspectAbsolve, runArray(runs)); err != nil {
		return wrap("absolve runs", err)
	}
	return nil
}
