package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// done is the number of finished steps in each run in flight. The next step has started.
const done = 3

// firstID is the smallest id of the open runs. All finished runs get smaller ids,
// because in a real database they are older.
const firstID = status.RunID(1) << 50

// A runMaker makes runs in flight in a database. Their journals have the same rows as if an engine
// had written them. Unlike an engine, the runMaker commits a thousand runs together, and calls no
// agent.
type runMaker struct {
	d      *database
	work   *work
	flow   *dsl.Workflow
	id     store.WorkflowID
	owner  store.EngineID
	now    time.Time
	output dsl.Value
}

// flocked makes n runs in flight. In each run, three of five steps are finished. It returns the
// id of the engine that owns the runs. This engine has already left.
func flocked(ctx context.Context, d *database, w *work, n int) (store.EngineID, error) {
	f := &runMaker{d: d, work: w, flow: w.def.Workflow("five"), output: dsl.NewValue(fmt.Appendf(nil, `{"value":%s}`, w.value()), nil, nil)}
	ids, err := journal.NewDefinitions(d.store, nil).Put(ctx, w.def)
	if err != nil {
		return 0, fmt.Errorf("store the workflow: %w", err)
	}
	f.id = ids["five"]
	const writers = 2
	if f.owner, err = d.store.Join(ctx, "dead", time.Hour, writers); err != nil {
		return 0, fmt.Errorf("join: %w", err)
	}
	tick, err := d.store.Tick(ctx, f.owner, time.Hour, 1)
	if err != nil {
		return 0, fmt.Errorf("tick: %w", err)
	}
	f.now = tick.Now
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() { errs[w] = f.write(ctx, w, writers, n) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, fmt.Errorf("make runs: %w", err)
	}
	if err := d.exec(ctx, "make runs", `VACUUM ANALYZE`, `CHECKPOINT`); err != nil {
		return 0, err
	}
	if err := d.store.Leave(ctx, f.owner); err != nil {
		return 0, fmt.Errorf("leave: %w", err)
	}
	return f.owner, nil
}

// write stores one part of the n runs, in batches. Several goroutines call write at the same time,
// and each of them stores another part. The parameter `writers` is the number of these goroutines,
// and the parameter `writer` is the index of the goroutine that makes this call.
func (f *runMaker) write(ctx context.Context, writer, writers, n int) (err error) {
	w, err := f.d.store.OpenWriter(ctx, f.owner, writer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	const batch = 1000
	for from := writer * batch; from < n; from += writers * batch {
		// rows[seq] contains the transitions with the sequence number seq.
		rows := make([][]store.Transition, done+1)
		for i := from; i < min(from+batch, n); i++ {
			one, err := f.run(firstID + status.RunID(i))
			if err != nil {
				return err
			}
			for seq, t := range one {
				rows[seq] = append(rows[seq], t)
			}
		}
		for _, batch := range rows {
			if err := landed(w.Commit(ctx, batch)); err != nil {
				return err
			}
		}
	}
	return nil
}

// landed returns err, the error of a commit. If err is nil, landed returns the error of the
// first row that was not stored, or nil.
func landed(outcomes []store.Outcome, err error) error {
	for _, o := range outcomes {
		if err == nil && !o.Landed {
			err = fmt.Errorf("a row did not land: %w", o.Err)
		}
	}
	return err
}

// run makes the journal of one run: it decides the start of the run, and then the success of each
// of the first steps. It returns the transitions, one for each decision.
func (f *runMaker) run(run status.RunID) ([]store.Transition, error) {
	state := machine.NewState()
	events := []machine.Event{machine.Started{RunID: run, Name: naming.RunName(run), Vars: f.work.vars, Trigger: "manual", StartedBy: "bench"}}
	for node := range done {
		events = append(events, machine.AttemptOK{Attempt: machine.AttemptID{Node: node, Call: 1}, Output: f.output})
	}
	var out []store.Transition
	encoder := journal.RowEncoder{Run: run}
	for seq, e := range events {
		rec := machine.Decide(f.flow, state, machine.Input{At: f.now, Event: e})
		data, err := encoder.Encode(rec.At(), []machine.Record{rec})
		if err != nil {
			return nil, err
		}
		t := store.Transition{Run: run, Seq: int32(seq), At: rec.At(), Data: data}
		t.State, _ = rec.RunState()
		for _, row := range rec.Steps(state) {
			t.Steps = append(t.Steps, store.StepRow{Node: int32(row.Node), State: row.State, Failures: row.Failures, Attempt: row.Attempt, CompleteBy: row.CompleteBy})
		}
		state.Apply(rec)
		if seq == 0 {
			t.Workflow, t.Owner, t.NextCheck = f.id, &f.owner, f.now.Add(f.flow.Shortest)
		}
		out = append(out, t)
	}
	if open := state.OpenAttempts(f.flow); len(open) != 1 || open[0].Node != done {
		return nil, fmt.Errorf("run %d waits for %v, not for its step %d", run, open, done)
	}
	return out, nil
}
