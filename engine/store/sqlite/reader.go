package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"math"
	"slices"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// runs is the part of a Store that finds and reads runs.
type runs struct{ *file }

// runLoad reads the head and the journal rows of one run. It is one statement, so that head and
// rows are from the same moment. Each result row contains the head.
const runLoad = `
SELECT r.workflow_id, r.state, r.owner, r.fence, r.next_check, r.created_at, r.finished_at, n.name,
  EXISTS (SELECT 1 FROM inbox WHERE run_id = ?1), j.seq, j.at, j.data
FROM run r JOIN journal j USING (run_id) LEFT JOIN run_name n USING (run_id) WHERE r.run_id = ?1 ORDER BY j.seq`

// Load returns the heads and all journal rows of runs, by ascending id. Runs that do not exist
// are missing from the result.
func (s *runs) Load(ctx context.Context, ids ...status.RunID) ([]store.Loaded, error) {
	if len(ids) == 1 {
		return s.loadOne(ctx, ids[0])
	}
	return s.loadMany(ctx, ids)
}

func (s *runs) loadOne(ctx context.Context, id status.RunID) ([]store.Loaded, error) {
	var (
		head headRow
		out  store.Loaded
	)
	err := s.query(ctx, "load run", runLoad, []any{int64(id)}, func(r row) error {
		var (
			next store.Row
			at   int64
		)
		err := r.Scan(append(head.fields(), &out.Waiting, &next.Seq, &at, &next.Data)...)
		next.At = fromMicros(at)
		out.Rows = append(out.Rows, next)
		return err
	})
	if err != nil || len(out.Rows) == 0 {
		return nil, err
	}
	out.Head = head.head(id)
	return []store.Loaded{out}, nil
}

// To load many runs, one statement reads the heads and one reads the rows, in one
// transaction. The statements ask for the ids in order, so SQLite need not sort the rows. A
// sort would copy all data.
const (
	headMany = `
SELECT r.workflow_id, r.state, r.owner, r.fence, r.next_check, r.created_at, r.finished_at, n.name, r.run_id,
  EXISTS (SELECT 1 FROM inbox i WHERE i.run_id = r.run_id)
FROM json_each(?1) e CROSS JOIN run r ON r.run_id = e.value LEFT JOIN run_name n ON n.run_id = r.run_id`
	rowMany = `SELECT j.run_id, j.seq, j.at, j.data FROM json_each(?1) e CROSS JOIN journal j ON j.run_id = e.value`

	// chunkRuns is how many runs one statement reads.
	chunkRuns = 500
)

// loadMany returns the given runs that exist, in the order of their ids. Each of its statements
// reads at most chunkRuns runs.
func (s *runs) loadMany(ctx context.Context, runs []status.RunID) ([]store.Loaded, error) {
	runs = slices.Clone(runs)
	slices.Sort(runs)
	out := make([]store.Loaded, 0, len(runs))
	for chunk := range slices.Chunk(slices.Compact(runs), chunkRuns) {
		var err error
		if out, err = s.loadChunk(ctx, chunk, out); err != nil {
			return nil, s.explain("load runs", err)
		}
	}
	return out, nil
}

// loadChunk reads the given runs, appends them to the list in the parameter `out`, and returns the
// longer list. The ids must be in ascending order.
func (s *runs) loadChunk(ctx context.Context, runs []status.RunID, out []store.Loaded) ([]store.Loaded, error) {
	ids, err := json.Marshal(runs)
	if err != nil {
		return nil, err
	}
	tx, err := s.read.BeginTx(ctx, nil) // one transaction, so that both statements see the same data
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // ends the transaction, which only reads
	each := func(query string, fn func(row) error) error {
		rows, err := tx.QueryContext(ctx, query, string(ids))
		if err != nil {
			return err
		}
		return eachRow(rows, fn)
	}
	at := make(map[int64]int, len(runs)) // index in the slice `out`; the key is the id of the run
	first := len(out)
	err = each(headMany, func(r row) error {
		var (
			h       headRow
			id      int64
			waiting bool
		)
		err := r.Scan(append(h.fields(), &id, &waiting)...)
		out = append(out, store.Loaded{Head: h.head(status.RunID(id)), Waiting: waiting})
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out[first:], func(a, b store.Loaded) int { return cmp.Compare(a.Head.Run, b.Head.Run) })
	for i := range out[first:] {
		at[int64(out[first+i].Head.Run)] = first + i
	}
	err = each(rowMany, func(r row) error {
		var (
			id, when int64
			j        store.Row
		)
		err := r.Scan(&id, &j.Seq, &when, &j.Data)
		j.At = fromMicros(when)
		if i, ok := at[id]; ok {
			out[i].Rows = append(out[i].Rows, j)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	// Sort the rows of each run. This costs little, because SQLite usually returns them in
	// the right order already.
	for _, l := range out[first:] {
		slices.SortFunc(l.Rows, func(a, b store.Row) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	return out, nil
}

// A headRow receives the columns of a run's own row from Scan.
type headRow struct {
	flow, owner, fence int32
	state              uint8
	check, created     int64
	finished           sql.NullInt64
	name               sql.NullString
}

func (h *headRow) fields() []any {
	return []any{&h.flow, &h.state, &h.owner, &h.fence, &h.check, &h.created, &h.finished, &h.name}
}

func (h *headRow) head(id status.RunID) store.Head {
	head := store.Head{
		Run: id, Name: h.name.String, Workflow: store.WorkflowID(h.flow), State: status.RunState(h.state),
		Owner: store.EngineID(h.owner), Fence: h.fence, NextCheck: fromMicros(h.check), CreatedAt: fromMicros(h.created),
	}
	if !h.name.Valid {
		head.Name = naming.RunName(id)
	}
	if h.finished.Valid {
		head.FinishedAt = fromMicros(h.finished.Int64)
	}
	return head
}

// rowList joins the table `run` to leave out rows of removed runs. Such rows may still exist,
// because retention removes journal rows in parts, after the run's own row.
const rowList = `
SELECT j.seq, j.at, j.data FROM run r CROSS JOIN journal j ON j.run_id = r.run_id WHERE r.run_id = ?1 AND j.seq >= ?2 ORDER BY j.seq LIMIT ?3`

// Rows returns the journal rows of a run whose seq is at least the parameter `from`, in order. It
// returns no more rows than the parameter `limit` says.
func (s *runs) Rows(ctx context.Context, id status.RunID, from int32, limit int) ([]store.Row, error) {
	var rows []store.Row
	err := s.query(ctx, "read rows", rowList, []any{int64(id), from, limit}, func(r row) error {
		var (
			out store.Row
			at  int64
		)
		err := r.Scan(&out.Seq, &at, &out.Data)
		out.At = fromMicros(at)
		rows = append(rows, out)
		return err
	})
	return rows, err
}

// Statements that list runs. runColumns is their common beginning. If a run was moved to another
// definition, runColumns joins the workflow of this definition, which is in the table `run_moved`.
const (
	runColumns = `
SELECT r.workflow_id, r.state, r.owner, r.fence, r.next_check, r.created_at, r.finished_at, n.name,
       r.run_id, w.name, w.digest, coalesce(n.key, ''), coalesce(NOT m.dead AND m.lease_until > ?1, 0),
       r.state < 10 AND EXISTS (SELECT 1 FROM place p WHERE p.run_id = r.run_id AND p.admitted = 0), coalesce(n.parent, 0), coalesce(n."trigger", 0),
       coalesce(d.workflow_id, 0)
FROM run r LEFT JOIN run_moved d ON d.run_id = r.run_id
JOIN workflow w ON w.workflow_id = coalesce(d.workflow_id, r.workflow_id) LEFT JOIN run_name n ON n.run_id = r.run_id LEFT JOIN member m ON m.engine = r.owner`
	runList = runColumns + `
WHERE (?2 = '[]' OR r.state IN (SELECT value FROM json_each(?2))) AND (?3 = '' OR w.name = ?3) AND (?4 = '' OR w.digest = ?4)
  AND r.created_at >= ?5 AND r.run_id < ?7 AND (?8 = '[]' OR coalesce(n."trigger", 0) IN (SELECT value FROM json_each(?8))) ORDER BY r.run_id DESC LIMIT ?6`
	// runListByKey starts with the runs that have the unique key ?9, because they are few.
	runListByKey = runColumns + `
WHERE (?2 = '[]' OR r.state IN (SELECT value FROM json_each(?2))) AND (?3 = '' OR w.name = ?3) AND (?4 = '' OR w.digest = ?4)
  AND r.created_at >= ?5 AND r.run_id < ?7 AND (?8 = '[]' OR n."trigger" IN (SELECT value FROM json_each(?8))) AND n.key = ?9 ORDER BY r.run_id DESC LIMIT ?6`
	runFindByName = runColumns + ` WHERE n.name = ?2`
	runFindByID   = runColumns + ` WHERE r.run_id = ?2`
	runListByIDs  = runColumns + ` WHERE r.run_id IN (SELECT value FROM json_each(?2)) ORDER BY r.run_id`
	// runChildren begins with the table `run_name`, because this table has the index of parents.
	runChildren = runColumns + ` WHERE n.parent = ?2 AND n.run_id > ?3 ORDER BY n.run_id LIMIT ?4`
)

// Runs returns the runs that a filter selects. Each kind of filter has its own statement, so
// that each statement can use an index.
func (s *runs) Runs(ctx context.Context, f store.RunFilter) ([]store.RunRow, error) {
	kind, err := storekit.KindOf(f)
	if err != nil {
		return nil, err
	}
	switch kind {
	case storekit.KindName:
		return s.named(ctx, f.Name)
	case storekit.KindOrphans:
		return s.runIDs(ctx, "list orphans", orphanList, int64(f.After), f.Max(), f.Owners&store.OwnerNone != 0)
	case storekit.KindAddressed:
		return s.runIDs(ctx, "list runs with waiting messages", inboxAddressed, f.Max())
	case storekit.KindOverdue:
		at := now()
		return s.runIDs(ctx, "list overdue runs", runOverdue, int64(f.Asking), micros(at), micros(at.Add(-f.Overdue)), f.Max())
	}
	switch kind {
	case storekit.KindIDs:
		list, err := json.Marshal(f.IDs)
		if err != nil {
			return nil, s.explain("list runs", err)
		}
		return s.runRows(ctx, "list runs", runListByIDs, []any{micros(now()), string(list)})
	case storekit.KindChildren:
		return s.runRows(ctx, "list child runs", runChildren, []any{micros(now()), int64(f.Parent), int64(f.After), f.Max()})
	}
	return s.listed(ctx, f)
}

// runIDs runs a query for ids of runs. It returns rows in which only the id is set.
func (s *runs) runIDs(ctx context.Context, what, query string, args ...any) ([]store.RunRow, error) {
	var rows []store.RunRow
	err := s.query(ctx, what, query, args, func(r row) error {
		var id int64
		err := r.Scan(&id)
		rows = append(rows, store.RunRow{Head: store.Head{Run: status.RunID(id)}})
		return err
	})
	return rows, err
}

// listed lists runs for people, newest first.
func (s *runs) listed(ctx context.Context, f store.RunFilter) ([]store.RunRow, error) {
	if !isText(f.Workflow) || !isText(f.Digest) || !isText(f.Key) {
		return nil, nil
	}
	states := make([]int, len(f.States))
	for i, st := range f.States {
		states[i] = int(st)
	}
	list, err := json.Marshal(states)
	if err != nil {
		return nil, s.explain("list runs", err)
	}
	triggers := make([]int, len(f.Triggers))
	for i, t := range f.Triggers {
		triggers[i] = int(t)
	}
	kinds, err := json.Marshal(triggers)
	if err != nil {
		return nil, s.explain("list runs", err)
	}
	query, args := runList, []any{micros(now()), string(list), f.Workflow, f.Digest, micros(f.Since), f.Max(), int64(cmp.Or(f.Before, math.MaxInt64)), string(kinds)}
	if f.Key != "" {
		query, args = runListByKey, append(args, f.Key)
	}
	return s.runRows(ctx, "list runs", query, args)
}

func (s *runs) runRows(ctx context.Context, what, query string, args []any) ([]store.RunRow, error) {
	var out []store.RunRow
	err := s.query(ctx, what, query, args, func(r row) error {
		var (
			head headRow
			id   int64
			run  store.RunRow
		)
		err := r.Scan(append(head.fields(), &id, &run.WorkflowName, &run.Digest, &run.Key, &run.OwnerAlive, &run.InLine, &run.Parent, &run.Trigger, &run.Moved)...)
		run.Head = head.head(status.RunID(id))
		out = append(out, run)
		return err
	})
	return out, err
}

// named returns the run whose public name is the parameter `name`. If no run has this public name,
// named returns the run whose id naming.ParseRunID reads from the name. If there is no such run
// either, named returns no run.
func (s *runs) named(ctx context.Context, name string) ([]store.RunRow, error) {
	if !isText(name) {
		return nil, nil
	}
	rows, err := s.runRows(ctx, "find run", runFindByName, []any{micros(now()), name})
	if id, ok := naming.ParseRunID(name); err == nil && len(rows) == 0 && ok {
		rows, err = s.runRows(ctx, "find run", runFindByID, []any{micros(now()), int64(id)})
	}
	return rows, err
}

// views is the part of a Store that lists steps, alerts and places for people.
type views struct{ *file }

// stepSource lists a run's nodes, and then the changes of their states. It is one statement, so
// nodes and changes are from the same moment. The nodes of the definition come first, and then the
// nodes in the table `run_step`. If both have a name for a node, the name in `run_step` counts
// (storekit.FoldSteps). The view `steps` shows the same to people, but it is slower, because it
// decodes the changes in SQL.
const stepSource = `
SELECT -1 AS what, s.node AS ord, s.node, s.node AS step, s.name, r.owner, NULL AS steps
FROM run r JOIN workflow_step s USING (workflow_id) WHERE r.run_id = ?1
UNION ALL SELECT 0, i.node, i.node, i.step, i.name, r.owner, NULL FROM run r JOIN run_step i USING (run_id) WHERE r.run_id = ?1
UNION ALL SELECT 1, seq, 0, 0, '', 0, steps FROM journal WHERE run_id = ?1 AND steps IS NOT NULL
UNION ALL SELECT 1, seq, 0, 0, '', 0, steps FROM wide WHERE run_id = ?1
ORDER BY what, ord`

// StepRows returns the steps of a run, in the order of their node numbers.
func (s *views) StepRows(ctx context.Context, id status.RunID) ([]store.StepView, error) {
	var (
		nodes   []store.NodeName
		changes []store.StepRow
		owner   store.EngineID
	)
	err := s.query(ctx, "read steps", stepSource, []any{int64(id)}, func(r row) error {
		var (
			what, ord int64
			n         store.NodeName
			by        int32
			steps     []byte
		)
		if err := r.Scan(&what, &ord, &n.Node, &n.Step, &n.Name, &by, &steps); err != nil {
			return err
		}
		if what <= 0 {
			nodes, owner = append(nodes, n), store.EngineID(by)
			return nil
		}
		c, err := storekit.DecodeStepRows(steps)
		changes = append(changes, c...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return storekit.FoldSteps(nodes, owner, changes), nil
}
