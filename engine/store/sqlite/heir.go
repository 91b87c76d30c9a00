package sqlite

import (
	"context"

	"github.com/saga-engine/engine/engine/machine/status"
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
