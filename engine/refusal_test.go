package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// invokerFunc is an Invoker made of a function.
type invokerFunc func(ctx context.Context, call invoke.Call) (sdk.Reply, error)

func (f invokerFunc) Invoke(ctx context.Context, call invoke.Call) (sdk.Reply, error) {
	return f(ctx, call)
}

// of returns what has been told of a run so far.
func (s *factLog) of(run status.RunID) []story.Fact {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.facts[run])
}

// S17, S18, S28: whoever's timer goes off first, the agent's, its transport's
// or the engine's, a call without an answer by complete-by is a timeout. An
// answer that arrives at complete-by or later is none.
func TestTransportGivesUpFirst(t *testing.T) {
	wrapped := fmt.Errorf("rpc: %w", context.DeadlineExceeded)
	tests := map[string]struct {
		offset time.Duration // when Invoke returns, from complete-by
		reply  sdk.Reply
		err    error
	}{
		"deadline just before":  {-time.Millisecond, sdk.Reply{}, context.DeadlineExceeded},
		"wrapped":               {-time.Millisecond, sdk.Reply{}, wrapped},
		"cancelled just before": {-time.Millisecond, sdk.Reply{}, context.Canceled},
		"at complete-by":        {0, sdk.Reply{}, wrapped},
		"error too late":        {time.Millisecond, sdk.Reply{}, errors.New("broken pipe")},
		"unknown too late":      {time.Millisecond, sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: sdk.CodeAgentLost}, nil},
		"result too late":       {time.Millisecond, sdk.Reply{Outcome: sdk.OutcomeResult, Output: []byte(`{"id":"x"}`)}, nil},
		"result at complete-by": {0, sdk.Reply{Outcome: sdk.OutcomeResult, Output: []byte(`{"id":"x"}`)}, nil},
	}
	const flow = `
workflow "one" {
  deadline = "1h"
  step "reserve" {
    action  = agent.shop.reserve
    timeout = "1s"
    retry { max_attempts = 1 }
    input { name = "reserve" }
    compensation = "none"
  }
}`
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, flow)
				w.faulty()
				w.cfg = func(c *engine.Config) {
					c.Invoker = invokerFunc(func(_ context.Context, call invoke.Call) (sdk.Reply, error) {
						time.Sleep(call.Request.Remaining + tt.offset)
						return tt.reply, tt.err
					})
				}
				n := w.start()
				for range 40 {
					run := w.submit(n, "one", nil)
					time.Sleep(1500 * time.Millisecond)
					timeouts := 0
					for _, f := range w.story.of(run) {
						if f.Kind != story.FactAttemptFinished {
							continue
						}
						timeouts++
						if f.Code != sdk.CodeTimeout {
							t.Fatalf("the attempt ended with %q\n%s", f.Code, w.transcript(run))
						}
					}
					if timeouts != 1 {
						t.Fatalf("%d attempts ended\n%s", timeouts, w.transcript(run))
					}
				}
				n.drain(t)
			})
		})
	}
}

// S65: a call that cannot be prepared is tried again after a pause that grows,
// not whenever the agent has room. Meanwhile at most the bound in the run's row is
// raised, once.
func TestHeldStepIsQuiet(t *testing.T) {
	for name, limit := range map[string]int{"no limit": 0, "one slot": 1, "many slots": 100} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, secretFlow+oneStep)
				store := w.faulty()
				s := &seats{limit: limit}
				sealer := newSealer(t, newKey(t))
				w.cfg = func(c *engine.Config) {
					c.Sealer = sealer
					c.Secrets = func(string) (string, error) { return "", errors.New("not set") }
					if limit > 0 {
						c.Capacity = s
					}
				}
				n := w.start()
				held := w.submit(n, "pay", map[string]string{"card": "canary-card"})
				time.Sleep(time.Second)
				before := store.count()
				time.Sleep(8 * time.Second) // RetryRefused is 10 s
				if got := store.count() - before; got > 1 {
					t.Errorf("%d commits while the step is held\n%s", got, w.transcript(held))
				}
				other := w.submit(n, "one", nil) // it takes and frees a slot meanwhile
				w.wait(n, other, status.RunSucceeded)
				time.Sleep(10 * time.Minute)
				rows, err := w.mem.Rows(t.Context(), held, 0, 10000)
				if err != nil {
					t.Fatal(err)
				}
				// Tries at 0, 10, 30, 70 s and then every minute, three rows each.
				if len(rows) > 40 || len(rows) < 20 {
					t.Errorf("%d rows in ten minutes\n%s", len(rows), w.transcript(held))
				}
				if calls := w.shop.called("charge"); len(calls) != 0 {
					t.Errorf("%d calls without the secret", len(calls))
				}
				n.drain(t)
				if s.taken != 0 {
					t.Errorf("left taken = %d", s.taken)
				}
			})
		})
	}
}

// S65: an agent that goes on refusing calls without saying until when is asked
// less and less often.
func TestRefusalsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneStep)
		w.faulty()
		s := &seats{limit: 1}
		w.cfg = func(c *engine.Config) { c.Capacity = s }
		asked := 0
		w.inv.before = func(invoke.Call) error {
			if asked++; asked > 20 {
				return nil
			}
			return &invoke.Deferred{Why: "agent is down"}
		}
		n := w.start()
		start := time.Now()
		run := w.submit(n, "one", nil)
		w.wait(n, run, status.RunSucceeded)
		if d := time.Since(start); d < 2*time.Minute || d > 4*time.Minute {
			t.Errorf("twenty refusals took %s", d)
		}
		n.drain(t)
	})
}

// S17, S65: an attempt that was never sent does not count as one without an
// answer, however slowly it was prepared and whoever looks at the clock first.
func TestUnsentIsNoTimeout(t *testing.T) {
	const flow = `
workflow "pay" {
  deadline = "1h"
  step "charge" {
    action   = agent.shop.book
    deadline = "1s"
    input {
      name = "charge"
      note = secret("env:SHOP_TOKEN")
    }
  }
}`
	tests := map[string]func(w *world, store *faultStore){
		"the secret comes too late": func(w *world, _ *faultStore) {
			w.cfg = func(c *engine.Config) {
				c.Secrets = func(string) (string, error) { time.Sleep(2 * time.Second); return "token", nil }
			}
		},
		"the secret comes at complete-by": func(w *world, _ *faultStore) {
			w.cfg = func(c *engine.Config) {
				c.Secrets = func(string) (string, error) { time.Sleep(time.Second); return "token", nil }
			}
		},
		"the commit takes too long": func(w *world, store *faultStore) {
			w.cfg = func(c *engine.Config) {
				c.Secrets = func(string) (string, error) { return "token", nil }
			}
			store.plan = func(n int, after bool) error {
				if after {
					time.Sleep(1100 * time.Millisecond)
				}
				return nil
			}
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, flow)
				store := &faultStore{Full: store.Complete(w.mem)}
				w.store = store
				prepare(w, store)
				secrets, sealer := w.cfg, newSealer(t, newKey(t))
				w.cfg = func(c *engine.Config) { secrets(c); c.Sealer = sealer }
				n := w.start()
				run := w.submit(n, "pay", nil)
				w.wait(n, run, status.RunFailed) // nothing is in doubt, so nothing has to be looked up
				for _, f := range w.story.of(run) {
					if f.Kind == story.FactAttemptFinished && f.Code == sdk.CodeTimeout {
						t.Errorf("an attempt that was not sent has timed out\n%s", w.transcript(run))
					}
				}
				if calls := w.shop.called("charge"); len(calls) != 0 {
					t.Errorf("%d calls", len(calls))
				}
				n.drain(t)
			})
		})
	}
}

// S13, S16, S65: with a single slot a step's end and the next one's start are
// one record, because the slot passes from the one to the other, even while
// other runs wait for it; no slot gets lost.
func TestSlotPassesToTheNextStep(t *testing.T) {
	const flow = `
workflow "five" {
  deadline = "1h"
  step "s" {
    for_each        = toset(["1", "2", "3", "4", "5"])
    action          = agent.shop.reserve
    input { name = each.key }
  }
}
workflow "row" {
  deadline = "1h"
  step "a" {
    action = agent.shop.reserve
    input { name = "a" }
  }
  step "b" {
    action     = agent.shop.reserve
    depends_on = [step.a]
    input { name = "b" }
  }
  step "c" {
    action     = agent.shop.reserve
    depends_on = [step.b]
    input { name = "c" }
  }
  step "d" {
    action     = agent.shop.reserve
    depends_on = [step.c]
    input { name = "d" }
  }
  step "e" {
    action     = agent.shop.reserve
    depends_on = [step.d]
    input { name = "e" }
  }
}`
	for _, workflow := range []string{"row", "five"} {
		t.Run(workflow, func(t *testing.T) {
			w := newWorld(t, flow)
			w.opts.Lease = 30 * time.Second
			w.opts.Shards = 4
			s := &seats{limit: 1}
			w.cfg = func(c *engine.Config) { c.Capacity = s }
			n := w.start()
			for range 20 {
				run := w.submit(n, workflow, nil)
				w.wait(n, run, status.RunSucceeded)
				rows, err := w.mem.Rows(t.Context(), run, 0, 100)
				if err != nil || len(rows) != 6 {
					t.Fatalf("%d rows, %v, want the start and one for each end\n%s", len(rows), err, w.transcript(run))
				}
			}
			var runs []status.RunID
			for range 20 {
				runs = append(runs, w.submit(n, workflow, nil))
			}
			for _, run := range runs {
				w.wait(n, run, status.RunSucceeded)
			}
			n.drain(t)
			if s.most != 1 || s.taken != 0 {
				t.Errorf("most taken = %d, left taken = %d, want 1 and 0", s.most, s.taken)
			}
		})
	}
}
