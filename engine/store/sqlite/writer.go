package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/admission"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// A Writer commits transitions as long as its fence row exists. All writers share the one writing
// connection of the file. Only one writer uses this connection at a time.
type Writer struct {
	s      *Store
	engine store.EngineID
	n      int
}

var _ store.Writer = (*Writer)(nil)

const fenceOpen = `SELECT 1 FROM fence WHERE engine = ?1 AND writer = ?2`

// OpenWriter opens the n-th writer of an engine. It returns ErrFenced if the engine was
// declared dead.
func (s *Store) OpenWriter(ctx context.Context, id store.EngineID, n int) (store.Writer, error) {
	w := &Writer{s, id, n}
	err := s.writeUnowned(ctx, "open writer", func(tx *tx) error { return w.mayCommit(tx) })
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Close does nothing, because the connection belongs to the store.
func (w *Writer) Close() error { return nil }

func (w *Writer) mayCommit(tx *tx) error {
	var one int
	err := tx.row(fenceOpen, int64(w.engine), w.n).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return store.ErrFenced
	}
	return err
}

// token returns a new token, which identifies the rows of one batch. It consists of the
// engine's number and a counter.
func (w *Writer) token() int64 {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.tokens++
	return int64(w.engine)<<32 | int64(w.s.tokens)
}

// First and longest pause before Commit sends a batch again because its outcome is not known.
const (
	askPause     = 10 * time.Millisecond
	askPauseMost = time.Second
)

// Commit commits a batch and returns one outcome for each transition. It returns ErrFenced if the
// engine was declared dead and nothing of the batch is committed. A store that was opened with
// Options.Beside commits only submissions of runs without an owner.
func (w *Writer) Commit(ctx context.Context, items []store.Transition) ([]store.Outcome, error) {
	if err := storekit.ValidateBatch(items); err != nil {
		return nil, err
	}
	if err := w.s.mayLand(items); err != nil {
		return nil, err
	}
	out := make([]store.Outcome, len(items))
	for i := range items {
		out[i].Err = validate(&items[i])
	}
	if len(items) == 0 {
		return out, nil
	}
	token, doubt := w.token(), false
	for pause := askPause; ; {
		err := w.once(ctx, token, items, out, doubt)
		var (
			bad  *refusal
			lost *unanswered
		)
		switch {
		case err == nil || errors.Is(err, store.ErrFenced) || ctx.Err() != nil:
			return outcomesOrError(out, err)
		case errors.As(err, &bad):
			// The transaction was rolled back. The other transitions are sent again without
			// this one.
			out[bad.item].Err = bad
			continue
		case hopeless(err) || !doubt && (!errors.As(err, &lost) || full(err)):
			// Give up. If a try had no answer, the outcome stays unknown (decision 0018).
			return nil, err
		}
		// The outcome is not known: send the same batch with the same token again.
		if doubt {
			_ = wait.For(ctx, pause) // if ctx has ended, the next try returns
			pause = min(2*pause, askPauseMost)
		}
		doubt = true
	}
}

// mayLand returns nil if the store may commit the batch. A store that was opened with
// Options.Beside may commit only submissions of runs without an owner.
func (s *Store) mayLand(items []store.Transition) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.beside == "" {
		return nil
	}
	for i := range items {
		switch t := &items[i]; {
		case t.Names == nil:
			return errReadOnly
		case t.Owner == nil || *t.Owner != 0:
			return errBeside
		}
	}
	return nil
}

// validate returns an error if this store cannot keep the transition; otherwise nil.
func validate(t *store.Transition) error {
	err := t.Validate()
	if err != nil || t.Names == nil {
		return err
	}
	if t.Seq != 0 {
		return fmt.Errorf("sqlite: submission of run %d begins with seq %d", t.Run, t.Seq)
	}
	if len(t.Checks) > 0 {
		return admission.Unable("an embedded file", t.Checks)
	}
	return t.Names.Validate()
}

func outcomesOrError(out []store.Outcome, err error) ([]store.Outcome, error) {
	if err != nil {
		return nil, err
	}
	return out, nil
}

// full reports whether an error means that a commit did not happen because the disk is
// full.
func full(err error) bool { return code(err) == sqlite3.SQLITE_FULL }

// hopeless reports whether it is useless to send the batch again after this error.
func hopeless(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return true
	}
	return errors.Is(err, errReadOnly) || errors.Is(err, sql.ErrConnDone)
}

// A refusal is the error of a transition that SQLite cannot store because of its content, for
// example because it breaks a constraint.
type refusal struct {
	item int
	err  error
}

// Error returns SQLite's text.
func (r *refusal) Error() string { return r.err.Error() }

// Unwrap returns SQLite's error.
func (r *refusal) Unwrap() error { return r.err }

// refuses reports whether the content of a row caused the error, not the state of the file.
func refuses(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE:
		return true
	}
	return false
}

// once tries to commit the batch one time. It leaves out transitions that were refused before, and
// stores the outcomes in `out`. If `doubt` is true, an earlier try may have committed the batch.
func (w *Writer) once(ctx context.Context, token int64, items []store.Transition, out []store.Outcome, doubt bool) error {
	unowned := false
	err := w.s.writeUnowned(ctx, "commit", func(tx *tx) error {
		in := landing{tx: tx, token: token}
		if err := w.mayCommit(tx); err != nil {
			if errors.Is(err, store.ErrFenced) && doubt {
				return in.setOutcomes(items, out)
			}
			return err
		}
		for i := range items {
			if out[i].Err != nil && !errors.Is(out[i].Err, store.ErrStale) && !errors.Is(out[i].Err, store.ErrExists) && !errors.Is(out[i].Err, naming.ErrFull) && !errors.Is(out[i].Err, naming.ErrFree) && !heirless(out[i].Err) {
				continue
			}
			t := &items[i]
			o, err := in.landAny(t)
			if refuses(err) {
				return &refusal{i, fmt.Errorf("sqlite: run %d seq %d: %w", t.Run, t.Seq, err)}
			}
			if err != nil {
				return err
			}
			out[i] = o
			unowned = unowned || o.Landed && (t.Names != nil && *t.Owner == 0 || t.Frees || t.Replaces != nil || t.Room != nil && !t.Admit)
		}
		w.s.wrote(items)
		return nil
	})
	if err == nil && unowned {
		w.s.hint()
	}
	return err
}

// A landing writes the transitions of one batch in a transaction.
type landing struct {
	*tx
	token int64

	last  int64 // argument of the last call of the method `box`
	boxed any   // result of that call; nil = the method `box` was not called yet
}

// landAny writes one transition and returns its outcome, as the method `land` does. If the run of
// the transition takes over results of another run, landAny also checks whether the run may do so.
func (x *landing) landAny(t *store.Transition) (store.Outcome, error) {
	if t.Names != nil && t.Names.From != 0 {
		return x.landHeir(t)
	}
	return x.landAdmitted(t)
}

// landAdmitted writes one transition and returns its outcome. If the transition has a Room or
// admits its run, landAdmitted also checks whether a place is free.
func (x *landing) landAdmitted(t *store.Transition) (store.Outcome, error) {
	if t.Room != nil || t.Admit {
		return x.landLimited(t)
	}
	return x.land(t)
}

// landLimited writes a transition that has a Room or admits its run. If no place is free, or the
// unique key for which the run waits is not free, the outcome is naming.ErrFull. But if an existing
// run has the name of the submission, or holds its key or waits for it, this existing run is the
// outcome.
func (x *landing) landLimited(t *store.Transition) (store.Outcome, error) {
	refused, err := x.room(t)
	if err != nil {
		return store.Outcome{}, err
	}
	if refused != nil {
		if t.Names == nil || !t.Names.Kept() {
			return store.Outcome{Err: refused}, nil
		}
		found, err := x.held(t.Names.Public(t.Run), t.Names)
		if found.Exists { // the submission does not make a new run, so it needs no place
			return store.Outcome{Submitted: found}, err
		}
		return store.Outcome{Err: refused}, err
	}
	o, err := x.land(t)
	if err == nil && o.Landed {
		err = x.admitted(t)
	}
	return o, err
}

// land writes one transition and returns its outcome. If the outcome is not Landed, nothing
// was written. An error ends the transaction.
func (x *landing) land(t *store.Transition) (o store.Outcome, err error) {
	if t.Names != nil {
		return x.submit(t)
	}
	o.Landed, err = x.append(t)
	switch {
	case err != nil || o.Landed:
	case t.Seq == 0:
		o.Err = store.ErrExists
	default:
		o.Err = store.ErrStale
	}
	return o, err
}

// setOutcomes is called if the engine was fenced and an earlier try may have committed the batch.
// It finds the transitions that were committed, and sets the outcomes in the parameter `out`. If no
// transition was committed, it returns ErrFenced.
func (x *landing) setOutcomes(items []store.Transition, out []store.Outcome) error {
	any := false
	for i := range items {
		var writer int64
		err := x.row(journalWriter, int64(items[i].Run), items[i].Seq).Scan(&writer)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err == nil && writer == x.token {
			out[i], any = landedNow(&items[i]), true
		} else if out[i].Landed || out[i].Err == nil {
			out[i] = store.Outcome{Err: store.ErrStale}
		}
	}
	if !any {
		return store.ErrFenced
	}
	return nil
}

// The statements that write batches. The frequent ones have parameters without numbers, because
// the driver takes time to look up the name of each numbered parameter.
const (
	journalAppend = `
INSERT INTO journal (run_id, seq, at, workflow_id, run_state, owner, next_check, writer, steps, data)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id, seq) DO NOTHING`
	// journalNext inserts the journal row of a transition that does not change the run's own row.
	// Most transitions are like this.
	journalNext   = `INSERT INTO journal (run_id, seq, at, writer, steps, data) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run_id, seq) DO NOTHING`
	journalWriter = `SELECT writer FROM journal WHERE run_id = ?1 AND seq = ?2`
	// journalTakeBack removes a journal row that was just inserted, because retention has
	// removed the row's run.
	journalTakeBack = `DELETE FROM journal WHERE run_id = ?1 AND seq = ?2`
	wideAdd         = `INSERT INTO wide (run_id, seq, steps) VALUES (?, ?, ?)`
	runCreate       = `
INSERT INTO run (run_id, workflow_id, state, owner, fence, next_check, created_at, finished_at) VALUES (?, ?, ?, ?, 0, ?, ?, ?)`
	// Each of the next three statements is for one kind of change, and sets no more columns than
	// this kind needs, because SQLite writes the index of every column that a statement sets.
	runBecome = `
UPDATE run SET state = ?, finished_at = ?, next_check = coalesce(?, next_check), owner = coalesce(?, owner), fence = coalesce(?, fence)
WHERE run_id = ?`
	runTake    = `UPDATE run SET owner = ?, fence = ?, next_check = coalesce(?, next_check) WHERE run_id = ?`
	runCheck   = `UPDATE run SET next_check = ? WHERE run_id = ?`
	runStepAdd = `INSERT INTO run_step (run_id, node, step, name) VALUES (?, ?, ?, ?) ON CONFLICT (run_id, node) DO UPDATE SET name = excluded.name`
	runMove    = `INSERT INTO run_moved (run_id, workflow_id) VALUES (?, ?) ON CONFLICT (run_id) DO UPDATE SET workflow_id = excluded.workflow_id`
)

// mostSteps is the largest size, in bytes, of step changes inside a journal row. Larger
// changes go into the table named wide.
const mostSteps = 4 * storekit.StepRowSize

// append writes one transition: the journal row and, if that row is new, the changes of the
// run's own row. It reports whether the journal then has this row with the token of this batch.
func (x *landing) append(t *store.Transition) (landed bool, err error) {
	// The changes of the steps, as an argument of a statement. Small changes are in the variable
	// `steps`, which goes into the journal row. Large changes are in the variable `wide`, which
	// goes into the table named wide. nil = NULL.
	var steps, wide any
	if len(t.Steps) > 0 {
		x.s.stepRows = storekit.AppendStepRows(x.s.stepRows[:0], t.Steps)
		if steps = x.s.stepRows; len(x.s.stepRows) > mostSteps {
			steps, wide = nil, steps
		}
	}
	var run, seq, at any = int64(t.Run), int64(t.Seq), x.box(micros(t.At))
	var n int64
	spoken, err := x.hasNewMessages(t)
	if err != nil {
		return false, err
	}
	if spoken {
		// Write nothing. The journal may have the row from an earlier try.
	} else if t.Seq > 0 && t.State == status.RunInvalid && t.Owner == nil && t.NextCheck.IsZero() {
		n, err = x.changed(journalNext, run, seq, at, x.token, steps, t.Data)
	} else {
		n, err = x.become(t, run, seq, at, steps)
	}
	if err != nil {
		return false, err
	}
	if n == 0 {
		var writer int64
		err := x.row(journalWriter, run, seq).Scan(&writer)
		if errors.Is(err, sql.ErrNoRows) { // the run was removed, or has new messages
			return false, nil
		}
		return err == nil && writer == x.token, err
	}
	if wide != nil {
		if _, err := x.exec(wideAdd, run, seq, wide); err != nil {
			return false, err
		}
	}
	return true, x.side(t, micros(t.At))
}

const messageCount = `SELECT count(*) FROM inbox WHERE run_id = ?1`

// hasNewMessages reports whether more messages wait for the run than t.Heard allows. It returns
// false if t.Heard is nil.
func (x *landing) hasNewMessages(t *store.Transition) (bool, error) {
	if t.Heard == nil {
		return false, nil
	}
	var n int32
	err := x.row(messageCount, int64(t.Run)).Scan(&n)
	return n > *t.Heard, err
}

// become writes a journal row whose transition changes the run's row. If the journal row is
// new, become also makes this change. It returns the number of rows added to the journal.
func (x *landing) become(t *store.Transition, run, seq, at, steps any) (n int64, err error) {
	// The arguments of the statements. nil = NULL: the column does not change. But a NULL in the
	// variable `finished` means that the run has not ended.
	var flow, state, owner, fence, check, finished any
	if t.Seq == 0 {
		flow = int64(t.Workflow)
	}
	if t.State != status.RunInvalid {
		state = int64(t.State)
	}
	if t.State.Final() {
		finished = at
	}
	if t.Owner != nil {
		owner, fence = int64(*t.Owner), seq
	}
	if !t.NextCheck.IsZero() {
		check = x.box(micros(t.NextCheck))
	}
	n, err = x.changed(journalAppend, run, seq, at, flow, state, owner, check, x.token, steps, t.Data)
	if err != nil || n == 0 {
		return n, err
	}
	var rows int64
	switch {
	case t.Seq == 0:
		rows, err = x.changed(runCreate, run, flow, state, owner, check, at, finished)
	case state != nil:
		rows, err = x.changed(runBecome, state, finished, check, owner, fence, run)
	case owner != nil:
		rows, err = x.changed(runTake, owner, fence, check, run)
	default:
		rows, err = x.changed(runCheck, check, run)
	}
	if err == nil && rows == 0 { // retention has removed the run meanwhile
		_, err = x.exec(journalTakeBack, run, seq)
		n = 0
	}
	return n, err
}

// box returns n as an argument of a statement. If n is the same as in the last call, box returns
// its last result again. This saves an allocation, because the transitions of a batch often have
// the same time.
func (x *landing) box(n int64) any {
	if x.boxed == nil || n != x.last {
		x.last, x.boxed = n, n
	}
	return x.boxed
}

// side writes the fields of a transition that are usually empty: NewNodes, Moved, Alerts, Announce
// and Post. It also removes the messages that the transition consumes.
func (x *landing) side(t *store.Transition, at int64) error {
	for _, n := range t.NewNodes {
		if _, err := x.exec(runStepAdd, int64(t.Run), n.Node, n.Step, naming.CleanText(n.Name)); err != nil {
			return err
		}
	}
	if t.Moved != 0 {
		if _, err := x.exec(runMove, int64(t.Run), int64(t.Moved)); err != nil {
			return err
		}
	}
	for _, a := range t.Alerts {
		if err := x.alert(t.Run, at, a); err != nil {
			return err
		}
	}
	if err := announce(x.tx, t.Run, t.Seq, t.Announce); err != nil {
		return err
	}
	if err := post(x.tx, t.Run, at, t.Post); err != nil {
		return err
	}
	return x.consume(t.Run, t.Consumed)
}

// landedNow returns the outcome of a transition that was committed.
func landedNow(t *store.Transition) store.Outcome {
	o := store.Outcome{Landed: true}
	if t.Names != nil {
		o.Submitted = store.Submitted{Run: t.Run, Name: t.Names.Public(t.Run)}
	}
	return o
}
