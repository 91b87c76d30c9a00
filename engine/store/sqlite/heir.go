package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

const (
	heirOf  = `SELECT heir FROM heir WHERE run_id = ?1`
	heirAsk = `SELECT r.state >= 10, coalesce(h.heir, 0) FROM run r LEFT JOIN heir h USING (run_id) WHERE r.run_id = ?1`
	heirAdd = `INSERT INTO heir (run_id, heir) VALUES (?1, ?2) ON CONFLICT (run_id) DO NOTHING`
)

// heirs is the part of a Store that keeps which run has taken over the results of another one. It
// implements naming.Heirs.
type heirs struct{ *file }

// Heir returns the run that has taken over the results of the given run; 0 = there is none.
func (s *heirs) Heir(ctx context.Context, run status.RunID) (heir status.RunID, err error) {
	err = s.query(ctx, "find the heir of a run", heirOf, []any{int64(run)}, func(r row) error {
		var id int64
		err := r.Scan(&id)
		heir = status.RunID(id)
		return err
	})
	return heir, err
}

// landHeir submits a run that takes over the results of an ended run. If another run has them
// already, or the ended run does not exist, the outcome is an error. But if the submission has the
// name of an existing run, or a key that a run holds, the outcome is that run.
func (x *landing) landHeir(t *store.Transition) (store.Outcome, error) {
	refused, err := x.mayInherit(t)
	if err != nil {
		return store.Outcome{}, err
	}
	if refused != nil {
		if !t.Names.Kept() {
			return store.Outcome{Err: refused}, nil
		}
		found, err := x.held(t.Names.Public(t.Run), t.Names)
		if found.Exists {
			return store.Outcome{Submitted: found}, err
		}
		return store.Outcome{Err: refused}, err
	}
	o, err := x.landAdmitted(t)
	if err == nil && o.Landed {
		_, err = x.exec(heirAdd, int64(t.Names.From), int64(t.Run))
	}
	return o, err
}

// mayInherit returns why the run of a submission may not take over results; nil = it may.
func (x *landing) mayInherit(t *store.Transition) (refused, err error) {
	var (
		ended bool
		heir  int64
	)
	err = x.row(heirAsk, int64(t.Names.From)).Scan(&ended, &heir)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && !ended:
		return naming.ErrNoOrigin, nil
	case err == nil && heir != 0 && status.RunID(heir) != t.Run:
		return &naming.HeirError{Run: t.Names.From, Heir: status.RunID(heir)}, nil
	}
	return nil, err
}

// heirless reports whether an outcome says that the run may not take over results. A later try of the
// same batch decides this again.
func heirless(err error) bool {
	var heir *naming.HeirError
	return errors.Is(err, naming.ErrNoOrigin) || errors.As(err, &heir)
}
