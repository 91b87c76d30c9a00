package postgres

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/store"
)

const (
	settingGet = `SELECT value FROM engine.setting WHERE name = $1`
	// settingPin stores the value of a setting if the setting has no value yet, and returns
	// the stored value. It uses DO UPDATE, because with DO NOTHING it would not return a
	// value that another session stored meanwhile.
	settingPin    = `INSERT INTO engine.setting AS s (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = s.value RETURNING value`
	definitionPut = `INSERT INTO engine.definition (digest, data) VALUES ($1, $2) ON CONFLICT DO NOTHING`
	workflowPut   = `INSERT INTO engine.workflow (digest, name, retention) VALUES ($1, $2, nullif($3::int8, 0)) RETURNING workflow_id`
	workflowSteps = `INSERT INTO engine.workflow_step (workflow_id, node, name) SELECT $1, n - 1, name FROM pg_catalog.unnest($2::text[]) WITH ORDINALITY s(name, n)`
	workflowIDs   = `SELECT name, workflow_id FROM engine.workflow WHERE digest = $1`
	workflowGet   = `
SELECT d.digest, d.data, w.name, array(SELECT o.name FROM engine.workflow o WHERE o.digest = d.digest ORDER BY o.workflow_id),
  array(SELECT coalesce(o.retention, 0) FROM engine.workflow o WHERE o.digest = d.digest ORDER BY o.workflow_id)
FROM engine.workflow w JOIN engine.definition d USING (digest) WHERE w.workflow_id = $1`
	stepsByDigest = `
SELECT w.name, s.name FROM engine.workflow w JOIN engine.workflow_step s USING (workflow_id) WHERE w.digest = $1 ORDER BY w.workflow_id, s.node`
)

// catalogue is the part of a Store that keeps definitions and settings.
type catalogue struct {
	*access
	flows sync.Map // set of WorkflowIDs that are known to be in the database
}

// PutDefinition stores a definition, unless its digest is stored already. It returns the
// ids of the workflows by name. If two callers store the same definition at the same time,
// the second waits for the first, and both get the same ids.
func (s *catalogue) PutDefinition(ctx context.Context, d store.Definition) (map[string]store.WorkflowID, error) {
	ids, err := s.workflowIDs(ctx, d.Digest)
	if err != nil || len(ids) > 0 {
		return ids, err
	}
	if err := s.putDefinition(ctx, d); err != nil {
		return nil, wrap("store definition", err)
	}
	return s.workflowIDs(ctx, d.Digest)
}

func (s *catalogue) putDefinition(ctx context.Context, d store.Definition) (err error) {
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if e := tx.Rollback(); e != nil && !errors.Is(e, sql.ErrTxDone) {
			err = errors.Join(err, e)
		}
	}()
	res, err := tx.ExecContext(ctx, definitionPut, d.Digest, d.Data)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err // if err is nil, another caller has stored the definition
	}
	for _, w := range d.Workflows {
		var id int64
		if err := tx.QueryRowContext(ctx, workflowPut, d.Digest, w.Name, w.Retention.Microseconds()).Scan(&id); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, workflowSteps, id, pq.StringArray(w.Steps)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (s *catalogue) workflowIDs(ctx context.Context, digest string) (map[string]store.WorkflowID, error) {
	rows, err := s.db.QueryContext(ctx, workflowIDs, digest)
	if err != nil {
		return nil, wrap("read workflows", err)
	}
	defer rows.Close()
	ids := make(map[string]store.WorkflowID)
	for rows.Next() {
		var (
			name string
			id   int32
		)
		if err := rows.Scan(&name, &id); err != nil {
			return nil, wrap("read workflows", err)
		}
		ids[name] = store.WorkflowID(id)
		s.known(store.WorkflowID(id))
	}
	if err := rows.Err(); err != nil {
		return nil, wrap("read workflows", err)
	}
	return ids, nil
}

// The method `known` adds a workflow of the database to the set s.flows. No method removes it
// again, because the store never removes a workflow.
func (s *catalogue) known(id store.WorkflowID) { s.flows.Store(id, true) }

// knows reports whether the method `known` was called for a workflow. If the result is false, the
// workflow may be in the database all the same.
func (s *catalogue) knows(id store.WorkflowID) bool {
	_, ok := s.flows.Load(id)
	return ok
}

// Definition returns the definition that contains the workflow, and the name of the
// workflow. It returns ErrNotFound if there is no such workflow.
func (s *catalogue) Definition(ctx context.Context, id store.WorkflowID) (store.Definition, string, error) {
	var (
		d     store.Definition
		name  string
		names pq.StringArray
		kept  pq.Int64Array // retention of each workflow, in microseconds
	)
	err := s.db.QueryRowContext(ctx, workflowGet, int64(id)).Scan(&d.Digest, &d.Data, &name, &names, &kept)
	if noRows(err) {
		return store.Definition{}, "", store.ErrNotFound
	}
	if err != nil {
		return store.Definition{}, "", wrap("read definition", err)
	}
	steps, err := s.steps(ctx, d.Digest)
	if err != nil {
		return store.Definition{}, "", err
	}
	for i, n := range names {
		d.Workflows = append(d.Workflows, store.DefinedWorkflow{Name: n, Steps: steps[n], Retention: time.Duration(kept[i]) * time.Microsecond})
	}
	return d, name, nil
}

// steps returns the names of the steps of each workflow of a definition.
func (s *catalogue) steps(ctx context.Context, digest string) (map[string][]string, error) {
	rows, err := s.db.QueryContext(ctx, stepsByDigest, digest)
	if err != nil {
		return nil, wrap("read steps", err)
	}
	defer rows.Close()
	steps := make(map[string][]string)
	for rows.Next() {
		var flow, step string
		if err := rows.Scan(&flow, &step); err != nil {
			return nil, wrap("read steps", err)
		}
		steps[flow] = append(steps[flow], step)
	}
	if err := rows.Err(); err != nil {
		return nil, wrap("read steps", err)
	}
	return steps, nil
}

// Pin stores the value of a setting if the setting has no value yet. It returns the stored
// value. If `value` is "", Pin only reads the setting.
func (s *catalogue) Pin(ctx context.Context, setting, value string) (string, error) {
	var pinned string
	if value != "" {
		if err := s.db.QueryRowContext(ctx, settingPin, setting, value).Scan(&pinned); err != nil {
			return "", wrap("store setting "+setting, err)
		}
		return pinned, nil
	}
	err := s.db.QueryRowContext(ctx, settingGet, setting).Scan(&pinned)
	if err != nil && !noRows(err) {
		return "", wrap("read setting "+setting, err)
	}
	return pinned, nil
}
