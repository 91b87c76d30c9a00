package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/admission"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/snapshots"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// A Writer commits transitions until its engine is declared dead.
type Writer struct {
	s      *Store
	engine store.EngineID
	n      int
}

var _ store.Writer = (*Writer)(nil)

// OpenWriter opens the n-th writer of an engine. It returns ErrFenced if the engine was
// declared dead.
func (s *Store) OpenWriter(ctx context.Context, id store.EngineID, n int) (store.Writer, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	w := &Writer{s, id, n}
	if !w.mayCommitLocked() {
		return nil, store.ErrFenced
	}
	return w, nil
}

// Close does nothing: the writer holds no resources.
func (w *Writer) Close() error { return nil }

func (w *Writer) mayCommitLocked() bool {
	m := w.s.members[w.engine]
	return m != nil && m.fence[w.n]
}

// begin returns a new token for a batch: a number that the store saves with each row of the batch.
// If the batch is sent again, the token shows which rows an earlier try has committed.
func (w *Writer) begin(ctx context.Context) (int64, error) {
	if err := w.s.lock(ctx); err != nil {
		return 0, err
	}
	defer w.s.mu.Unlock()
	w.s.token++
	return w.s.token, nil
}

// Commit commits a batch. It returns ErrFenced if the engine was declared dead and nothing
// of the batch is committed.
func (w *Writer) Commit(ctx context.Context, batch []store.Transition) ([]store.Outcome, error) {
	if err := storekit.ValidateBatch(batch); err != nil {
		return nil, err
	}
	token, err := w.begin(ctx)
	if err != nil {
		return nil, err
	}
	for { // after a lost request or a lost reply, send the same batch with the same token again
		out, known, err := w.send(ctx, token, batch)
		if known || err != nil {
			return out, err
		}
	}
}

func (w *Writer) send(ctx context.Context, token int64, batch []store.Transition) (out []store.Outcome, known bool, err error) {
	if err := w.s.lock(ctx); err != nil {
		return nil, false, err
	}
	defer w.s.mu.Unlock()
	if w.s.lostLocked(false) {
		return nil, false, nil
	}
	out = make([]store.Outcome, len(batch))
	if !w.mayCommitLocked() {
		// The engine was declared dead. But an earlier try may have committed rows, and
		// only the reply was lost. These rows count as committed.
		for i, t := range batch {
			if w.s.mineLocked(token, t) {
				out[i], known = landedNow(t), true
			} else {
				out[i] = store.Outcome{Err: store.ErrStale}
			}
		}
		if !known {
			return nil, false, store.ErrFenced
		}
		return out, true, nil
	}
	for i, t := range batch {
		out[i] = w.s.landLocked(token, t)
	}
	return out, !w.s.lostLocked(true), nil
}

// journal is the part of a Store that commits and reads the rows of runs.
type journal struct {
	*state
	*hints
	*inboxRole
	*evidence
	token int64 // the last token that was used for a commit

	// The function `lose` is set only by tests; nil = nothing is lost. The store calls lose(false)
	// before each try to commit. If the result is true, the store behaves as if the request was
	// lost. Otherwise, and unless the engine was declared dead, it calls lose(true) after the
	// commit. If the result is true, the store behaves as if the reply was lost.
	lose func(landed bool) bool
}

func (s *journal) lostLocked(landed bool) bool { return s.lose != nil && s.lose(landed) }

func (s *journal) mineLocked(token int64, t store.Transition) bool {
	r := s.runs[t.Run]
	return r != nil && int(t.Seq) < len(r.rows) && r.rows[t.Seq].token == token
}

// appendLocked commits one transition: it adds the journal row and changes the run's head. If
// the journal already has this row, written with the same token, an earlier try has committed
// the transition. Then appendLocked changes nothing and returns nil.
func (s *journal) appendLocked(token int64, t store.Transition) error {
	if err := t.Validate(); err != nil {
		return err
	}
	r := s.runs[t.Run]
	if s.mineLocked(token, t) {
		return nil
	}
	takes, keyed, err := s.keyLocked(r, t)
	if err != nil {
		return err
	}
	p, err := s.roomLocked(r, t, keyed)
	if err != nil {
		return err
	}
	switch {
	case r != nil && t.Seq == 0:
		return store.ErrExists
	case r != nil && int(t.Seq) < len(r.rows):
		return store.ErrStale
	case r == nil && t.Seq > 0: // the run does not exist: retention may have removed it
		return store.ErrStale
	case t.Heard != nil && len(s.inbox[t.Run]) > int(*t.Heard):
		return store.ErrStale
	case r != nil && int(t.Seq) > len(r.rows):
		return fmt.Errorf("memory: run %d: row %d would leave a gap", t.Run, t.Seq)
	case r != nil && t.State != status.RunInvalid && !storekit.CanBecome(r.head.State, t.State):
		return fmt.Errorf("memory: run %d: %v cannot become %v", t.Run, r.head.State, t.State)
	case t.Seq == 0:
		if _, ok := s.flowLocked(t.Workflow); !ok {
			return fmt.Errorf("memory: run %d: no such workflow: %d", t.Run, t.Workflow)
		}
		r = &run{head: store.Head{Run: t.Run, Name: naming.RunName(t.Run), Workflow: t.Workflow, CreatedAt: micro(t.At)}}
		s.addLocked(r)
	}
	if r.share = p; p != nil {
		s.sharing[t.Run] = r
	}
	s.addRowLocked(r, token, t)
	if takes != nil {
		*takes = holder{run: r, scope: takes.nextScope}
	}
	if t.Frees || t.Room != nil && !t.Admit {
		s.hintLocked()
	}
	return nil
}

// addRowLocked adds a row to the journal of a run, and changes the run's head.
func (s *journal) addRowLocked(r *run, token int64, t store.Transition) {
	r.rows = append(r.rows, row{
		Row:   store.Row{Seq: t.Seq, At: micro(t.At), Data: slices.Clone(t.Data)},
		token: token,
		steps: storekit.AppendStepRows(nil, t.Steps),
	})
	if t.State != status.RunInvalid {
		r.head.State, r.head.FinishedAt = t.State, time.Time{}
		if t.State.Final() {
			r.head.FinishedAt = micro(t.At)
		}
	}
	if t.Owner != nil {
		r.head.Owner, r.head.Fence = *t.Owner, t.Seq
	}
	if !t.NextCheck.IsZero() {
		r.head.NextCheck = micro(t.NextCheck)
	}
	if t.State != status.RunInvalid || t.Owner != nil || !t.NextCheck.IsZero() {
		s.queueLocked(r)
	}
	if t.Moved != 0 {
		r.moved = t.Moved
	}
	for _, n := range t.NewNodes {
		n.Name = naming.CleanText(n.Name)
		r.nodes = append(r.nodes, n) // if a node is twice in the list, FoldSteps uses the later name
	}
	for _, a := range t.Alerts {
		a = store.Alert{Kind: naming.CleanText(a.Kind), Step: naming.CleanText(a.Step), Code: naming.CleanText(a.Code), Message: naming.CleanText(a.Message)}
		s.alertLocked(t.Run, store.AlertRow{Alert: a, At: micro(t.At)})
	}
	s.announceLocked(&t)
	postLocked(s.state, &t)
	s.consumeLocked(t.Run, t.Consumed)
}

// landLocked tries to commit one transition, and returns its outcome.
func (s *journal) landLocked(token int64, t store.Transition) store.Outcome {
	if t.Names != nil {
		return s.submitLocked(token, t)
	}
	if _, ok := s.flowLocked(t.Moved); t.Moved != 0 && !ok {
		return store.Outcome{Err: fmt.Errorf("memory: run %d: no such workflow: %d", t.Run, t.Moved)}
	}
	if err := s.appendLocked(token, t); err != nil {
		return store.Outcome{Err: err}
	}
	return landedNow(t)
}

// heldLocked reports whether a submission must not be committed because of its unique key. If so,
// it also returns the outcome. The parameter `h` is the entry of the key; nil = there is no entry.
func (s *journal) heldLocked(h *holder, t store.Transition) (o store.Outcome, held bool) {
	now := s.now()
	switch {
	case t.Replaces != nil && (h == nil || !h.holdsAt(now) && !h.waits()):
		return store.Outcome{Err: naming.ErrFree}, true
	case h == nil, t.Replaces != nil && !(h.holdsAt(now) && h.run.head.State.Final()):
		// The run can be committed: either no run has the key, or the new run replaces all runs
		// that hold the key or wait for it.
		return o, false
	case h.run.head.Run != t.Names.From && h.holdsAt(now):
		return h.existsLocked(), true
	case h.waits(): // the run h.next gets the key as soon as the key is free
		return s.existsLocked(h.next.head.Run), true
	}
	return o, false
}

// replaceLocked records, in the entry `h` of the unique key, that the run `r` gets the key next. It
// posts the message t.Replaces to each run that `r` replaces, except to runs that have ended or are
// compensating.
func (s *journal) replaceLocked(h *holder, r *run, t store.Transition) {
	replaced := []*run{h.run}
	if h.waits() {
		replaced = append(replaced, h.next)
	}
	h.next, h.nextScope = r, t.Names.KeyScope
	for _, old := range replaced {
		if !old.head.State.Final() && old.head.State != status.RunCompensating {
			m := *t.Replaces
			m.Run = old.head.Run
			s.postLocked(m)
		}
	}
}

// landedNow returns the outcome of a transition that was committed.
func landedNow(t store.Transition) store.Outcome {
	o := store.Outcome{Landed: true}
	if t.Names != nil {
		o.Submitted = store.Submitted{Run: t.Run, Name: t.Names.Public(t.Run)}
	}
	return o
}

// submitLocked commits a run's first transition and the run's names. If an earlier run has the
// name, submitLocked commits nothing and returns that run. If the unique key is not free for this
// run, submitLocked commits nothing and returns the outcome of heldLocked.
func (s *journal) submitLocked(token int64, t store.Transition) store.Outcome {
	if t.Seq != 0 {
		return store.Outcome{Err: fmt.Errorf("memory: submission of run %d begins with seq %d", t.Run, t.Seq)}
	}
	if err := errors.Join(t.Validate(), t.Names.Validate()); err != nil {
		return store.Outcome{Err: err}
	}
	if len(t.Checks) > 0 {
		return store.Outcome{Err: admission.Unable("in memory", t.Checks)}
	}
	if s.mineLocked(token, t) { // an earlier try has committed the transition
		return landedNow(t)
	}
	name, k := t.Names.Name, key{t.Names.Workflow, t.Names.Key}
	if id, ok := s.names[name]; ok {
		return s.existsLocked(id)
	}
	h := s.keys[k]
	if o, held := s.heldLocked(h, t); held && k.key != "" {
		return o
	}
	origin := s.runs[t.Names.From]
	switch {
	case t.Names.From == 0:
	case origin == nil, !origin.head.State.Final():
		return store.Outcome{Err: naming.ErrNoOrigin}
	case origin.heir != 0:
		return store.Outcome{Err: &naming.HeirError{Run: t.Names.From, Heir: origin.heir}}
	}
	if err := s.appendLocked(token, t); err != nil {
		return store.Outcome{Err: err}
	}
	if origin != nil {
		origin.heir = t.Run
	}
	r := s.runs[t.Run]
	r.parent, r.trigger = t.Names.Parent, t.Names.Trigger
	if name != "" {
		r.head.Name, s.names[name] = name, t.Run
	}
	if r.key = k; t.Replaces != nil {
		s.replaceLocked(h, r, t)
	} else if k.key != "" {
		s.keys[k] = &holder{run: r, scope: t.Names.KeyScope}
	}
	if r.head.Owner == 0 {
		s.hintLocked()
	}
	return landedNow(t)
}

func (s *journal) existsLocked(id status.RunID) store.Outcome {
	return store.Outcome{Submitted: store.Submitted{Run: id, Name: s.runs[id].head.Name, Exists: true}}
}

// Load returns the head and all rows of each run with one of these ids, in the order of the
// ids. Runs that do not exist are missing from the result.
func (s *journal) Load(ctx context.Context, ids ...status.RunID) ([]store.Loaded, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if len(ids) > 1 {
		ids = slices.Clone(ids)
		slices.Sort(ids)
		ids = slices.Compact(ids)
	}
	var out []store.Loaded
	for _, id := range ids {
		if r := s.runs[id]; r != nil {
			out = append(out, store.Loaded{Head: r.head, Rows: copyRows(r.rows), Waiting: len(s.inbox[id]) > 0})
		}
	}
	return out, nil
}

// Rows returns rows of a run, in order. The parameter `from` is the seq of the first row. The
// parameter `limit` is the largest number of rows.
func (s *journal) Rows(ctx context.Context, id status.RunID, from int32, limit int) ([]store.Row, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r := s.runs[id]
	if r == nil {
		return nil, nil
	}
	rows := r.rows[min(int(max(from, 0)), len(r.rows)):]
	return copyRows(rows[:min(len(rows), limit)]), nil
}

func copyRows(rows []row) []store.Row {
	out := make([]store.Row, len(rows))
	for i, r := range rows {
		out[i] = store.Row{Seq: r.Seq, At: r.At, Data: slices.Clone(r.Data)}
	}
	return out
}

// shorts is the part of a Store that keeps snapshots of long runs. It implements snapshots.Keeper.
type shorts struct{ *state }

// KeepSnapshot stores a snapshot of a run. It replaces the former snapshot of the run.
func (s *shorts) KeepSnapshot(ctx context.Context, id store.EngineID, x snapshots.Snapshot) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r, m, last := s.runs[x.Run], s.members[id], int(x.Next)-1
	switch {
	case m == nil || len(m.fence) == 0:
		return store.ErrFenced
	case r == nil || r.head.Owner != id || last < 0 || last >= len(r.rows) || !bytes.Equal(r.rows[last].Data, x.Last):
		return store.ErrStale
	}
	r.short = &snapshots.Snapshot{Run: x.Run, Next: x.Next, Data: slices.Clone(x.Data)}
	return nil
}

// Snapshotted returns those of the given runs that have a snapshot, ascending by id.
func (s *shorts) Snapshotted(ctx context.Context, runs ...status.RunID) ([]status.RunID, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var found []status.RunID
	for _, id := range runs {
		if r := s.runs[id]; r != nil && r.short != nil {
			found = append(found, id)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// LoadShort returns the head of a run, its snapshot, and the journal rows from Snapshot.Next-1 on:
// the last row that the snapshot covers, and all later rows. If there is no snapshot, it returns
// all rows.
func (s *shorts) LoadShort(ctx context.Context, id status.RunID) (snapshots.Loaded, error) {
	if err := s.lock(ctx); err != nil {
		return snapshots.Loaded{}, err
	}
	defer s.mu.Unlock()
	r := s.runs[id]
	if r == nil {
		return snapshots.Loaded{}, store.ErrNotFound
	}
	l, from := snapshots.Loaded{Loaded: store.Loaded{Head: r.head, Waiting: len(s.inbox[id]) > 0}}, 0
	if r.short != nil {
		x := *r.short
		x.Data = slices.Clone(x.Data)
		l.Snapshot, from = &x, min(max(int(x.Next)-1, 0), len(r.rows))
	}
	l.Rows = copyRows(r.rows[from:])
	return l, nil
}
