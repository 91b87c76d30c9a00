package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/lib/pq"
)

const (
	// wakeNotify is never sent in a transaction that commits transitions, because NOTIFY
	// locks the whole database while its transaction commits.
	wakeNotify = `NOTIFY engine_wake`
	wakeListen = `LISTEN engine_wake`

	wakePause = 100 * time.Millisecond // shortest pause between two NOTIFYs of one store
	wakeProbe = 5 * time.Second        // longest time that the listening connection may take to answer a probe
	// Time between two probes. It is long, because an idle engine should send few queries,
	// and engines find work by their scans, too.
	wakeEvery = 5 * time.Minute
)

// A bell limits how often a store sends a NOTIFY. The store may send the first NOTIFY at once. Then
// there is a pause of 100 ms. The bell merges all NOTIFYs that the store would send in this pause
// into one, which the store sends at the end of the pause.
type bell struct {
	mu     sync.Mutex // protects the fields next, late and closed
	next   time.Time  // time from which the next NOTIFY may be sent at once
	late   *time.Timer
	closed bool

	once sync.Once
	ctx  context.Context // context in which NOTIFYs are sent; it ends when the bell is closed
	end  context.CancelFunc
	work sync.WaitGroup // goroutines of the method `background` that have not ended
}

// open creates the context of the bell. It does this only in the first call.
func (b *bell) open() {
	b.once.Do(func() { b.ctx, b.end = context.WithCancel(context.Background()) })
}

// background starts a goroutine that calls the function `fn`. The method `close` waits until this
// goroutine has ended. After a call of `close`, background does nothing.
func (b *bell) background(fn func(context.Context)) {
	b.open()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.work.Go(func() { fn(b.ctx) })
	}
}

// ring returns true if the caller should send a NOTIFY now. If ring returns false, the bell calls
// the function `after` when the pause is over. It does this only once for each pause, even if ring
// was called several times. A closed bell does not call `after`.
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
			b.background(after)
		})
		return false
	}
	b.next = now.Add(wakePause)
	return true
}

// close ends the context of the goroutines of the method `background`, and waits until these
// goroutines have ended. A closed bell starts no more of them.
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

// waker notifies engines when work may wait for them.
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

// notifyLate sends one NOTIFY outside of a transaction, for example for all transactions that sent
// none because of the bell's pause. It logs an error, and does not return it: without the hint,
// engines find the work at their next tick.
func (s *waker) notifyLate(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, wakeProbe)
	defer cancel()
	if _, err := s.db.ExecContext(ctx, wakeNotify); err != nil {
		s.log.Debug("a hint to other engines is lost", "error", err)
	}
}

// Wakes returns a channel that receives a hint when there may be new work: for example when a
// message was posted, a run without an owner was submitted, or an engine left, and when hints may
// have been missed. Behind a pooler in transaction mode the channel receives no hints. Wakes probes
// its connection regularly, because a connection may break without an error. If the connection is
// broken, Wakes opens a new one.
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

// listen opens a connection, and sends a hint for each NOTIFY that arrives on this connection. It
// returns when the connection breaks or ctx ends. The result `worked` is true if LISTEN succeeded.
func (s *waker) listen(ctx context.Context, hints chan<- struct{}) (worked bool, err error) {
	type dialled struct {
		conn *pq.ListenerConn
		err  error
	}
	told := make(chan *pq.Notification, 32)
	dial := make(chan dialled, 1)
	go func() { // NewListenerConn cannot be interrupted, so it may return later than listen
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
	hint(hints) // there may have been a NOTIFY before LISTEN
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
			// Notifications that arrive during the probe stay in the buffer of the channel `told`.
			if err := ask(ctx, c, ";", s.probe); err != nil {
				return true, err
			}
		case <-ctx.Done():
			return true, ctx.Err()
		}
	}
}

// ask runs a statement on a listening connection. The parameter `patience` is how long ask waits
// for the answer. If no answer comes in this time, ask closes the connection and returns an error:
// the server may be unreachable, although the connection reports no error.
func ask(ctx context.Context, c *pq.ListenerConn, query string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		// The connection may be closed already; ignore that error.
		_ = c.Close()
	})
	defer stop()
	_, err := c.ExecSimpleQuery(query)
	return err
}

// hangUp closes a listening connection. The driver's goroutine ends only when it can send its
// last notifications to the channel `told`. So hangUp starts a goroutine that receives them.
func hangUp(c *pq.ListenerConn, told <-chan *pq.Notification) {
	// The connection may be closed or broken already; ignore that error.
	_ = c.Close()
	go func() {
		for range told { // the driver's goroutine closes the channel when it ends
		}
	}()
}

func hint(hints chan<- struct{}) {
	select {
	case hints <- struct{}{}:
	default: // the channel has a hint already
	}
}
