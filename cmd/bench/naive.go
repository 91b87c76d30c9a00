package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/store/naming"
)

// naiveConnections is the number of database connections of the naive store.
const naiveConnections = 64

// A naive store works like the stores of usual workflow engines: it updates the rows of runs
// and steps in place. Each change is a separate transaction (BEGIN, UPDATE, COMMIT). The first
// commit creates a run with all its steps pending. Then each start and each finish of a step,
// and the end of the run, is one commit: twelve commits for five steps. An index on complete-by
// finds late steps. The naive store writes the same values as the engine's own store, each
// value once. The engine starts the work that follows a change only after the commit.
//
// The engine is the same as with the other stores. It reads from a store in memory, so it is
// faster than a real engine of this design.
type naive struct {
	store.Full
	conns chan *naiveConn
	db    *sql.DB

	mu    sync.Mutex               // protects the field `steps`
	steps map[store.WorkflowID]int // number of steps of each workflow
}

const naiveSchema = `
CREATE SCHEMA naive;
CREATE TABLE naive.run (
  run_id int8 PRIMARY KEY, name text NOT NULL UNIQUE, workflow_id int4 NOT NULL, state int2 NOT NULL, owner int4 NOT NULL,
  next_check timestamptz, created_at timestamptz NOT NULL, finished_at timestamptz, data bytea NOT NULL);
CREATE INDEX ON naive.run (owner, next_check) WHERE state < 10;
CREATE TABLE naive.step (
  run_id int8, step int4, state int2 NOT NULL, attempt int2 NOT NULL, failures int2 NOT NULL, complete_by timestamptz, data bytea,
  PRIMARY KEY (run_id, step));
CREATE INDEX ON naive.step (complete_by) WHERE state = 2`

// newNaive creates the tables of a naive store in a database, and opens the connections.
func newNaive(ctx context.Context, d *database, connections int) (*naive, error) {
	if err := d.exec(ctx, "make the naive tables", naiveSchema); err != nil {
		return nil, err
	}
	u := *d.dsn
	u.RawQuery = addQuery(u.RawQuery, "binary_parameters=yes")
	db, err := sql.Open("postgres", u.String())
	if err != nil {
		return nil, fmt.Errorf("naive: %w", err)
	}
	n := &naive{Full: store.Complete(memory.New(memory.Options{})), db: db, conns: make(chan *naiveConn, connections), steps: map[store.WorkflowID]int{}}
	for range connections {
		c, err := openNaive(ctx, db)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("naive: %w", err), n.Close())
		}
		n.conns <- c
	}
	return n, nil
}

func addQuery(query, more string) string {
	if query == "" {
		return more
	}
	return query + "&" + more
}

// naiveOptions returns the options of an engine that commits each transition separately and
// immediately. The engine has as many writers as there are connections, so that no transition
// waits for the commit of another one.
func naiveOptions() engine.Options {
	return engine.Options{Writers: naiveConnections, MaxBatchRows: 1}
}

// Close closes the connections of the naive store.
func (n *naive) Close() error { return n.db.Close() }

// PutDefinition stores the definition in the memory store, and records how many steps each
// workflow has.
func (n *naive) PutDefinition(ctx context.Context, d store.Definition) (map[string]store.WorkflowID, error) {
	ids, err := n.Store.PutDefinition(ctx, d)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range d.Workflows {
		if id, ok := ids[w.Name]; ok {
			n.steps[id] = len(w.Steps)
		}
	}
	return ids, err
}

func (n *naive) stepsOf(id store.WorkflowID) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.steps[id]
}

// OpenWriter returns a writer that wraps the writer of the memory store.
func (n *naive) OpenWriter(ctx context.Context, id store.EngineID, k int) (store.Writer, error) {
	w, err := n.Store.OpenWriter(ctx, id, k)
	if err != nil {
		return nil, err
	}
	return &naiveWriter{Writer: w, n: n}, nil
}

type naiveWriter struct {
	store.Writer
	n *naive
}

// Commit executes the database transactions of all transitions in the batch, concurrently. Then it
// commits the batch in the memory store.
func (w *naiveWriter) Commit(ctx context.Context, batch []store.Transition) ([]store.Outcome, error) {
	errs := make([]error, len(batch))
	var wg sync.WaitGroup
	for i := range batch[1:] {
		wg.Go(func() { errs[i+1] = w.n.commit(&batch[i+1]) })
	}
	errs[0] = w.n.commit(&batch[0])
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return w.Writer.Commit(ctx, batch)
}

// Submit commits the first transition of a new run.
func (w *naiveWriter) Submit(ctx context.Context, t store.Transition, s naming.Names) (store.Submitted, error) {
	t.Names = &s
	out, err := w.Commit(ctx, []store.Transition{t})
	if err != nil {
		return store.Submitted{}, err
	}
	return out[0].Submitted, out[0].Err
}

// commit makes the transactions of one transition, one after the other. The first transition of a
// run begins with a transaction that creates the run. Then there is a transaction for each step
// that has ended, and for each step that starts. The last transaction is for a new status of the
// run. It is also made for a later transition that changes no step.
func (n *naive) commit(t *store.Transition) error {
	c := <-n.conns
	defer func() { n.conns <- c }()
	data := t.Data
	if t.Seq == 0 {
		if err := c.create(t, n.stepsOf(t.Workflow)); err != nil {
			return err
		}
		data = nil
	}
	commits := 0
	for _, starting := range []bool{false, true} {
		for _, s := range t.Steps {
			if (s.State == status.StepRunning) != starting || t.Seq == 0 && !starting {
				continue
			}
			if err := c.step(t.Run, s, data); err != nil {
				return err
			}
			data = nil
			commits++
		}
	}
	if t.Seq > 0 && (t.State != status.RunInvalid || commits == 0) {
		return c.run(t, data)
	}
	return nil
}

// A naiveConn is a connection with its prepared statements.
type naiveConn struct {
	conn                                 *sql.Conn
	insertRun, insertSteps, update, stat *sql.Stmt
}

func openNaive(ctx context.Context, db *sql.DB) (*naiveConn, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c := &naiveConn{conn: conn}
	for text, stmt := range map[string]**sql.Stmt{
		`INSERT INTO naive.run (run_id, name, workflow_id, state, owner, next_check, created_at, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`:         &c.insertRun,
		`INSERT INTO naive.step (run_id, step, state, attempt, failures) SELECT $1, g, 1, 0, 0 FROM generate_series(0, $2::int4 - 1) g`:                 &c.insertSteps,
		`UPDATE naive.step SET state = $3, attempt = $4, failures = $5, complete_by = $6, data = coalesce($7, data) WHERE run_id = $1 AND step = $2`:    &c.update,
		`UPDATE naive.run SET state = CASE $2::int2 WHEN 0 THEN state ELSE $2::int2 END, finished_at = $3, data = coalesce($4, data) WHERE run_id = $1`: &c.stat,
	} {
		if *stmt, err = conn.PrepareContext(ctx, text); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// transact runs fn in one transaction. The context of fn cannot be cancelled, because a context
// that can be cancelled costs a goroutine for each statement.
func (c *naiveConn) transact(fn func(ctx context.Context) error) error {
	ctx := context.Background()
	if _, err := c.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	if err := fn(ctx); err != nil {
		return err // the benchmark ends, so no ROLLBACK is needed
	}
	_, err := c.conn.ExecContext(ctx, "COMMIT")
	return err
}

func (c *naiveConn) create(t *store.Transition, steps int) error {
	return c.transact(func(ctx context.Context) error {
		name := naming.RunName(t.Run)
		if t.Names != nil && t.Names.Name != "" {
			name = t.Names.Name
		}
		if _, err := c.insertRun.ExecContext(ctx, int64(t.Run), name, int64(t.Workflow), int64(t.State), int64(*t.Owner), instant(t.NextCheck), t.At, t.Data); err != nil {
			return fmt.Errorf("naive: create: %w", err)
		}
		if _, err := c.insertSteps.ExecContext(ctx, int64(t.Run), steps); err != nil {
			return fmt.Errorf("naive: create: %w", err)
		}
		return nil
	})
}

func (c *naiveConn) step(run status.RunID, s store.StepRow, data []byte) error {
	return c.transact(func(ctx context.Context) error {
		if _, err := c.update.ExecContext(ctx, int64(run), int64(s.Node), int64(s.State), s.Attempt, s.Failures, instant(s.CompleteBy), data); err != nil {
			return fmt.Errorf("naive: step: %w", err)
		}
		return nil
	})
}

func (c *naiveConn) run(t *store.Transition, data []byte) error {
	return c.transact(func(ctx context.Context) error {
		var finished any
		if t.State.Final() {
			finished = t.At
		}
		if _, err := c.stat.ExecContext(ctx, int64(t.Run), int64(t.State), finished, data); err != nil {
			return fmt.Errorf("naive: run: %w", err)
		}
		return nil
	})
}

// instant returns a time as a parameter of a statement. The zero time becomes NULL.
func instant(t time.Time) sql.NullTime { return sql.NullTime{Time: t, Valid: !t.IsZero()} }
