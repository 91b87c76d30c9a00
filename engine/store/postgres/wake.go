package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/lib/pq"
)

const (
	// wakeNotify is never part of a commit of transitions: NOTIFY takes a lock of
	// the whole database while its transaction commits.
	wakeNotify = `NOTIFY engine_wake`
	wakeListen = `LISTEN engine_wake`

	wakePause = 100 * time.Millisecond // between two NOTIFYs of one store
	wakeProbe = 5 * time.Second        // for an answer to a probe of the listening connection
	wakeEvery = 5 * time.Minute        // between two probes: engines look by themselves too, and an idle one asks little
)

// A bell coalesces notifications: the first goes at once, with what it speaks
// of; others within a pause are told together after it.
type bell struct {
	mu     sync.Mutex // protects following fields
	next   time.Time  // not before
	late   *time.Timer
	closed bool

	once sync.Once
	ctx  context.Context // ends with the bell
	end  context.CancelFunc
	work sync.WaitGroup // notifications on their way
}

// open makes the bell's context, at its first use.
func (b *bell) open() {
	b.once.Do(func() { b.ctx, b.end = context.WithCancel(context.Background()) })
}

// beside has fn run in a goroutine that close waits for. It does nothing once the
// bell is closed.
func (b *bell) beside(fn func(context.Context)) {
	b.open()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.work.Go(func() { fn(b.ctx) })
	}
}

// ring reports whether to notify now. If not, after is called once the pause is
// over, unless the bell is closed by then.
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

// close ends what is on its way, and returns when it has ended: nothing is asked of
// the database afterwards.
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

// A waker hints to engines that something may be waiting for them.
type waker struct {
	*access
	bell       bell
	probe      time.Duration // within which the connection that listens must answer
	probeEvery time.Duration // between two probes of it
}

// notifyNow reports whether the transaction at hand is to notify.
func (s *waker) notifyNow() bool {
	return !s.pooled.Load() && s.bell.ring(time.Now(), s.notifyLate)
}

// notifyLate tells what was not told in the transactions that it speaks of. It
// is a hint, which may be lost.
func (s *waker) notifyLate(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, wakeProbe)
	defer cancel()
	if _, err := s.db.ExecContext(ctx, wakeNotify); err != nil {
		s.log.Debug("a hint to other engines is lost", "error", err)
	}
}

// Wakes returns a channel that receives a hint when a message was posted or a
// run without an owner submitted, and whenever hints may have been missed. Behind a
// pooler in transaction mode there are none. The connection is probed, so that
// one that died without a word is made again.
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

// listen passes hints on until the connection breaks or ctx ends. It reports
// whether it listened at all.
func (s *waker) listen(ctx context.Context, hints chan<- struct{}) (worked bool, err error) {
	type dialled struct {
		conn *pq.ListenerConn
		err  error
	}
	told := make(chan *pq.Notification, 32)
	dial := make(chan dialled, 1)
	go func() { // it cannot be interrupted, only left behind
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
	hint(hints) // something may have been said before
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
			// Notifications wait in their channel meanwhile.
			if err := ask(ctx, c, ";", s.probe); err != nil {
				return true, err
			}
		case <-ctx.Done():
			return true, ctx.Err()
		}
	}
}

// ask runs a statement on a listening connection, and hangs up if there is no
// answer in time: a peer may be gone without a word.
func ask(ctx context.Context, c *pq.ListenerConn, query string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		// Closing twice is an error that nobody needs.
		_ = c.Close()
	})
	defer stop()
	_, err := c.ExecSimpleQuery(query)
	return err
}

// hangUp closes a listening connection and lets its reader end.
func hangUp(c *pq.ListenerConn, told <-chan *pq.Notification) {
	// It may be closed or broken already.
	_ = c.Close()
	go func() {
		for range told { // until the reader has ended
		}
	}()
}

func hint(hints chan<- struct{}) {
	select {
	case hints <- struct{}{}:
	default: // one is waiting there already
	}
}
