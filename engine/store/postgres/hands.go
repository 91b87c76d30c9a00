package postgres

import (
	"context"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/notice"
)

const (
	// handPut stores the list of runs that an engine has in hand. It stores nothing for an
	// engine that was declared dead, because the deaths for the runs in its list were
	// counted already.
	handPut = `
INSERT INTO engine.hand AS h (engine, runs) SELECT $1::int4, $2::int8[] FROM engine.member WHERE engine = $1 AND NOT dead
ON CONFLICT (engine) DO UPDATE SET runs = excluded.runs`
	handDrop    = `DELETE FROM engine.hand WHERE engine = $1`
	suspectList = `
SELECT run_id, deaths, false FROM engine.suspect WHERE run_id = ANY ($1::int8[])
UNION ALL SELECT v.run_id, 0, true FROM engine.hand h CROSS JOIN LATERAL pg_catalog.unnest(h.runs) v(run_id) WHERE h.engine <> $2 AND v.run_id = ANY ($1::int8[])`
	suspectAbsolve = `DELETE FROM engine.suspect WHERE run_id = ANY ($1::int8[])`
)

// hands implements store.Hands: it records which runs each engine has in hand.
type hands struct{ *access }

// PutInHand replaces the list of runs that an engine has in hand. It returns ErrFenced if the
// engine was declared dead.
func (s *hands) PutInHand(ctx context.Context, id store.EngineID, runs []status.RunID) error {
	res, err := s.db.ExecContext(ctx, handPut, int64(id), runArray(runs))
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

// Suspects returns the number of deaths of each run, and whether an engine other than `self` has
// the run in hand. A run is missing in the result if it has no death and no other engine has it in
// hand.
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
		x.Deaths, x.InHand = max(x.Deaths, deaths), x.InHand || held
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

const (
	noticeOpen = `SELECT run_id, seq, state FROM engine.notice WHERE NOT done AND (run_id, seq, state) > ($2, $3, $4) ORDER BY run_id, seq, state LIMIT $1`
	noticeDone = `
UPDATE engine.notice n SET done = true FROM unnest($1::int8[], $2::int4[], $3::text[]) v(run_id, seq, state)
WHERE n.run_id = ANY (ARRAY[v.run_id]) AND n.seq = v.seq AND n.state = v.state AND NOT n.done`
	noticeOfRun = `SELECT n.run_id, n.seq, n.state, n.done FROM engine.notice n WHERE n.run_id = $1
  AND EXISTS (SELECT FROM engine.run r WHERE r.run_id = $1) ORDER BY n.seq, n.state`
)

// notices implements notice.Keeper.
type notices struct{ *access }

// Open returns notices that are not announced yet, ascending by run, row and state. It returns only
// notices after the one in the parameter `after`, and at most as many as the parameter `limit`
// says.
func (s *notices) Open(ctx context.Context, after notice.Notice, limit int) ([]notice.Notice, error) {
	rows, err := s.db.QueryContext(ctx, noticeOpen, limit, int64(after.Run), after.Seq, after.State)
	if err != nil {
		return nil, wrap("list open notices", err)
	}
	defer rows.Close()
	var out []notice.Notice
	for rows.Next() {
		var n notice.Notice
		if err := rows.Scan(&n.Run, &n.Seq, &n.State); err != nil {
			return nil, wrap("list open notices", err)
		}
		out = append(out, n)
	}
	if err := rows.Err(); err != nil {
		return nil, wrap("list open notices", err)
	}
	return out, nil
}

// Announced marks notices as announced.
func (s *notices) Announced(ctx context.Context, done ...notice.Notice) error {
	if len(done) == 0 {
		return nil
	}
	var run, seq, state array
	run.reset(oidInt8)
	seq.reset(oidInt4)
	state.reset(oidText)
	for _, n := range done {
		run.int8(int64(n.Run))
		seq.int4(n.Seq)
		state.text(naming.CleanText(n.State))
	}
	if _, err := s.db.ExecContext(ctx, noticeDone, run.bytes(), seq.bytes(), state.bytes()); err != nil {
		return wrap("mark notices", err)
	}
	return nil
}

// OfRun returns all notices of a run, ascending by row and state.
func (s *notices) OfRun(ctx context.Context, run status.RunID) ([]notice.Kept, error) {
	rows, err := s.read(ctx, noticeOfRun, int64(run))
	if err != nil {
		return nil, wrap("list notices of a run", err)
	}
	defer rows.Close()
	var out []notice.Kept
	for rows.Next() {
		var n notice.Kept
		if err := rows.Scan(&n.Run, &n.Seq, &n.State, &n.Done); err != nil {
			return nil, wrap("list notices of a run", err)
		}
		out = append(out, n)
	}
	if err := rows.Err(); err != nil {
		return nil, wrap("list notices of a run", err)
	}
	return out, nil
}
