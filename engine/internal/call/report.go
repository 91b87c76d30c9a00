package call

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/outage"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
)

// postFor is how long after complete-by the engine still tries to deliver an answer that arrived
// in time, for example while the store does not respond. After that, the engine keeps the
// answer only as evidence. A delivery after complete-by is useful, because only the time at
// which the answer reached the engine counts.
const postFor = 10 * time.Minute

// Report passes an answer to the call's run. Before the answer, it sends a checkpoint that still
// waits. It does not block.
func (c *Call) Report(a Answer) {
	c.sender.flush()
	reported := func(err error) { c.Reported(a, err) }
	if m := c.w.cfg.Present(); m != nil && m.Deliver(c.Run, a, reported) {
		return
	}
	go c.deliverUntilStored(a, ErrNotOwner)
}

// Reported handles the outcome of the delivery of an answer. If err is nil, the call ends.
// Otherwise the delivery is repeated in another goroutine. Reported does not block.
func (c *Call) Reported(a Answer, err error) {
	if err == nil {
		c.Finish()
		return
	}
	go c.deliverUntilStored(a, err)
}

// Finish ends a call. It gives the call's slot back, unless the decision on the answer has taken
// the slot.
func (c *Call) Finish() {
	c.reservation.Release()
	failpoint.HitPurpose("receive.after", uint8(c.Invoke.Purpose))
	c.w.end(c)
}

// deliverUntilStored delivers the answer again and again until the run has it. It gives up in these
// cases:
//   - The run is quarantined here, or is not in the store any more.
//   - StopAll was called.
//   - More time than postFor has passed since complete-by.
//
// If this engine does not own the run, the answer goes into the run's inbox, with the time at which
// the answer reached this engine. In the inbox the answer is durable, and it counts even if another
// engine owns the run by then (language.md, What counts). The parameter `err` is the error of the
// first delivery.
func (c *Call) deliverUntilStored(a Answer, err error) {
	defer c.Finish()
	w, ctx, pause := c.w, context.Background(), 10*time.Millisecond
	for {
		var quarantined *journal.RunError
		switch {
		case err == nil:
			return
		case errors.As(err, &quarantined):
			// This engine does not work on the run (quarantine), so it does not decide the
			// answer. It keeps the answer for the person who examines the run.
			w.KeepLate(c.Run, c.Step(), c.Invoke.Attempt, a.Event, a.Arrived)
			return
		case errors.Is(err, store.ErrNotFound):
			return
		}
		c.reservation.Release() // the decision may come late: let another run use the slot
		if errors.Is(err, ErrNotOwner) && !w.quits() {
			c.sender.handOver()
			if err = c.post(ctx, &a); err == nil || errors.Is(err, store.ErrNotFound) {
				w.cfg.Outage.Worked(outage.Post, time.Time{})
				return
			}
			w.cfg.Outage.Failed(outage.Post, err, "run", c.Name, "step", c.Step())
		}
		if w.cfg.Clock.Now().After(a.CompleteBy.Add(postFor)) {
			w.KeepLate(c.Run, c.Step(), c.Invoke.Attempt, a.Event, a.Arrived)
			return
		}
		if w.quits() || wait.For(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, w.cfg.RetryStore)
		c.sender.flush()
		err = c.ask(ctx, a)
	}
}

// ask passes an answer to the present membership and returns the outcome of the delivery. It
// returns ErrNotOwner if there is no membership, or if the membership ends before the outcome is
// known.
func (c *Call) ask(ctx context.Context, a Answer) error {
	m := c.w.cfg.Present()
	if m == nil {
		return ErrNotOwner
	}
	outcome := make(chan error, 1)
	m.Deliver(c.Run, a, func(err error) { outcome <- err })
	select {
	case err := <-outcome:
		return err
	case <-m.Done():
		select { // the outcome may have arrived just before the membership ended
		case err := <-outcome:
			return err
		default:
			return ErrNotOwner
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// post puts an answer into the run's inbox. It may be called again for the same answer: the
// field Dedup of the message prevents a second message.
func (c *Call) post(ctx context.Context, a *Answer) error {
	data, err := journal.EncodeMessage(c.w.cfg.Sealer, c.Run, a.Event)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.w.cfg.Lease)
	defer cancel()
	_, err = c.w.cfg.Store.Post(ctx, store.Message{
		Run: c.Run, At: a.Arrived, Kind: store.MessageReply, By: "agent " + c.Invoke.Agent, Data: data,
		Dedup: fmt.Sprintf("reply/%d/%d", a.Attempt.Node, a.Attempt.Call),
	})
	return err
}

// Flush sends the last checkpoint if the checkpoint still waits, because the checkpoint must reach
// the run before the answer. Flush returns true if a checkpoint is still in flight. Then the caller
// must pass the answer to Report, which keeps the order.
func (c *Call) Flush() bool { return c.sender.flush() }
