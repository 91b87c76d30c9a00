package sqlite

import (
	"context"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/notice"
)

const (
	noticeAdd   = `INSERT INTO notice (run_id, seq, state) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING`
	noticeOpen  = `SELECT run_id, seq, state FROM notice WHERE done = 0 AND (run_id, seq, state) > (?2, ?3, ?4) ORDER BY run_id, seq, state LIMIT ?1`
	noticeDone  = `UPDATE notice SET done = 1 WHERE run_id = ?1 AND seq = ?2 AND state = ?3`
	noticeOfRun = `SELECT run_id, seq, state, done FROM notice WHERE run_id = ?1 AND EXISTS (SELECT 1 FROM run WHERE run_id = ?1) ORDER BY seq, state`
)

// notices is the part of a Store that keeps notices. It implements notice.Keeper.
type notices struct{ *file }

// announce writes the notices of a transition.
func announce(x *tx, run status.RunID, seq int32, states []string) error {
	for _, state := range states {
		if _, err := x.exec(noticeAdd, int64(run), seq, naming.CleanText(state)); err != nil {
			return err
		}
	}
	return nil
}

// Open returns notices that are not announced yet, ascending by run, row and state. It returns only
// notices after the one in the parameter `after`, and at most as many as the parameter `limit`
// says.
func (s *notices) Open(ctx context.Context, after notice.Notice, limit int) ([]notice.Notice, error) {
	var out []notice.Notice
	err := s.query(ctx, "list open notices", noticeOpen, []any{limit, int64(after.Run), after.Seq, after.State}, func(r row) error {
		var (
			n   notice.Notice
			run int64
		)
		err := r.Scan(&run, &n.Seq, &n.State)
		n.Run = status.RunID(run)
		out = append(out, n)
		return err
	})
	return out, err
}

// Announced marks notices as announced.
func (s *notices) Announced(ctx context.Context, done ...notice.Notice) error {
	if len(done) == 0 {
		return nil
	}
	return s.write(ctx, "mark notices", func(tx *tx) error {
		for _, n := range done {
			if _, err := tx.exec(noticeDone, int64(n.Run), n.Seq, n.State); err != nil {
				return err
			}
		}
		return nil
	})
}

// OfRun returns all notices of a run, ascending by row and state.
func (s *notices) OfRun(ctx context.Context, run status.RunID) ([]notice.Kept, error) {
	var out []notice.Kept
	err := s.query(ctx, "list notices of a run", noticeOfRun, []any{int64(run)}, func(r row) error {
		var (
			n  notice.Kept
			id int64
		)
		err := r.Scan(&id, &n.Seq, &n.State, &n.Done)
		n.Run = status.RunID(id)
		out = append(out, n)
		return err
	})
	return out, err
}
