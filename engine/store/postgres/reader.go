package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/snapshots"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// runLoad reads the head and all journal rows of a run with one statement, so that all are
// from the same moment. Each row of the result contains the head again.
const runLoad = `
SELECT r.workflow_id, r.state, r.owner, r.fence, nullif(r.next_check, 'infinity'), r.created_at, r.finished_at, n.name,
       EXISTS (SELECT FROM engine.inbox WHERE run_id = $1), j.seq, j.at, j.data
FROM engine.run r JOIN engine.journal j USING (run_id) LEFT JOIN engine.run_name n USING (run_id)
WHERE r.run_id = $1 ORDER BY j.seq`

// Load returns the heads and all journal rows of runs, in the order of the run ids. Runs that do
// not exist are missing from the result. For one run, Load does not prepare a statement, because
// that would need another round trip.
func (s *runs) Load(ctx context.Context, ids ...status.RunID) ([]store.Loaded, error) {
	switch len(ids) {
	case 0:
		return nil, nil
	case 1:
		return s.loadOne(ctx, ids[0])
	}
	return s.loadMany(ctx, ids)
}

func (s *runs) loadOne(ctx context.Context, id status.RunID) ([]store.Loaded, error) {
	rows, err := s.db.QueryContext(ctx, runLoad, int64(id))
	if err != nil {
		return nil, wrap("load run", err)
	}
	defer rows.Close()
	var (
		head headRow
		out  store.Loaded
	)
	for rows.Next() {
		var r store.Row
		if err := rows.Scan(append(head.fields(), &out.Waiting, &r.Seq, &r.At, &r.Data)...); err != nil {
			return nil, wrap("load run", err)
		}
		r.At = r.At.UTC()
		out.Rows = append(out.Rows, r)
	}
	if err := rows.Err(); err != nil {
		return nil, wrap("load run", err)
	}
	if len(out.Rows) == 0 {
		return nil, nil
	}
	out.Head = head.head(id)
	return []store.Loaded{out}, nil
}

// runLoadMany reads the heads and journal rows of many runs with one statement, so that all are
// from the same moment. For each run, the result has a row with seq -1. The column `data` of this
// row contains the head, and whether messages wait. The head has no columns of its own, because the
// journal rows would have these columns, too, and would be larger. The statement does not sort the
// rows, because sorting in Go is cheaper.
const runLoadMany = `
SELECT r.run_id, -1 AS seq, pg_catalog.timestamptz_send(r.created_at) AS at,
       pg_catalog.int4send(r.workflow_id) || pg_catalog.int2send(r.state) || pg_catalog.int4send(r.owner) || pg_catalog.int4send(r.fence) || pg_catalog.timestamptz_send(r.next_check)
       || pg_catalog.timestamptz_send(coalesce(r.finished_at, '-infinity')) || pg_catalog.boolsend(EXISTS (SELECT FROM engine.inbox i WHERE i.run_id = r.run_id))
       || pg_catalog.textsend(coalesce(n.name, '')) AS data
FROM engine.run r LEFT JOIN engine.run_name n USING (run_id) WHERE r.run_id = ANY ($1::int8[])
UNION ALL SELECT run_id, seq, pg_catalog.timestamptz_send(at), data FROM engine.journal WHERE run_id = ANY ($1::int8[])`

// loadMany reads many runs with one statement. Unless there is a pooler, it prepares the
// statement, so that the server sends numbers and data in binary form.
func (s *runs) loadMany(ctx context.Context, ids []status.RunID) ([]store.Loaded, error) {
	if s.pooled.Load() { // behind a pooler, the session of the query may not know a prepared statement
		rows, err := s.db.QueryContext(ctx, runLoadMany, runArray(ids))
		if err != nil {
			return nil, wrap("load runs", err)
		}
		out, err := foundRuns(rows)
		if err != nil {
			return nil, wrap("load runs", err)
		}
		return out, nil
	}
	stmt, err := s.db.PrepareContext(ctx, runLoadMany)
	if err != nil {
		return nil, wrap("load runs", err)
	}
	var out []store.Loaded
	rows, err := stmt.QueryContext(ctx, runArray(ids))
	if err == nil {
		out, err = foundRuns(rows)
	}
	if e := stmt.Close(); err == nil {
		err = e
	}
	if err != nil {
		s.noteLost(err)
		return nil, wrap("load runs", err)
	}
	return out, nil
}

// foundRuns reads the result of the query runLoadMany from the parameter `rows`, and then closes
// `rows`. It returns the runs in the order of their ids.
func foundRuns(rows *sql.Rows) ([]store.Loaded, error) {
	defer rows.Close()
	found := make(map[status.RunID]*store.Loaded)
	for rows.Next() {
		var (
			run int64
			row store.Row
			at  sql.RawBytes
		)
		if err := rows.Scan(&run, &row.Seq, &at, &row.Data); err != nil {
			return nil, err
		}
		when, err := moment(at)
		if err != nil {
			return nil, err
		}
		l := found[status.RunID(run)]
		if l == nil {
			l = &store.Loaded{}
			found[status.RunID(run)] = l
		}
		if row.Seq < 0 {
			if l.Head, l.Waiting, err = unpackHead(status.RunID(run), when, row.Data); err != nil {
				return nil, err
			}
			continue
		}
		row.At = when
		l.Rows = append(l.Rows, row)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	out := make([]store.Loaded, 0, len(found))
	for run, l := range found {
		if l.Head.Run == 0 {
			continue // retention has removed the run, but its partition still exists
		}
		if len(l.Rows) == 0 {
			return nil, fmt.Errorf("run %d has no journal", run)
		}
		if bySeq := func(a, b store.Row) int { return cmp.Compare(a.Seq, b.Seq) }; !slices.IsSortedFunc(l.Rows, bySeq) {
			slices.SortFunc(l.Rows, bySeq)
		}
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b store.Loaded) int { return cmp.Compare(a.Head.Run, b.Head.Run) })
	return out, nil
}

// moment decodes a timestamptz in the binary format of the protocol: microseconds since
// 2000. For infinity it returns store.Never, and for minus infinity the zero time.
func moment(b []byte) (time.Time, error) {
	if len(b) != 8 {
		return time.Time{}, fmt.Errorf("a time of %d bytes", len(b))
	}
	switch us := int64(binary.BigEndian.Uint64(b)); us {
	case infinity:
		return store.Never, nil
	case -infinity - 1:
		return time.Time{}, nil
	default:
		return time.UnixMicro(us + epoch).UTC(), nil
	}
}

// unpackHead decodes the column `data` in that row of runLoadMany whose seq is -1. The column
// holds the head of a run, and whether messages wait for the run.
func unpackHead(run status.RunID, created time.Time, b []byte) (h store.Head, waiting bool, err error) {
	const fixed = 4 + 2 + 4 + 4 + 8 + 8 + 1
	if len(b) < fixed {
		return store.Head{}, false, fmt.Errorf("run %d: a head of %d bytes", run, len(b))
	}
	h = store.Head{
		Run: run, Workflow: store.WorkflowID(binary.BigEndian.Uint32(b)), State: status.RunState(binary.BigEndian.Uint16(b[4:])),
		Owner: store.EngineID(binary.BigEndian.Uint32(b[6:])), Fence: int32(binary.BigEndian.Uint32(b[10:])),
		CreatedAt: created, Name: string(b[fixed:]),
	}
	if h.Name == "" {
		h.Name = naming.RunName(run)
	}
	var err2 error
	h.NextCheck, err = moment(b[14:22])
	h.FinishedAt, err2 = moment(b[22:30])
	return h, b[30] != 0, errors.Join(err, err2)
}

// A headRow receives the columns of a run's row when rows are scanned. Its method `head`
// converts them to a store.Head.
type headRow struct {
	flow, owner, fence int32
	state              int16
	check, finished    sql.NullTime
	created            time.Time
	name               sql.NullString
}

func (h *headRow) fields() []any {
	return []any{&h.flow, &h.state, &h.owner, &h.fence, &h.check, &h.created, &h.finished, &h.name}
}

func (h *headRow) head(id status.RunID) store.Head {
	head := store.Head{
		Run: id, Name: h.name.String, Workflow: store.WorkflowID(h.flow), State: status.RunState(h.state),
		Owner: store.EngineID(h.owner), Fence: h.fence, NextCheck: store.Never, CreatedAt: h.created.UTC(),
	}
	if !h.name.Valid {
		head.Name = naming.RunName(id)
	}
	if h.check.Valid {
		head.NextCheck = h.check.Time.UTC()
	}
	if h.finished.Valid {
		head.FinishedAt = h.finished.Time.UTC()
	}
	return head
}

// Queries that list runs for people. All of them return the columns of runShown.
const (
	runShown = `
SELECT r.workflow_id, r.state, r.owner, r.fence, nullif(r.next_check, 'infinity'), r.created_at, r.finished_at, n.name,
       r.run_id, w.name, coalesce(` + runMovedDigest + `, w.digest), coalesce(n.key, ''), coalesce(NOT m.dead AND m.lease_until > pg_catalog.clock_timestamp(), false),
       r.state < 10 AND EXISTS (SELECT FROM engine.place p WHERE p.run_id = r.run_id AND NOT p.admitted OFFSET 0), coalesce(n.parent, 0), coalesce(n.trigger, 0),
       coalesce((SELECT d.workflow_id FROM engine.run_moved d WHERE d.run_id = r.run_id), 0)
FROM `
	// runMovedDigest returns the digest of the definition that the run has now, if it was moved;
	// NULL = the run has its first definition. It is a sub-select and no join, so that the server
	// looks for moved runs only among the runs that a query returns.
	runMovedDigest = `(SELECT x.digest FROM engine.run_moved d JOIN engine.workflow x USING (workflow_id) WHERE d.run_id = r.run_id)`
	runJoins       = ` r JOIN engine.workflow w USING (workflow_id) LEFT JOIN engine.run_name n USING (run_id)
LEFT JOIN engine.member m ON m.engine = r.owner`
	runColumns = runShown + `engine.run` + runJoins
	runList    = runColumns + `
WHERE (pg_catalog.cardinality($1::int2[]) = 0 OR r.state = ANY ($1)) AND ($2 = '' OR w.name = $2) AND ($3 = '' OR coalesce(` + runMovedDigest + `, w.digest) = $3)
  AND r.created_at >= $4 AND r.run_id < $6 AND (pg_catalog.cardinality($7::int2[]) = 0 OR coalesce(n.trigger, 0) = ANY ($7)) ORDER BY r.run_id DESC LIMIT $5`
	// runListOpen reads only the open runs, because usually most runs have ended. It joins the
	// tables `run_name` and `member` only for the runs that it returns. To select runs, it looks
	// for moved runs only if it must compare digests, and for triggers only if it must compare
	// triggers.
	runListOpen = runShown + `(
  SELECT o.* FROM (SELECT * FROM engine.run WHERE state < 10 OFFSET 0) o JOIN engine.workflow f USING (workflow_id)
  WHERE o.state = ANY ($1::int2[]) AND ($2 = '' OR f.name = $2)
    AND ($3 = '' OR coalesce((SELECT x.digest FROM engine.run_moved d JOIN engine.workflow x USING (workflow_id) WHERE d.run_id = o.run_id), f.digest) = $3)
    AND o.created_at >= $4 AND o.run_id < $6
    AND (pg_catalog.cardinality($7::int2[]) = 0 OR coalesce((SELECT n.trigger FROM engine.run_name n WHERE n.run_id = o.run_id), 0) = ANY ($7))
  ORDER BY o.run_id DESC LIMIT $5)` + runJoins + ` ORDER BY r.run_id DESC`
	// runListByKey first finds the runs that have the key, because usually there are few
	// such runs.
	runListByKey = runColumns + `
WHERE (pg_catalog.cardinality($1::int2[]) = 0 OR r.state = ANY ($1)) AND ($2 = '' OR w.name = $2) AND ($3 = '' OR coalesce(` + runMovedDigest + `, w.digest) = $3)
  AND r.created_at >= $4 AND r.run_id < $6 AND (pg_catalog.cardinality($7::int2[]) = 0 OR n.trigger = ANY ($7)) AND n.key = $8 ORDER BY r.run_id DESC LIMIT $5`
	runFindByName = runColumns + ` WHERE n.name = $1`
	runFindByID   = runColumns + ` WHERE r.run_id = $1`
	runListByIDs  = runColumns + ` WHERE r.run_id = ANY ($1::int8[]) ORDER BY r.run_id`
	// runChildren begins with the table `run_name`, because this table has the index of parents.
	runChildren = runShown + `(SELECT c.* FROM engine.run_name p JOIN engine.run c ON c.run_id = p.run_id
  WHERE p.parent = $1 AND p.run_id > $2 ORDER BY p.run_id LIMIT $3)` + runJoins + ` ORDER BY r.run_id`
)

// runOverdue returns the most overdue runs of all live members except $1. For each of
// these members, it reads the most overdue runs from the index run_active.
const runOverdue = `
SELECT o.run_id FROM engine.member m CROSS JOIN LATERAL (
  SELECT r.run_id, r.next_check FROM engine.run r
  WHERE r.state < 10 AND r.owner = m.engine AND r.next_check < (SELECT pg_catalog.clock_timestamp() - $2::float8 * interval '1 second')
  ORDER BY r.next_check, r.run_id LIMIT $3) o
WHERE m.engine <> $1 AND NOT m.dead AND m.lease_until > pg_catalog.clock_timestamp()
ORDER BY o.next_check, o.run_id LIMIT $3`

// Runs returns the runs that a filter selects. Each kind of filter has its own statement,
// so that the server can use an index.
func (s *runs) Runs(ctx context.Context, f store.RunFilter) ([]store.RunRow, error) {
	kind, err := storekit.KindOf(f)
	if err != nil {
		return nil, err
	}
	var ids []status.RunID
	switch kind {
	case storekit.KindList:
		return s.listed(ctx, f)
	case storekit.KindName:
		return s.named(ctx, f.Name)
	case storekit.KindIDs:
		list := make(pq.Int64Array, len(f.IDs))
		for i, id := range f.IDs {
			list[i] = int64(id)
		}
		return s.runRows(ctx, "list runs", runListByIDs, list)
	case storekit.KindChildren:
		return s.runRows(ctx, "list child runs", runChildren, int64(f.Parent), int64(f.After), f.Max())
	case storekit.KindOrphans:
		ids, err = s.orphaned(ctx, f.After, f.Max(), f.Owners&store.OwnerNone != 0)
	case storekit.KindAddressed:
		ids, err = s.runIDs(ctx, "list runs with waiting messages", inboxAddressed, f.Max())
	case storekit.KindOverdue:
		ids, err = s.runIDs(ctx, "list overdue runs", runOverdue, int64(f.Asking), f.Overdue.Seconds(), f.Max())
	}
	if err != nil {
		return nil, err
	}
	rows := make([]store.RunRow, len(ids))
	for i, id := range ids {
		rows[i].Run = id
	}
	return rows, nil
}

// listed lists runs for people, newest first.
func (s *runs) listed(ctx context.Context, f store.RunFilter) ([]store.RunRow, error) {
	if !isText(f.Workflow) || !isText(f.Digest) || !isText(f.Key) {
		return nil, nil
	}
	states, open := make(pq.Int64Array, len(f.States)), len(f.States) > 0
	for i, st := range f.States {
		states[i], open = int64(st), open && !st.Final()
	}
	triggers := make(pq.Int64Array, len(f.Triggers))
	for i, t := range f.Triggers {
		triggers[i] = int64(t)
	}
	query, args := runList, []any{states, f.Workflow, f.Digest, f.Since, f.Max(), int64(cmp.Or(f.Before, math.MaxInt64)), triggers}
	switch {
	case f.Key != "":
		query, args = runListByKey, append(args, f.Key)
	case open:
		query = runListOpen
	}
	return s.runRows(ctx, "list runs", query, args...)
}

// runRows runs a query that returns the columns of runShown. The parameter `what` is the name of
// the query in errors.
func (s *runs) runRows(ctx context.Context, what, query string, args ...any) ([]store.RunRow, error) {
	rows, err := s.read(ctx, query, args...)
	if err != nil {
		return nil, wrap(what, err)
	}
	defer rows.Close()
	var out []store.RunRow
	for rows.Next() {
		r, err := scanRun(rows)
		if err != nil {
			return nil, wrap(what, err)
		}
		out = append(out, r)
	}
	if err := rows.Err(); err != nil {
		return nil, wrap(what, err)
	}
	return out, nil
}

// isText reports whether the server accepts s as text. If it returns false, no row can
// contain s.
func isText(s string) bool { return naming.CleanText(s) == s }

func scanRun(row interface{ Scan(...any) error }) (store.RunRow, error) {
	var (
		head headRow
		id   int64
		r    store.RunRow
	)
	if err := row.Scan(append(head.fields(), &id, &r.WorkflowName, &r.Digest, &r.Key, &r.OwnerAlive, &r.InLine, &r.Parent, &r.Trigger, &r.Moved)...); err != nil {
		return store.RunRow{}, err
	}
	r.Head = head.head(status.RunID(id))
	return r, nil
}

// named returns the run with this public name. If no run has this name, it returns the run whose id
// naming.ParseRunID reads from the name. It returns nil if there is no such run.
func (s *runs) named(ctx context.Context, name string) ([]store.RunRow, error) {
	if !isText(name) {
		return nil, nil
	}
	var r store.RunRow
	scan := func(row interface{ Scan(...any) error }) (err error) {
		r, err = scanRun(row)
		return err
	}
	err := s.readOne(ctx, scan, runFindByName, name)
	if id, ok := naming.ParseRunID(name); noRows(err) && ok {
		err = s.readOne(ctx, scan, runFindByID, int64(id))
	}
	if noRows(err) {
		return nil, nil
	}
	if err != nil {
		return nil, wrap("find run", err)
	}
	return []store.RunRow{r}, nil
}

const (
	// snapshotKeep stores a snapshot if the engine has a fence row and owns the run, and if the
	// journal has the last row that the snapshot covers. It locks the fence row, so that the engine
	// cannot be declared dead meanwhile. The lock does not wait for commits, and no commit waits
	// for it.
	snapshotKeep = `
WITH own AS MATERIALIZED (
  SELECT 1 FROM engine.fence WHERE engine = $1::int4 ORDER BY writer LIMIT 1 FOR KEY SHARE
), kept AS (
  INSERT INTO engine.snapshot AS s (run_id, next, data) SELECT $2::int8, $3::int4, $4::bytea FROM own
  WHERE EXISTS (SELECT FROM engine.run r WHERE r.run_id = $2::int8 AND r.owner = $1::int4)
    AND EXISTS (SELECT FROM engine.journal j WHERE j.run_id = $2::int8 AND j.seq = $3::int4 - 1 AND j.data = $5::bytea)
  ON CONFLICT (run_id) DO UPDATE SET next = excluded.next, data = excluded.data RETURNING 1
)
SELECT EXISTS (SELECT FROM own), EXISTS (SELECT FROM kept)`
	snapshotDrop = `DELETE FROM engine.snapshot WHERE run_id = $1`
	snapshotRuns = `SELECT run_id FROM engine.snapshot WHERE run_id = ANY ($1::int8[]) ORDER BY run_id`
	// runLoadShort reads the head of a run, its snapshot, the last journal row that the snapshot
	// covers (seq = next - 1), and all later rows. If there is no snapshot, it reads all rows. It
	// is one statement, so that all are from the same moment. In the result, the row of the
	// snapshot has the seq -next. This number is negative, so the row is the first one.
	runLoadShort = `
WITH s AS MATERIALIZED (SELECT next, data FROM engine.snapshot WHERE run_id = $1), j AS (
  SELECT -next AS seq, 'epoch'::timestamptz AS at, data FROM s
  UNION ALL SELECT seq, at, data FROM engine.journal WHERE run_id = $1 AND seq >= coalesce((SELECT next - 1 FROM s), 0)
)
SELECT r.workflow_id, r.state, r.owner, r.fence, nullif(r.next_check, 'infinity'), r.created_at, r.finished_at, n.name,
       EXISTS (SELECT FROM engine.inbox WHERE run_id = $1), j.seq, j.at, j.data
FROM engine.run r CROSS JOIN j LEFT JOIN engine.run_name n USING (run_id)
WHERE r.run_id = $1 ORDER BY j.seq`
)

// shorts implements snapshots.Keeper: it keeps snapshots of long runs.
type shorts struct{ *access }

// KeepSnapshot stores a snapshot of a run. It replaces the former snapshot of the run.
func (s *shorts) KeepSnapshot(ctx context.Context, id store.EngineID, x snapshots.Snapshot) error {
	var own, kept bool
	err := s.db.QueryRowContext(ctx, snapshotKeep, int64(id), int64(x.Run), x.Next, x.Data, x.Last).Scan(&own, &kept)
	switch {
	case err != nil:
		return wrap("keep a snapshot", err)
	case !own:
		return store.ErrFenced
	case !kept:
		return store.ErrStale
	}
	return nil
}

// Snapshotted returns those of the given runs that have a snapshot, ascending by id.
func (s *shorts) Snapshotted(ctx context.Context, runs ...status.RunID) ([]status.RunID, error) {
	rows, err := s.db.QueryContext(ctx, snapshotRuns, runArray(runs))
	if err != nil {
		return nil, wrap("look for snapshots", err)
	}
	ids, err := int64s(rows)
	if err != nil {
		return nil, wrap("look for snapshots", err)
	}
	found := make([]status.RunID, len(ids))
	for i, id := range ids {
		found[i] = status.RunID(id)
	}
	return found, nil
}

// LoadShort returns the head of a run, its snapshot, and the rows from Snapshot.Next-1 on. If the
// run has no snapshot, it returns all rows.
func (s *shorts) LoadShort(ctx context.Context, id status.RunID) (snapshots.Loaded, error) {
	rows, err := s.db.QueryContext(ctx, runLoadShort, int64(id))
	if err != nil {
		return snapshots.Loaded{}, wrap("load run", err)
	}
	defer rows.Close()
	var (
		head  headRow
		out   snapshots.Loaded
		found bool
	)
	for rows.Next() {
		var r store.Row
		if err := rows.Scan(append(head.fields(), &out.Waiting, &r.Seq, &r.At, &r.Data)...); err != nil {
			return snapshots.Loaded{}, wrap("load run", err)
		}
		if found = true; r.Seq < 0 {
			out.Snapshot = &snapshots.Snapshot{Run: id, Next: -r.Seq, Data: r.Data}
			continue
		}
		r.At = r.At.UTC()
		out.Rows = append(out.Rows, r)
	}
	if err := rows.Err(); err != nil {
		return snapshots.Loaded{}, wrap("load run", err)
	}
	if !found {
		return snapshots.Loaded{}, store.ErrNotFound
	}
	out.Head = head.head(id)
	return out, nil
}
