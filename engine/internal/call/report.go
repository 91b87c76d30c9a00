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

// postFor is how long past complete-by an answer that the run's owner should
// hear of is kept trying for, while the store does not answer: it counts by
// when it arrived, and if it does not count any more it is evidence.
const postFor = 10 * time.Minute

// Report hands an answer to the call's run, after the signs of life that still wait.
// It does not block.
func (c *Call) Report(a Answer) {
	c.sender.flush()
	told := func(err error) { c.Reported(a, err) }
	if m := c.w.cfg.Present(); m != nil && m.Deliver(c.Run, a, told) {
		return
	}
	go c.insist(a, ErrNotOwner)
}

// Reported takes what became of the answer. It does not block.
func (c *Call) Reported(a Answer, err error) {
	if err == nil {
		c.Finish()
		return
	}
	go c.insist(a, err)
}

// Finish ends a call of which nothing is left to be done. The slot is given back
// unless the decision on the answer has taken it.
func (c *Call) Finish() {
	c.reservation.Release()
	failpoint.HitPurpose("receive.after", uint8(c.Invoke.Purpose))
	c.w.end(c)
}

// insist delivers until the run has it. An answer to a run that another engine
// owns, or that has no owner, goes into the run's inbox with the time at which it
// arrived here: who holds the run does not matter for what counts (language.md,
// What counts), and it is durable there. err is what became of the last attempt.
func (c *Call) insist(a Answer, err error) {
	defer c.Finish()
	w, ctx, pause := c.w, context.Background(), 10*time.Millisecond
	for {
		var aside *journal.RunError
		switch {
		case err == nil:
			return
		case errors.As(err, &aside):
			// The run is quarantined here, so the answer is not decided. It is kept for
			// the person who looks into the run.
			w.KeepLate(c.Run, c.step(), c.Invoke.Attempt, a.Event, a.Arrived)
			return
		case errors.Is(err, store.ErrNotFound):
			return
		}
		c.reservation.Release() // it is not decided for now
		if errors.Is(err, ErrNotOwner) && !w.quits() {
			c.sender.handOver()
			if err = c.post(ctx, &a); err == nil || errors.Is(err, store.ErrNotFound) {
				w.cfg.Outage.Worked(outage.Post, time.Time{})
				return
			}
			w.cfg.Outage.Failed(outage.Post, err, "run", c.Name, "step", c.step())
		}
		if w.cfg.Clock.Now().After(a.CompleteBy.Add(postFor)) {
			w.KeepLate(c.Run, c.step(), c.Invoke.Attempt, a.Event, a.Arrived)
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

// ask hands an answer to the present membership and waits for what becomes of it.
// Returns ErrNotOwner if there is none, or if it ends first: what became of the answer
// is then not known.
func (c *Call) ask(ctx context.Context, a Answer) error {
	m := c.w.cfg.Present()
	if m == nil {
		return ErrNotOwner
	}
	told := make(chan error, 1)
	m.Deliver(c.Run, a, func(err error) { told <- err })
	select {
	case err := <-told:
		return err
	case <-m.Done():
		select { // it may have been told just before the end
		case err := <-told:
			return err
		default:
			return ErrNotOwner
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// post puts an answer into its run's inbox. A call has one answer, so posting
// again is harmless.
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

// Flush sends the last sign of life that still waits, so that it reaches the run before
// the answer. It reports whether there was one, now or before: then the answer goes the
// same way, by Report.
func (c *Call) Flush() bool { return c.sender.flush() }
