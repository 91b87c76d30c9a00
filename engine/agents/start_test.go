//go:build unix

package agents_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
)

// ways runs a test over each of the ways in which calls travel.
func ways(t *testing.T, test func(t *testing.T, o agents.Options)) {
	for name, unary := range map[string]bool{"batched": false, "unary": true} {
		t.Run(name, func(t *testing.T) { test(t, agents.Options{Unary: unary}) })
	}
}

// times picks the number of rounds: few, or those of the fault programme, as in
// `make chaos`, or a part of them.
func times(short, long int) int {
	switch os.Getenv("CHAOS") {
	case "full":
		return long
	case "part":
		return max(short, long/7)
	}
	return short
}

type ending struct {
	reply sdk.Reply
	err   error
}

// begin starts a call and returns where its one end is told.
func (w *world) begin(ctx context.Context, c invoke.Call) (invoke.Started, <-chan ending) {
	done := make(chan ending, 2)
	var ends atomic.Int32
	s := w.Start(ctx, c, func(reply sdk.Reply, err error) {
		if ends.Add(1) > 1 {
			w.t.Error("a call ended twice")
		}
		done <- ending{reply, err}
	})
	return s, done
}

func (w *world) await(done <-chan ending) ending {
	w.t.Helper()
	select {
	case e := <-done:
		return e
	case <-time.After(patience):
		w.t.Fatal("a call did not end")
		return ending{}
	}
}

// TestStart: a call without a goroutine has the outcomes of one with, each told
// once (S17, S28, S30).
func TestStart(t *testing.T) { ways(t, testStart) }

func testStart(t *testing.T, o agents.Options) {
	w := newWorld(t, o)
	spec := mock("m", func(s *invoke.AgentSpec) { s.MaxConcurrency = 2 })
	ctx := t.Context()
	hang := func(key string, limit time.Duration) invoke.Call {
		return call(spec, "call", `{"hang":true}`, func(c *invoke.Call) {
			c.Request.IdempotencyKey = key
			c.Request.CompleteBy = time.Now().Add(limit)
		})
	}

	_, done := w.begin(ctx, call(spec, "echo", `{"value":1}`)) // no process runs yet
	if e := w.await(done); e.err != nil || e.reply.Outcome != sdk.OutcomeResult {
		t.Errorf("first call: %+v", e)
	}
	_, done = w.begin(ctx, call(spec, "call", `{"fail":{"code":"rejected","permanent":true}}`, func(c *invoke.Call) { c.Request.IdempotencyKey = "f" }))
	if e := w.await(done); e.err != nil || e.reply.Outcome != sdk.OutcomeFailed {
		t.Errorf("failure: %+v", e)
	}
	_, done = w.begin(ctx, hang("silent", 200*time.Millisecond))
	if e := w.await(done); !errors.Is(e.err, context.DeadlineExceeded) {
		t.Errorf("no answer: %+v, want DeadlineExceeded", e)
	}
	beats := make(chan struct{}, 100)
	s, done := w.begin(ctx, call(spec, "call", `{"latency":"15s"}`, func(c *invoke.Call) {
		c.Request.IdempotencyKey = "stopped"
		c.OnProgress = func(invoke.Progress) { beats <- struct{}{} }
	}))
	<-beats
	s.Stop()
	s.Stop()
	if e := w.await(done); e.err != nil || e.reply.Code != sdk.CodeAborted {
		t.Errorf("stopped: %+v, want the agent's aborted", e)
	}
	s.Stop()

	late := hang("late", -time.Second)
	s, done = w.begin(ctx, late)
	var deferred *invoke.Deferred
	if e := w.await(done); !errors.As(e.err, &deferred) || s != nil {
		t.Errorf("too late: %+v, %v; want Deferred and nothing started", e, s)
	}

	life, end := context.WithCancel(ctx)
	_, one := w.begin(life, hang("cut 1", patience))
	_, two := w.begin(life, hang("cut 2", patience))
	s, full := w.begin(ctx, hang("three", patience))
	if e := w.await(full); !errors.As(e.err, &deferred) || s != nil {
		t.Errorf("third of two: %+v, %v; want Deferred and nothing started", e, s)
	}
	end()
	for _, d := range []<-chan ending{one, two} {
		if e := w.await(d); !errors.Is(e.err, context.Canceled) {
			t.Errorf("cut off: %+v, want Canceled", e)
		}
	}
	s, done = w.begin(life, hang("after", patience))
	if e := w.await(done); !errors.As(e.err, &deferred) || s != nil {
		t.Errorf("after the end: %+v, %v; want Deferred and nothing started", e, s)
	}
	poll(t, "the end of all calls", func() bool { return w.Status()[0].InFlight == 0 })

	_, done = w.begin(ctx, call(spec, "call", `{"crash":true}`, func(c *invoke.Call) { c.Request.IdempotencyKey = "crash" }))
	if e := w.await(done); e.err != nil || e.reply.Outcome != sdk.OutcomeUnknown || e.reply.Code != sdk.CodeAgentLost {
		t.Errorf("crash: %+v, want unknown agent_lost", e)
	}
}

// TestCrashHurtsTheProcessOnly: of many calls out, those of a process that dies
// have an unknown outcome, each once, and none is lost or told twice.
func TestCrashHurtsTheProcessOnly(t *testing.T) { ways(t, testCrashHurtsTheProcessOnly) }

func testCrashHurtsTheProcessOnly(t *testing.T, o agents.Options) {
	o.Stable = time.Millisecond
	w := newWorld(t, o)
	spec := mock("m", func(s *invoke.AgentSpec) { s.Instances = 2 }, breaker(dsl.Breaker{}))
	if err := w.Check(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	w.until(t, "two processes", func() bool { return len(w.started) == 2 })
	var all []<-chan ending
	for n := range 200 {
		_, done := w.begin(t.Context(), call(spec, "call", `{"latency":"300ms"}`, func(c *invoke.Call) { c.Request.IdempotencyKey = fmt.Sprint(n) }))
		all = append(all, done)
	}
	_, crash := w.begin(t.Context(), call(spec, "call_once", `{"crash":true}`))
	if e := w.await(crash); e.reply.Code != sdk.CodeAgentLost {
		t.Errorf("crash: %+v", e)
	}
	lost, good, unsent := 0, 0, 0
	for _, done := range all {
		var deferred *invoke.Deferred
		switch e := w.await(done); {
		case e.err == nil && e.reply.Outcome == sdk.OutcomeResult:
			good++
		case e.err == nil && e.reply.Outcome == sdk.OutcomeUnknown && e.reply.Code == sdk.CodeAgentLost:
			lost++
		case errors.As(e.err, &deferred):
			unsent++
		default:
			t.Errorf("%+v", e)
		}
	}
	if good < 90 || lost == 0 {
		t.Errorf("%d results, %d lost, %d not sent; want the other process's results and some lost", good, lost, unsent)
	}
}

// TestLateAnswersAreHeardAgain: that many calls were not answered in time does
// not end the listening for those that come later.
func TestLateAnswersAreHeardAgain(t *testing.T) {
	dir := buildLate(t)
	ways(t, func(t *testing.T, o agents.Options) { testLateAnswersAreHeardAgain(t, o, dir) })
}

func testLateAnswersAreHeardAgain(t *testing.T, o agents.Options, dir string) {
	w := newWorld(t, o, dir)
	spec := mock("late", func(s *invoke.AgentSpec) { s.Plugin = "late" }, breaker(dsl.Breaker{}))
	if err := w.Check(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		heard := make(chan sdk.Reply, 100)
		var all []<-chan ending
		for range 60 {
			_, done := w.begin(t.Context(), call(spec, "answer", `{}`, func(c *invoke.Call) {
				c.Request.CompleteBy = time.Now().Add(300 * time.Millisecond)
				c.OnLate = func(r sdk.Reply) { heard <- r }
			}))
			all = append(all, done)
		}
		for _, done := range all {
			if e := w.await(done); !errors.Is(e.err, context.DeadlineExceeded) {
				t.Fatalf("%+v, want DeadlineExceeded", e)
			}
		}
		for range 60 {
			select {
			case <-heard:
			case <-time.After(patience):
				t.Fatal("a late answer was not heard")
			}
		}
	}
}
