package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

const (
	workflowExists = `SELECT EXISTS (SELECT 1 FROM workflow WHERE workflow_id = ?1)`
	runNameHolder  = `SELECT run_id FROM run_name WHERE name = ?1`
	runNameAdd     = `INSERT INTO run_name (run_id, name, key, parent, "trigger") VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
	// contextHolder returns the run that took a key last, whether retention has removed this run,
	// the name of this run, and whether it holds the key at the time ?3 (naming.KeyScope.Holds). It
	// also returns the open run that waits for the key, and its name; 0 = none.
	contextHolder = `
SELECT c.run_id, r.run_id IS NULL, coalesce(n.name, c.run, ''), coalesce(` + contextHeld + `, 0), coalesce(w.run_id, 0), coalesce(wn.name, '')
FROM context c LEFT JOIN run r ON r.run_id = c.run_id LEFT JOIN run_name n ON n.run_id = c.run_id
LEFT JOIN run w ON w.run_id = c.next_run AND w.state < 10 LEFT JOIN run_name wn ON wn.run_id = w.run_id
WHERE c.workflow = ?1 AND c.key = ?2`
	contextPut = `
INSERT INTO context (workflow, key, run_id, scope, retain) VALUES (?, ?, ?, ?, nullif(?, 0)) ON CONFLICT (workflow, key) DO UPDATE SET run_id = excluded.run_id,
  scope = excluded.scope, retain = excluded.retain, reset_at = NULL, ended = NULL, ended_at = NULL, run = NULL, next_run = NULL, next_scope = NULL, next_retain = NULL`
)

// submit writes a run's first transition and its names. It writes nothing if another run has the
// name, or if the key is not free and t.Replaces does not allow to replace the run that has it. The
// name is inserted before the row of the journal. If the submission has no key, and the insert
// succeeds, the name was free, and no query is needed.
func (x *landing) submit(t *store.Transition) (store.Outcome, error) {
	if known, err := x.knows(t.Workflow); err != nil || !known {
		return store.Outcome{Err: fmt.Errorf("sqlite: run %d: no such workflow: %d", t.Run, t.Workflow)}, err
	}
	if !t.Names.Kept() {
		return x.unnamed(t)
	}
	var key, parent any // unique key and parent as arguments; nil = NULL: the run has none
	if t.Names.Parent != 0 {
		parent = int64(t.Names.Parent)
	}
	name := t.Names.Public(t.Run)
	if t.Names.Key != "" {
		key = t.Names.Key
		found, err := x.held(name, t.Names)
		if err != nil {
			return store.Outcome{}, err
		}
		free, err := x.replaces(t, &found)
		if err != nil {
			return store.Outcome{}, err
		}
		if found.Exists {
			return x.disputed(t, found)
		}
		if free {
			return store.Outcome{Err: naming.ErrFree}, nil
		}
	}
	n, err := x.changed(runNameAdd, int64(t.Run), name, key, parent, int64(t.Names.Trigger))
	if err != nil {
		return store.Outcome{}, err
	}
	if n == 0 {
		by := *t.Names
		if t.Replaces != nil {
			by.Key = "" // look only for the name: this submission replaces the run that has the key
		}
		found, err := x.held(name, &by)
		if err != nil || !found.Exists { // no run has this name or key, so another run uses the id
			return store.Outcome{Err: store.ErrExists}, err
		}
		return x.disputed(t, found)
	}
	landed, err := x.append(t)
	if err != nil {
		return store.Outcome{}, err
	}
	if !landed {
		_, err := x.exec(retainName, int64(t.Run))
		return store.Outcome{Err: store.ErrExists}, err
	}
	switch {
	case t.Replaces != nil:
		if err := x.replace(t); err != nil {
			return store.Outcome{}, err
		}
	case key != nil:
		if err := x.takeKey(t.Names.Workflow, t.Names.Key, t.Run, t.Names.KeyScope); err != nil {
			return store.Outcome{}, err
		}
	}
	return landedNow(t), nil
}

// replaces decides whether a submission with t.Replaces may replace the run in `found`, which has
// the name or the key of the submission. It may replace an open run that holds the key, and a run
// that waits for the key. Then replaces sets `found` to zero, so that the run does not refuse the
// submission. The result `free` is true if no run holds the key and no run waits for the key.
func (x *landing) replaces(t *store.Transition, found *store.Submitted) (free bool, err error) {
	if t.Replaces == nil || found.Run == t.Run || found.Exists && found.Name == t.Names.Name && t.Names.Name != "" {
		return false, nil
	}
	c, _, err := x.keyContext(t.Names.Workflow, t.Names.Key)
	switch {
	case err != nil:
		return false, err
	case c.next == 0 && !c.held:
		return true, nil
	case c.open || !c.held:
		*found = store.Submitted{}
	}
	return false, nil
}

// unnamed writes the first transition of a run that has no given name and no key. It returns
// the outcome.
func (x *landing) unnamed(t *store.Transition) (store.Outcome, error) {
	landed, err := x.append(t)
	if err != nil {
		return store.Outcome{}, err
	}
	if landed {
		return landedNow(t), nil
	}
	o, err := x.disputed(t, store.Submitted{Run: t.Run})
	if err == nil && !o.Landed {
		o = store.Outcome{Err: store.ErrExists}
	}
	return o, err
}

// knows reports whether the file contains the workflow. A workflow is never removed. So after the
// first answer "yes", the method does not read the file again.
func (x *landing) knows(id store.WorkflowID) (known bool, err error) {
	if x.s.flows[id] {
		return true, nil
	}
	err = x.row(workflowExists, int64(id)).Scan(&known)
	if known {
		x.s.flows[id] = true
	}
	return known, err
}

// disputed returns the outcome of a submission whose name or key already belongs to a run. The
// parameter `found` holds this run. If an earlier try of the same submission made that run, the
// outcome is Landed.
func (x *landing) disputed(t *store.Transition, found store.Submitted) (store.Outcome, error) {
	if found.Run == t.Run {
		var writer int64
		err := x.row(journalWriter, int64(t.Run), 0).Scan(&writer)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return store.Outcome{}, err
		}
		if err == nil && writer == x.token {
			return landedNow(t), nil
		}
	}
	return store.Outcome{Submitted: found}, nil
}

// held returns the run that has the name. If no run has the name, it returns the run that has the
// key or waits for it (keyHolder). If there is no such run either, the result is zero and its field
// Exists is false.
func (x *landing) held(name string, n *naming.Names) (store.Submitted, error) {
	var run int64
	err := x.row(runNameHolder, name).Scan(&run)
	if errors.Is(err, sql.ErrNoRows) {
		if n.Key == "" {
			return store.Submitted{}, nil
		}
		return x.keyHolder(n)
	}
	return store.Submitted{Run: status.RunID(run), Name: name, Exists: true}, err
}

// keyHolder returns the run that holds the unique key. If no run holds it, keyHolder returns the
// run that waits for the key. If there is none, the result is zero. The run n.From does not count
// as the holder: the submitted run takes over the results of that run, and its key, too.
func (x *landing) keyHolder(n *naming.Names) (found store.Submitted, err error) {
	var (
		run, next int64
		waiter    string
		held      bool
	)
	err = x.row(contextHolder, n.Workflow, n.Key, micros(now())).Scan(&run, &found.Gone, &found.Name, &held, &next, &waiter)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return store.Submitted{}, nil
	case err == nil && held && status.RunID(run) != n.From:
		found.Run, found.Exists = status.RunID(run), true
		return found, nil
	case err == nil && next != 0:
		return store.Submitted{Run: status.RunID(next), Name: waiter, Exists: true}, nil
	}
	return store.Submitted{}, err
}

// takeKey gives a key to a run. The caller has found that no other run holds it.
func (x *landing) takeKey(workflow, key string, run status.RunID, h naming.KeyScope) error {
	_, err := x.exec(contextPut, workflow, key, int64(run), int64(h.Scope), h.Retain.Microseconds())
	return err
}

const (
	heirOf  = `SELECT heir FROM heir WHERE run_id = ?1`
	heirAsk = `SELECT r.state >= 10, coalesce(h.heir, 0) FROM run r LEFT JOIN heir h USING (run_id) WHERE r.run_id = ?1`
	heirAdd = `INSERT INTO heir (run_id, heir) VALUES (?1, ?2) ON CONFLICT (run_id) DO NOTHING`
)

// landHeir submits a run that takes over the results of an ended run. The outcome is an error if
// another run has taken over these results, or if the run with these results does not exist or has
// not ended. But if an existing run has the name of the submission, or holds its key or waits for
// it, this existing run is the outcome.
func (x *landing) landHeir(t *store.Transition) (store.Outcome, error) {
	refused, err := x.mayInherit(t)
	if err != nil {
		return store.Outcome{}, err
	}
	if refused != nil {
		if !t.Names.Kept() {
			return store.Outcome{Err: refused}, nil
		}
		found, err := x.held(t.Names.Public(t.Run), t.Names)
		if found.Exists {
			return store.Outcome{Submitted: found}, err
		}
		return store.Outcome{Err: refused}, err
	}
	o, err := x.landAdmitted(t)
	if err == nil && o.Landed {
		_, err = x.exec(heirAdd, int64(t.Names.From), int64(t.Run))
	}
	return o, err
}

// mayInherit returns why the run of a submission may not take over results; nil = it may.
func (x *landing) mayInherit(t *store.Transition) (refused, err error) {
	var (
		ended bool
		heir  int64
	)
	err = x.row(heirAsk, int64(t.Names.From)).Scan(&ended, &heir)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && !ended:
		return naming.ErrNoOrigin, nil
	case err == nil && heir != 0 && status.RunID(heir) != t.Run:
		return &naming.HeirError{Run: t.Names.From, Heir: status.RunID(heir)}, nil
	}
	return nil, err
}

// heirless reports whether err says that the run may not take over results. In a later try of the
// batch, mayInherit decides this again.
func heirless(err error) bool {
	var heir *naming.HeirError
	return errors.Is(err, naming.ErrNoOrigin) || errors.As(err, &heir)
}

// heirs is the part of a Store that records which run has taken over the results of another run.
// It implements naming.Heirs.
type heirs struct{ *file }

// Heir returns the run that has taken over the results of the given run; 0 = there is none.
func (s *heirs) Heir(ctx context.Context, run status.RunID) (heir status.RunID, err error) {
	err = s.query(ctx, "find the heir of a run", heirOf, []any{int64(run)}, func(r row) error {
		var id int64
		err := r.Scan(&id)
		heir = status.RunID(id)
		return err
	})
	return heir, err
}
