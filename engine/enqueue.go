package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/machine"
)

// whyQueued is why nothing of a run has started that nobody owns.
const whyQueued = "no engine has taken the run yet"

// enqueueLease is how long whoever enqueues counts as alive. Nothing depends on
// it but how long a dead one is remembered.
const enqueueLease = 30 * time.Second

// Enqueue accepts a run that nobody owns yet, without a running engine: it is
// queued until one claims it (S55), and waiting costs it nothing but its
// deadline (S65). Of cfg only Store, Sealer and Options are used. What Submit
// says about names, keys and errors holds here too.
func Enqueue(ctx context.Context, cfg Config, s Submission) (Submitted, error) {
	all, err := EnqueueAll(ctx, cfg, []Submission{s})
	if err != nil {
		return Submitted{}, err
	}
	return all[0], nil
}

// EnqueueAll is Enqueue of many runs, one after the other. With an error it
// returns what was accepted before.
func EnqueueAll(ctx context.Context, cfg Config, submissions []Submission) (accepted []Submitted, err error) {
	q := &enqueuer{n: &Node{cfg: cfg.withDefaults(), ids: &minter{}, clock: &clock{}}}
	q.n.cfg.Store = pointed(q.n.cfg.Store)
	q.n.defs = NewDefinitions(q.n.cfg.Store, q.n.cfg.Sealer)
	if err := q.open(ctx); err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	defer func() { err = errors.Join(err, q.close(ctx)) }()
	for _, s := range submissions {
		sub, err := q.enqueue(ctx, s)
		if err != nil {
			return accepted, fmt.Errorf("submit %q: %w", s.Workflow, err)
		}
		accepted = append(accepted, sub)
	}
	return accepted, nil
}

// An enqueuer is a membership that lasts as long as it takes to submit.
type enqueuer struct {
	n      *Node // of which only what submitting needs is there
	engine EngineID
	writer Writer
}

func (q *enqueuer) open(ctx context.Context) (err error) {
	if err := pinKey(ctx, q.n.cfg.Store, q.n.cfg.Sealer); err != nil {
		return err
	}
	sent := time.Now()
	if q.engine, err = q.n.cfg.Store.Join(ctx, q.n.cfg.Options.Address, enqueueLease, 1); err != nil {
		return err
	}
	q.writer, err = q.n.cfg.Store.OpenWriter(ctx, q.engine, 0)
	if err != nil {
		return errors.Join(err, q.n.cfg.Store.Leave(ctx, q.engine))
	}
	// Only the time of it matters: what is due or unowned is for engines.
	tick, err := q.n.cfg.Store.Tick(ctx, q.engine, enqueueLease, 1)
	if err != nil {
		return errors.Join(err, q.close(ctx))
	}
	q.n.clock.ticked(sent, tick.Now, enqueueLease)
	return nil
}

func (q *enqueuer) close(ctx context.Context) error {
	return errors.Join(q.writer.Close(), q.n.cfg.Store.Leave(context.WithoutCancel(ctx), q.engine))
}

// enqueue accepts one run.
func (q *enqueuer) enqueue(ctx context.Context, s Submission) (Submitted, error) {
	st, err := q.n.prepare(ctx, s)
	if err != nil {
		return Submitted{}, err
	}
	for range submitIDs {
		names := *st
		now := q.n.clock.now()
		run, err := q.n.christen(s, &names, now)
		if err != nil {
			return Submitted{}, err
		}
		t, err := q.first(s, names, run, now)
		if err != nil {
			return Submitted{}, err
		}
		sub, err := q.writer.Submit(ctx, t, names.names)
		if !errors.Is(err, ErrExists) {
			return sub, err
		}
	}
	return Submitted{}, fmt.Errorf("no free run id in %d tries", submitIDs)
}

// first makes the run's first row: nobody owns it, nothing of it has started,
// and it is looked for at once.
func (q *enqueuer) first(s Submission, st start, run machine.RunID, now time.Time) (Transition, error) {
	slots := map[string]machine.Slot{}
	for agent := range st.specs {
		slots[agent] = machine.Slot{Why: whyQueued}
	}
	state := machine.NewState()
	rec := machine.Decide(st.flow, state, machine.Input{At: now, Slots: slots, Event: machine.Started{
		RunID: run, Name: st.names.Name, Key: st.names.Key, Vars: s.Vars, Trigger: "manual", StartedBy: s.By,
	}})
	nobody := EngineID(0)
	t := Transition{Run: run, At: rec.At(), Workflow: st.workflow, Owner: &nobody, NextCheck: rec.At().Truncate(time.Microsecond)}
	t.add(rec, state)
	state.Apply(rec)
	if state.Status().Final() {
		t.NextCheck = Never
	}
	var err error
	if t.Data, err = encodeRow(q.n.cfg.Sealer, run, 0, []machine.Record{rec}); err != nil {
		return Transition{}, err
	}
	if len(t.Data) > q.n.cfg.Options.MaxRow {
		return Transition{}, fmt.Errorf("its first row has %d bytes, more than the %d allowed", len(t.Data), q.n.cfg.Options.MaxRow)
	}
	return t, nil
}
