package sqlite

import (
	"context"
	"encoding/json"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/snapshots"
)

const (
	snapshotOwn = `SELECT EXISTS (SELECT 1 FROM fence WHERE engine = ?1)`
	// snapshotKeep stores a snapshot if the engine owns the run, and if the journal has the row on
	// which the snapshot is based.
	snapshotKeep = `
INSERT INTO snapshot (run_id, next, data) SELECT ?2, ?3, ?4
WHERE EXISTS (SELECT 1 FROM run WHERE run_id = ?2 AND owner = ?1)
  AND EXISTS (SELECT 1 FROM journal WHERE run_id = ?2 AND seq = ?3 - 1 AND data = ?5)
ON CONFLICT (run_id) DO UPDATE SET next = excluded.next, data = excluded.data`
	snapshotDrop = `DELETE FROM snapshot WHERE run_id = ?1`
	snapshotRuns = `SELECT s.run_id FROM json_each(?1) e CROSS JOIN snapshot s ON s.run_id = e.value ORDER BY s.run_id`
	// runLoadShort reads the head of a run, its snapshot, the last journal row that the snapshot
	// covers (seq = next - 1), and all later rows. If there is no snapshot, it reads all rows. It
	// is one statement, so that all are from the same moment. In the result, the row of the
	// snapshot has the seq -next. This number is negative, so the row is the first one.
	runLoadShort = `
WITH short AS MATERIALIZED (SELECT next, data FROM snapshot WHERE run_id = ?1), part AS (
  SELECT -next AS seq, 0 AS at, data FROM short
  UNION ALL SELECT seq, at, data FROM journal WHERE run_id = ?1 AND seq >= coalesce((SELECT next - 1 FROM short), 0)
)
SELECT r.workflow_id, r.state, r.owner, r.fence, r.next_check, r.created_at, r.finished_at, n.name,
  EXISTS (SELECT 1 FROM inbox WHERE run_id = ?1), part.seq, part.at, part.data
FROM run r CROSS JOIN part LEFT JOIN run_name n USING (run_id) WHERE r.run_id = ?1 ORDER BY part.seq`
)

// shorts is the part of a Store that keeps snapshots of long runs. It implements snapshots.Keeper.
type shorts struct{ *file }

// KeepSnapshot stores a snapshot of a run. It replaces the former snapshot of the run.
func (s *shorts) KeepSnapshot(ctx context.Context, id store.EngineID, x snapshots.Snapshot) error {
	return s.write(ctx, "keep a snapshot", func(tx *tx) error {
		var own bool
		if err := tx.row(snapshotOwn, int64(id)).Scan(&own); err != nil {
			return err
		}
		if !own {
			return store.ErrFenced
		}
		n, err := tx.changed(snapshotKeep, int64(id), int64(x.Run), int64(x.Next), blob(x.Data), blob(x.Last))
		if err == nil && n == 0 {
			err = store.ErrStale
		}
		s.written += len(x.Data)
		return err
	})
}

// Snapshotted returns those of the given runs that have a snapshot, ascending by id.
func (s *shorts) Snapshotted(ctx context.Context, runs ...status.RunID) ([]status.RunID, error) {
	ids, err := json.Marshal(runs)
	if err != nil {
		return nil, s.explain("look for snapshots", err)
	}
	var found []status.RunID
	err = s.query(ctx, "look for snapshots", snapshotRuns, []any{string(ids)}, func(r row) error {
		var id int64
		err := r.Scan(&id)
		if run := status.RunID(id); len(found) == 0 || found[len(found)-1] != run {
			found = append(found, run)
		}
		return err
	})
	return found, err
}

// LoadShort returns the head of a run, its snapshot, and the rows from Snapshot.Next-1 on. If the
// run has no snapshot, it returns all rows.
func (s *shorts) LoadShort(ctx context.Context, id status.RunID) (snapshots.Loaded, error) {
	var (
		head  headRow
		out   snapshots.Loaded
		found bool
	)
	err := s.query(ctx, "load run", runLoadShort, []any{int64(id)}, func(r row) error {
		var (
			next store.Row
			at   int64
		)
		err := r.Scan(append(head.fields(), &out.Waiting, &next.Seq, &at, &next.Data)...)
		if found = true; next.Seq < 0 {
			out.Snapshot = &snapshots.Snapshot{Run: id, Next: -next.Seq, Data: next.Data}
			return err
		}
		next.At = fromMicros(at)
		out.Rows = append(out.Rows, next)
		return err
	})
	switch {
	case err != nil:
		return snapshots.Loaded{}, err
	case !found:
		return snapshots.Loaded{}, store.ErrNotFound
	}
	out.Head = head.head(id)
	return out, nil
}
