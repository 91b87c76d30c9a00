package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/replies"
)

// A mailbox receives replies. It notes the numbers that each run sent, without duplicates, and fails
// if a new number is not the next one.
type mailbox struct {
	t *testing.T

	mu   sync.Mutex
	got  map[status.RunID][]int32
	all  int
	fail func(r replies.Reply, try int) error // nil = never
}

func (m *mailbox) send(ctx context.Context, r replies.Reply) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all++
	if m.fail != nil {
		if err := m.fail(r, r.Tries); err != nil {
			return err
		}
	}
	if seen := m.got[r.Run]; !slices.Contains(seen, r.N) {
		if r.N != int32(len(seen))+1 {
			m.t.Errorf("run %d: reply %d comes after %v", r.Run, r.N, seen)
		}
		m.got[r.Run] = append(seen, r.N)
	}
	return nil
}

// outboxWith returns an outbox with replies: three of each of the given runs, run n to sinks[n].
func outboxWith(t *testing.T, sinks ...string) replies.Outbox {
	t.Helper()
	s := memory.New(memory.Options{})
	ids, err := s.PutDefinition(t.Context(), store.Definition{Digest: "d", Data: []byte("x"), Workflows: []store.DefinedWorkflow{{Name: "w", Steps: []string{"a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Join(t.Context(), "test", time.Hour, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.OpenWriter(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	for n, sink := range sinks {
		out, err := w.Commit(t.Context(), []store.Transition{{
			Run: status.RunID(n + 1), At: time.Now(), Workflow: ids["w"], State: status.RunRunning, Owner: &id, NextCheck: store.Never, Data: []byte("x"),
			Post: &naming.Post{Sink: sink, States: []string{"accepted", "started", "succeeded"}},
		}})
		if err != nil || !out[0].Landed {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	box, _ := replies.Of(s)
	return box
}

// postman starts a postman for the test, which stops it.
func postman(t *testing.T, box replies.Outbox, send func(context.Context, replies.Reply) error) (*Sender, func()) {
	p := New(Config{Box: box, Logger: slog.New(slog.DiscardHandler), Most: 15 * time.Second, Send: map[string]func(context.Context, replies.Reply) error{replies.Webhook: send, replies.Agent: send}})
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { p.Run(ctx) })
	return p, func() { cancel(); work.Wait() }
}

// wantAll checks that every reply has arrived.
func (m *mailbox) wantAll(runs int) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := 1; n <= runs; n++ {
		if got := m.got[status.RunID(n)]; !slices.Equal(got, []int32{1, 2, 3}) {
			m.t.Errorf("run %d sent %v", n, got)
		}
	}
}

// Two engines deliver every reply of every run, in order, although tries fail (S67).
func TestTwoEnginesKeepTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sinks []string
		for n := range 60 {
			sinks = append(sinks, fmt.Sprintf("webhook:s%d", n%3))
		}
		box := outboxWith(t, sinks...)
		m := &mailbox{t: t, got: map[status.RunID][]int32{}, fail: func(r replies.Reply, try int) error {
			if (int(r.Run)+int(r.N))%5 == 0 && try == 1 {
				return errors.New("busy")
			}
			return nil
		}}
		_, stop1 := postman(t, box, m.send)
		_, stop2 := postman(t, box, m.send)
		time.Sleep(time.Hour) // time of the bubble
		stop1()
		stop2()
		m.wantAll(len(sinks))
	})
}

// A dying outbox does not answer any more after some calls, as if the engine had been killed.
type dying struct {
	replies.Outbox
	left int
}

var errDead = errors.New("this engine is dead")

func (d *dying) dead() bool { d.left--; return d.left < 0 }

func (d *dying) Claim(ctx context.Context, sink string, limit int, hold time.Duration) ([]replies.Reply, error) {
	if d.dead() {
		return nil, errDead
	}
	list, err := d.Outbox.Claim(ctx, sink, limit, hold)
	if d.dead() {
		return nil, errDead
	}
	return list, err
}

func (d *dying) Delivered(ctx context.Context, done ...replies.ID) error {
	if d.dead() {
		return errDead
	}
	err := d.Outbox.Delivered(ctx, done...)
	if d.dead() {
		return errDead
	}
	return err
}

func (d *dying) Later(ctx context.Context, id replies.ID, pause time.Duration, why string) error {
	if d.dead() {
		return errDead
	}
	return d.Outbox.Later(ctx, id, pause, why)
}

// An engine may die between any two statements: another engine delivers what is left, in order, and
// nothing is lost (S67).
func TestDeathBetweenStatements(t *testing.T) {
	for at := range 8 {
		synctest.Test(t, func(t *testing.T) {
			box := outboxWith(t, "webhook:a", "webhook:a")
			m := &mailbox{t: t, got: map[status.RunID][]int32{}}
			_, stop := postman(t, &dying{box, at}, m.send)
			time.Sleep(100 * time.Millisecond)
			stop()
			_, stop = postman(t, box, m.send)
			time.Sleep(5 * time.Minute)
			stop()
			m.wantAll(2)
		})
	}
}

// A sink that does not answer holds up no other sink, and it gets one try at a time, with pauses that
// grow.
func TestSlowSinkHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sinks := []string{"webhook:good", "webhook:good"}
		for range 100 {
			sinks = append(sinks, "webhook:slow")
		}
		box := outboxWith(t, sinks...)
		m := &mailbox{t: t, got: map[status.RunID][]int32{}}
		var mu sync.Mutex
		tries, down := 0, true
		_, stop := postman(t, box, func(ctx context.Context, r replies.Reply) error {
			mu.Lock()
			hang := down && r.Sink == "webhook:slow"
			if hang {
				tries++
			}
			mu.Unlock()
			if hang {
				<-ctx.Done()
				return ctx.Err()
			}
			return m.send(ctx, r)
		})
		time.Sleep(5 * time.Second)
		m.wantAll(2)
		time.Sleep(24 * time.Hour)
		mu.Lock()
		if tries < 200 || tries > 400 { // a day has 288 times 5 minutes
			t.Errorf("%d tries in a day", tries)
		}
		down = false
		mu.Unlock()
		lag, err := box.Lag(t.Context())
		if err != nil || len(lag) != 1 || lag[0].Sink != "webhook:slow" || lag[0].Waiting != 300 {
			t.Errorf("lag %+v, %v", lag, err)
		}
		time.Sleep(24 * time.Hour)
		stop()
		m.wantAll(len(sinks))
	})
}

// A queue gets a hint, and nothing is sent to it.
func TestQueuesGetHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &hinted{Outbox: outboxWith(t, "table:orders")}
		m := &mailbox{t: t, got: map[status.RunID][]int32{}}
		p, stop := postman(t, box, m.send)
		p.Posted("table:orders")
		time.Sleep(time.Minute)
		stop()
		if !slices.Equal(box.queues, []string{"orders"}) || m.all > 0 {
			t.Errorf("hints %q, %d sent", box.queues, m.all)
		}
	})
}

// A hinted outbox notes hints.
type hinted struct {
	replies.Outbox
	queues []string
}

func (h *hinted) Hint(_ context.Context, queues ...string) error {
	h.queues = append(h.queues, queues...)
	return nil
}

// A counting outbox counts how often an engine looks for replies.
type counting struct {
	replies.Outbox
	looks int
}

func (c *counting) Due(ctx context.Context, after, before string, limit int) ([]string, error) {
	c.looks++
	return c.Outbox.Due(ctx, after, before, limit)
}

// An engine whose replies are all delivered looks into the store only from time to time.
func TestNothingToDoCostsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &counting{Outbox: outboxWith(t, "webhook:a")}
		m := &mailbox{t: t, got: map[status.RunID][]int32{}}
		_, stop := postman(t, box, m.send)
		time.Sleep(time.Hour)
		stop()
		m.wantAll(1)
		if box.looks > 2*(4*60+10) { // two kinds of sinks, every 15 s
			t.Errorf("%d looks in an hour", box.looks)
		}
	})
}

// A reply that one engine cannot deliver is left to another one, and is not a failure of its sink. If the
// sink is full, it gets the reply a little later.
func TestAnotherEngineDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := outboxWith(t, "agent:shop.told", "agent:shop.told")
		m := &mailbox{t: t, got: map[status.RunID][]int32{}}
		tries, full := 0, 0
		_, stop1 := postman(t, box, func(context.Context, replies.Reply) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			tries++
			return &NotNow{Why: "no such agent here", Here: time.Minute}
		})
		time.Sleep(time.Second)
		if list, err := box.OfRun(t.Context(), 1); err != nil || list[0].Why != "no such agent here" || list[0].Done {
			t.Errorf("the reply that no engine could deliver: %+v, %v", list, err)
		}
		_, stop2 := postman(t, box, func(ctx context.Context, r replies.Reply) error {
			m.mu.Lock()
			busy := full < 2
			full++
			m.mu.Unlock()
			if busy {
				return &NotNow{Why: "full", Pause: time.Second, Here: time.Second}
			}
			return m.send(ctx, r)
		})
		time.Sleep(20 * time.Second)
		m.wantAll(2)
		stop1()
		stop2()
		if tries > 2 { // both runs at once, and then not for a minute
			t.Errorf("the engine without the agent tried %d times", tries)
		}
	})
}
