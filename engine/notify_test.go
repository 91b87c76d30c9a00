package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/notice"
	"github.com/saga-engine/engine/sdk"
)

// A bell is an agent that only notifications call. It keeps the texts that it gets, by key.
type bell struct {
	agent *sdk.Agent

	mu     sync.Mutex
	texts  []string // one for each key, in the order of their arrival
	keys   map[string]bool
	calls  int
	script script
}

type bellIn struct {
	Text string `agent:"text"`
}

func newBell() *bell {
	b := &bell{keys: map[string]bool{}}
	b.agent = sdk.New("bell", "1.0.0")
	sdk.Action(b.agent, "ring", b.ring)
	return b
}

func (b *bell) ring(ctx context.Context, c *sdk.Call, in bellIn) (sdk.None, error) {
	b.mu.Lock()
	b.calls++
	n, script := b.calls, b.script
	b.mu.Unlock()
	if script != nil {
		if err := script(ctx, n); err != nil {
			return sdk.None{}, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.keys[c.IdempotencyKey] {
		b.keys[c.IdempotencyKey] = true
		b.texts = append(b.texts, in.Text)
	}
	return sdk.None{}, nil
}

// rang returns the texts that the bell got, sorted.
func (b *bell) rang() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(slices.Values(b.texts))
}

// wantRung checks which texts the bell got, each once.
func (b *bell) wantRung(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := b.rang(); !slices.Equal(got, want) {
		t.Errorf("the bell got %q, want %q", got, want)
	}
}

// bellFlow returns a workflow that charges, waits and books, and announces the given states.
func bellFlow(settings, on string) string {
	return `
workflow "order" {
  deadline = "1h"
  ` + settings + `
  step "charge" {
    action = agent.shop.charge
    input { name = "charge" }
  }
  step "pause" {
    depends_on = [step.charge]
    timer { duration = "1m" }
  }
  step "book" {
    depends_on = [step.pause]
    action     = agent.shop.book
    input { name = "book" }
  }
  notify {
    on     = [` + on + `]
    action = agent.bell.ring
    input { text = "${run.status}: ${failure.step} ${failure.code}" }
  }
}`
}

const allStates = `"succeeded", "failed", "compensated", "cancelled", "parked", "compensation_failed", "overdue"`

// belled returns a world with a bell.
func belled(t *testing.T, source string) (*world, *bell) {
	w := newWorld(t, orderFlow)
	b := newBell()
	w.inv.agents["bell"] = b.agent
	w.def = define(t, source, w.shop.agent, b.agent)
	return w, b
}

// notices returns the notices of a run with their notifications.
func (w *world) notices(run status.RunID) []notice.Sent {
	w.t.Helper()
	full := store.Complete(w.mem)
	row, err := full.Find(context.WithoutCancel(w.t.Context()), "r-"+base36(run))
	if err != nil {
		w.t.Fatal(err)
	}
	return w.noticesOf(row)
}

func (w *world) noticesOf(run store.RunRow) []notice.Sent {
	w.t.Helper()
	sent, err := notice.Find(context.WithoutCancel(w.t.Context()), store.Complete(w.mem), run, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return sent
}

func base36(run status.RunID) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	var out string
	for n := int64(run); n > 0; n /= 36 {
		out = string(digits[n%36]) + out
	}
	return out
}

func declined(code string) script {
	return func(context.Context, int) error { return &sdk.Failure{Code: code, Permanent: true} }
}

// Each of the seven states is announced, once, with what has happened so far. A state that no block
// announces costs nothing.
func TestNotifyStates(t *testing.T) {
	cancel := func(w *world, n *testNode, run status.RunID) {
		time.Sleep(time.Second)
		if err := w.ask(run, machine.CancelRequested{By: "ann"}); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name     string
		settings string
		setup    func(w *world)
		act      func(w *world, n *testNode, run status.RunID)
		ends     status.RunState
		want     []string
	}{
		{name: "succeeded", ends: status.RunSucceeded, want: []string{"succeeded:  "}},
		{name: "failed", setup: func(w *world) { w.shop.on("charge", declined("card_declined")) }, ends: status.RunFailed, want: []string{"failed: charge card_declined"}},
		{name: "compensated", setup: func(w *world) { w.shop.on("book", declined("no_carrier")) }, ends: status.RunCompensated, want: []string{"compensated: book no_carrier"}},
		{name: "cancelled", act: cancel, ends: status.RunCancelled, want: []string{"cancelled:  cancelled"}},
		{name: "parked", settings: `compensation { mode = "manual" }`, setup: func(w *world) { w.shop.on("book", declined("no_carrier")) },
			ends: status.RunParked, want: []string{"parked: book no_carrier"}},
		{name: "overdue", settings: `compensation { mode = "manual" }`, setup: func(w *world) { w.shop.on("book", declined("no_carrier")) },
			act:  func(w *world, n *testNode, run status.RunID) { time.Sleep(2 * time.Hour) },
			ends: status.RunParked, want: []string{"overdue: book no_carrier", "parked: book no_carrier"}},
		{name: "compensation_failed", setup: func(w *world) {
			w.shop.on("book", declined("no_carrier"))
			w.shop.on("undo", declined("gone"))
		}, ends: status.RunCompensationFailed, want: []string{"compensation_failed: book no_carrier"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, b := belled(t, bellFlow(c.settings, allStates))
				if c.setup != nil {
					c.setup(w)
				}
				n := w.start()
				run := w.submit(n, "order", nil)
				if c.act != nil {
					c.act(w, n, run)
				}
				w.wait(n, run, c.ends)
				time.Sleep(time.Minute)
				b.wantRung(t, c.want...)
				sent := w.notices(run)
				if len(sent) != len(c.want) {
					t.Errorf("notices: %+v", sent)
				}
				for _, s := range sent {
					if !s.Done || len(s.Notifications) != 1 || s.Notifications[0].State != status.RunSucceeded || s.Notifications[0].WorkflowName != "order.notify" {
						t.Errorf("notice: %+v", s)
					}
				}
				n.drain(t)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w, b := belled(t, bellFlow("", `"failed"`))
		n := w.start()
		run := w.submit(n, "order", nil)
		w.wait(n, run, status.RunSucceeded)
		time.Sleep(time.Minute)
		b.wantRung(t)
		if sent := w.notices(run); len(sent) != 0 {
			t.Errorf("notices: %+v", sent)
		}
		n.drain(t)
	})
}

// A run that parks twice is announced twice, each time with the failure of that time, even if it is
// announced after the run has ended.
func TestNotifyEveryTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, b := belled(t, bellFlow(`compensation { mode = "manual" }`, allStates))
		late := &mute{Full: store.Complete(w.mem), Keeper: w.mem, open: errors.New("the store is slow")}
		w.store = late
		w.shop.on("book", func(_ context.Context, n int) error {
			if n < 3 {
				return &sdk.Failure{Code: fmt.Sprintf("no_carrier_%d", n), Permanent: true}
			}
			return nil
		})
		n := w.start()
		run := w.submit(n, "order", nil)
		for range 2 {
			w.wait(n, run, status.RunParked)
			if err := w.ask(run, machine.RetryRequested{By: "ann"}); err != nil {
				t.Fatal(err)
			}
		}
		w.wait(n, run, status.RunSucceeded)
		b.wantRung(t)
		late.mu.Lock()
		late.open = nil
		late.mu.Unlock()
		time.Sleep(time.Minute)
		b.wantRung(t, "parked: book no_carrier_1", "parked: book no_carrier_2", "succeeded:  ")
		n.drain(t)
	})
}

// An agent that is down is called again and again, with one key, and the run that is announced ends
// as it would have ended. After a permanent failure there is an alert, and no other effect.
func TestNotifyCannotChangeTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, b := belled(t, bellFlow("", allStates))
		b.script = func(_ context.Context, n int) error {
			if n < 20 {
				return errors.New("connection refused")
			}
			return nil
		}
		n := w.start()
		run := w.submit(n, "order", nil)
		w.wait(n, run, status.RunSucceeded)
		time.Sleep(3 * time.Hour)
		b.wantRung(t, "succeeded:  ")
		if b.calls != 20 {
			t.Errorf("%d calls, want 20", b.calls)
		}
		b.script = declined("no_such_channel")
		second := w.submit(n, "order", nil)
		w.wait(n, second, status.RunSucceeded)
		time.Sleep(time.Minute)
		sent := w.notices(second)
		if len(sent) != 1 || len(sent[0].Notifications) != 1 || sent[0].Notifications[0].State != status.RunFailed {
			t.Fatalf("notices: %+v", sent)
		}
		alerts, err := w.mem.Alerts(t.Context(), sent[0].Notifications[0].Run, 10)
		if err != nil || len(alerts) != 1 || alerts[0].Kind != "notify_failed" || alerts[0].Code != "no_such_channel" {
			t.Errorf("alerts: %+v, err = %v", alerts, err)
		}
		if got := w.wait(n, second, status.RunSucceeded); got.Failure().Code != "" {
			t.Errorf("the announced run: %+v", got.Failure())
		}
		n.drain(t)
	})
}

// A notification gives up after 24 hours.
func TestNotifyGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, b := belled(t, bellFlow("", allStates))
		b.script = func(context.Context, int) error { return errors.New("connection refused") }
		n := w.start()
		run := w.submit(n, "order", nil)
		w.wait(n, run, status.RunSucceeded)
		time.Sleep(23 * time.Hour)
		if sent := w.notices(run); sent[0].Notifications[0].State != status.RunRunning {
			t.Errorf("after 23 hours: %+v", sent)
		}
		time.Sleep(2 * time.Hour)
		if sent := w.notices(run); sent[0].Notifications[0].State != status.RunFailed {
			t.Errorf("after 25 hours: %+v", sent)
		}
		n.drain(t)
	})
}

// mute is a store whose notices cannot be marked or read while the test says so: as if the engine
// ended at that point.
type mute struct {
	store.Full
	notice.Keeper
	mu         sync.Mutex
	open, mark error
	load       error // error of every read of runs
	reads      int   // number of reads that failed
}

func (q *mute) Open(ctx context.Context, after notice.Notice, limit int) ([]notice.Notice, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open != nil {
		return nil, q.open
	}
	return q.Keeper.Open(ctx, after, limit)
}

func (q *mute) Announced(ctx context.Context, done ...notice.Notice) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mark != nil && len(done) > 0 {
		return q.mark
	}
	return q.Keeper.Announced(ctx, done...)
}

// An engine may end after the commit and before it makes the notification, or before it marks the
// notice. Another engine announces the state, and the agent is called for one key.
func TestNotifyAfterACrash(t *testing.T) {
	for name, q := range map[string]*mute{
		"before the notification": {open: errors.New("the engine ends here")},
		"before the mark":         {mark: errors.New("the engine ends here")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, b := belled(t, bellFlow("", allStates))
				q.Full, q.Keeper = store.Complete(w.mem), w.mem
				w.store = q
				n := w.start()
				run := w.submit(n, "order", nil)
				w.wait(n, run, status.RunSucceeded)
				time.Sleep(10 * time.Second)
				n.kill(t)
				w.store = w.mem
				n = w.start()
				time.Sleep(time.Minute)
				b.wantRung(t, "succeeded:  ")
				if sent := w.notices(run); len(sent) != 1 || !sent[0].Done {
					t.Errorf("notices: %+v", sent)
				}
				n.drain(t)
			})
		})
	}
}

// The states of an engine that has ended are announced by an engine that runs already. Two engines
// make one notification.
func TestNotifyByAnotherEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, b := belled(t, bellFlow("", allStates))
		others := []*testNode{w.start(), w.start()}
		w.store = &mute{Full: store.Complete(w.mem), Keeper: w.mem, open: errors.New("the engine ends here")}
		n := w.start()
		run := w.submit(n, "order", nil)
		w.wait(n, run, status.RunSucceeded)
		n.kill(t)
		time.Sleep(2 * time.Minute)
		b.wantRung(t, "succeeded:  ")
		if b.calls != 1 {
			t.Errorf("%d calls, want 1", b.calls)
		}
		for _, o := range others {
			o.drain(t)
		}
	})
}

// A run does not wait for an agent that only its notify block calls. Its notification waits for an
// engine that has the agent.
func TestNotifyWithoutItsAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, b := belled(t, bellFlow("", allStates))
		w.cfg = func(c *engine.Config) {
			c.Invoker = poorly{w.inv, func(plugin string) bool { return plugin == "bell" }}
		}
		poor := w.start()
		run := w.submit(poor, "order", nil)
		w.wait(poor, run, status.RunSucceeded)
		time.Sleep(time.Minute)
		b.wantRung(t)
		sent := w.notices(run)
		if len(sent) != 1 || len(sent[0].Notifications) != 1 || sent[0].Notifications[0].Owner != 0 {
			t.Fatalf("notices: %+v, want a notification without an owner", sent)
		}
		w.cfg = nil
		rich := w.start()
		time.Sleep(time.Minute)
		b.wantRung(t, "succeeded:  ")
		poor.drain(t)
		rich.drain(t)
	})
}

// Sensitive variables stay sensitive in the notification, and no name holds them. Variables that
// are too large are left out: then the engine sends its own text.
func TestNotifyVariables(t *testing.T) {
	source := `
workflow "order" {
  deadline = "1h"
  variable "card" {
    type      = string
    sensitive = true
  }
  step "charge" {
    action       = agent.shop.charge
    compensation = "none"
    input { name = "charge" }
  }
  notify {
    on     = ["succeeded"]
    action = agent.bell.ring
    input { text = "paid with ${upper(var.card)}" }
  }
}`
	synctest.Test(t, func(t *testing.T) {
		w, b := belled(t, source)
		key := newSealer(t, newKey(t))
		w.cfg = func(c *engine.Config) { c.Sealer = key }
		w.opts.MaxValue = 2000
		n := w.start()
		run := w.submit(n, "order", map[string]string{"card": "visa-4711"})
		large := w.submit(n, "order", map[string]string{"card": strings.Repeat("9", 1900)})
		time.Sleep(time.Minute)
		own := fmt.Sprintf("Run r-%s of workflow order: succeeded. The engine wrote this text, because the input of notify (main.hcl:13", base36(large))
		got := b.rang()
		if len(got) != 2 || got[1] != "paid with VISA-4711" || !strings.HasPrefix(got[0], own) {
			t.Errorf("the bell got %q, want %q", got, own)
		}
		sent := w.notices(run)
		note := sent[0].Notifications[0]
		if strings.Contains(note.Name+note.Key, "4711") {
			t.Errorf("the names hold a sensitive value: %+v", note)
		}
		st, err := journal.Load(t.Context(), w.mem, key, journal.NewDefinitions(w.mem, key), note.Run)
		if err != nil {
			t.Fatal(err)
		}
		if got := st.State.Vars().Sensitive(); !slices.Contains(got, "/card") {
			t.Errorf("sensitive variables: %q", got)
		}
		n.drain(t)
	})
}

// AwaitNotifications returns when the notifications have ended, and not before.
func TestAwaitNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, b := belled(t, bellFlow("", allStates))
		gate := make(chan struct{})
		b.script = func(ctx context.Context, _ int) error {
			select {
			case <-gate:
			case <-ctx.Done():
			}
			return nil
		}
		n := w.start()
		run := w.submit(n, "order", nil)
		w.wait(n, run, status.RunSucceeded)
		row, err := store.Complete(w.mem).Find(t.Context(), "r-"+base36(run))
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := n.AwaitNotifications(short, row); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while the call is in flight: %v", err)
		}
		close(gate)
		if err := n.AwaitNotifications(t.Context(), row); err != nil {
			t.Errorf("at the end: %v", err)
		}
		b.wantRung(t, "succeeded:  ")
		n.drain(t)
	})
}

// A store whose role is missing announces nothing, and everything else works.
func TestNotifyWithoutTheRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, b := belled(t, bellFlow("", allStates))
		w.store = struct{ store.Store }{w.mem}
		n := w.start()
		w.wait(n, w.submit(n, "order", nil), status.RunSucceeded)
		time.Sleep(time.Minute)
		b.wantRung(t)
		n.drain(t)
	})
}

// If a notification may hold a secret, the run is refused without an encryption key: later it would
// be too late.
func TestNotifyNeedsAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, b := belled(t, "")
		b.agent = sdk.New("bell", "1.0.0")
		sdk.Configure(b.agent, func(context.Context, struct {
			Token string `agent:"token,sensitive"`
		}) error {
			return nil
		})
		sdk.Action(b.agent, "ring", b.ring)
		w.def = define(t, "agent \"bell\" {\n  config { token = secret(\"env:TOKEN\") }\n}\n"+bellFlow("", allStates), w.shop.agent, b.agent)
		n := w.start()
		_, err := n.Submit(t.Context(), engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil)})
		var key *crypt.KeyError
		if !errors.As(err, &key) {
			t.Errorf("Submit without a key = %v", err)
		}
		n.drain(t)
	})
}

// Nobody but an engine starts a notification, and no other run has the name of one.
func TestNotifyCannotBeSubmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := belled(t, bellFlow("", allStates))
		n := w.start()
		vars := w.vars("order", nil)
		if _, err := n.Submit(t.Context(), engine.Submission{Definition: w.def, Workflow: "order.notify", Vars: vars}); err == nil {
			t.Error("the workflow of a notification was started")
		}
		if _, err := n.Submit(t.Context(), engine.Submission{Definition: w.def, Workflow: "order", Vars: vars, Name: "x.notify.failed.1"}); err == nil {
			t.Error("a run has the name of a notification")
		}
		n.drain(t)
	})
}

// Load counts the reads of runs, or fails while the test says so.
func (q *mute) Load(ctx context.Context, runs ...status.RunID) ([]store.Loaded, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.load != nil {
		q.reads++
		return nil, q.load
	}
	return q.Full.Load(ctx, runs...)
}

// count returns the number of reads that have failed.
func (q *mute) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reads
}

// An engine that cannot read a run leaves its notice to an engine that can, and does not read the
// run again and again.
func TestNotifyOfAnUnreadableRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, b := belled(t, bellFlow("", allStates))
		w.store = &mute{Full: store.Complete(w.mem), Keeper: w.mem, open: errors.New("the engine ends here")}
		n := w.start()
		run := w.submit(n, "order", nil)
		w.wait(n, run, status.RunSucceeded)
		n.kill(t)
		blind := &mute{Full: store.Complete(w.mem), Keeper: w.mem, load: store.ErrDamaged}
		w.store = blind
		other := w.start()
		time.Sleep(time.Hour)
		b.wantRung(t)
		if reads := blind.count(); reads == 0 || reads > 180 { // MaxScan is 1 s here
			t.Errorf("the run was read %d times in an hour, want once in 20 times MaxScan", reads)
		}
		w.store = w.mem
		n = w.start()
		time.Sleep(time.Minute)
		b.wantRung(t, "succeeded:  ")
		other.drain(t)
		n.drain(t)
	})
}

// A group announces that it needs a person with the blocks of the workflow around it, in the name of
// the run and with its variables. It does not announce its other states.
func TestNotifyOfGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, b := belled(t, `
workflow "trip" {
  variable "who" {}
  deadline = "30d"
  unique { key = var.who }
  group "outer" {
    group "inner" {
      step "charge" {
        action = agent.shop.charge
        input { name = "charge" }
        retry {
          max_attempts = 1
          on_exhausted = "park"
        }
      }
    }
  }
  notify {
    on     = ["failed", "cancelled"]
    action = agent.bell.ring
    input { text = "end: ${run.status}" }
  }
  notify {
    on     = ["succeeded", "failed", "parked"]
    action = agent.bell.ring
    input { text = "${var.who} ${run.id} ${run.workflow} ${run.key}: ${run.status} ${failure.step} ${failure.code}" }
  }
}`)
		fails := true
		w.shop.on("charge", func(ctx context.Context, n int) error {
			if fails {
				return busy(ctx, n)
			}
			return nil
		})
		n := w.start()
		run := w.submit(n, "trip", map[string]string{"who": "ann"})
		time.Sleep(time.Minute)
		parked := "ann r-" + base36(run) + " trip ann: parked charge busy"
		b.wantRung(t, parked)
		fails = false
		child := w.children(w.children(run)[0].Run)[0]
		if got := w.noticesOf(child); len(got) != 1 || !got[0].Done || len(got[0].Notifications) != 1 {
			t.Errorf("notices of the group: %+v", got)
		}
		w.verb(n, child.Run, machine.RetryRequested{By: "ann"})
		w.wait(n, run, status.RunSucceeded)
		time.Sleep(time.Minute)
		b.wantRung(t, parked, "ann r-"+base36(run)+" trip ann: succeeded  ")
		n.drain(t)
	})
}
