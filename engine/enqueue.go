package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/machine"
)

// whyUnowned is why nothing of a run starts that no engine has taken up.
const whyUnowned = "no engine has taken the run yet"

// Enqueue accepts a run that nobody owns yet: it is durable when Enqueue
// returns, shows as queued with every step, and any engine on the store takes it
// up (S14, S55). Waiting for one burns no failure count (S65). It needs no
// running engine, no agents and no Invoker: cfg.Invoker is not used. What Submit
// refuses is refused here too, and a name or key that is taken returns the
// earlier run with Exists set.
func Enqueue(ctx context.Context, cfg Config, s Submission) (Submitted, error) {
	out, err := EnqueueAll(ctx, cfg, []Submission{s})
	if len(out) == 0 {
		return Submitted{}, err
	}
	return out[0], err
}

// EnqueueAll is Enqueue of many, over Options.Writers connections at once. It
// returns what became of each, in order, up to the first that was refused or
// failed; those after it may have been accepted too, and show with a Run other
// than 0. Doing it again under the same names or keys is safe.
func EnqueueAll(ctx context.Context, cfg Config, all []Submission) (accepted []Submitted, err error) {
	cfg = cfg.withDefaults()
	if cfg.Store == nil {
		return nil, errors.New("engine: Config.Store is required")
	}
	if err := cfg.Options.validate(); err != nil {
		return nil, err
	}
	if err := pinKey(ctx, cfg.Store, cfg.Sealer); err != nil {
		return nil, err
	}
	writers := min(cfg.Options.Writers, len(all))
	if writers == 0 {
		return nil, nil
	}
	cfg.Store = Pointed(cfg.Store)
	e := &enqueuer{cfg: cfg, n: &Node{cfg: cfg, clock: &clock{}, ids: &minter{}, defs: NewDefinitions(cfg.Store, cfg.Sealer)}}
	if e.engine, err = cfg.Store.Join(ctx, cfg.Options.Address, cfg.Options.Lease, writers); err != nil {
		return nil, fmt.Errorf("join the store: %w", err)
	}
	defer func() {
		// It owns nothing, so nobody waits for it; but nobody should wonder either.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.Options.Lease)
		defer cancel()
		if left := cfg.Store.Leave(ctx, e.engine); left != nil && !notOwner(left) && err == nil {
			err = fmt.Errorf("leave the store: %w", left)
		}
	}()
	if err := e.tick(ctx); err != nil {
		return nil, err
	}
	return e.run(ctx, all, writers)
}

// An enqueuer is a short membership that only submits.
type enqueuer struct {
	cfg    Config
	n      *Node // of which only what submitting needs is there
	engine EngineID
}

// tick renews the membership and learns the store's time.
func (e *enqueuer) tick(ctx context.Context) error {
	sent := time.Now()
	tick, err := e.cfg.Store.Tick(ctx, e.engine, e.cfg.Options.Lease, 1)
	if err != nil {
		return fmt.Errorf("tick: %w", err)
	}
	e.n.clock.ticked(sent, tick.Now, e.cfg.Options.Lease)
	return nil
}

// run submits everything over a number of writers.
func (e *enqueuer) run(ctx context.Context, all []Submission, writers int) ([]Submitted, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	out := make([]Submitted, len(all))
	errs := make([]error, len(all))
	var work, renew sync.WaitGroup
	for n := range writers {
		w, err := e.cfg.Store.OpenWriter(ctx, e.engine, n)
		if err != nil {
			cancel(err)
			work.Wait()
			return nil, fmt.Errorf("open writer %d: %w", n, err)
		}
		work.Go(func() {
			defer func() {
				if err := w.Close(); err != nil {
					e.cfg.Logger.Debug("close a writer", "error", err)
				}
			}()
			for ctx.Err() == nil {
				to := int(next.Add(enqueueBatch))
				from := to - enqueueBatch
				if to = min(to, len(all)); from >= to {
					return
				}
				if err := e.many(ctx, w, all[from:to], out[from:to], errs[from:to]); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	renew.Go(func() {
		for {
			timer := time.NewTimer(e.cfg.Options.Lease / 3)
			select {
			case <-timer.C:
				if err := e.tick(ctx); overFor(err) {
					cancel(err)
				}
			case <-done:
				timer.Stop()
				return
			}
		}
	})
	work.Wait()
	close(done)
	renew.Wait()
	for i, err := range errs {
		if err != nil {
			return out[:i], err
		}
		if out[i].Run == 0 {
			return out[:i], context.Cause(ctx)
		}
	}
	return out, nil
}

// enqueueBatch is how many runs are submitted in one commit at most.
const enqueueBatch = 256

// many submits runs that nobody owns, in one commit if nothing is in the way. It
// returns the first error, which is among errs too.
func (e *enqueuer) many(ctx context.Context, w Writer, all []Submission, out []Submitted, errs []error) error {
	starts, batch, bytes := make([]*start, len(all)), make([]Transition, 0, len(all)), 0
	for i, s := range all {
		if _, given := ParseRunName(s.Name); given {
			break // it is, or is not, the run of that name: nothing for a batch
		}
		var err error
		if starts[i], err = e.n.prepare(ctx, s); err != nil {
			errs[i] = fmt.Errorf("submit %q: %w", s.Workflow, err)
			break
		}
		var t Transition
		if t, errs[i] = e.transition(s, *starts[i]); errs[i] != nil {
			break
		}
		batch, bytes = append(batch, t), bytes+len(t.Data)
		if bytes > e.cfg.Options.MaxBatchBytes {
			break
		}
	}
	var outcomes []Outcome
	if len(batch) > 0 {
		var err error
		if outcomes, err = w.Commit(ctx, batch); err != nil || len(outcomes) != len(batch) {
			outcomes = make([]Outcome, len(batch)) // each is settled by itself
		}
	}
	for i := range batch {
		if o := outcomes[i]; o.Err == nil && (o.Landed || o.Submitted.Exists) {
			out[i] = o.Submitted
			if o.Submitted.Run == batch[i].Run { // an earlier sending had landed
				out[i].Exists = false
			}
			continue
		}
		if out[i], errs[i] = e.one(ctx, w, all[i], *starts[i], batch[i]); errs[i] != nil {
			return errs[i]
		}
	}
	for i := len(batch); i < len(all); i++ { // what is refused, or one batch cannot hold
		if errs[i] != nil {
			return errs[i]
		}
		if _, given := ParseRunName(all[i].Name); given {
			if out[i], errs[i] = e.n.again(ctx, all[i]); errs[i] != nil {
				return errs[i]
			}
			continue
		}
		st, err := e.n.prepare(ctx, all[i])
		if err != nil {
			errs[i] = fmt.Errorf("submit %q: %w", all[i].Workflow, err)
			return errs[i]
		}
		var t Transition
		if t, errs[i] = e.transition(all[i], *st); errs[i] == nil {
			out[i], errs[i] = e.one(ctx, w, all[i], *st, t)
		}
		if errs[i] != nil {
			return errs[i]
		}
	}
	return nil
}

// one submits one run that nobody owns, at first as t. A store that does not
// answer is asked again a few times, as by Node.Submit.
func (e *enqueuer) one(ctx context.Context, w Writer, s Submission, st start, t Transition) (Submitted, error) {
	pause, unsure := 20*time.Millisecond, t.Run
	for try := 1; ; try++ {
		if unsure == 0 {
			var err error
			if t, err = e.transition(s, st); err != nil {
				return Submitted{}, err
			}
		}
		res, err := w.Submit(ctx, t, *t.Names)
		var loss *LossError
		switch {
		case err == nil && res.Exists && res.Run == t.Run: // an earlier sending had landed
			res.Exists = false
			return res, nil
		case err == nil:
			return res, nil
		case errors.Is(err, ErrExists): // the id is another's, or an earlier sending landed
			unsure = 0
		case overFor(err), errors.As(err, &loss), ctx.Err() != nil:
			return Submitted{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
		default:
			unsure = t.Run // the same row is sent again, so that it cannot land twice
		}
		if try == submitTries {
			return Submitted{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
		}
		if unsure != 0 {
			if sleep(ctx, pause) != nil {
				return Submitted{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
			}
			pause *= 2
		}
	}
}

// transition makes the first row of a run that nobody owns: nothing of it
// starts, and whoever looks for runs of nobody finds it at once.
func (e *enqueuer) transition(s Submission, st start) (Transition, error) {
	now := e.n.clock.now()
	run, err := e.n.christen(s, &st, now)
	if err != nil {
		return Transition{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
	}
	event := machine.Started{RunID: run, Name: st.public, Key: st.names.Key, Vars: s.Vars, Trigger: "manual", StartedBy: s.By}
	slots := map[string]machine.Slot{}
	for agent := range st.specs {
		slots[agent] = machine.Slot{Why: whyUnowned}
	}
	nobody, state := EngineID(0), machine.NewState()
	t := Transition{Run: run, Workflow: st.workflow, Owner: &nobody, Names: &st.names}
	err = guard(func() error {
		rec := machine.Decide(st.flow, state, machine.Input{At: now, Event: event, Slots: slots})
		t.add(rec, state)
		t.At = rec.At()
		t.Data, err = encodeRow(e.cfg.Sealer, &machine.Scratch{}, run, 0, t.At, []machine.Record{rec})
		return err
	})
	if err != nil {
		return Transition{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
	}
	if len(t.Data) > e.cfg.Options.MaxRow {
		return Transition{}, fmt.Errorf("submit %q: its first row has %d bytes, more than the %d allowed", s.Workflow, len(t.Data), e.cfg.Options.MaxRow)
	}
	t.NextCheck = t.At.Truncate(time.Microsecond)
	if t.State.Final() {
		t.NextCheck = Never // a workflow without steps has ended already
	}
	return t, nil
}
