package children

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/moving"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/sdk"
)

// Error codes of steps that start child runs.
const (
	CodeNameTaken = "name_taken"    // another run has the name of the child run
	CodeKeyTaken  = "key_taken"     // another run has the unique key of the child run
	CodeNotUndone = "not_undone"    // the child run has passed its pivot, so that it cannot be undone
	CodeNoRoom    = "no_room"       // the concurrency limit of the child run is full, and the concurrency block says when_full = "reject"
	CodeRefused   = "child_refused" // the engine refuses the child run for another reason
)

// pageSize is the largest number of child runs in one question to the store.
const pageSize = 1000

// doing names the work of this package in the log.
const doing = "follow a child run"

// Run asks the store about the awaited child runs until ctx ends, with a pause of Config.Poll.
// While no call waits, Run does not ask.
func (r *Waits) Run(ctx context.Context) {
	for {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return
		}
		for r.Waiting() > 0 {
			if wait.For(ctx, r.cfg.Poll) != nil {
				return
			}
			if err := r.ask(ctx); err != nil {
				r.cfg.Outage.Failed(doing, err)
			}
		}
	}
}

// ask reads the status of all awaited child runs. It makes a goroutine work on each of these calls:
//   - a call that has not submitted its child run yet
//   - a call whose child run has ended or must turn back
//   - a call whose child run must be paused or resumed, or must get a new time until which its
//     parent waits
//
// If the complete-by of a call has passed, its child must turn back, and the call waits for the end
// of the child. But a call that asks for an undo does not wait after its complete-by: ask ends it
// with context.DeadlineExceeded.
func (r *Waits) ask(ctx context.Context) error {
	now := r.cfg.Clock.Now()
	r.mu.Lock()
	ids := make([]status.RunID, 0, len(r.byChild))
	var late []*waiter
	for _, w := range r.waits {
		switch {
		case !now.Before(w.Invoke.CompleteBy) && w.undoes():
			late = append(late, w)
		case !now.Before(w.Invoke.CompleteBy) && !w.stop:
			w.stop = true
			r.enqueueLocked(w)
		case w.child == 0:
			r.enqueueLocked(w) // an earlier try to submit the child had no answer
		}
	}
	for id := range r.byChild {
		ids = append(ids, id)
	}
	r.mu.Unlock()
	for _, w := range late {
		w.finish(sdk.Reply{}, context.DeadlineExceeded)
	}
	for len(ids) > 0 {
		page := ids[:min(len(ids), pageSize)]
		ids = ids[len(page):]
		rows, err := r.cfg.Store.Runs(ctx, store.RunFilter{IDs: page})
		if err != nil {
			return fmt.Errorf("ask for child runs: %w", err)
		}
		r.mu.Lock()
		for _, row := range rows {
			for _, w := range r.byChild[row.Run] {
				if row.State.Final() || w.undoes() || w.stop || w.strayLocked(row.State) || w.staleLocked() {
					w.ended = w.ended || row.State.Final()
					r.enqueueLocked(w)
				}
			}
		}
		r.mu.Unlock()
	}
	r.cfg.Outage.Worked(doing, time.Time{})
	return nil
}

// undoes reports whether the call asks for the undo of the child run.
func (w *waiter) undoes() bool { return w.Invoke.Purpose == sdk.PurposeUndo }

// key returns the idempotency key of the call that started the child run. An undo has this key as
// its forward key.
func (w *waiter) key() string {
	if w.Invoke.ForwardKey != "" {
		return w.Invoke.ForwardKey
	}
	return w.Invoke.IdempotencyKey
}

// childName returns the public name of the child run. The name contains Step.KeyName, which stays
// the same when a move of the parent renames the step. So the call still finds its child run.
func (w *waiter) childName() string {
	step := w.Flow.Steps[w.Invoke.Step]
	return naming.ChildName(w.Name, step.KeyName()+strings.TrimPrefix(w.Step(), step.Name), w.key())
}

// step does what is possible now: it submits the child run, posts a message to the child, or ends
// the call. If the store does not answer, the method `ask` lets a goroutine call the method `step`
// again.
func (w *waiter) step(ctx context.Context) {
	r := w.waits
	r.mu.Lock()
	child, stop, over, load, paused := w.child, w.stop, w.over, w.ended, w.pause != nil
	r.mu.Unlock()
	if over || ctx.Err() != nil {
		return
	}
	err := guard.Do(func() error {
		if child == 0 {
			var fresh bool
			var err error
			if child, fresh, err = w.begin(ctx, stop); err != nil || child == 0 {
				return err
			}
			if fresh && !stop && !paused && !w.undoes() && !w.stale() {
				// The child has just been submitted. If it has already ended in this engine, the
				// method `close` ends the call. Otherwise the method Ended or the method `ask`
				// notices the end later.
				return w.close(ctx, child, stop)
			}
			load = fresh
		}
		return w.follow(ctx, child, stop, load)
	})
	var refused *Refused
	switch {
	case err == nil:
	case errors.As(err, &refused):
		w.fail(refused.Code, refused.Error(), status.RunInvalid, 0)
	case ctx.Err() == nil:
		r.cfg.Outage.Failed(doing, err, "run", w.Name, "step", w.Step())
	}
}

// begin submits the child run, or finds the child run that was submitted before. It returns the id
// of the child run. The result `fresh` is true if the child run did not exist before.
func (w *waiter) begin(ctx context.Context, stop bool) (child status.RunID, fresh bool, err error) {
	r, name := w.waits, w.childName()
	order := Order{
		Flow: w.Flow.Steps[w.Invoke.Step].Child.Workflow, Vars: w.Invoke.Input, Name: name, Until: w.until(),
		Parent: w.Run, ParentName: w.Name, ParentStep: w.Step(), Void: stop || w.undoes(), Call: &w.Invoke,
	}
	if w.Flow.Steps[w.Invoke.Step].Child.Group {
		order.Priority = &w.Priority
	}
	if w.undoes() {
		row, err := r.cfg.Store.Find(ctx, name)
		if err == nil {
			child, err = w.attach(ctx, row.Run)
			return child, false, err
		}
		if !errors.Is(err, store.ErrNotFound) {
			return 0, false, err
		}
	}
	w.seek(name)
	sub, err := r.cfg.Submit(ctx, order)
	if err != nil {
		return 0, false, err
	}
	failpoint.Hit("child.submitted")
	switch {
	case !sub.Exists:
		w.noteSent(order.Until)
		w.found(sub.Run)
		return sub.Run, true, nil
	case sub.Name != name:
		return 0, false, &Refused{CodeKeyTaken, fmt.Errorf("run %s has the unique key of the child run", sub.Name)}
	}
	child, err = w.attach(ctx, sub.Run)
	return child, false, err
}

// attach checks that the run in the parameter `run`, which has the name of the child run, was
// started by the parent of this call. It returns the id of the run.
func (w *waiter) attach(ctx context.Context, run status.RunID) (status.RunID, error) {
	rows, err := w.waits.cfg.Store.Rows(ctx, run, 0, 1)
	if err != nil {
		return 0, err
	}
	if len(rows) == 0 {
		return 0, store.ErrNotFound
	}
	records, err := journal.DecodeRow(w.waits.cfg.Sealer, run, rows[0])
	if err != nil {
		return 0, err
	}
	started, ok := records[0].Event().(machine.Started)
	if !ok || started.Parent != w.Run {
		return 0, &Refused{CodeNameTaken, fmt.Errorf("another run has the name of the child run: %s", w.childName())}
	}
	w.noteSent(started.Until)
	w.found(run)
	return run, nil
}

// An ending says how a child run has ended.
type ending struct {
	status   status.RunState
	outputs  json.RawMessage // one JSON object; nil = the run has not succeeded
	failure  dsl.Failure     // zero = none
	undoable bool            // the run can be undone
	kept     status.Kept     // what remains of the effects of the run
}

// endingOf returns the ending of a run that has ended.
func endingOf(s *machine.State) *ending {
	e := &ending{status: s.Status(), failure: s.Failure(), undoable: s.Run().Undoable(), kept: moving.Remains(s.Run(), s.Nodes())}
	if e.status == status.RunSucceeded {
		e.outputs = outputs(s)
	}
	return e
}

// take returns how the child run has ended, if the method Ended has reported this; otherwise nil.
// It returns each ending only once. The child may turn back later, and then this ending is old and
// must not be used again.
func (w *waiter) take() *ending {
	w.waits.mu.Lock()
	defer w.waits.mu.Unlock()
	e := w.end
	w.end = nil
	return e
}

// close calls closeWith if the method Ended has reported the end of the child run. Otherwise it
// does nothing.
func (w *waiter) close(ctx context.Context, child status.RunID, stop bool) error {
	e := w.take()
	if e == nil {
		return nil
	}
	return w.closeWith(ctx, child, stop, e)
}

// follow continues the call with the present state of the child run. If the child has ended, follow
// calls closeWith. If the child is open, follow does the work of the method `early`. If the method
// Ended has reported the end, follow reads nothing from the store. Otherwise it reads the whole
// child run. If the parameter `load` is false, the child is probably still open and may have a long
// journal. Then follow first reads only the status of the child, which is enough for an open child.
func (w *waiter) follow(ctx context.Context, child status.RunID, stop, load bool) error {
	if e := w.take(); e != nil {
		return w.closeWith(ctx, child, stop, e)
	}
	if !load {
		rows, err := w.waits.cfg.Store.Runs(ctx, store.RunFilter{IDs: []status.RunID{child}})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fmt.Errorf("child run %s: %w", w.childName(), store.ErrNotFound)
		}
		if over, err := w.early(ctx, child, rows[0].State, stop); over || err != nil {
			return err
		}
	}
	run, err := journal.Load(ctx, w.waits.cfg.Store, w.waits.cfg.Sealer, w.waits.cfg.Defs, child)
	if err != nil {
		return err
	}
	if state := run.State.Status(); !state.Final() {
		_, err := w.early(ctx, child, state, stop)
		return err
	}
	return w.closeWith(ctx, child, stop, endingOf(run.State))
}

// closeWith handles the ending `e` of the child run. If the call asks for an undo and the child has
// succeeded, closeWith makes the child turn back. Otherwise it ends the call. If the child is still
// open, closeWith does only the work of the method `early`.
func (w *waiter) closeWith(ctx context.Context, child status.RunID, stop bool, e *ending) error {
	if over, err := w.early(ctx, child, e.status, stop); over || err != nil {
		return err
	}
	failpoint.Hit("child.ended")
	if w.undoes() {
		return w.undo(ctx, child, e)
	}
	if e.status == status.RunSucceeded {
		w.finishWith(sdk.Reply{Outcome: sdk.OutcomeResult, Output: e.outputs}, e.kept, nil)
		return nil
	}
	f := e.failure
	if f.Code == "" {
		f.Code = e.status.String()
	}
	w.fail(f.Code, f.Message, e.status, e.kept)
	return nil
}

// early does the work for a child run that is still open, and returns true. For this work, only the
// status of the child is needed:
//   - If the child must turn back, early posts a cancel to the child.
//   - If the child is the run of a group, early pauses or resumes it, as its parent asks.
//   - If the time until which the parent waits has changed, early sends the new time to the child.
//
// If the child has ended, early does nothing and returns false. Then the caller needs the whole
// child run, because the call must also report which effects remain.
func (w *waiter) early(ctx context.Context, child status.RunID, state status.RunState, stop bool) (over bool, err error) {
	if state.Final() {
		return false, nil
	}
	if stop || w.undoes() { // a later call of the method `ask` finds the end of the child
		err = w.cancel(ctx, child, state)
	}
	return true, errors.Join(err, w.followPause(ctx, child, state), w.followDeadline(ctx, child))
}

// outputs returns the outputs of a run as one JSON object.
func outputs(s *machine.State) json.RawMessage {
	object := map[string]json.RawMessage{}
	for _, o := range s.Run().Outputs {
		object[o.Name] = o.Value.V.JSON()
	}
	data, err := json.Marshal(object)
	if err != nil { // the values are valid JSON, so this does not happen
		return nil
	}
	return data
}

// cancel posts a cancel to the child run, once. A child that is turning back needs no cancel. If
// the parent was cancelled without compensation, cancel posts a cancel without compensation. It
// does so even if it has posted an ordinary cancel before, because a child that has passed its
// pivot refuses an ordinary cancel.
func (w *waiter) cancel(ctx context.Context, child status.RunID, state status.RunState) error {
	if state == status.RunCompensating || state == status.RunCompensationFailed {
		return nil
	}
	if leave := w.leaves(); leave != nil {
		if w.left {
			return nil
		}
		err := w.post(ctx, child, "leave", machine.CancelRequested{
			NoCompensate: true, By: w.Name, Reason: "the parent run is cancelled without compensation: " + leave.reason,
		})
		w.left = err == nil
		return err
	}
	if w.cancelled {
		return nil
	}
	err := w.post(ctx, child, "cancel", machine.CancelRequested{By: w.Name, Reason: "the parent run does not wait for it any more"})
	w.cancelled = err == nil
	return err
}

// holdLocked returns the pause that the run of a group must have now; nil = the run must not be
// paused. If the parent is parked and the group must turn back, the run of the group must not be
// paused, because its undos must not wait for a person.
func (w *waiter) holdLocked() *machine.PauseChild {
	if w.pause != nil && w.pause.Parked && w.stop {
		return nil
	}
	return w.pause
}

// strayLocked reports whether the run of a group must be paused but is not, or is paused but must
// not be. It returns false for a run that needs a person, because such a run starts nothing anyway.
func (w *waiter) strayLocked(state status.RunState) bool {
	paused := state == status.RunPaused
	w.theirs = w.theirs && paused
	hold := w.holdLocked() != nil
	if !w.Flow.Steps[w.Invoke.Step].Child.Group || state.Final() || state.NeedsHuman() || w.theirs && !hold {
		return false
	}
	return paused != hold
}

// followPause pauses or resumes the run of a group, so that it is paused if and only if its parent
// asks for that. If a person has paused the run of the group, followPause does not resume this run:
// the parent ends only a pause that the parent has begun.
func (w *waiter) followPause(ctx context.Context, child status.RunID, state status.RunState) error {
	r := w.waits
	r.mu.Lock()
	stray, pause := w.strayLocked(state), w.holdLocked()
	r.mu.Unlock()
	if !stray {
		return nil
	}
	if pause != nil {
		return w.post(ctx, child, "pause", machine.PauseRequested{By: w.Name, Reason: pause.Why()})
	}
	run, err := journal.Load(ctx, r.cfg.Store, r.cfg.Sealer, r.cfg.Defs, child)
	if err != nil {
		return err
	}
	if run.State.Run().PausedBy != w.Name {
		r.mu.Lock()
		w.theirs = run.State.Status() == status.RunPaused
		r.mu.Unlock()
		return nil
	}
	return w.post(ctx, child, "resume", machine.ResumeRequested{By: w.Name, Reason: "the run around the group goes on"})
}

// staleLocked reports whether the time until which the parent waits has changed and the child run
// does not know the new time. It returns false if the child must turn back, because then the child
// does not need the time.
func (w *waiter) staleLocked() bool {
	return !w.bound.IsZero() && !w.bound.Equal(w.sent) && !w.stop && !w.undoes()
}

func (w *waiter) stale() bool {
	w.waits.mu.Lock()
	defer w.waits.mu.Unlock()
	return w.staleLocked()
}

// followDeadline sends a message to the open child run if the child does not know the time until
// which the parent waits now. The message holds this time, and has no Dedup: an earlier message
// with another time may wait in the inbox, and the newest message must be decided last.
func (w *waiter) followDeadline(ctx context.Context, child status.RunID) error {
	if !w.stale() {
		return nil
	}
	until := w.until()
	if err := w.send(ctx, child, "", machine.ParentWaits{Until: until, By: w.Name}); err != nil {
		return err
	}
	w.noteSent(until)
	failpoint.Hit("child.bound")
	return nil
}

// leaves returns why the child run must keep its effects; nil = it need not.
func (w *waiter) leaves() *keepEffects {
	w.waits.mu.Lock()
	defer w.waits.mu.Unlock()
	return w.leave
}

// undo makes the child run turn back, if the child has succeeded. If the child cannot be undone,
// the call fails. If the child has ended in another way, the call succeeds, and only reports what
// remains of the child's effects.
func (w *waiter) undo(ctx context.Context, child status.RunID, e *ending) error {
	switch {
	case e.status != status.RunSucceeded:
		w.finishWith(sdk.Reply{Outcome: sdk.OutcomeResult}, e.kept, nil)
		return nil
	case !e.undoable:
		w.fail(CodeNotUndone, "child run "+w.childName()+" has passed its pivot: nothing of it is undone any more", status.RunSucceeded, 0)
		return nil
	case w.undone:
		return nil // the owner of the child has not decided the message yet
	}
	err := w.post(ctx, child, "undo", machine.CompensateRequested{Parent: true, By: w.Name, Reason: "the parent run is being undone"})
	if w.undone = err == nil; w.undone {
		failpoint.Hit("child.undo_posted")
	}
	return err
}

// post puts a verb into the inbox of the child run. While the message waits there, posting it
// again adds nothing.
func (w *waiter) post(ctx context.Context, child status.RunID, verb string, e machine.Event) error {
	return w.send(ctx, child, "parent/"+verb, e)
}

// send puts a verb into the inbox of the child run. If `dedup` is not "", the verb is put there
// only if no message with the same dedup waits there.
func (w *waiter) send(ctx context.Context, child status.RunID, dedup string, e machine.Event) error {
	data, err := journal.EncodeMessage(w.waits.cfg.Sealer, child, e)
	if err != nil {
		return err
	}
	_, err = w.waits.cfg.Store.Post(ctx, store.Message{
		Run: child, Kind: store.MessageVerb, By: w.Name, Data: data, Dedup: dedup,
	})
	return err
}
