package call

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// A progressSender passes the signs of life of one call to the call's run, in order and before the
// answer. Checkpoints become records (S82). Until the answer arrives, only one checkpoint of a call
// is in flight at a time. A newer checkpoint replaces a checkpoint that waits, because a later
// attempt needs only the newest checkpoint. So an agent that is faster than the store need not
// wait, and fills no memory. If another engine owns the run, checkpoints go into the run's inbox,
// at most one per second (postEvery).
type progressSender struct {
	c *Call // the call that sends the progress

	mu     sync.Mutex  // protects the fields below
	member Member      // membership to which the checkpoint in flight was passed; nil = none is in flight
	sent   *Answer     // checkpoint that is in flight, or whose commit is not known; nil = none
	next   *Answer     // checkpoint that waits to be sent; nil = none
	retry  *time.Timer // calls sendLocked after a pause; nil = there was no pause yet
	// pause is the last pause of laterLocked; 0 = the last delivery succeeded, or there was no
	// pause yet.
	pause  time.Duration
	beat   time.Time // time of the last heartbeat that was delivered; zero = never
	closed bool      // later signs of life are ignored

	paced   time.Time // earliest time for the next checkpoint, by this process's clock
	written int64     // total size of the checkpoints that were sent, in bytes

	foreign bool      // another engine owned the run at the last delivery
	posted  time.Time // time of the last checkpoint that was put into the inbox; zero = never
}

func (p *progressSender) init(c *Call) { p.c = c }

// every returns the shortest time between two heartbeats that are delivered to the run; 0 = no
// heartbeat is delivered.
func (p *progressSender) every() time.Duration { return p.c.Silence / 2 }

// postEvery is the shortest time between two checkpoints of a call that the engine puts into the
// inbox of the run.
const postEvery = time.Second

// These constants are limits for the checkpoints of a call. A checkpoint that comes too early
// waits, and a newer checkpoint replaces it. Each time the call has sent CheckpointsPerPace bytes,
// its rate is halved, at most ten times. So a call may record checkpoints for days, but an agent in
// an endless loop does not fill the database.
const (
	CheckpointPause = 100 * time.Millisecond // shortest pause between two checkpoints of a call
	CheckpointRate  = 256 << 10              // largest number of checkpoint bytes of a call, per second
	// CheckpointsPerPace is a size in bytes: each time a call has sent this many checkpoint
	// bytes, its rate is halved.
	CheckpointsPerPace = 16 << 20
)

// paceLocked sets the earliest time for the next checkpoint, after the checkpoint d was sent.
// The pause grows with the size of d, and with the total size of the call's checkpoints.
func (p *progressSender) paceLocked(d *Answer) {
	bytes := journal.EventSize(d.Event)
	pause := max(CheckpointPause, time.Duration(bytes)*time.Second/CheckpointRate)
	p.written += int64(bytes)
	p.paced = time.Now().Add(pause << min(p.written/CheckpointsPerPace, 10))
}

// progress receives a sign of life from the Invoker. It never blocks. It ignores signs of life
// after complete-by.
func (p *progressSender) progress(pr invoke.Progress) {
	now := p.c.w.cfg.Clock.Now()
	if !now.Before(p.c.Invoke.CompleteBy) {
		return
	}
	// Unlike the answer to a call, a sign of life gets no CompleteBy and no Slot. Without a
	// CompleteBy, the run decides the event as of the present time, and not as of the time of
	// arrival. Without a Slot, the decision cannot take the slot, which the call needs until its
	// end.
	d := &Answer{Arrived: now, Attempt: p.c.Invoke.Attempt, Event: machine.AttemptProgress{
		Attempt: p.c.Invoke.Attempt, Number: pr.Number, Note: p.c.redact.text(pr.Note), Blob: pr.Blob,
	}}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	if pr.Blob == nil {
		p.beatLocked(d)
		return
	}
	p.next = d
	p.sendLocked()
}

// beatLocked delivers a heartbeat to the run. It does nothing if the step has no heartbeat_timeout,
// or if the last heartbeat was delivered too recently (see the method `every`).
func (p *progressSender) beatLocked(d *Answer) {
	t := p.c.w.cfg.Present()
	if p.every() == 0 || t == nil || time.Since(p.beat) < p.every() {
		return
	}
	p.beat = time.Now()
	t.Deliver(p.c.Run, *d, nil)
}

// sendLocked sends the waiting checkpoint if it may be sent now. If it may not be sent yet,
// sendLocked is called again later.
func (p *progressSender) sendLocked() {
	t := p.c.w.cfg.Present()
	switch {
	case p.next == nil:
		return
	case t == nil:
		p.laterLocked()
		return
	case p.member == t:
		return
	case p.foreign && !p.closed && time.Since(p.posted) < postEvery:
		p.laterLocked()
		return
	case !p.closed && time.Until(p.paced) > 0:
		p.inLocked(time.Until(p.paced))
		return
	}
	d := p.next
	p.member, p.sent, p.next = t, d, nil
	p.paceLocked(d)
	answer := make(chan error, 1)
	// Deliver is not called in a new goroutine, so that the checkpoints keep their order.
	t.Deliver(p.c.Run, *d, func(err error) { answer <- err })
	go func() {
		select {
		case err := <-answer:
			p.delivered(t, d, err)
		case <-t.Done():
			p.delivered(t, d, ErrNotOwner)
		}
	}()
}

// delivered handles the outcome of delivering the checkpoint d to the membership t. err is nil if
// d was committed.
func (p *progressSender) delivered(t Member, d *Answer, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.member != t || p.sent != d {
		return
	}
	p.member = nil
	var quarantined *journal.RunError
	switch {
	case err == nil, errors.As(err, &quarantined), errors.Is(err, store.ErrNotFound):
		p.sent, p.pause, p.foreign = nil, 0, false
		p.sendLocked()
		return
	case p.closed || !p.c.w.cfg.Clock.Now().Before(p.c.Invoke.CompleteBy):
		return // the method `flush` or `handOver` sends d again, just before the call's answer
	case errors.Is(err, ErrNotOwner) && p.c.w.cfg.Present() != nil && !p.c.w.quits():
		p.foreign = true
		go p.hand(d)
		return
	}
	if p.next == nil {
		p.next = d
	}
	p.sent = nil
	p.laterLocked()
}

// hand puts a checkpoint into the run's inbox, because another engine owns the run. After an error,
// the checkpoint waits to be sent again, unless a newer checkpoint waits already.
func (p *progressSender) hand(d *Answer) {
	err := p.post(d)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.member != nil || p.sent != d {
		return // another goroutine has delivered the checkpoint meanwhile
	}
	p.sent = nil
	if err == nil {
		p.pause, p.posted = 0, time.Now()
	} else if p.next == nil {
		p.next = d
	}
	if p.next != nil {
		p.laterLocked()
	}
}

// handOver puts the last checkpoint into the run's inbox, before the call's answer is put there.
// It does nothing if the last checkpoint is certainly committed.
func (p *progressSender) handOver() {
	p.mu.Lock()
	d := p.next
	if d == nil {
		d = p.sent
	}
	p.mu.Unlock()
	if d == nil || p.post(d) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == d {
		p.next = nil
	}
	if p.sent == d {
		p.member, p.sent = nil, nil
	}
}

// post puts a checkpoint into the run's inbox, with the time at which the checkpoint reached this
// engine. A checkpoint that arrived in time counts, even if another engine decides on it
// (language.md, What counts).
func (p *progressSender) post(d *Answer) error {
	n := &p.c.w.cfg
	data, err := journal.EncodeMessage(n.Sealer, p.c.Run, d.Event)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(n.Stopped, n.Lease)
	defer cancel()
	_, err = n.Store.Post(ctx, store.Message{
		Run: p.c.Run, At: d.Arrived, Kind: store.MessageReply, By: "agent " + p.c.Invoke.Agent, Data: data,
		Dedup: fmt.Sprintf("checkpoint/%d/%d/%d", d.Attempt.Node, d.Attempt.Call, d.Arrived.UnixNano()),
	})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		n.Logger.Warn("a checkpoint could not be handed to the run's owner", "run", p.c.Name, "error", err)
		return err
	}
	return nil
}

// laterLocked sends the waiting checkpoint after a pause. The pause doubles each time, up to 5 s.
func (p *progressSender) laterLocked() {
	if p.closed {
		return
	}
	p.pause = min(max(10*time.Millisecond, 2*p.pause), 5*time.Second)
	p.inLocked(p.pause)
}

// inLocked sends the waiting checkpoint after the given pause.
func (p *progressSender) inLocked(pause time.Duration) {
	if p.retry != nil {
		p.retry.Stop()
	}
	p.retry = time.AfterFunc(pause, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.closed {
			p.sendLocked()
		}
	})
}

// close makes the sender ignore later signs of life. If a checkpoint still waits, the method
// `flush` sends it.
func (p *progressSender) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.retry != nil {
		p.retry.Stop()
	}
}

// flush sends the last checkpoint, which must reach the run before the answer. It sends nothing
// if the checkpoint is committed, or was already sent to the engine's present membership.
// flush reports whether a checkpoint is still in flight.
func (p *progressSender) flush() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil && p.sent != nil && p.member != p.c.w.cfg.Present() {
		p.next = p.sent
	}
	if p.next != nil {
		p.member = nil // then sendLocked does not wait for the checkpoint in flight
	}
	p.sendLocked()
	return p.sent != nil
}
