// Package admission runs the checks of a submission in the database.
//
//	in:   a connection with an open transaction, and the checks of one submission
//	out:  nil if all checks accept the run; otherwise an error that says why a check refuses the run
//
// The caller ends the transaction. If a check does not accept the run, the caller must roll the
// transaction back. If all checks accept the run, the checked rows stay locked until the run is
// committed.
package admission

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/store/admission"
)

// While a check runs, the writer of the engine commits nothing else. So a check must not wait long:
// a submission whose rows are locked by another program is tried again later.
const (
	lockTimeout      = "250ms" // longest wait for the lock of a row
	statementTimeout = "1s"    // longest time that one statement of a check takes
	maxRows          = 1000    // largest number of rows that one check may return
)

// settings has the session settings for checks. The usual settings of a writer's session suit only
// the engine's own statements, but a check is a statement of the workflow's author.
var settings = [][2]string{
	{"lock_timeout", lockTimeout}, {"statement_timeout", statementTimeout}, {"plan_cache_mode", "auto"},
	{"enable_seqscan", "on"}, {"enable_bitmapscan", "on"}, {"enable_hashjoin", "on"}, {"enable_mergejoin", "on"},
}

// countsChanges is the setting with which the server counts the rows that a transaction changes. It
// is on by default, because autovacuum needs it.
const countsChanges = "track_counts"

const (
	// settingsRead returns the present values of the named settings.
	settingsRead = `SELECT pg_catalog.current_setting(s.name) FROM pg_catalog.unnest($1::text[]) WITH ORDINALITY AS s(name, n) ORDER BY s.n`
	// settingsWrite changes the named settings until the transaction ends.
	settingsWrite = `SELECT pg_catalog.set_config(s.name, s.value, true) FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[])) AS s(name, value)`

	// changesRead returns the tables in which this transaction has changed rows, and how many rows.
	// It also counts rows that a function or a trigger has changed, because the server counts all
	// changed rows for its statistics.
	changesRead = `
SELECT c.oid::int8, pg_catalog.concat(n.nspname, '.', c.relname),
       pg_catalog.pg_stat_get_xact_tuples_updated(c.oid),
       pg_catalog.pg_stat_get_xact_tuples_inserted(c.oid) + pg_catalog.pg_stat_get_xact_tuples_updated(c.oid) + pg_catalog.pg_stat_get_xact_tuples_deleted(c.oid)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND pg_catalog.pg_stat_get_xact_tuples_inserted(c.oid) + pg_catalog.pg_stat_get_xact_tuples_updated(c.oid) + pg_catalog.pg_stat_get_xact_tuples_deleted(c.oid) > 0`

	// readsRead returns the tables outside of the engine that this transaction has used. A SELECT
	// with a locking clause takes the table lock RowShareLock on each table whose rows it locks. It
	// takes AccessShareLock on each table that it only reads: in a subquery, in WITH, or in a
	// function.
	readsRead = `
SELECT c.oid::int8, pg_catalog.concat(n.nspname, '.', c.relname), pg_catalog.bool_or(l.mode = 'AccessShareLock'),
       pg_catalog.bool_or(l.mode = 'RowShareLock') AND c.relkind = 'r' AND NOT c.relispartition
FROM pg_catalog.pg_locks l
JOIN pg_catalog.pg_class c ON c.oid = l.relation
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE l.locktype = 'relation' AND l.pid = pg_catalog.pg_backend_pid() AND l.granted
  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
  AND c.relkind IN ('r', 'p', 'f', 'm') AND n.nspname NOT IN ('engine', 'pg_catalog', 'pg_toast', 'information_schema')
GROUP BY c.oid, n.nspname, c.relname, c.relkind, c.relispartition ORDER BY 2`
)

// Run runs checks in the open transaction of conn. It returns an *admission.Error if a check does
// not accept the run. Any other error says that the database does not work at present.
func Run(ctx context.Context, conn *sql.Conn, checks []admission.Check) error {
	names, own := make([]string, len(settings)), make([]string, len(settings))
	for i, s := range settings {
		names[i], own[i] = s[0], s[1]
	}
	before, err := readSettings(ctx, conn, append(names[:len(names):len(names)], countsChanges))
	if err != nil {
		return err
	}
	if before[len(names)] != "on" {
		return &admission.Error{
			Name: checks[0].Name, Code: admission.Failed,
			Detail: "the server does not count changed rows, so the engine cannot see whether the check changes rows: set " + countsChanges + " = on in the server",
		}
	}
	if _, err := conn.ExecContext(ctx, settingsWrite, pq.Array(names), pq.Array(own)); err != nil {
		return err
	}
	uses, err := usages(ctx, conn, checks)
	if err != nil {
		return err
	}
	for i := range checks {
		x := checkRun{conn: conn, check: &checks[i], uses: uses[i]}
		if err := x.do(ctx); err != nil {
			return err
		}
	}
	_, err = conn.ExecContext(ctx, settingsWrite, pq.Array(names), pq.Array(before[:len(names)]))
	return err
}

// readSettings returns the values of the named settings.
func readSettings(ctx context.Context, conn *sql.Conn, names []string) ([]string, error) {
	rows, err := conn.QueryContext(ctx, settingsRead, pq.Array(names))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

// A checkRun is one check that is running. It is not a run of a workflow.
type checkRun struct {
	conn  *sql.Conn
	check *admission.Check
	uses  map[int64]usage // see the function usages; nil = this is the only check
}

// refuse returns the error that says why the check does not accept the run. The parameter `err` is
// the cause; nil = none.
func (x *checkRun) refuse(code admission.Code, err error, detail string, args ...any) error {
	e := &admission.Error{Name: x.check.Name, Code: code, Detail: fmt.Sprintf(detail, args...), Err: err}
	if code == admission.Refused || code == admission.NoRow {
		e.Message = x.check.Message
	}
	return e
}

func (x *checkRun) do(ctx context.Context) error {
	reads, err := x.reads(ctx)
	if err != nil {
		return err
	}
	changes, err := x.changes(ctx)
	if err != nil {
		return err
	}
	found, err := x.ask(ctx)
	if err != nil {
		return err
	}
	now, err := x.changes(ctx)
	if err != nil {
		return err
	}
	if tables := now.since(changes); len(tables) > 0 {
		return x.refuse(admission.Writes, nil, "its SELECT changes rows of %s: a check only reads; write a step, or lock = \"version\" with bump, to change rows", strings.Join(tables, ", "))
	}
	used, err := x.reads(ctx)
	if err != nil {
		return err
	}
	locked, err := x.covered(reads, used)
	if err != nil || x.check.Lock != admission.LockVersion {
		return err
	}
	return x.bump(ctx, found, locked, now)
}

// selectText returns the SELECT of the check with its locking clause.
func (x *checkRun) selectText() string { return x.check.SQL + "\n" + x.check.Lock.Clause() }

// ask runs the SELECT of the check and returns the number of its rows.
func (x *checkRun) ask(ctx context.Context) (found int, err error) {
	stmt, args, err := x.prepare(ctx, x.selectText(), x.check.Args)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stmt.Close()) }()
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return 0, x.failed(err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return 0, err
	}
	if len(types) == 0 || types[0].DatabaseTypeName() != "BOOL" {
		kind := "no column"
		if len(types) > 0 {
			kind = "the type " + strings.ToLower(types[0].DatabaseTypeName())
		}
		return 0, x.refuse(admission.NotBoolean, nil, "the first column of its SELECT must be a boolean, and has %s: select a condition first, such as SELECT o.status = 'open'", kind)
	}
	var answer sql.NullBool
	to := make([]any, len(types))
	for i := range to {
		to[i] = new(sql.RawBytes)
	}
	to[0] = &answer
	refused := false
	for ; rows.Next(); found++ {
		if found == maxRows {
			return 0, x.refuse(admission.Failed, nil, "its SELECT returns more than %d rows: check fewer rows", maxRows)
		}
		if err := rows.Scan(to...); err != nil {
			return 0, err
		}
		refused = refused || !answer.Valid || !answer.Bool
	}
	switch err := rows.Err(); {
	case err != nil:
		return 0, x.failed(err)
	case found == 0:
		return 0, x.refuse(admission.NoRow, nil, "its SELECT returns no row")
	case refused:
		return 0, x.refuse(admission.Refused, nil, "")
	}
	return found, nil
}

// prepare prepares a statement of the check. The extended protocol of PostgreSQL takes only one
// statement, so a text with a second statement is refused.
func (x *checkRun) prepare(ctx context.Context, query string, params []*string) (stmt *sql.Stmt, args []any, err error) {
	if stmt, err = x.conn.PrepareContext(ctx, query); err != nil {
		return nil, nil, x.failed(err)
	}
	for _, p := range params {
		args = append(args, p)
	}
	return stmt, args, nil
}

// failed returns the error for a failed statement of the check. If the reason is the statement or a
// lock, this is an *admission.Error. If the database itself does not work, failed returns the
// parameter `err` unchanged.
func (x *checkRun) failed(err error) error {
	var e *pq.Error
	if !errors.As(err, &e) || len(e.Code) != 5 {
		return err
	}
	state := string(e.Code)
	switch state {
	case "55P03", "40P01", "40001":
		return x.refuse(admission.Busy, err, "another transaction keeps a row of this check locked for more than %s: submit the run again", lockTimeout)
	case "57014":
		return x.refuse(admission.Busy, err, "a statement of this check takes more than %s: add an index, or submit the run again", statementTimeout)
	case "42501":
		return x.refuse(admission.Failed, err, "the role of the engine has too few rights: to lock rows of a table, it needs SELECT and the right to change one column, such as GRANT SELECT, UPDATE (version) ON public.orders TO engine_work")
	case "42P01":
		return x.refuse(admission.Failed, err, "a table is not found; write its schema, such as public.orders")
	case "25006":
		return err
	}
	switch state[:2] {
	case "08", "53", "57", "58", "XX":
		return err
	}
	return x.refuse(admission.Failed, err, "the database refuses its statement")
}

// A usage says how this transaction has used one table.
type usage struct {
	name   string
	reads  bool // rows were read without a lock
	locked bool // rows were locked
}

// reads returns how this transaction has used the tables outside of the engine, by oid.
func (x *checkRun) reads(ctx context.Context) (map[int64]usage, error) {
	rows, err := x.conn.QueryContext(ctx, readsRead)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[int64]usage{}
	for rows.Next() {
		var (
			oid int64
			u   usage
		)
		if err := rows.Scan(&oid, &u.name, &u.reads, &u.locked); err != nil {
			return nil, err
		}
		out[oid] = u
	}
	return out, rows.Err()
}

// covered returns the tables whose rows the SELECT has locked, by oid. It returns an error if the
// SELECT has read a table without a lock: other transactions could change the rows before the run
// is accepted. The parameters `before` and `now` say how the transaction had used the tables before
// the SELECT, and after it. The server keeps table locks until the transaction ends. So `now` also
// has the tables of earlier checks. Of these, covered takes only the tables that x.uses names.
func (x *checkRun) covered(before, now map[int64]usage) (map[int64]string, error) {
	locked := map[int64]string{}
	var bare string
	for oid, u := range now {
		former, own := before[oid], x.uses[oid]
		if u.locked && (own.locked || !former.locked) {
			locked[oid] = u.name
		}
		if u.reads && (own.reads || !former.reads) && (bare == "" || u.name < bare) {
			bare = u.name
		}
	}
	if bare != "" {
		return nil, x.refuse(admission.NotLocked, nil, "its SELECT reads %s in a subquery, in WITH or in a function, where %s locks no rows: join the table in FROM, or write one admit block for each table", bare, x.check.Lock.Clause())
	}
	return locked, nil
}

// A count says how many rows of one table this transaction has changed.
type count struct {
	name         string
	updated, all int64
}

// counts holds the counts of tables, by oid.
type counts map[int64]count

// changes returns how many rows of each table this transaction has changed.
func (x *checkRun) changes(ctx context.Context) (counts, error) {
	rows, err := x.conn.QueryContext(ctx, changesRead)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := counts{}
	for rows.Next() {
		var (
			oid int64
			c   count
		)
		if err := rows.Scan(&oid, &c.name, &c.updated, &c.all); err != nil {
			return nil, err
		}
		out[oid] = c
	}
	return out, rows.Err()
}

// since returns the names of the tables that have more changed rows in c than in the parameter
// `before`.
func (c counts) since(before counts) []string {
	var names []string
	for oid, n := range c {
		if n.all > before[oid].all {
			names = append(names, n.name)
		}
	}
	return names
}

// bump runs the UPDATE of the check. The UPDATE must change rows of each table whose rows the
// SELECT has locked. If the SELECT has locked rows of only one table, the UPDATE must change at
// least as many rows as the SELECT has returned.
func (x *checkRun) bump(ctx context.Context, found int, locked map[int64]string, before counts) (err error) {
	stmt, args, err := x.prepare(ctx, x.check.Bump, x.check.BumpArgs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stmt.Close()) }()
	res, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return x.failed(err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return err
	}
	now, err := x.changes(ctx)
	if err != nil {
		return err
	}
	for _, table := range now.since(before) {
		if strings.HasPrefix(table, "engine.") || strings.HasPrefix(table, "pg_catalog.") {
			return x.refuse(admission.Writes, nil, "bump changes rows of %s: it may only change tables of your own", table)
		}
	}
	if n == 0 || len(locked) == 1 && n < int64(found) {
		return x.refuse(admission.NotBumped, nil, "bump changes %d rows, and the SELECT has checked %d: it must change the version of each of these rows", n, found)
	}
	for oid, name := range locked {
		if now[oid].updated == before[oid].updated {
			return x.refuse(admission.NotBumped, nil, "the SELECT has checked rows of %s, and bump does not change them: write one admit block for each table", name)
		}
	}
	return nil
}
