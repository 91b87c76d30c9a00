package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/lib/pq"
)

const (
	// wakeNotify is never part of a commit of transitions, because NOTIFY takes a lock on
	// the whole database while its transaction commits.
	wakeNotify = `NOTIFY engine_wake`
	wakeListen = `LISTEN engine_wake`

	wakePause = 100 * time.Millisecond // shortest pause between two NOTIFYs of one store
	wakeProbe = 5 * time.Second        // how long an answer to a probe of the listening connection may take
	// Time between two probes; it is long, because engines also scan regularly, and an idle
	// engine should send few queries.
	wakeEvery = 5 * time.Minute
)

// A bell merges notifications. The first is sent at once, with the transaction that it
// belongs to. Later ones are merged and sent after a pause.
type bell struct {
	mu     sync.Mutex // protects following fields
	next   time.Time  // time before which no notification is sent
	late   *time.Timer
	closed bool

	once sync.Once
	ctx  context.Context // context of the notifications; it ends when the bell is closed
	end  context.CancelFunc
	work sync.WaitGroup // notifications in progress
}

// open creates the bell's context at the first use.
func (b *bell) open() {
	b.once.Do(func() { b.ctx, b.end = context.WithCancel(context.Background()) })
}

// beside runs fn in a goroutine. The method close waits for its end. Once the bell is
// closed, beside does nothing.
func (b *bell) beside(fn func(context.Context)) {
	b.open()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.work.Go(func() { fn(b.ctx) })
	}
}

// ring reports whether to notify now. If not, the function after is called once at the end
// of the pause, unless the bell is closed by then.
func (b *bell) ring(now time.Time, after func(context.Context)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed || b.late != nil:
		return false
	case now.Before(b.next):
		b.late = time.AfterFunc(b.next.Sub(now), func() {
			b.mu.Lock()
			b.late, b.next = nil, time.Now().Add(wakePause)
			b.mu.Unlock()
			b.beside(after)
		})
		return false
	}
	b.next = now.Add(wakePause)
	return true
}

// close ends the notifications in progress and waits for their end. Afterwards the bell
// sends nothing to the database.
func (b *bell) close() {
	b.open()
	b.mu.Lock()
	b.closed = true
	if b.late != nil {
		b.late.Stop()
	}
	b.mu.Unlock()
	b.end()
	b.work.Wait()
}

// waker is the part of a Store that notifies engines when work may wait for them.
type waker struct {
	*access
	bell       bell
	probe      time.Duration // how long the listening connection may take to answer
	probeEvery time.Duration // time between two probes of the listening connection
}

// notifyNow reports whether the caller should send a NOTIFY now.
func (s *waker) notifyNow() bool {
	return !s.pooled.Load() && s.bell.ring(time.Now(), s.notifyLate)
}

// notifyLate sends a notification for earlier transactions that did not send one. It is a
// hint, which may be lost.
func (s *waker) notifyLate(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, wakeProbe)
	defer cancel()
	if _, err := s.db.ExecContext(ctx, wakeNotify); err != nil {
		s.log.Debug("a hint to other engines is lost", "error", err)
	}
}

// Wakes returns a channel that receives a hint when a message was posted, when a run
// without an owner was submitted, and when hints may have been missed. Behind a pooler in
// transaction mode there are no hints. The connection is probed, so that a connection that
// broke without an error is opened again.
func (s *waker) Wakes(ctx context.Context) <-chan struct{} {
	hints := make(chan struct{}, 1)
	go func() {
		defer close(hints)
		for try := 0; ctx.Err() == nil; try++ {
			if s.pooled.Load() {
				<-ctx.Done()
				return
			}
			if try > 0 && backoff(ctx, try) != nil {
				return
			}
			if worked, err := s.listen(ctx, hints); err != nil && ctx.Err() == nil {
				s.log.Debug("the connection for hints is made again", "error", err)
				if worked {
					try = 0
				}
			}
		}
	}()
	return hints
}

// listen passes hints on until the connection breaks or ctx ends. It reports whether it
// listened at all.
func (s *waker) listen(ctx context.Context, hints chan<- struct{}) (worked bool, err error) {
	type dialled struct {
		conn *pq.ListenerConn
		err  error
	}
	told := make(chan *pq.Notification, 32)
	dial := make(chan dialled, 1)
	go func() { // NewListenerConn cannot be interrupted, so it may run longer than listen
		c, err := pq.NewListenerConn(s.source.dsn, told)
		dial <- dialled{c, err}
	}()
	var c *pq.ListenerConn
	select {
	case d := <-dial:
		if d.err != nil {
			return false, d.err
		}
		c = d.conn
	case <-ctx.Done():
		go func() {
			if d := <-dial; d.err == nil {
				hangUp(d.conn, told)
			}
		}()
		return false, ctx.Err()
	}
	defer hangUp(c, told)
	if err := ask(ctx, c, wakeListen, s.probe); err != nil {
		return false, err
	}
	hint(hints) // there may have been changes before listening began
	probe := time.NewTicker(s.probeEvery)
	defer probe.Stop()
	for {
		select {
		case _, ok := <-told:
			if !ok {
				return true, c.Err()
			}
			hint(hints)
		case <-probe.C:
			// During the probe, notifications wait in the channel told.
			if err := ask(ctx, c, ";", s.probe); err != nil {
				return true, err
			}
		case <-ctx.Done():
			return true, ctx.Err()
		}
	}
}

// ask runs a statement on a listening connection. If there is no answer in time it closes
// the connection, because the other side may be gone without an error.
func ask(ctx context.Context, c *pq.ListenerConn, query string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		// The error of closing twice is ignored.
		_ = c.Close()
	})
	defer stop()
	_, err := c.ExecSimpleQuery(query)
	return err
}

// hangUp closes a listening connection and lets its reader end.
func hangUp(c *pq.ListenerConn, told <-chan *pq.Notification) {
	// The connection may be closed or broken already.
	_ = c.Close()
	go func() {
		for range told { // the reader closes the channel when it ends
		}
	}()
}

func hint(hints chan<- struct{}) {
	select {
	case hints <- struct{}{}:
	default: // a hint is waiting already
	}
}
