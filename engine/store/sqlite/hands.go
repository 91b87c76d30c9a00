package sqlite

import (
	"context"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

const (
	handDrop = `DELETE FROM hand WHERE engine = ?1`
	handAdd  = `INSERT OR IGNORE INTO hand (engine, run_id) VALUES (?1, ?2)`
	// handBlame counts one more death for each open run that a dead engine had in hand.
	handBlame = `
INSERT INTO suspect (run_id, deaths) SELECT h.run_id, 1 FROM hand h JOIN run r USING (run_id) WHERE h.engine = ?1 AND r.state < 10
ON CONFLICT (run_id) DO UPDATE SET deaths = deaths + 1`
	suspectGet = `
SELECT coalesce((SELECT deaths FROM suspect WHERE run_id = ?1), 0), EXISTS (SELECT 1 FROM hand WHERE run_id = ?1 AND engine <> ?2)`
	suspectAbsolve = `DELETE FROM suspect WHERE run_id = ?1`
	suspectAny     = `SELECT EXISTS (SELECT 1 FROM suspect) OR EXISTS (SELECT 1 FROM hand WHERE engine <> ?1)`
)

// hands is the part of a Store that records which runs each engine has in hand: the runs that
// it is reading or deciding.
type hands struct{ *file }

// PutInHand replaces the list of runs that an engine has in hand. It returns ErrFenced if the
// engine was declared dead.
func (s *hands) PutInHand(ctx context.Context, id store.EngineID, runs []status.RunID) error {
	return s.write(ctx, "note runs in hand", func(tx *tx) error {
		var alive bool
		if err := tx.row(memberAlive, int64(id)).Scan(&alive); err != nil {
			return err
		}
		if !alive {
			return store.ErrFenced
		}
		if _, err := tx.exec(handDrop, int64(id)); err != nil {
			return err
		}
		for _, run := range runs {
			if _, err := tx.exec(handAdd, int64(id), int64(run)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Suspects returns those of the given runs that may be dangerous for an engine, and why. There are
// two reasons: engines died while they had the run in hand, or an engine other than the parameter
// `self` has the run in hand now. The other runs are missing in the result.
func (s *hands) Suspects(ctx context.Context, self store.EngineID, runs []status.RunID) (map[status.RunID]store.Suspicion, error) {
	some := false
	err := s.query(ctx, "look for suspect runs", suspectAny, []any{int64(self)}, func(r row) error { return r.Scan(&some) })
	if err != nil || !some {
		return nil, err
	}
	found := map[status.RunID]store.Suspicion{}
	for _, run := range runs {
		var x store.Suspicion
		err := s.query(ctx, "look for suspect runs", suspectGet, []any{int64(run), int64(self)}, func(r row) error { return r.Scan(&x.Deaths, &x.InHand) })
		if err != nil {
			return nil, err
		}
		if x != (store.Suspicion{}) {
			found[run] = x
		}
	}
	return found, nil
}

// Absolve sets the number of recorded deaths of each run to 0. It also works in a store that was
// opened with Options.Beside.
func (s *hands) Absolve(ctx context.Context, runs ...status.RunID) error {
	return s.writeUnowned(ctx, "absolve runs", func(tx *tx) error {
		for _, run := range runs {
			if _, err := tx.exec(suspectAbsolve, int64(run)); err != nil {
				return err
			}
		}
		return nil
	})
}
