package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// S54: a batch of submissions with names and keys beside other transitions is one
// statement and one commit: the server answers once.
func TestBatchIsOneStatement(t *testing.T) {
	dsn := migrated(t)
	p, through := newProxy(t, dsn)
	b := newBench(t, through)
	run := status.RunID(0)
	named := func(name, key string) store.Transition {
		run++
		c := b.create(run)
		c.Names = &naming.Names{Name: name, Workflow: "w", Key: key}
		return c
	}
	answers := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.answers
	}
	for name, kind := range map[string]func(n int) store.Transition{
		"without names": func(int) store.Transition { run++; return b.create(run) },
		"names":         func(n int) store.Transition { return named(fmt.Sprint("n", run), "") },
		"keys":          func(n int) store.Transition { return named(fmt.Sprint("n", run), fmt.Sprint("k", run)) },
		"keys freed before": func(n int) store.Transition {
			first := named("", fmt.Sprint("f", run))
			if err := b.commit(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			if err := b.commit(t.Context(), store.Transition{Run: first.Run, Seq: 1, At: at, State: status.RunCancelled, NextCheck: store.Never, Data: []byte("1")}); err != nil {
				t.Fatal(err)
			}
			return named("", first.Names.Key)
		},
		"alerts": func(int) store.Transition {
			c := named("", "")
			c.Alerts = []store.Alert{{Kind: "k"}}
			return c
		},
	} {
		for round := range 2 { // the first one prepares the shape
			run++
			if err := b.commit(t.Context(), b.create(run)); err != nil {
				t.Fatal(err)
			}
			batch := []store.Transition{{Run: run, Seq: 1, At: at, Data: []byte("1")}}
			for n := range 5 {
				batch = append(batch, kind(n))
			}
			before := answers()
			out, err := b.w.Commit(t.Context(), batch)
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range out {
				if !o.Landed {
					t.Errorf("%s: transition %d: %+v", name, i, o)
				}
			}
			if got := answers() - before; round > 0 && got != 1 {
				t.Errorf("%s: the server answered %d times, want once", name, got)
			}
		}
	}
}

// S55: several engines submit the same names and keys at once, in batches, while
// their server processes are killed: nobody deadlocks, each name is one run's,
// each key is held by one run, and whoever did not land is told of who did.
func TestStressBatches(t *testing.T) {
	const engines, names, keys = 4, 60, 20
	dsn := migrated(t)
	db := raw(t, dsn)
	type tale struct {
		names naming.Names
		run   status.RunID // landed, or 0
		told  status.RunID // of this one instead
	}
	var (
		mu    sync.Mutex
		tales []tale
		kills int
	)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel() // earlier: once enough has happened
	var wg sync.WaitGroup
	for e := range engines {
		b := newBench(t, dsn)
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(e), uint64(time.Now().UnixNano())))
			run := status.RunID(e+1) << 32
			var mine []status.RunID
			for round := 0; ctx.Err() == nil; round++ {
				var batch []store.Transition
				for _, r := range mine { // frees keys
					batch = append(batch, store.Transition{Run: r, Seq: 1, At: at, State: status.RunCancelled, NextCheck: store.Never, Data: []byte("1")})
				}
				mine = nil
				for range 1 + rnd.IntN(12) {
					run++
					c := b.create(run)
					c.Names = &naming.Names{Name: fmt.Sprintf("n-%d-%d", round/3, rnd.IntN(names)), Workflow: "w"}
					if rnd.IntN(2) == 0 {
						c.Names.Key = fmt.Sprint("k", rnd.IntN(keys))
					}
					batch = append(batch, c)
				}
				out, err := b.w.Commit(t.Context(), batch)
				if err != nil {
					t.Errorf("engine %d: %v", e, err)
					return
				}
				mu.Lock()
				for i, o := range out {
					c := &batch[i]
					switch {
					case o.Err != nil:
						t.Errorf("engine %d: run %d seq %d: %v", e, c.Run, c.Seq, o.Err)
					case c.Names == nil && !o.Landed:
						t.Errorf("engine %d: run %d seq %d did not land", e, c.Run, c.Seq)
					case c.Names != nil && o.Landed:
						tales = append(tales, tale{names: *c.Names, run: c.Run})
						if rnd.IntN(2) == 0 {
							mine = append(mine, c.Run)
						}
					case c.Names != nil:
						tales = append(tales, tale{names: *c.Names, told: o.Submitted.Run})
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Go(func() {
		tick := time.NewTicker(25 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			mu.Lock()
			submitted := len(tales)
			mu.Unlock()
			if kills >= 5 && submitted >= 1000 {
				cancel()
			}
			res, err := db.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid() AND query LIKE '%engine.fence%' ORDER BY random() LIMIT 1`)
			if err != nil {
				t.Error(err)
				return
			}
			n, err := res.RowsAffected()
			if err != nil {
				t.Error(err)
				return
			}
			kills += int(n)
		}
	})
	wg.Wait()

	landed := make(map[status.RunID]naming.Names)
	byName := make(map[string]status.RunID)
	told := 0
	for _, x := range tales {
		if x.run == 0 {
			continue
		}
		if other := byName[x.names.Name]; other != 0 {
			t.Errorf("runs %d and %d landed as %q", other, x.run, x.names.Name)
		}
		landed[x.run], byName[x.names.Name] = x.names, x.run
	}
	for _, x := range tales {
		if x.run != 0 {
			continue
		}
		told++
		has, ok := landed[x.told]
		if !ok || has.Name != x.names.Name && (x.names.Key == "" || has.Key != x.names.Key) {
			t.Errorf("a submission as %+v was told of run %d, which has %+v", x.names, x.told, has)
		}
	}
	for what, query := range map[string]string{
		"names without a run":        `SELECT count(*) FROM engine.run_name n WHERE NOT EXISTS (SELECT FROM engine.run r WHERE r.run_id = n.run_id)`,
		"runs without a name":        `SELECT count(*) FROM engine.run r WHERE NOT EXISTS (SELECT FROM engine.run_name n WHERE r.run_id = n.run_id)`,
		"runs without a first row":   `SELECT count(*) FROM engine.run r WHERE NOT EXISTS (SELECT FROM engine.journal j WHERE r.run_id = j.run_id AND j.seq = 0)`,
		"keys without their run":     `SELECT count(*) FROM engine.context c WHERE NOT EXISTS (SELECT FROM engine.run_name n WHERE n.run_id = c.run_id AND n.key = c.key)`,
		"keys that two runs hold":    `SELECT count(*) FROM (SELECT n.key FROM engine.run_name n JOIN engine.run r USING (run_id) WHERE n.key IS NOT NULL AND r.state NOT IN (11, 12, 13) GROUP BY n.key HAVING count(*) > 1) x`,
		"holders that are not named": `SELECT count(*) FROM engine.run_name n JOIN engine.run r USING (run_id) WHERE n.key IS NOT NULL AND r.state NOT IN (11, 12, 13) AND NOT EXISTS (SELECT FROM engine.context c WHERE c.key = n.key AND c.run_id = n.run_id)`,
		"deadlocks":                  `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`,
	} {
		if n := count(t, db, query); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	if n := count(t, db, `SELECT count(*) FROM engine.run`); n != len(landed) {
		t.Errorf("%d runs, want the %d that were reported as landed", n, len(landed))
	}
	if len(landed) < 20 || told == 0 || kills == 0 {
		t.Errorf("%d landed, %d were told of another, %d kills: too little happened to prove anything", len(landed), told, kills)
	}
	t.Logf("%d landed, %d were told of another, %d kills", len(landed), told, kills)
}

func count(t *testing.T, db *sql.DB, query string) int {
	t.Helper()
	var n int
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// spoil lets a trigger refuse rows of the journal: with code where the condition
// holds.
func spoil(t *testing.T, db *sql.DB, code, condition string) {
	t.Helper()
	must(t, db, fmt.Sprintf(`CREATE OR REPLACE FUNCTION public.spoil() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN IF %s THEN RAISE EXCEPTION 'spoilt' USING ERRCODE = '%s'; END IF; RETURN NEW; END $$`, condition, code))
	must(t, db, `CREATE OR REPLACE TRIGGER spoil BEFORE INSERT ON engine.journal FOR EACH ROW EXECUTE FUNCTION public.spoil()`)
}

// A row that the server does not take, whatever it says about it, is found and
// refused; the batch lands without it. A submission that is refused leaves its
// names free.
func TestOneRowIsRefused(t *testing.T) {
	for _, code := range []string{"P0001", "XX000", "XX001", "42501", "22012", "23514", "54000", "38000", "21000"} {
		t.Run(code, func(t *testing.T) {
			dsn := migrated(t)
			b := newBench(t, dsn)
			db := raw(t, dsn)
			var batch []store.Transition
			for run := status.RunID(1); run <= 20; run++ {
				batch = append(batch, b.create(run))
			}
			batch[6].Names = &naming.Names{Name: "n", Workflow: "w", Key: "k"}
			batch[7].Names = &naming.Names{Name: "n-2", Workflow: "w", Key: "k-2"}
			spoil(t, db, code, "NEW.run_id = 7")
			check := func(batch []store.Transition) {
				t.Helper()
				out, err := b.w.Commit(t.Context(), batch)
				if err != nil {
					t.Fatal(err)
				}
				for i, o := range out {
					bad := batch[i].Run == 7
					if o.Landed == bad || (o.Err != nil) != bad {
						t.Errorf("run %d: %+v", batch[i].Run, o)
					}
					var e *pq.Error
					if bad && (!errors.As(o.Err, &e) || string(e.Code) != code) {
						t.Errorf("run %d: err = %v, want what the server said", batch[i].Run, o.Err)
					}
				}
			}
			check(batch)
			check(batch[6:7]) // alone too
			if n := count(t, db, `SELECT count(*) FROM engine.journal`); n != 19 {
				t.Errorf("%d rows, want 19", n)
			}
			must(t, db, `DROP TRIGGER spoil ON engine.journal`)
			if err := b.commit(t.Context(), batch[6]); err != nil {
				t.Errorf("once the server takes it: %v", err)
			}
		})
	}
}

// A row that landed before its answer was lost, and that the server would not
// take any more, has landed.
func TestRefusedAfterItLanded(t *testing.T) {
	dsn := migrated(t)
	p, through := newProxy(t, dsn)
	b := newBench(t, through)
	db := raw(t, dsn)
	named := b.create(2)
	named.Names = &naming.Names{Name: "n", Workflow: "w", Key: "k"}
	batch := []store.Transition{b.create(1), named, b.create(3)}
	p.loseNext(true, func() { spoil(t, db, "P0001", "NEW.run_id < 3") })
	out, err := b.w.Commit(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range out {
		if !o.Landed || o.Err != nil {
			t.Errorf("transition %d: %+v, want landed", i, o)
		}
	}
	p.loseNext(false, func() {})
	out, err = b.w.Commit(t.Context(), []store.Transition{{Run: 1, Seq: 1, At: at, Data: []byte("1")}, {Run: 3, Seq: 1, At: at, Data: []byte("1")}})
	if err != nil || out[0].Landed || out[0].Err == nil || !out[1].Landed {
		t.Errorf("outcomes = %+v, err = %v, want refused, landed", out, err)
	}
}

// A server that takes nothing for now, whatever it says, keeps nobody's row out: the batch waits,
// people are told why, and all of it lands once, when there is room again.
func TestServerTakesNothing(t *testing.T) {
	for code, says := range map[string]string{"53100": "disk is full", "53200": "out of memory", "57014": "longer than allowed", "25006": "takes no writes", "58030": "spoilt",
		"XX000": "spoilt", "P0001": "spoilt", "42501": "spoilt"} {
		t.Run(code, func(t *testing.T) {
			dsn := migrated(t)
			log := newLines()
			s, err := Open(t.Context(), dsn, Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			b := benchOn(t, s)
			db := raw(t, dsn)
			must(t, db, `CREATE TABLE public.full AS SELECT 1`)
			spoil(t, db, code, "EXISTS (SELECT FROM public.full)")
			batch := []store.Transition{b.create(1), b.create(2), b.create(3)}
			batch[1].Names = &naming.Names{Name: "n", Workflow: "w", Key: "k"}
			type answer struct {
				out []store.Outcome
				err error
			}
			done := make(chan answer, 1)
			go func() {
				out, err := b.w.Commit(t.Context(), batch)
				done <- answer{out, err}
			}()
			log.await(t, says)
			must(t, db, `DELETE FROM public.full`)
			a := <-done
			if a.err != nil {
				t.Fatal(a.err)
			}
			for i, o := range a.out {
				if !o.Landed {
					t.Errorf("transition %d: %+v", i, o)
				}
			}
			if n := count(t, db, `SELECT count(*) FROM engine.journal`); n != 3 {
				t.Errorf("%d rows, want 3", n)
			}
		})
	}
}

// lines is a log that can be waited for.
type lines struct {
	mu   sync.Mutex // protects the fields below
	text strings.Builder
	more chan struct{} // closed when something comes
}

func newLines() *lines { return &lines{more: make(chan struct{})} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.more)
	l.more = make(chan struct{})
	return l.text.Write(p)
}

// await waits until the log says something.
func (l *lines) await(t *testing.T, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		l.mu.Lock()
		text, more := l.text.String(), l.more
		l.mu.Unlock()
		if strings.Contains(text, what) {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("the log does not say %q:\n%s", what, text)
		}
	}
}

// S86: people who read, even where what they ask for is locked, take no
// connection and no lock from commits and ticks, and cannot write.
func TestReadersKeepToThemselves(t *testing.T) {
	dsn := migrated(t)
	b := newBench(t, dsn)
	if err := b.commit(t.Context(), b.create(1)); err != nil {
		t.Fatal(err)
	}
	db := raw(t, dsn)
	tx, err := db.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`LOCK TABLE engine.workflow, engine.alert, engine.late_reply IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			var err error
			switch n % 3 {
			case 0:
				_, err = b.Runs(ctx, store.RunFilter{})
			case 1:
				_, err = b.Alerts(ctx, 0, 10)
			case 2:
				_, err = b.LateReplies(ctx, 1)
			}
			if err == nil {
				t.Errorf("reader %d was answered", n)
			}
		})
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for waiting := 0; waiting == 0; <-tick.C {
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE a.datname = current_database() AND NOT l.granted`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.commit(t.Context(), store.Transition{Run: 1, Seq: 1, At: at, Data: []byte("1")}); err != nil {
		t.Errorf("commit: %v", err)
	}
	if _, err := b.Tick(t.Context(), b.id, time.Hour, 10); err != nil {
		t.Errorf("tick: %v", err)
	}
	if _, _, err := store.LoadRun(t.Context(), b, 1); err != nil {
		t.Errorf("load: %v", err)
	}
	cancel()
	wg.Wait()
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}

	if rs, err := b.Runs(t.Context(), store.RunFilter{}); err != nil || len(rs) != 1 {
		t.Errorf("runs afterwards = %+v, err = %v", rs, err)
	}
	var limit, readOnly string
	err = b.readOne(t.Context(), func(row interface{ Scan(...any) error }) error { return row.Scan(&limit, &readOnly) },
		`SELECT current_setting('statement_timeout'), current_setting('transaction_read_only')`)
	if err != nil || limit != "30s" || readOnly != "on" {
		t.Errorf("a reader's statement may take %q and is read-only: %q, err = %v", limit, readOnly, err)
	}
	if _, err := b.read(t.Context(), `DELETE FROM engine.journal RETURNING 1`); sqlstate(err) != "25006" {
		t.Errorf("a reader that writes: err = %v, want it refused", err)
	}
}
