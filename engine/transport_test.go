package engine_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// A message is a request or a reply on its way. It crosses as bytes.
type Message struct {
	id   uint64 // the reply bears that of its request
	body []byte
}

// queues is an Invoker that talks to agents through a pair of queues: whoever
// consumes the one answers into the other, in any order.
type queues struct {
	requests, replies chan Message
	last              atomic.Uint64

	mu     sync.Mutex // protects the fields below
	open   map[uint64]chan sdk.Reply
	strays int // replies that nobody waits for
}

func newQueues() *queues {
	return &queues{requests: make(chan Message, 100), replies: make(chan Message, 100), open: map[uint64]chan sdk.Reply{}}
}

func (q *queues) Invoke(ctx context.Context, call invoke.Call) (sdk.Reply, error) {
	body, err := json.Marshal(call.Request)
	if err != nil {
		return sdk.Reply{}, &invoke.Deferred{Why: err.Error()}
	}
	id, reply := q.last.Add(1), make(chan sdk.Reply, 1)
	q.mu.Lock()
	q.open[id] = reply
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		delete(q.open, id)
		q.mu.Unlock()
	}()
	select {
	case q.requests <- Message{id, body}:
	case <-ctx.Done():
		return sdk.Reply{}, ctx.Err()
	}
	select {
	case r := <-reply:
		return r, nil
	case <-ctx.Done():
		return sdk.Reply{}, ctx.Err()
	}
}

// correlate hands each reply to the call that waits for it.
func (q *queues) correlate(ctx context.Context) {
	for {
		select {
		case m := <-q.replies:
			var r sdk.Reply
			if json.Unmarshal(m.body, &r) != nil {
				continue // nobody can say anything about it: its call times out
			}
			q.mu.Lock()
			waiting := q.open[m.id]
			if waiting == nil {
				q.strays++
			} else {
				delete(q.open, m.id) // of two replies the first counts
				waiting <- r
			}
			q.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

// consume works off requests as one of several agents would; each reply takes
// delay, and every one is delivered twice if again is set.
func (q *queues) consume(ctx context.Context, a *sdk.Agent, delay time.Duration, again bool) {
	for {
		var m Message
		select {
		case m = <-q.requests:
		case <-ctx.Done():
			return
		}
		var req sdk.Request
		if json.Unmarshal(m.body, &req) != nil {
			continue
		}
		r, ok := a.Invoke(ctx, req, sdk.InvokeOptions{Logger: slog.New(slog.DiscardHandler)})
		time.Sleep(delay)
		body, err := json.Marshal(r)
		if !ok || err != nil {
			continue
		}
		q.replies <- Message{m.id, body}
		if again {
			q.replies <- Message{m.id, body}
		}
	}
}

// S12: the engine asks and is answered asynchronously, and knows nothing of
// what carries that: over queues with several consumers, which answer out of
// order and more than once, sagas run forward and back as they do elsewhere.
func TestAgentsBehindQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := newWorld(t, orderFlow)
		w.faulty()
		q := newQueues()
		w.cfg = func(c *engine.Config) { c.Invoker = q }
		var wg sync.WaitGroup
		wg.Go(func() { q.correlate(ctx) })
		for i := range 5 {
			wg.Go(func() { q.consume(ctx, w.shop.agent, time.Duration(5-i)*100*time.Millisecond, i%2 == 0) })
		}
		n := w.start()
		var runs []status.RunID
		for range 20 {
			runs = append(runs, w.submit(n, "order", nil))
		}
		for _, run := range runs {
			s := w.wait(n, run, status.RunSucceeded)
			if got := output(t, s, "id"); got != "id-book" {
				t.Errorf("output id = %q, want id-book", got)
			}
		}
		w.shop.on("book", func(context.Context, int) error {
			return &sdk.Failure{Code: "no_carrier", Message: "no carrier", Permanent: true}
		})
		for range 20 {
			w.wait(n, w.submit(n, "order", nil), status.RunCompensated)
		}
		for _, name := range []string{"reserve", "charge"} {
			keys := map[string]bool{}
			for _, c := range w.shop.called(name) {
				keys[c.key] = true
			}
			undone := 0
			for key := range keys {
				undone += len(w.shop.called("undo " + key))
			}
			if len(keys) != 40 || undone != 20 {
				t.Errorf("%s: %d effects and %d undos, want 40 and 20", name, len(keys), undone)
			}
		}
		n.drain(t)
		cancel()
		wg.Wait()
		if q.strays == 0 {
			t.Error("no reply came twice")
		}
		if len(q.open) != 0 {
			t.Errorf("%d calls still wait", len(q.open))
		}
	})
}
