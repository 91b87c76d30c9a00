package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
)

// Submit lands a run's first transition with its names, in one transaction:
// both or neither (S54). Returns ErrFenced, or ErrExists if the id belongs to
// another run.
func (w *Writer) Submit(ctx context.Context, t engine.Transition, n engine.Names) (engine.Submitted, error) {
	if t.Seq != 0 {
		return engine.Submitted{}, fmt.Errorf("postgres: submission of run %d begins with seq %d", t.Run, t.Seq)
	}
	if err := errors.Join(t.Validate(), n.Validate()); err != nil {
		return engine.Submitted{}, err
	}
	if err := ctx.Err(); err != nil {
		return engine.Submitted{}, err
	}
	if n.Name == "" {
		n.Name = strconv.FormatInt(int64(t.Run), 10)
	}
	s := submission{w: w, t: t, n: n, token: w.token()}
	open := false
	var last error
	for try := 0; ; try++ {
		if try > 0 {
			if err := backoff(ctx, try); err != nil {
				return engine.Submitted{}, fmt.Errorf("%w (last: %w)", err, wrap("submit: outcome unknown", last))
			}
		}
		var sub engine.Submitted
		err := s.once(ctx, &sub)
		if err == nil || errors.Is(err, engine.ErrFenced) && !open || errors.Is(err, engine.ErrExists) || errors.Is(err, errRefused) {
			return sub, err
		}
		if open && errors.Is(err, engine.ErrFenced) {
			return s.afterFence(ctx, err)
		}
		var (
			lost    *engine.LossError
			nothing connectError
		)
		switch v := judge(err); {
		case errors.As(err, &lost):
			return engine.Submitted{}, err
		case errors.As(err, &nothing) && !open && (try >= giveUp || !temporary(err)):
			return engine.Submitted{}, wrap("submit", err)
		case errors.As(err, &nothing):
		case v == unknown:
			open = true
		case v == deferred && try < giveUp, v != refused && v != taken && open:
		default:
			return engine.Submitted{}, wrap("submit", err)
		}
		last = err
		w.s.stuck("submit", try, err)
	}
}

// errRefused says that a submission cannot be kept for what it contains.
var errRefused = errors.New("postgres: submission refused")

// A submission is one run on its way in. The journal's row carries its token:
// sent again after a lost answer it finds itself, and the transaction with it.
type submission struct {
	w     *Writer
	t     engine.Transition
	n     engine.Names
	token int64
}

// once runs the transaction once.
func (s *submission) once(ctx context.Context, sub *engine.Submitted) (err error) {
	w := s.w
	if err := w.connect(ctx); err != nil {
		return err
	}
	kept := false
	err = w.answered(ctx, func(ctx context.Context) error {
		return w.transact(ctx, func(ctx context.Context) (bool, error) {
			keep, err := s.write(ctx, sub)
			if err == nil && keep && *s.t.Owner == 0 && w.s.notifyNow() {
				_, err = w.conn.ExecContext(ctx, wakeNotify)
			}
			kept = keep
			return keep, err
		})
	})
	if err == nil && kept && !w.s.lineage.confirm(w, w.line, mark{s.t.Run, 0, s.token}) {
		err = errReplaced
	}
	if err != nil && !errors.Is(err, engine.ErrFenced) && !errors.Is(err, engine.ErrExists) && !errors.Is(err, errRefused) {
		w.drop(err)
	}
	return err
}

// write does what the transaction does and reports whether to keep it. The
// order of locks is fence, journal, name, key.
func (s *submission) write(ctx context.Context, sub *engine.Submitted) (keep bool, err error) {
	w := s.w
	w.batch.fill([]engine.Transition{s.t})
	var (
		own, landed int64
		ids         pq.Int64Array
	)
	if err := w.queryRow(ctx, w.batch.shape(true), w.batch.args(w.engine, w.n, s.token), &own, &landed, &ids); err != nil {
		return false, err
	}
	switch {
	case own == 0:
		return false, engine.ErrFenced
	case landed == 0:
		return false, s.found(ctx, sub)
	}
	var named, known bool
	if err := w.conn.QueryRowContext(ctx, runNameClaim, int64(s.t.Run), s.n.Name, s.n.Key, int64(s.t.Workflow)).Scan(&named, &known); err != nil {
		return false, err
	}
	switch {
	case !known:
		return false, fmt.Errorf("%w: run %d: no such workflow: %d", errRefused, s.t.Run, s.t.Workflow)
	case !named:
		return false, s.byName(ctx, sub)
	}
	if s.n.Key != "" {
		if held, err := s.claimKey(ctx, sub); held || err != nil {
			return false, err
		}
	}
	*sub = engine.Submitted{Run: s.t.Run, Name: s.n.Name}
	return true, nil
}

// found settles a run id that is taken: by this very submission, by an earlier
// one of the same name, or by another run.
func (s *submission) found(ctx context.Context, sub *engine.Submitted) error {
	token, err := s.writer(ctx)
	if err != nil {
		return err
	}
	if token == s.token {
		*sub = engine.Submitted{Run: s.t.Run, Name: s.n.Name}
		return nil
	}
	return s.byName(ctx, sub)
}

// writer reads under which token the run's first row stands; 0 = none.
func (s *submission) writer(ctx context.Context) (int64, error) {
	var run, token int64
	s.w.batch.fill([]engine.Transition{s.t})
	err := s.w.conn.QueryRowContext(ctx, journalWriters, s.w.batch.run.bytes(), s.w.batch.seq.bytes()).Scan(&run, &token)
	if noRows(err) {
		return 0, nil
	}
	return token, err
}

// byName reports the run that has the name. Returns ErrExists if none has: then
// it was the id that was taken.
func (s *submission) byName(ctx context.Context, sub *engine.Submitted) error {
	var run int64
	err := s.w.conn.QueryRowContext(ctx, runNameHolder, s.n.Name).Scan(&run, &sub.Name)
	if noRows(err) {
		return engine.ErrExists
	}
	sub.Run, sub.Exists = machine.RunID(run), err == nil
	return err
}

// claimKey takes the key, unless a run holds it. The upsert locks the key's
// row; only a statement after it sees what the one before us committed.
func (s *submission) claimKey(ctx context.Context, sub *engine.Submitted) (held bool, err error) {
	var holder int64
	if err := s.w.conn.QueryRowContext(ctx, contextClaim, s.n.Workflow, s.n.Key, int64(s.t.Run)).Scan(&holder); err != nil {
		return false, err
	}
	if machine.RunID(holder) == s.t.Run {
		return false, nil
	}
	var (
		state int16
		name  string
	)
	err = s.w.conn.QueryRowContext(ctx, contextHolder, holder).Scan(&state, &name)
	if err != nil && !noRows(err) {
		return false, err
	}
	// A holder that retention has removed holds nothing.
	if err == nil && engine.HoldsKey(machine.RunState(state)) {
		*sub = engine.Submitted{Run: machine.RunID(holder), Name: name, Exists: true}
		return true, nil
	}
	_, err = s.w.conn.ExecContext(ctx, contextReplace, s.n.Workflow, s.n.Key, int64(s.t.Run))
	return false, err
}

// afterFence settles a submission that was sent, whose answer was lost, and
// whose engine was fenced before it could ask again: fencing waited for it, so
// what is there now is final.
func (s *submission) afterFence(ctx context.Context, fenced error) (engine.Submitted, error) {
	token, err := s.writer(ctx)
	switch {
	case err != nil:
		return engine.Submitted{}, wrap("submit: outcome unknown", err)
	case token == s.token:
		return engine.Submitted{Run: s.t.Run, Name: s.n.Name}, nil
	}
	return engine.Submitted{}, fenced
}
