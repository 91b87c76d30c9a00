package engine

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

// report hands a call's delivery to its run, after what the pump still holds.
// It does not block.
func (c *openCall) report(d *delivery) {
	c.sender.flush()
	d.call, d.reservation = c, &c.reservation
	if t := c.w.n.now(); t != nil && t.scheduler.deliver(c.run, d) {
		return // reported is called
	}
	go c.insist(d, ErrNotOwner)
}

// reported is told what became of the delivery. It does not block.
func (c *openCall) reported(d *delivery, err error) {
	if err == nil {
		c.finish()
		return
	}
	go c.insist(d, err)
}

// finish ends a call of which nothing is left to be done. The slot is given back
// unless the decision on the answer has taken it.
func (c *openCall) finish() {
	c.reservation.release()
	failpoint.HitPurpose("receive.after", uint8(c.invoke.Purpose))
	c.w.end(c)
}

// insist delivers until the run has it. An answer to a run that another engine
// owns, or that has no owner, goes into the run's inbox with the time at which it
// arrived here: who holds the run does not matter for what counts (language.md,
// What counts), and it is durable there. err is what became of the last attempt.
func (c *openCall) insist(first *delivery, err error) {
	defer c.finish()
	w, ctx, pause := c.w, context.Background(), 10*time.Millisecond
	d := delivery{event: first.event, arrived: first.arrived, completeBy: first.completeBy, attempt: first.attempt, reservation: &c.reservation}
	for {
		var aside *journal.RunError
		switch {
		case err == nil:
			return
		case errors.As(err, &aside):
			// The run is quarantined here, so the answer is not decided. It is kept for
			// the person who looks into the run.
			w.n.keepLate(c.run, c.step(), c.invoke.Attempt, d.event, d.arrived)
			return
		case errors.Is(err, store.ErrNotFound):
			return
		}
		c.reservation.release() // it is not decided for now
		if errors.Is(err, ErrNotOwner) && !w.quits() {
			c.sender.handOver()
			if err = c.post(ctx, &d); err == nil || errors.Is(err, store.ErrNotFound) {
				w.n.outage.Worked(outage.Post, time.Time{})
				return
			}
			w.n.outage.Failed(outage.Post, err, "run", c.name, "step", c.step())
		}
		if w.n.clock.Now().After(d.completeBy.Add(postFor)) {
			w.n.keepLate(c.run, c.step(), c.invoke.Attempt, d.event, d.arrived)
			return
		}
		if w.quits() || wait.For(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, w.n.cfg.Options.RetryStore)
		c.sender.flush()
		again := d // it may have to be delivered once more, to another incarnation
		err = w.n.deliver(ctx, c.run, &again)
	}
}

// post puts an answer into its run's inbox. A call has one answer, so posting
// again is harmless.
func (c *openCall) post(ctx context.Context, d *delivery) error {
	data, err := journal.EncodeMessage(c.w.n.cfg.Sealer, c.run, d.event)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.w.n.cfg.Options.Lease)
	defer cancel()
	_, err = c.w.n.cfg.Store.Post(ctx, store.Message{
		Run: c.run, At: d.arrived, Kind: store.MessageReply, By: "agent " + c.invoke.Agent, Data: data,
		Dedup: fmt.Sprintf("reply/%d/%d", d.attempt.Node, d.attempt.Call),
	})
	return err
}
