package sqlite

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

const (
	settingGet    = `SELECT value FROM setting WHERE name = ?1`
	settingPin    = `INSERT INTO setting (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING`
	definitionPut = `INSERT INTO definition (digest, data, created_at) VALUES (?1, ?2, ?3) ON CONFLICT (digest) DO NOTHING`
	workflowPut   = `INSERT INTO workflow (digest, name, retention) VALUES (?1, ?2, nullif(?3, 0))`
	workflowStep  = `INSERT INTO workflow_step (workflow_id, node, name) VALUES (?1, ?2, ?3)`
	workflowIDs   = `SELECT name, workflow_id FROM workflow WHERE digest = ?1`
	definitionGet = `SELECT d.digest, d.data, w.name FROM workflow w JOIN definition d USING (digest) WHERE w.workflow_id = ?1`
	workflowSteps = `
SELECT w.name, coalesce(w.retention, 0), s.name FROM workflow w LEFT JOIN workflow_step s USING (workflow_id) WHERE w.digest = ?1 ORDER BY w.workflow_id, s.node`
)

// catalogue is the part of a Store that keeps definitions and settings.
type catalogue struct{ *file }

// PutDefinition stores a definition, unless a definition with this digest is stored already. It
// returns the ids of the definition's workflows by name.
func (s *catalogue) PutDefinition(ctx context.Context, d store.Definition) (map[string]store.WorkflowID, error) {
	ids := make(map[string]store.WorkflowID, len(d.Workflows))
	err := s.writeUnowned(ctx, "store definition", func(tx *tx) error {
		res, err := tx.exec(definitionPut, d.Digest, blob(d.Data), micros(now()))
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return err
		}
		if n > 0 {
			if err := s.putWorkflows(tx, d); err != nil {
				return err
			}
		}
		return tx.each(workflowIDs, []any{d.Digest}, func(r row) error {
			var (
				name string
				id   int32
			)
			err := r.Scan(&name, &id)
			ids[name] = store.WorkflowID(id)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// blob replaces nil by an empty slice, because nil would be stored as NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func (s *catalogue) putWorkflows(x *tx, d store.Definition) error {
	for _, w := range d.Workflows {
		res, err := x.exec(workflowPut, d.Digest, w.Name, w.Retention.Microseconds())
		if err != nil {
			return err
		}
		id, err := res.LastInsertId()
		if err != nil {
			return err
		}
		for i, name := range w.Steps {
			if _, err := x.exec(workflowStep, id, i, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Definition returns the definition that contains the workflow, and the name of the workflow.
// It returns ErrNotFound if there is no such workflow.
func (s *catalogue) Definition(ctx context.Context, id store.WorkflowID) (store.Definition, string, error) {
	var (
		d    store.Definition
		name string
	)
	err := s.query(ctx, "read definition", definitionGet, []any{int64(id)}, func(r row) error {
		return r.Scan(&d.Digest, &d.Data, &name)
	})
	if err != nil {
		return store.Definition{}, "", err
	}
	if name == "" {
		return store.Definition{}, "", store.ErrNotFound
	}
	err = s.query(ctx, "read definition", workflowSteps, []any{d.Digest}, func(r row) error {
		var (
			flow string
			kept int64
			step *string // nil = the workflow has no steps
		)
		if err := r.Scan(&flow, &kept, &step); err != nil {
			return err
		}
		if n := len(d.Workflows); n == 0 || d.Workflows[n-1].Name != flow {
			d.Workflows = append(d.Workflows, store.DefinedWorkflow{Name: flow, Retention: time.Duration(kept) * time.Microsecond})
		}
		if step != nil {
			w := &d.Workflows[len(d.Workflows)-1]
			w.Steps = append(w.Steps, *step)
		}
		return nil
	})
	if err != nil {
		return store.Definition{}, "", err
	}
	return d, name, nil
}

// Pin stores the value of a setting if the setting has no value yet. It returns the stored value.
// If `value` is "", Pin only reads the setting.
func (s *catalogue) Pin(ctx context.Context, setting, value string) (string, error) {
	if value != "" {
		err := s.writeUnowned(ctx, "store setting "+setting, func(tx *tx) error {
			_, err := tx.exec(settingPin, setting, value)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	var pinned string
	err := s.query(ctx, "read setting "+setting, settingGet, []any{setting}, func(r row) error { return r.Scan(&pinned) })
	return pinned, err
}
