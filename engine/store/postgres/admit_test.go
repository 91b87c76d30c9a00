package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/admission"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A counter is a bench with tables of an application: two open orders of one customer.
type counter struct {
	*bench
	*testing.T
	db   *sql.DB
	next status.RunID
}

func newCounter(t *testing.T, dsn, through string) *counter {
	t.Helper()
	c := &counter{bench: newBench(t, through), T: t, db: raw(t, dsn)}
	must(t, c.db, `
CREATE TABLE public.customers (id text PRIMARY KEY, credit int NOT NULL);
CREATE TABLE public.orders (id text PRIMARY KEY, customer text NOT NULL REFERENCES public.customers, status text NOT NULL, version int NOT NULL DEFAULT 1);
CREATE TABLE public.audit (at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp());
CREATE SEQUENCE public.numbers;
CREATE VIEW public.open_orders AS SELECT o.id, o.status FROM public.orders o WHERE o.status = 'open';
CREATE FUNCTION public.noted() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.audit DEFAULT VALUES; RETURN true; END $$;
CREATE FUNCTION public.peeks() RETURNS boolean LANGUAGE sql AS $$ SELECT credit > 0 FROM public.customers LIMIT 1 $$;
INSERT INTO public.customers VALUES ('c1', 100);
INSERT INTO public.orders (id, customer, status) VALUES ('o1', 'c1', 'open'), ('o2', 'c1', 'open');`)
	return c
}

// orderOpen checks one order with the given lock.
func orderOpen(lock admission.Lock, id string) admission.Check {
	c := admission.Check{
		Name: "order", SQL: `SELECT o.status = 'open' FROM public.orders o WHERE o.id = $1`, Args: []*string{&id},
		Message: "Order " + id + " is not open.", Lock: lock,
	}
	if lock == admission.LockVersion {
		c.Bump, c.BumpArgs = `UPDATE public.orders SET version = version + 1 WHERE id = $1`, c.Args
	}
	return c
}

// row returns the first row of a run with checks.
func (c *counter) row(key string, checks ...admission.Check) store.Transition {
	c.next++
	t := c.create(c.next)
	t.Names, t.Checks = &naming.Names{Workflow: "w", Key: key}, checks
	return t
}

// submit submits a run with checks, and returns the code of the refusal; "" = the run is accepted.
func (c *counter) submit(t store.Transition) (admission.Code, error) {
	c.Helper()
	err := c.bench.commit(c.Context(), t)
	stored, loadErr := c.Load(c.Context(), t.Run)
	if loadErr != nil || len(stored) > 0 != (err == nil) {
		c.Errorf("run %d: %d runs stored, %v; submitted with %v", t.Run, len(stored), loadErr, err)
	}
	var e *admission.Error
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &e):
		return e.Code, err
	}
	c.Errorf("run %d: error %v (%T), want one of an admit block", t.Run, err, err)
	return "?", err
}

// S92: a check accepts a run, or refuses it by name. After a refusal nothing is stored, and nothing of
// the application has changed.
func TestChecks(t *testing.T) {
	dsn := migrated(t)
	c := newCounter(t, dsn, dsn)
	text := func(s string) *string { return &s }
	for name, x := range map[string]struct {
		sql, bump string
		args      []*string
		lock      admission.Lock
		want      admission.Code
		says      string
	}{
		"open":                   {sql: `SELECT o.status = 'open' FROM public.orders o WHERE o.id = 'o1'`},
		"open, with a comment":   {sql: `SELECT o.status = 'open' FROM public.orders o WHERE o.id = 'o1' -- why`},
		"a join":                 {sql: `SELECT o.status = 'open' AND u.credit >= $2 FROM public.orders o JOIN public.customers u ON u.id = o.customer WHERE o.id = $1`, args: []*string{text("o1"), text("50")}},
		"a join that refuses":    {sql: `SELECT o.status = 'open' AND u.credit >= $2 FROM public.orders o JOIN public.customers u ON u.id = o.customer WHERE o.id = $1`, args: []*string{text("o1"), text("500")}, want: admission.Refused, says: "The message."},
		"a view":                 {sql: `SELECT true FROM public.open_orders o WHERE o.id = 'o1'`},
		"NULL refuses":           {sql: `SELECT o.status = $1 FROM public.orders o`, args: []*string{nil}, want: admission.Refused},
		"one of two rows":        {sql: `SELECT o.id = 'o1' FROM public.orders o`, want: admission.Refused},
		"no row":                 {sql: `SELECT true FROM public.orders o WHERE o.id = $1`, args: []*string{text("o'; DROP TABLE public.orders; --")}, want: admission.NoRow, says: "The message. (its SELECT returns no row)"},
		"a number":               {sql: `SELECT o.version FROM public.orders o`, want: admission.NotBoolean, says: "int4"},
		"no column":              {sql: `SELECT FROM public.orders o`, want: admission.NotBoolean},
		"no schema":              {sql: `SELECT true FROM orders o`, want: admission.Failed, says: "public.orders"},
		"an error in a row":      {sql: `SELECT 1 / (o.version - 1) > 0 FROM public.orders o`, want: admission.Failed, says: "division by zero"},
		"wrong type":             {sql: `SELECT o.version = $1 FROM public.orders o`, args: []*string{text("many")}, want: admission.Failed, says: "many"},
		"two statements":         {sql: `SELECT true FROM public.orders; DELETE FROM public.audit; SELECT true FROM public.orders`, want: admission.Failed, says: "multiple commands"},
		"a commit":               {sql: `SELECT true FROM public.orders; COMMIT; SELECT true FROM public.orders`, want: admission.Failed},
		"DISTINCT":               {sql: `SELECT DISTINCT true FROM public.orders`, want: admission.Failed, says: "DISTINCT"},
		"a function that writes": {sql: `SELECT public.noted() FROM public.orders`, want: admission.Writes, says: "public.audit"},
		"WITH that writes":       {sql: `WITH x AS (UPDATE public.orders SET status = 'open' RETURNING id) SELECT true FROM public.customers`, want: admission.Writes, says: "public.orders"},
		"a subquery":             {sql: `SELECT o.status = 'open' AND (SELECT u.credit > 0 FROM public.customers u WHERE u.id = o.customer) FROM public.orders o`, want: admission.NotLocked, says: "public.customers"},
		"EXISTS":                 {sql: `SELECT true FROM public.orders o WHERE EXISTS (SELECT FROM public.customers u WHERE u.id = o.customer)`, want: admission.NotLocked},
		"the same table again":   {sql: `SELECT NOT EXISTS (SELECT FROM public.orders p WHERE p.id > o.id AND p.status = 'x') FROM public.orders o`, want: admission.NotLocked},
		"WITH":                   {sql: `WITH x AS (SELECT id FROM public.orders) SELECT true FROM x`, want: admission.NotLocked, says: "public.orders"},
		"no FROM":                {sql: `SELECT EXISTS (SELECT FROM public.orders)`, want: admission.NotLocked},
		"a function that reads":  {sql: `SELECT public.peeks() FROM public.orders`, want: admission.NotLocked, says: "public.customers"},
		"too slow":               {sql: `SELECT pg_catalog.pg_sleep(20) IS NOT NULL FROM public.orders`, want: admission.Busy, says: "1s"},
		"a bump":                 {sql: `SELECT true FROM public.orders WHERE id = 'o1'`, lock: admission.LockVersion, bump: `UPDATE public.orders SET version = version + 1 WHERE id = 'o1'`},
		"a bump of too few rows": {sql: `SELECT true FROM public.orders`, lock: admission.LockVersion, bump: `UPDATE public.orders SET version = version + 1 WHERE id = 'o1'`, want: admission.NotBumped, says: "changes 1 rows"},
		"a bump of no row":       {sql: `SELECT true FROM public.orders`, lock: admission.LockVersion, bump: `UPDATE public.orders SET version = version + 1 WHERE id = 'o9'`, want: admission.NotBumped},
		"a bump of one table":    {sql: `SELECT true FROM public.orders o JOIN public.customers u ON true`, lock: admission.LockVersion, bump: `UPDATE public.orders SET version = version + 1`, want: admission.NotBumped, says: "public.customers"},
		"a bump of the engine":   {sql: `SELECT true FROM public.orders`, lock: admission.LockVersion, bump: `WITH x AS (UPDATE public.orders SET version = version + 1) UPDATE engine.member SET address = 'x'`, want: admission.Writes, says: "engine.member"},
		"a bump that fails":      {sql: `SELECT true FROM public.orders`, lock: admission.LockVersion, bump: `UPDATE public.orders SET version = NULL`, want: admission.Failed, says: "null"},
	} {
		t.Run(name, func(t *testing.T) {
			c.T = t
			before := c.version("o1")
			got, err := c.submit(c.row("", admission.Check{Name: "order", SQL: x.sql, Args: x.args, Message: "The message.", Lock: x.lock, Bump: x.bump}))
			if got != x.want {
				t.Fatalf("code %q, want %q: %v", got, x.want, err)
			}
			if err != nil && (!strings.HasPrefix(err.Error(), `admit "order": `) || !strings.Contains(err.Error(), x.says)) {
				t.Errorf("error = %v, want %q", err, x.says)
			}
			moved := c.version("o1") - before
			if want := 0; got == "" && x.bump != "" && moved != 1 || (got != "" || x.bump == "") && moved != want {
				t.Errorf("version moved by %d", moved)
			}
			var audits int
			if err := c.db.QueryRowContext(t.Context(), `SELECT pg_catalog.count(*) FROM public.audit`).Scan(&audits); err != nil || audits != 0 {
				t.Errorf("%d rows were written, %v", audits, err)
			}
		})
	}
	c.T = t
	// The settings of a check end with it, and the checks of one run see the same rows.
	if code, err := c.submit(c.row("", orderOpen(admission.LockShare, "o1"), orderOpen(admission.LockVersion, "o2"), orderOpen(admission.LockUpdate, "o1"))); code != "" {
		t.Error(err)
	}
	var patience string
	w := c.w.(*Writer)
	if err := w.conn.QueryRowContext(t.Context(), `SELECT pg_catalog.concat(pg_catalog.current_setting('statement_timeout'), pg_catalog.current_setting('enable_seqscan'))`).Scan(&patience); err != nil || patience != "10soff" {
		t.Errorf("settings of the writer = %s, %v", patience, err)
	}
}

func (c *counter) version(id string) (n int) {
	c.Helper()
	if err := c.db.QueryRowContext(c.Context(), `SELECT version FROM public.orders WHERE id = $1`, id).Scan(&n); err != nil {
		c.Fatal(err)
	}
	return n
}

// A canceller is an application that cancels order o1, unless a run has the key o1.
type canceller struct {
	*counter
	*sql.Tx
	old int // version that it has read
}

func (c *counter) canceller(level sql.IsolationLevel) *canceller {
	c.Helper()
	tx, err := c.db.BeginTx(c.Context(), &sql.TxOptions{Isolation: level})
	if err != nil {
		c.Fatal(err)
	}
	return &canceller{counter: c, Tx: tx}
}

// look reports whether the canceller sees a run of the order.
func (x *canceller) look() (run bool, err error) {
	if err := x.QueryRowContext(x.Context(), `SELECT version FROM public.orders WHERE id = 'o1'`).Scan(&x.old); err != nil {
		return false, err
	}
	err = x.QueryRowContext(x.Context(), `SELECT EXISTS (SELECT FROM engine.runs WHERE workflow = 'w' AND key = 'o1')`).Scan(&run)
	return run, err
}

// cancel changes the row if it has the version that the canceller has read, and commits. It reports
// whether the order is cancelled.
func (x *canceller) cancel() bool {
	res, err := x.ExecContext(x.Context(), `UPDATE public.orders SET status = 'cancelled', version = version + 1 WHERE id = 'o1' AND version = $1`, x.old)
	if err != nil {
		_ = x.Rollback() // the transaction has failed already
		return false
	}
	n, err := res.RowsAffected()
	return x.Commit() == nil && err == nil && n == 1
}

var levels = []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

// S93: no run is accepted for an order that is cancelled at the same time. Which lock protects from
// which program is the table in docs/language.md: with version no write skew is possible, and with
// the other two only programs at read committed that lock the row first are safe.
func TestWriteSkew(t *testing.T) {
	dsn := migrated(t)
	shared := newCounter(t, dsn, dsn)
	for lock, name := range admission.LockNames {
		lock := admission.Lock(lock)
		for _, level := range levels {
			reset := func(t *testing.T) *counter {
				shared.T = t
				must(t, shared.db, `UPDATE public.orders SET status = 'open', version = 1; DELETE FROM engine.run; DELETE FROM engine.run_name; DELETE FROM engine.context`)
				return shared
			}
			t.Run(fmt.Sprintf("%s/%s/version compared", name, level), func(t *testing.T) {
				c := reset(t)
				x := c.canceller(level)
				if run, err := x.look(); run || err != nil {
					t.Fatalf("sees a run: %t, %v", run, err)
				}
				if _, err := c.submit(c.row("o1", orderOpen(lock, "o1"))); err != nil {
					t.Fatal(err)
				}
				if skew, want := x.cancel(), lock != admission.LockVersion; skew != want {
					t.Errorf("accepted and cancelled: %t, want %t", skew, want)
				}
			})
			t.Run(fmt.Sprintf("%s/%s/row locked first", name, level), func(t *testing.T) {
				c := reset(t)
				row := c.row("o1", orderOpen(lock, "o1"))
				wait, release := hold(t, c.db, row.Run, 0)
				accepted := make(chan error, 1)
				go func() { accepted <- c.bench.commit(t.Context(), row) }()
				wait(1) // the engine has checked the order, and its transaction is open
				x := c.canceller(level)
				cancelled := make(chan bool, 1)
				go func() {
					run, err := true, error(nil)
					if _, err = x.ExecContext(t.Context(), `SELECT FROM public.orders WHERE id = 'o1' FOR UPDATE`); err == nil {
						run, err = x.look()
					}
					if err != nil || run {
						_ = x.Rollback() // nothing was changed
						cancelled <- false
						return
					}
					cancelled <- x.cancel()
				}()
				wait(2)
				release()
				if err := <-accepted; err != nil {
					t.Fatal(err)
				}
				want := lock != admission.LockVersion && level != sql.LevelReadCommitted
				if skew := <-cancelled; skew != want {
					t.Errorf("accepted and cancelled: %t, want %t", skew, want)
				}
			})
			t.Run(fmt.Sprintf("%s/%s/changed first", name, level), func(t *testing.T) {
				c := reset(t)
				x := c.canceller(level)
				if _, err := x.look(); err != nil {
					t.Fatal(err)
				}
				if _, err := x.ExecContext(t.Context(), `UPDATE public.orders SET status = 'cancelled' WHERE id = 'o1'`); err != nil {
					t.Fatal(err)
				}
				code, err := c.submit(c.row("o1", orderOpen(lock, "o1")))
				var e *admission.Error
				if code != admission.Busy || !errors.As(err, &e) || !e.Temporary() {
					t.Errorf("submitted while the row is changed: %v, want busy", err)
				}
				if err := x.Commit(); err != nil {
					t.Fatal(err)
				}
				if code, err := c.submit(c.row("o1", orderOpen(lock, "o1"))); code != admission.Refused || !strings.Contains(err.Error(), "Order o1 is not open.") {
					t.Errorf("submitted after the row was changed: %v", err)
				}
			})
		}
	}
}

// S94: a check sees earlier runs of the key, and not the run that is being accepted.
func TestCheckSeesEarlierRuns(t *testing.T) {
	dsn := migrated(t)
	c := newCounter(t, dsn, dsn)
	key := "o1"
	check := admission.Check{
		Name: "first", Args: []*string{&key}, Message: "Order o1 has failed before.",
		SQL: `SELECT NOT EXISTS (SELECT FROM engine.runs r WHERE r.workflow = 'w' AND r.key = $1) FROM public.orders o WHERE o.id = $1`,
	}
	first := c.row(key, check)
	if code, err := c.submit(first); code != "" {
		t.Fatal(err)
	}
	if err := c.bench.commit(t.Context(), store.Transition{Run: first.Run, Seq: 1, At: at, State: status.RunFailed, NextCheck: store.Never, Data: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if code, err := c.submit(c.row(key, check)); code != admission.Refused {
		t.Errorf("an earlier run of the key is not seen: %q, %v", code, err)
	}
	if code, err := c.submit(c.row("o2", orderOpen(admission.LockShare, "o2"))); code != "" {
		t.Errorf("another key is refused: %v", err)
	}
}

// A submission that is made again after it was accepted is that run, whatever the rows are now.
func TestCheckOfAnAcceptedRun(t *testing.T) {
	for name, landed := range map[string]bool{"the answer is lost": true, "the request is lost": false} {
		t.Run(name, func(t *testing.T) {
			dsn := migrated(t)
			p, through := newProxy(t, dsn)
			c := newCounter(t, dsn, through)
			p.loseNext(landed, func() {
				if _, err := c.db.ExecContext(context.WithoutCancel(t.Context()), `UPDATE public.orders SET status = 'cancelled' WHERE id = 'o1'`); err != nil {
					t.Error(err)
				}
			})
			row := c.row("", orderOpen(admission.LockShare, "o1"))
			code, err := c.submit(row)
			if want := map[bool]admission.Code{true: "", false: admission.Refused}[landed]; code != want {
				t.Fatalf("code = %q, want %q: %v", code, want, err)
			}
			if landed {
				if err := c.bench.commit(t.Context(), row); !errors.Is(err, store.ErrExists) {
					t.Errorf("the same row again: %v, want that it exists", err)
				}
			}
		})
	}
}

// An engine dies between the check and the commit: nothing is stored, and no version has changed.
// Then the writer tries again, and the version changes once.
func TestCheckOfADeadSession(t *testing.T) {
	dsn := migrated(t)
	c := newCounter(t, dsn, dsn)
	row := c.row("o1", orderOpen(admission.LockVersion, "o1"))
	wait, release := hold(t, c.db, row.Run, 0)
	accepted := make(chan error, 1)
	go func() { accepted <- c.bench.commit(t.Context(), row) }()
	wait(1)
	must(t, c.db, `SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE datname = pg_catalog.current_database() AND wait_event_type = 'Lock'`)
	wait(1)
	if v := c.version("o1"); v != 1 {
		t.Errorf("version = %d before the commit", v)
	}
	release()
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	if v := c.version("o1"); v != 2 {
		t.Errorf("version = %d, want 2", v)
	}
}

// A role without rights on the application's tables gets the GRANT that it needs.
func TestCheckWithoutRights(t *testing.T) {
	dsn := migrated(t)
	c := newCounter(t, dsn, dsn)
	w := c.w.(*Writer)
	role := "blind_" + strings.ToLower(t.Name())
	must(t, c.db, fmt.Sprintf(`CREATE ROLE %[1]s; GRANT USAGE ON SCHEMA engine TO %[1]s; GRANT ALL ON ALL TABLES IN SCHEMA engine TO %[1]s; GRANT SELECT ON public.orders TO %[1]s`, role))
	t.Cleanup(func() {
		if _, err := c.db.ExecContext(context.WithoutCancel(t.Context()), "DROP OWNED BY "+role+"; DROP ROLE "+role); err != nil {
			t.Log(err) // the role goes with the server
		}
	})
	if _, err := w.conn.ExecContext(t.Context(), "SET ROLE "+role); err != nil {
		t.Fatal(err)
	}
	for _, lock := range []admission.Lock{admission.LockShare, admission.LockUpdate, admission.LockVersion} {
		if code, err := c.submit(c.row("", orderOpen(lock, "o1"))); code != admission.Failed || !strings.Contains(err.Error(), "GRANT SELECT, UPDATE (version)") {
			t.Errorf("%v: %v", lock, err)
		}
	}
	must(t, c.db, "GRANT UPDATE (version) ON public.orders TO "+role)
	for _, lock := range []admission.Lock{admission.LockShare, admission.LockUpdate, admission.LockVersion} {
		if code, err := c.submit(c.row("", orderOpen(lock, "o1"))); code != "" {
			t.Errorf("%v: %v", lock, err)
		}
	}
}
