package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/internal/pgtest"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storetest"
)

// A yard is a store with one engine, whose runs a test gives the age it wants.
type yard struct {
	*testing.T
	dsn  string
	db   *sql.DB
	s    *Store
	id   store.EngineID
	w    store.Writer
	flow store.WorkflowID
	last status.RunID
}

func newYard(t *testing.T) *yard {
	t.Helper()
	return yardIn(t, migrated(t))
}

// yardIn makes a yard in a migrated database.
func yardIn(t *testing.T, dsn string) *yard {
	t.Helper()
	y := &yard{T: t, dsn: dsn}
	y.db, y.s = raw(t, y.dsn), open(t, y.dsn)
	ids, err := y.s.PutDefinition(t.Context(), store.Definition{Digest: "d", Data: []byte("x"), Workflows: []store.DefinedWorkflow{{Name: "w", Steps: []string{"a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	y.flow = ids["w"]
	if y.id, err = y.s.Join(t.Context(), "test", time.Hour, 1); err != nil {
		t.Fatal(err)
	}
	if y.w, err = y.s.OpenWriter(t.Context(), y.id, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := y.w.Close(); err != nil {
			t.Error(err)
		}
	})
	return y
}

// commit lands one transition.
func (y *yard) commit(tr store.Transition) {
	y.Helper()
	out, err := y.w.Commit(context.WithoutCancel(y.Context()), []store.Transition{tr})
	if err != nil || !out[0].Landed {
		y.Fatalf("commit: %+v, err = %v", out, err)
	}
}

// begin begins a run that was submitted at a time, with rows rows.
func (y *yard) begin(at time.Time, rows int) status.RunID {
	y.Helper()
	id := naming.FirstRunOf(at)
	for id <= y.last && naming.TimeOfRun(y.last).Equal(naming.TimeOfRun(id)) {
		id = y.last + 1
	}
	y.last = id
	y.commit(store.Transition{Run: id, At: at, Workflow: y.flow, State: status.RunRunning, Owner: &y.id, NextCheck: store.Never, Data: []byte{0}})
	for seq := 1; seq < rows; seq++ {
		y.commit(store.Transition{Run: id, Seq: int32(seq), At: at, Data: []byte{byte(seq)}})
	}
	return id
}

// end ends a run at a time.
func (y *yard) end(id status.RunID, seq int, at time.Time) {
	y.Helper()
	y.commit(store.Transition{Run: id, Seq: int32(seq), At: at, State: status.RunSucceeded, NextCheck: store.Never, Data: []byte{byte(seq)}})
}

// retain removes what ended before a time, to the end.
func (y *yard) retain(before time.Time) store.RetainStats {
	y.Helper()
	s, err := y.s.Retain(y.Context(), before, 1000)
	if err != nil || s.More {
		y.Fatalf("retain: %+v, err = %v", s, err)
	}
	return s
}

// wantRows checks how many rows of a run can be read, and that they are in order.
func (y *yard) wantRows(id status.RunID, n int) {
	y.Helper()
	_, rows, err := store.LoadRun(context.WithoutCancel(y.Context()), y.s, id)
	if err != nil || len(rows) != n {
		y.Fatalf("run %d: %d rows, err = %v, want %d", id, len(rows), err, n)
	}
	for i, r := range rows {
		if int(r.Seq) != i || r.Data[0] != byte(i) {
			y.Errorf("run %d: row %d is seq %d %x", id, i, r.Seq, r.Data)
		}
	}
}

// names lists the partitions, those of moved rows as "rest", and checks that
// between them there is no gap.
func (y *yard) names() string {
	y.Helper()
	parts, _, err := y.s.partitions(context.WithoutCancel(y.Context()))
	if err != nil {
		y.Fatal(err)
	}
	var out []string
	for i, p := range parts {
		switch {
		case i > 0 && p.lo != parts[i-1].hi, i == 0 && p.lo != 0, i == len(parts)-1 && p.hi != 1<<63-1:
			y.Errorf("partitions do not join: %+v", parts)
		}
		out = append(out, strings.TrimRight(strings.TrimPrefix(p.name, "journal_"), "_0123456789"))
	}
	return strings.Join(out, " ")
}

// The journal of runs that have gone goes with its partition, made ahead of time;
// what is left of others is moved and goes on where it was.
func TestPartitions(t *testing.T) {
	y := newYard(t)
	now := time.Now()
	gone, held := y.begin(now.Add(-48*time.Hour), 3), y.begin(now.Add(-47*time.Hour), 2)
	young := y.begin(now, 2)
	y.end(gone, 3, now.Add(-40*time.Hour))
	if s := y.retain(now.Add(-24 * time.Hour)); s.Runs != 1 || s.Kept != 1 || s.Partitions != 0 {
		t.Errorf("the first walk: %+v, want one run to go and no partition", s)
	}
	if got := y.names(); got != "first " {
		t.Errorf("partitions = %q, want the first and an empty one ahead", got)
	}
	if n := y.count("journal_first"); n != 8 {
		t.Errorf("%d rows in the first partition, want all that were written", n)
	}
	y.retain(now.Add(-24 * time.Hour))
	if got := y.names(); got != "first " {
		t.Errorf("partitions = %q after another walk at once, want no more of them", got)
	}

	// As if years had passed.
	later := now.Add(400 * 24 * time.Hour)
	next := y.begin(later.Add(-time.Hour), 1)
	y.end(young, 2, later.Add(-300*24*time.Hour))
	if s := y.retain(later.Add(-24 * time.Hour)); s.Runs != 1 || s.Kept != 1 || s.Partitions != 1 {
		t.Errorf("the walk years later: %+v, want one run and one partition to go", s)
	}
	if got := y.names(); !strings.HasPrefix(got, "rest ") {
		t.Errorf("partitions = %q, want what is left in one of its own", got)
	}
	y.wantRows(held, 2)
	y.wantRows(next, 1)
	y.commit(store.Transition{Run: held, Seq: 2, At: later, Data: []byte{2}})
	y.wantRows(held, 3)
	if n := y.total(); n != 4 {
		t.Errorf("%d rows in the journal, want those of the two runs that are left", n)
	}
	if out, err := y.w.Commit(t.Context(), []store.Transition{{Run: held, Seq: 1, At: later, Data: []byte{9}}}); err != nil || !errors.Is(out[0].Err, store.ErrStale) {
		t.Errorf("a row that stands there already, moved: %+v, err = %v, want ErrStale", out, err)
	}

	// The straggler's end: its rows go when the next partition does.
	y.end(held, 3, later)
	y.end(next, 1, later)
	last := later.Add(400 * 24 * time.Hour)
	must(t, y.db, `SELECT engine.journal_cut($1)`, int64(naming.FirstRunOf(later))) // as a walk does in its time
	if s := y.retain(last); s.Runs != 2 || s.Partitions < 2 {
		t.Errorf("the last walk: %+v, want two runs and their partitions to go", s)
	}
	if n := y.total(); n != 0 {
		t.Errorf("%d rows in the journal, want none", n)
	}
	if s := y.retain(last); s.Runs+s.Rows+s.Partitions != 0 {
		t.Errorf("a walk with nothing to do: %+v", s)
	}
}

func (y *yard) count(part string) (n int) {
	y.Helper()
	if err := y.db.QueryRow("SELECT count(*) FROM engine." + part).Scan(&n); err != nil {
		y.Fatal(err)
	}
	return n
}

func (y *yard) total() int { y.Helper(); return y.count("journal") }

// Too many runs that are open hold their partition back, and nothing is moved.
func TestManyStragglersHoldTheirPartition(t *testing.T) {
	y := newYard(t)
	now := time.Now()
	y.retain(now.Add(-24 * time.Hour))
	must(t, y.db, `INSERT INTO engine.run (run_id, workflow_id, state, owner, fence, next_check, created_at)
		SELECT n, 1, 6, 0, 0, 'infinity', now() FROM generate_series(1, $1::int) n`, maxMovedRuns+1)
	must(t, y.db, `INSERT INTO engine.journal (run_id, seq, at, owner, run_state, writer, data)
		SELECT n, 0, now(), 0, 6, 1, 'x' FROM generate_series(1, $1::int) n`, maxMovedRuns+1)
	later := now.Add(400 * 24 * time.Hour)
	retain := func(partitions int) {
		t.Helper()
		var sum store.RetainStats
		for more := true; more; {
			s, err := y.s.Retain(t.Context(), later, 300)
			if err != nil {
				t.Fatal(err)
			}
			sum.Runs, sum.Kept, sum.Partitions, more = sum.Runs+s.Runs, sum.Kept+s.Kept, sum.Partitions+s.Partitions, s.More
		}
		if sum.Partitions != partitions || sum.Runs != 0 || sum.Kept == 0 {
			t.Errorf("%+v, want %d partitions and no run to go", sum, partitions)
		}
	}
	retain(0)
	must(t, y.db, `UPDATE engine.run SET state = 13, finished_at = $1 WHERE run_id = 1`, later.Add(time.Hour)) // too young to go
	must(t, y.db, `DELETE FROM engine.run WHERE run_id = 2`)
	retain(1)
	if n := y.total(); n != maxMovedRuns {
		t.Errorf("%d rows, want %d moved", n, maxMovedRuns)
	}
}

// Whoever reads the journal for long holds neither commits nor the walk up; the
// partition goes later. A session that dies at it changes nothing.
func TestDropWaitsForReaders(t *testing.T) {
	y := newYard(t)
	now := time.Now()
	old, stays := y.begin(now.Add(-48*time.Hour), 2), y.begin(now.Add(-48*time.Hour), 1)
	y.retain(now.Add(-24 * time.Hour))
	y.end(old, 2, now)
	tx, err := y.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec(`SELECT count(*) FROM engine.journal`); err != nil {
		t.Fatal(err)
	}
	later := now.Add(400 * 24 * time.Hour)
	retain := func() (store.RetainStats, error) { return y.s.Retain(t.Context(), later, 1000) }
	type answer struct {
		s   store.RetainStats
		err error
	}
	done := make(chan answer, 1)
	began := make(chan struct{})
	go func() {
		close(began)
		s, err := retain()
		done <- answer{s, err}
	}()
	<-began
	seq := 1
	var got answer
	for waiting := true; waiting; { // commits go on all the while
		y.commit(store.Transition{Run: stays, Seq: int32(seq), At: now, Data: []byte{byte(seq)}})
		seq++
		select {
		case got = <-done:
			waiting = false
		default:
		}
	}
	if got.s.Runs != 1 || got.s.Partitions != 0 || sqlstate(got.err) != "55P03" {
		t.Errorf("beside a long reader: %+v, err = %v, want the run to go, and to be told about the lock", got.s, got.err)
	}
	y.wantRows(stays, seq)

	go func() { s, err := retain(); done <- answer{s, err} }()
	y.terminate(`query LIKE '%journal_drop%'`)
	if got = <-done; got.err == nil {
		t.Errorf("the session was ended and nobody was told: %+v", got.s)
	}
	if got := y.names(); got != "first " {
		t.Errorf("partitions = %q after a session that died, want those of before", got)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if s, err := retain(); err != nil || s.Partitions != 1 {
		t.Errorf("once the reader has gone: %+v, err = %v", s, err)
	}
	y.wantRows(stays, seq)
}

// terminate ends the session that is found by a condition, once there is one.
func (y *yard) terminate(where string) {
	y.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		var n int
		if err := y.db.QueryRow(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle' AND ` + where).Scan(&n); err != nil {
			y.Fatal(err)
		}
		if n > 0 {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-y.Context().Done():
		}
	}
	y.Error("no such session")
}

// Partitions come and go beside commits of many runs: every row is there
// afterwards, once.
func TestPartitionsBesideCommits(t *testing.T) {
	y := newYard(t)
	now := time.Now()
	const runs = 50
	ids := make([]status.RunID, runs)
	for i := range ids {
		ids[i] = y.begin(now.Add(-48*time.Hour).Add(time.Duration(i)*time.Minute), 1)
	}
	y.retain(now.Add(-24 * time.Hour))
	var (
		wg   sync.WaitGroup
		stop = make(chan struct{})
		rows int32
		slow time.Duration
	)
	wg.Go(func() {
		for rows = 1; ; rows++ {
			select {
			case <-stop:
				return
			default:
			}
			batch := make([]store.Transition, runs)
			for i, id := range ids {
				batch[i] = store.Transition{Run: id, Seq: rows, At: now, Data: []byte{byte(rows)}}
			}
			sent := time.Now()
			out, err := y.w.Commit(context.WithoutCancel(t.Context()), batch)
			slow = max(slow, time.Since(sent))
			for _, o := range out {
				if err == nil && !o.Landed {
					err = o.Err
				}
			}
			if err != nil {
				t.Errorf("commit %d: %v", rows, err)
				return
			}
		}
	})
	dropped := 0
	for i := range 20 {
		// Each walk is a year after the one before it.
		s, err := y.s.Retain(t.Context(), now.Add(time.Duration(i+1)*365*24*time.Hour), 1000)
		if err != nil && sqlstate(err) != "55P03" {
			t.Errorf("walk %d: %v", i, err)
		}
		dropped += s.Partitions
		// A cut that gets its lock too late gives way to the commits, and is for the next walk.
		cut := int64(naming.FirstRunOf(now.Add(time.Duration(i+1) * 300 * 24 * time.Hour)))
		if _, err := y.db.ExecContext(t.Context(), `SELECT engine.journal_cut($1)`, cut); err != nil && sqlstate(err) != "55P03" {
			t.Errorf("cut %d: %v", i, err)
		}
	}
	close(stop)
	wg.Wait()
	if dropped < 5 {
		t.Errorf("%d partitions were dropped, want many", dropped)
	}
	t.Logf("%d partitions dropped beside %d commits, the slowest took %v", dropped, rows, slow)
	for _, id := range ids {
		y.wantRows(id, int(rows))
	}
}

// A tail that is not small is cut without being read under the lock; whoever
// died half way is gone on from.
func TestLargeTailIsCut(t *testing.T) {
	for _, half := range []bool{false, true} {
		t.Run(fmt.Sprintf("half=%v", half), func(t *testing.T) {
			y := newYard(t)
			must(t, y.db, `INSERT INTO engine.journal (run_id, seq, at, writer, data)
				SELECT 1, s, now(), 1, decode((SELECT string_agg(md5((s * 100000 + n)::text), '') FROM generate_series(1, 65536) n), 'hex') FROM generate_series(1, 12) s`)
			now := time.Now()
			var want status.RunID
			if half {
				want = naming.FirstRunOf(now.Add(1000 * time.Hour))
				if err := y.s.limitTail(t.Context(), want); err != nil {
					t.Fatal(err)
				}
			}
			y.retain(now.Add(-24 * time.Hour))
			parts, _, err := y.s.partitions(t.Context())
			if err != nil || len(parts) != 2 || parts[0].bytes <= smallTail {
				t.Fatalf("partitions = %+v, err = %v, want a large one and another", parts, err)
			}
			if half && parts[1].lo != want || naming.TimeOfRun(parts[1].lo).Before(now.Add(firstWidth)) {
				t.Errorf("the tail begins at %v", naming.TimeOfRun(parts[1].lo))
			}
			var left int
			if err := y.db.QueryRow(`SELECT count(*) FROM pg_constraint WHERE conname = 'journal_bound'`).Scan(&left); err != nil || left != 0 {
				t.Errorf("%d limits are left, err = %v", left, err)
			}
			y.begin(now, 2)
			y.begin(naming.TimeOfRun(parts[1].lo).Add(time.Hour), 2)
		})
	}
	// A limit that cannot be kept is taken back.
	y := newYard(t)
	late := y.begin(time.Now().Add(48*time.Hour), 1)
	if err := y.s.limitTail(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if err := y.s.trustTail(t.Context()); sqlstate(err) != "23514" {
		t.Errorf("err = %v, want the row that is beyond the limit", err)
	}
	y.begin(time.Now().Add(50*time.Hour), 1)
}

// Runs whose ids are ahead of the time are no obstacle.
func TestRunsAheadOfTime(t *testing.T) {
	y := newYard(t)
	now := time.Now()
	far := y.begin(now.Add(1000*24*time.Hour), 2)
	y.retain(now.Add(-24 * time.Hour))
	y.retain(now.Add(-24 * time.Hour))
	y.wantRows(far, 2)
	y.begin(now, 1)
	y.begin(now.Add(2000*24*time.Hour), 1)
	if got := y.names(); got != "first " {
		t.Errorf("partitions = %q", got)
	}
}

// Of a run that was removed a missing row is no loss (lineage).
func TestRemovedIsNotLost(t *testing.T) {
	y := newYard(t)
	now := time.Now()
	old := y.begin(now.Add(-48*time.Hour), 1)
	y.end(old, 1, now.Add(-40*time.Hour))
	conn, err := y.s.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stands := func(m mark) (there bool) {
		t.Helper()
		if err := conn.Raw(func(c any) (err error) { there, err = hasRow(t.Context(), c.(*checked).wire, m); return err }); err != nil {
			t.Fatal(err)
		}
		return there
	}
	if stands(mark{old, 2, 5}) || stands(mark{old + 1, 0, 5}) {
		t.Error("a row that never was stands there before anything was removed")
	}
	y.retain(now.Add(-24 * time.Hour))
	must(t, y.db, `DELETE FROM engine.journal`)
	if !stands(mark{old, 1, 5}) {
		t.Error("a row of a run that was removed counts as lost")
	}
	if young := naming.FirstRunOf(now); stands(mark{young, 0, 5}) {
		t.Error("a run that is too young to have been removed is not missed")
	}
	later := y.begin(now.Add(-20*time.Hour), 1) // what the second retention removes counts too
	y.end(later, 1, now.Add(-15*time.Hour))
	y.retain(now.Add(-12 * time.Hour))
	must(t, y.db, `DELETE FROM engine.journal`)
	if !stands(mark{later, 1, 5}) {
		t.Error("a row of a run that was removed later counts as lost")
	}
}

// S98: while another session has locked the row of a key, retention does not wait for it, and does
// not remove the run of the key. Otherwise the goal would be lost with the run.
func TestKeyOfARemovedRun(t *testing.T) {
	y := newYard(t)
	now := time.Now()
	names := naming.Names{Name: "old", Workflow: "w", Key: "k"}
	old := naming.FirstRunOf(now.Add(-48 * time.Hour))
	create := store.Transition{Run: old, At: now, Workflow: y.flow, State: status.RunRunning, Owner: &y.id, NextCheck: store.Never, Data: []byte{0}}
	if _, err := storetest.Submit(t.Context(), y.w, create, names); err != nil {
		t.Fatal(err)
	}
	y.end(old, 1, now.Add(-40*time.Hour))
	tx, err := y.db.BeginTx(t.Context(), nil) // somebody holds the key's row
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`SELECT 1 FROM engine.context FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	if s := y.retain(now.Add(-24 * time.Hour)); s.Runs != 0 {
		t.Errorf("%+v, want the run to stay: the row of its key is locked", s)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if s := y.retain(now.Add(-24 * time.Hour)); s.Runs != 1 {
		t.Errorf("%+v, want the run to go", s)
	}
	names.Name, create.Run = "new", naming.FirstRunOf(now)
	sub, err := storetest.Submit(t.Context(), y.w, create, names)
	if want := (store.Submitted{Run: old, Name: "old", Exists: true, Gone: true}); err != nil || sub != want {
		t.Errorf("%+v, err = %v, want %+v: the goal is still reached", sub, err, want)
	}
}

// migrateTo makes the schema what it was in a version.
func migrateTo(t *testing.T, db *sql.DB, version int64) {
	t.Helper()
	must(t, db, schemaCreate)
	p, err := provider(db)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
}

// journalOptions are those of each partition of the journal.
var journalOptions = []string{"autovacuum_analyze_scale_factor=1", "autovacuum_vacuum_insert_scale_factor=0.4", "autovacuum_vacuum_insert_threshold=100000000"}

// Partitions from before have the options of new ones, and so has the table in
// which retention gathers what it keeps.
func TestJournalOptions(t *testing.T) {
	dsn := pgtest.DSN(t)
	db := raw(t, dsn)
	migrateTo(t, db, 5)
	must(t, db, `SELECT engine.journal_cut(100)`)
	must(t, db, `SELECT engine.journal_cut(200)`)
	if _, _, err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	must(t, db, `SELECT engine.journal_cut(300)`)
	must(t, db, `SELECT engine.journal_gather(150)`)
	for _, part := range []string{"journal_first", "journal_100", "journal_200", "journal_300", "journal_rest_150"} {
		var options []string
		if err := db.QueryRow(`SELECT ARRAY(SELECT unnest(reloptions) ORDER BY 1) FROM pg_class WHERE oid = $1::regclass`, "engine."+part).Scan(pq.Array(&options)); err != nil || !slices.Equal(options, journalOptions) {
			t.Errorf("%s has options %q, err = %v", part, options, err)
		}
	}
}

// A journal with rows becomes the first partition, and whoever could read it and
// the views still can.
func TestMigrateJournal(t *testing.T) {
	dsn := pgtest.DSN(t)
	db := raw(t, dsn)
	migrateTo(t, db, 2)
	must(t, db, `INSERT INTO engine.definition (digest, data) VALUES ('d', 'x')`)
	must(t, db, `INSERT INTO engine.workflow (digest, name) VALUES ('d', 'w')`)
	must(t, db, `INSERT INTO engine.workflow_step VALUES (1, 0, 'a')`)
	must(t, db, `INSERT INTO engine.run VALUES (5, 1, 2, 0, 0, now(), now())`)
	must(t, db, `INSERT INTO engine.journal VALUES (5, 0, now(), 1, 2, 0, now(), 7, decode('00000000060000010000000000000000', 'hex'), 'x')`)
	must(t, db, `INSERT INTO engine.journal VALUES (5, 1, now(), NULL, NULL, NULL, NULL, 8, NULL, 'y')`)
	must(t, db, `INSERT INTO engine.journal VALUES (5, 2, now(), NULL, NULL, NULL, NULL, 9, decode(repeat('00000000060000010000000000000000', 1000), 'hex'), 'z')`)
	must(t, db, `GRANT SELECT ON engine.journal, engine.runs TO PUBLIC`)
	must(t, db, `GRANT DELETE ON engine.steps TO PUBLIC`)
	if from, to, err := Migrate(t.Context(), dsn); err != nil || from != 2 || to != schemaVersion {
		t.Fatalf("migrate: %d to %d, err = %v", from, to, err)
	}
	var can, views, steps, other bool
	if err := db.QueryRow(`SELECT has_table_privilege('public', 'engine.journal', 'SELECT'), has_table_privilege('public', 'engine.runs', 'SELECT'),
		has_table_privilege('public', 'engine.steps', 'SELECT'), has_table_privilege('public', 'engine.steps', 'DELETE')`).Scan(&can, &views, &steps, &other); err != nil || !can || !views || steps || !other {
		t.Errorf("a role that could read the journal can: %v, the view: %v, another view: %v, what they could with that: %v, err = %v", can, views, steps, other, err)
	}
	s := open(t, dsn)
	if _, rows, err := store.LoadRun(t.Context(), s, 5); err != nil || len(rows) != 3 || string(rows[0].Data) != "x" || string(rows[1].Data) != "y" {
		t.Errorf("rows = %+v, err = %v", rows, err)
	}
	var state string
	if err := db.QueryRow(`SELECT state FROM engine.steps WHERE run_id = 5`).Scan(&state); err != nil || state != "succeeded" {
		t.Errorf("the view shows %q, err = %v", state, err)
	}
	var wide int // as it is read: in slices
	if err := db.QueryRow(`SELECT pg_column_size(steps) FROM engine.journal WHERE seq = 2`).Scan(&wide); err != nil || wide < 16_000 {
		t.Errorf("a wide row's steps take %d bytes, err = %v: compressed, so that each slice unpacks all before it", wide, err)
	}
	// What the journal's rows obey, its partitions' rows do.
	must(t, db, `SELECT engine.journal_cut(100)`)
	if _, err := db.Exec(`INSERT INTO engine.journal (run_id, seq, at, owner, run_state, writer, data) VALUES (200, 0, now(), 1, 2, 7, '')`); sqlstate(err) != "23514" {
		t.Errorf("a row without data in a new partition: err = %v", err)
	}
	for _, part := range []string{"engine.journal_first", "engine.journal_100"} {
		var storage string
		if err := db.QueryRow(`SELECT attstorage::text FROM pg_attribute WHERE attrelid = $1::regclass AND attname = 'steps'`, part).Scan(&storage); err != nil || storage != "e" {
			t.Errorf("%s stores steps %q, err = %v", part, storage, err)
		}
	}
}
