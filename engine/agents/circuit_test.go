//go:build unix

package agents_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
)

// TestS34Breaker: failures open the breaker; then nothing is sent, so that no
// attempt is spent, until a probe; the probe's result closes it. Business codes
// leave it alone.
func TestS34Breaker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	const cooldown = 400 * time.Millisecond
	w := newWorld(t, agents.Options{})
	spec := mock("m", config(fmt.Sprintf(`{"ledger":%q}`, path)), breaker(dsl.Breaker{TripAfter: 2, Cooldown: cooldown, Probes: 1}))
	arrivals := func() int {
		kinds, _ := ledger(t, path)
		return kinds["arrived"]
	}
	fail := func(code string) {
		w.mustInvoke(call(spec, "call", fmt.Sprintf(`{"fail":{"code":%q}}`, code), func(c *invoke.Call) { c.Request.IdempotencyKey = "bad" }))
	}
	for range 5 {
		fail("card_declined")
	}
	fail("unavailable")
	w.mustInvoke(call(spec, "call", `{}`)) // breaks the row of failures
	fail("unavailable")
	if slot := w.Slot(spec); slot.Free == 0 {
		t.Fatalf("slot=%+v, want a closed breaker", slot)
	}
	fail("unavailable")
	opened := time.Now()
	sent := arrivals()

	slot := w.Slot(spec)
	if slot.Free != 0 || slot.Why != "circuit open" || slot.Until.Before(opened) || slot.Until.After(opened.Add(cooldown)) {
		t.Errorf("slot=%+v, want none until the probe", slot)
	}
	if w.Reserve(spec, 1) {
		t.Error("a slot of an open breaker was reserved")
	}
	for range 10 {
		_, err := w.Invoke(t.Context(), call(spec, "call", `{}`))
		if d := mustDefer(t, err); !d.Until.Equal(slot.Until) || d.Why != "circuit open" {
			t.Errorf("deferred: %+v, want until %s", d, slot.Until)
		}
	}
	if n := arrivals(); n != sent {
		t.Errorf("%d calls came through an open breaker", n-sent)
	}

	w.until(t, "half-open", func() bool { return len(w.circuits) >= 2 })
	if slot := w.Slot(spec); slot.Free != 1 {
		t.Errorf("half-open: slot=%+v, want one probe", slot)
	}
	probing := make(chan struct{}, 100)
	done := make(chan sdk.Reply, 1)
	go func() {
		reply, err := w.Invoke(t.Context(), call(spec, "call", `{"latency":"1s"}`, func(c *invoke.Call) {
			c.Request.IdempotencyKey = "probe"
			c.OnProgress = func(invoke.Progress) { probing <- struct{}{} }
		}))
		if err != nil {
			t.Error(err)
		}
		done <- reply
	}()
	<-probing
	if slot := w.Slot(spec); slot.Free != 0 || slot.Why == "" {
		t.Errorf("probe under way: slot=%+v, want none", slot)
	}
	_, err := w.Invoke(t.Context(), call(spec, "call", `{}`))
	mustDefer(t, err)
	if reply := <-done; reply.Outcome != sdk.OutcomeResult {
		t.Errorf("probe: %+v", reply)
	}
	w.until(t, "closed", func() bool { return len(w.circuits) >= 3 })
	if n := arrivals(); n != sent+1 {
		t.Errorf("%d calls while half-open, want the probe", n-sent)
	}
	if slot := w.Slot(spec); slot.Free == 0 {
		t.Errorf("closed: slot=%+v", slot)
	}
	// And once more, with a probe that fails.
	fail("unavailable")
	fail("unavailable")
	w.until(t, "half-open again", func() bool { return len(w.circuits) >= 5 })
	fail("unavailable")
	_, err = w.Invoke(t.Context(), call(spec, "call", `{}`))
	mustDefer(t, err)
	w.until(t, "open again", func() bool { return len(w.circuits) >= 6 })
	w.mu.Lock()
	defer w.mu.Unlock()
	var states []string
	for _, c := range w.circuits[:6] {
		states = append(states, string(c.To))
		if c.To == agents.CircuitOpen != !c.Until.IsZero() || c.Agent != "m" || c.Key != "m" {
			t.Errorf("change=%+v", c)
		}
	}
	if got, want := strings.Join(states, " "), "open half-open closed open half-open open"; got != want {
		t.Errorf("states: %s\nwant: %s", got, want)
	}
	if w.circuits[0].Failures != 2 || w.freed == 0 {
		t.Errorf("failures=%d freed=%d, want 2 and some", w.circuits[0].Failures, w.freed)
	}
}

// TestS34BreakerByRatio: the breaker opens when enough calls of the window
// failed, though never in a row; unknown outcomes and silence count too.
func TestS34BreakerByRatio(t *testing.T) {
	w := newWorld(t, agents.Options{})
	spec := mock("m", breaker(dsl.Breaker{FailureRatio: 0.5, MinCalls: 6, Window: time.Minute, Cooldown: time.Hour}))
	for n := range 3 {
		w.mustInvoke(call(spec, "call_once", `{}`))
		if slot := w.Slot(spec); slot.Free == 0 {
			t.Fatalf("open after %d calls: %+v", 2*n+1, slot)
		}
		switch n {
		case 0:
			w.mustInvoke(call(spec, "call_once", `{"fail":{}}`))
		case 1:
			w.mustInvoke(call(spec, "call_once", `{"fail":{"unknown":true,"code":"odd"}}`))
		default:
			_, err := w.Invoke(t.Context(), call(spec, "call_once", `{"hang":true}`, func(c *invoke.Call) {
				c.Request.CompleteBy = time.Now().Add(200 * time.Millisecond)
			}))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
	}
	if slot := w.Slot(spec); slot.Free != 0 || slot.Why != "circuit open" {
		t.Errorf("slot=%+v, want an open breaker", slot)
	}
}
