package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// readBegin begins a read-only transaction for the queries of people. The server limits
// each query, and each pause between queries, to 30 s. All settings last only until the
// transaction ends, because behind a pooler another client gets the session afterwards.
const readBegin = `
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL statement_timeout = '30s'; SET LOCAL idle_in_transaction_session_timeout = '30s';
SET LOCAL jit = off;
` + transactionPath

// readEnd is how long the method `end` waits for the answer to ROLLBACK.
const readEnd = 5 * time.Second

// A reading holds the rows of a query, and the read-only transaction in which they are read.
// The transaction uses a connection of the pool access.reads. So commits and ticks get
// connections from their own pool, even if people read for a long time. The method Close
// ends the transaction.
type reading struct {
	*sql.Rows
	conn *sql.Conn
}

// read runs a query in a read-only transaction. The caller must close the result.
func (s *access) read(ctx context.Context, query string, args ...any) (*reading, error) {
	conn, err := s.reads.Conn(ctx)
	if err != nil {
		return nil, err
	}
	l := &reading{conn: conn}
	if _, err = conn.ExecContext(ctx, readBegin); err == nil {
		l.Rows, err = conn.QueryContext(ctx, query, args...)
	}
	if err != nil {
		return nil, errors.Join(err, l.end())
	}
	return l, nil
}

// readOne runs a query in a read-only transaction, and calls scan with the first row. It
// returns sql.ErrNoRows if there is no row.
func (s *access) readOne(ctx context.Context, scan func(row interface{ Scan(...any) error }) error, query string, args ...any) error {
	l, err := s.read(ctx, query, args...)
	if err != nil {
		return err
	}
	defer l.Close()
	if !l.Next() {
		if err := l.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	if err := scan(l); err != nil {
		return err
	}
	return l.Err()
}

// Close closes the rows, ends the transaction and returns the connection to the pool.
func (l *reading) Close() error { return errors.Join(l.Rows.Close(), l.end()) }

// end ends the transaction with ROLLBACK. If ROLLBACK fails, end makes the pool close the
// connection, which also ends the transaction.
func (l *reading) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), readEnd)
	defer cancel()
	if _, err := l.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		// This error makes the pool close the connection.
		_ = l.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	if err := l.conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		return err
	}
	return nil
}

// rowList reads journal rows of a run. It returns no rows if retention has removed the run,
// even if the rows are still in their partition.
const rowList = `
SELECT seq, at, data FROM engine.journal
WHERE run_id = $1 AND seq >= $2 AND EXISTS (SELECT FROM engine.run WHERE run_id = $1) ORDER BY seq LIMIT $3`

// Rows returns the journal rows of a run whose seq is at least the parameter `from`. It
// returns no more rows than the parameter `limit` says.
func (s *runs) Rows(ctx context.Context, id status.RunID, from int32, limit int) ([]store.Row, error) {
	rows, err := s.read(ctx, rowList, int64(id), int64(from), limit)
	if err != nil {
		return nil, wrap("read rows", err)
	}
	defer rows.Close()
	var out []store.Row
	for rows.Next() {
		var r store.Row
		if err := rows.Scan(&r.Seq, &r.At, &r.Data); err != nil {
			return nil, wrap("read rows", err)
		}
		r.At = r.At.UTC()
		out = append(out, r)
	}
	if err := rows.Err(); err != nil {
		return nil, wrap("read rows", err)
	}
	return out, nil
}

// views implements store.Views: it lists steps, alerts and places for people.
type views struct{ *access }

// stepSource lists the nodes of a run (its steps and instances), and then the changes of the nodes'
// states. It is one statement, so all rows are from the same moment. The steps of the definition
// come first; their column `what` is -1. Then come the nodes in engine.run_step; their column
// `what` is 0. If the run was moved, the names in engine.run_step replace the names of the
// definition (storekit.FoldSteps). The view engine.steps shows the same data, but is slower,
// because it decodes the changes in SQL.
const stepSource = `
SELECT -1 AS what, s.node AS ord, s.node, s.node AS step, s.name, r.owner, NULL::bytea AS steps
FROM engine.run r JOIN engine.workflow_step s USING (workflow_id) WHERE r.run_id = $1
UNION ALL SELECT 0, i.node, i.node, i.step, i.name, r.owner, NULL FROM engine.run r JOIN engine.run_step i USING (run_id) WHERE r.run_id = $1
UNION ALL SELECT 1, seq, 0, 0, '', 0, steps FROM engine.journal WHERE run_id = $1 AND steps IS NOT NULL
ORDER BY what, ord`

// StepRows returns the steps of a run, in the order of their node numbers.
func (s *views) StepRows(ctx context.Context, id status.RunID) ([]store.StepView, error) {
	rows, err := s.read(ctx, stepSource, int64(id))
	if err != nil {
		return nil, wrap("read steps", err)
	}
	defer rows.Close()
	var (
		nodes   []store.NodeName
		changes []store.StepRow
		owner   store.EngineID
	)
	for rows.Next() {
		var (
			what, ord int64
			n         store.NodeName
			by        int32
			steps     []byte
		)
		if err := rows.Scan(&what, &ord, &n.Node, &n.Step, &n.Name, &by, &steps); err != nil {
			return nil, wrap("read steps", err)
		}
		if what <= 0 {
			nodes, owner = append(nodes, n), store.EngineID(by)
			continue
		}
		c, err := storekit.DecodeStepRows(steps)
		if err != nil {
			return nil, wrap("read steps", err)
		}
		changes = append(changes, c...)
	}
	if err := rows.Err(); err != nil {
		return nil, wrap("read steps", err)
	}
	return storekit.FoldSteps(nodes, owner, changes), nil
}

// Queries that list alerts. All of them return the columns of alertColumns. The LIMIT is in
// a subquery, so that the joins read only the alerts that are returned.
const (
	alertColumns = `
SELECT a.id, a.run_id, coalesce(x.name, engine.run_public(a.run_id)), coalesce(x.workflow, ''), coalesce(x.key, ''), a.at, a.kind, a.step, a.code, a.message
FROM `
	alertJoins = ` a LEFT JOIN LATERAL (
  SELECT n.name, n.key, w.name AS workflow FROM engine.run r JOIN engine.workflow w USING (workflow_id) LEFT JOIN engine.run_name n USING (run_id)
  WHERE r.run_id = a.run_id OFFSET 0) x ON true`

	alertList      = alertColumns + `(SELECT * FROM engine.alert ORDER BY at DESC, id DESC LIMIT $1)` + alertJoins + ` ORDER BY a.at DESC, a.id DESC`
	alertListOfRun = alertColumns + `(SELECT * FROM engine.alert WHERE run_id = $2 ORDER BY at DESC, id DESC LIMIT $1)` + alertJoins + ` ORDER BY a.at DESC, a.id DESC`
	// alertUndelivered lists the alerts that were not pushed to people yet, oldest first.
	alertUndelivered = alertColumns + `(SELECT * FROM engine.alert WHERE delivered_at IS NULL ORDER BY id LIMIT $1)` + alertJoins + ` ORDER BY a.id`
)

// Alerts returns the alerts of a run, newest first. If the run's id is 0, it returns alerts
// of all runs. It returns no more alerts than the parameter `limit` says.
func (s *views) Alerts(ctx context.Context, id status.RunID, limit int) ([]store.AlertRow, error) {
	if id != 0 {
		return s.alerts(ctx, "list alerts", alertListOfRun, limit, int64(id))
	}
	return s.alerts(ctx, "list alerts", alertList, limit)
}

func (s *views) alerts(ctx context.Context, what, query string, args ...any) ([]store.AlertRow, error) {
	rows, err := s.read(ctx, query, args...)
	if err != nil {
		return nil, wrap(what, err)
	}
	defer rows.Close()
	var out []store.AlertRow
	for rows.Next() {
		var a store.AlertRow
		if err := rows.Scan(&a.ID, &a.Run, &a.Name, &a.Workflow, &a.Key, &a.At, &a.Kind, &a.Step, &a.Code, &a.Message); err != nil {
			return nil, wrap(what, err)
		}
		a.At, a.Kind = a.At.UTC(), storekit.AlertKind(a.Kind)
		out = append(out, a)
	}
	if err := rows.Err(); err != nil {
		return nil, wrap(what, err)
	}
	return out, nil
}
