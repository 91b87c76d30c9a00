package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

const secretFlow = `
workflow "pay" {
  deadline = "1h"
  variable "card" {
    type      = string
    sensitive = true
  }
  variable "pin" {
    type      = string
    default   = "canary-default"
    sensitive = true
  }
  step "charge" {
    action = agent.shop.charge
    input {
      name = "charge"
      note = "${var.card} ${var.pin} ${secret("env:SHOP_TOKEN")}"
    }
  }
}`

// stored returns every byte that a run and its definition have in the store.
func (w *world) stored(run status.RunID) []byte {
	head, rows, err := store.LoadRun(w.t.Context(), w.mem, run)
	if err != nil {
		w.t.Fatal(err)
	}
	def, _, err := w.mem.Definition(w.t.Context(), head.Workflow)
	if err != nil {
		w.t.Fatal(err)
	}
	all := bytes.Clone(def.Data)
	for _, row := range rows {
		all = append(all, row.Data...)
	}
	alerts, err := w.mem.Alerts(w.t.Context(), run, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	return append(all, fmt.Sprintf("%+v", alerts)...)
}

// I13: sensitive values are encrypted at rest, secrets are resolved only for
// the call and stored nowhere, and neither shows in what people read.
func TestSensitiveValuesStayInTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, secretFlow)
		sealer := newSealer(t, newKey(t))
		w.cfg = func(c *engine.Config) {
			c.Sealer = sealer
			c.Secrets = func(ref string) (string, error) {
				if ref != "env:SHOP_TOKEN" {
					return "", errors.New("not set")
				}
				return "canary-token", nil
			}
		}
		var note string
		w.inv.before = func(call invoke.Call) error {
			note = string(call.Request.Input)
			return nil
		}
		w.shop.on("charge", func(_ context.Context, n int) error {
			if n == 1 {
				return &sdk.Failure{Code: "busy", Message: "card canary-card with canary-token and canary-default was refused"}
			}
			return &sdk.Failure{Code: "card_declined", Message: `got "canary-card canary-default canary-token"`, Permanent: true}
		})
		n := w.start()
		run := w.submit(n, "pay", map[string]string{"card": "canary-card"})
		s := w.wait(n, run, status.RunFailed)
		if !strings.Contains(note, "canary-card canary-default canary-token") {
			t.Errorf("the agent got %s", note)
		}
		if all := w.stored(run); bytes.Contains(all, []byte("canary")) {
			t.Error("a sensitive value is stored in the clear")
		}
		if text := w.transcript(run) + fmt.Sprint(s.Failure()); strings.Contains(text, "canary") || !strings.Contains(text, "(sensitive)") {
			t.Errorf("the story shows a sensitive value, or nothing in its place:\n%s", text)
		}
		// Without the key the story cannot be read, and the error says what to do.
		_, err := journal.Load(t.Context(), w.mem, nil, journal.NewDefinitions(w.mem, nil), run)
		var missing *crypt.KeyError
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), "ENGINE_ENCRYPTION_KEY") {
			t.Errorf("Load without a key = %v, want a KeyError with a remedy", err)
		}
		n.drain(t)
	})
}

// What an agent repeats of what it was told in confidence is as sensitive as
// that, wherever it goes on to: a variable, a secret of the call and one of the
// agent's configuration.
func TestEchoesAreSensitive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "pay" {
  deadline = "1h"
  variable "card" {
    type      = string
    sensitive = true
  }
  step "charge" {
    action = agent.shop.charge
    input {
      name = "charge"
      note = secret("env:SHOP_TOKEN")
    }
  }
  step "book" {
    action = agent.shop.charge
    input {
      name = "book"
      note = step.charge.output.id
    }
  }
  output "id" { value = step.book.output.id }
}`)
		sealer := newSealer(t, newKey(t))
		w.cfg = func(c *engine.Config) {
			c.Sealer = sealer
			c.Secrets = func(string) (string, error) { return "canary-token", nil }
		}
		note := ""
		w.inv.around = func(_ context.Context, call invoke.Call) (sdk.Reply, bool) {
			id := "receipt for canary-token"
			if call.Request.Step == "book" {
				note = string(call.Request.Input)
				id = "booked receipt for canary-token and canary-card"
			}
			return sdk.Reply{Outcome: sdk.OutcomeResult, Output: []byte(`{"id":"` + id + `"}`)}, true
		}
		n := w.start()
		run := w.submit(n, "pay", map[string]string{"card": "canary-card"})
		s := w.wait(n, run, status.RunSucceeded)
		if !strings.Contains(note, "receipt for canary-token") {
			t.Errorf("the second agent got %s", note)
		}
		for i := range 2 {
			if got := story.Node(s, nil, i).Output.Sensitive(); !slices.Equal(got, []string{"/id"}) {
				t.Errorf("sensitive parts of what step %d returned = %q, want its id", i, got)
			}
		}
		if outs := story.Outputs(s); len(outs) != 1 || !slices.Equal(outs[0].Value.Sensitive(), []string{""}) {
			t.Errorf("outputs = %+v, want one that is sensitive", outs)
		}
		if all := w.stored(run); bytes.Contains(all, []byte("canary")) {
			t.Error("an echoed value is stored in the clear")
		}
		n.drain(t)
	})
}

// Without a key nothing starts whose agent has a secret in its configuration,
// although the workflow itself uses none: the agent could repeat it.
func TestConfidentialAgentNeedsAKey(t *testing.T) {
	w := newWorld(t, oneStep)
	vault := sdk.New("vault", "1.0.0")
	sdk.Configure(vault, func(context.Context, vaultConfig) error { return nil })
	sdk.Action(vault, "charge", func(context.Context, *sdk.Call, vaultIn) (sdk.None, error) { return sdk.None{}, nil }, sdk.Idempotent())
	w.def = define(t, `
agent "vault" {
  config { token = secret("env:VAULT_TOKEN") }
}
workflow "one" {
  deadline = "1h"
  step "charge" {
    action       = agent.vault.charge
    compensation = "none"
    input { note = "x" }
  }
}`, vault)
	n := w.start()
	_, err := n.Submit(t.Context(), engine.Submission{Definition: w.def, Workflow: "one", Vars: w.vars("one", nil)})
	var missing *crypt.KeyError
	if !errors.As(err, &missing) {
		t.Errorf("Submit = %v, want a *KeyError", err)
	}
	n.drain(t)
}

// Without a key nothing starts that an agent could repeat a secret of.
func TestConfidentialRunNeedsAKey(t *testing.T) {
	step := func(settings, note string) string {
		return "agent \"shop\" {" + settings + "\n}\nworkflow \"one\" {\n deadline = \"1h\"\n step \"reserve\" {\n action = agent.shop.reserve\n input {\n name = \"reserve\"\n note = " + note + "\n}\n}\n}"
	}
	for name, tt := range map[string]struct {
		source string
		refuse bool
	}{
		"nothing":            {step("", `"x"`), false},
		"secret in an input": {step("", `secret("env:X")`), true},
		"sensitive literal":  {step("", `sensitive("x")`), true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tt.source)
			w.cfg = func(c *engine.Config) { c.Secrets = func(string) (string, error) { return "canary", nil } }
			n := w.start()
			_, err := n.Submit(t.Context(), engine.Submission{Definition: w.def, Workflow: "one", Vars: w.vars("one", nil)})
			var missing *crypt.KeyError
			if refused := errors.As(err, &missing); refused != tt.refuse || !refused && err != nil {
				t.Errorf("Submit = %v, want refused = %t", err, tt.refuse)
			}
			if rows, err := w.mem.Runs(t.Context(), store.RunFilter{}); err != nil || tt.refuse && len(rows) != 0 {
				t.Errorf("%d runs, %v, want none", len(rows), err)
			}
			n.drain(t)
		})
	}
}

// With a key a definition is sealed whatever stands in it: nobody can tell
// what a literal, or an answer of env(), is.
func TestDefinitionsAreSealed(t *testing.T) {
	w := newWorld(t, oneStep+`
workflow "other" {
  deadline    = "1h"
  description = "canary"
  step "reserve" {
    action = agent.shop.reserve
    input { name = "reserve" }
  }
}`)
	sealer := newSealer(t, newKey(t))
	ids, err := journal.NewDefinitions(w.mem, sealer).Put(t.Context(), w.def)
	if err != nil {
		t.Fatal(err)
	}
	def, _, err := w.mem.Definition(t.Context(), ids["other"])
	if err != nil || bytes.Contains(def.Data, w.def.Encode()[:64]) {
		t.Errorf("the definition is stored in the clear (%v)", err)
	}
	if wf, err := journal.NewDefinitions(w.mem, sealer).Workflow(t.Context(), ids["other"]); err != nil || wf.Description != "canary" {
		t.Errorf("Workflow = %+v, %v", wf, err)
	}
}

// A missing key is an error at submission that says how to make one; nothing
// starts.
func TestSensitiveSubmissionNeedsAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.Replace(secretFlow, `default   = "canary-default"`, "", 1))
		n := w.start()
		_, err := n.Submit(t.Context(), engine.Submission{Definition: w.def, Workflow: "pay", Vars: w.vars("pay", map[string]string{"card": "x", "pin": "y"})})
		var missing *crypt.KeyError
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), "openssl rand") {
			t.Errorf("Submit = %v, want a KeyError that says how to make a key", err)
		}
		if rows, err := w.mem.Runs(t.Context(), store.RunFilter{}); err != nil || len(rows) != 0 {
			t.Errorf("%d runs, %v, want none", len(rows), err)
		}
		n.drain(t)
	})
}

// A secret that this engine cannot resolve holds the step and says why; the
// step goes on when it can.
func TestMissingSecretHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, secretFlow)
		w.faulty()
		sealer := newSealer(t, newKey(t))
		var set atomic.Bool
		w.cfg = func(c *engine.Config) {
			c.Sealer = sealer
			c.Secrets = func(ref string) (string, error) {
				if !set.Load() {
					return "", fmt.Errorf("secret %s is not set", ref)
				}
				return "token", nil
			}
		}
		n := w.start()
		run := w.submit(n, "pay", map[string]string{"card": "canary-card"})
		time.Sleep(time.Minute)
		if calls := w.shop.called("charge"); len(calls) != 0 {
			t.Errorf("the agent was called %d times without the secret", len(calls))
		}
		if text := w.transcript(run); !strings.Contains(text, "step_held charge") || !strings.Contains(text, "env:SHOP_TOKEN is not set") {
			t.Errorf("the story does not say why the step is held:\n%s", text)
		}
		set.Store(true)
		s := w.wait(n, run, status.RunSucceeded)
		if node := story.Node(s, nil, 0); node.Failures != 0 {
			t.Errorf("failures = %d, want 0", node.Failures)
		}
		n.drain(t)
	})
}

// A store keeps to the key it was first worked on with: an engine with another
// key, or with none, is refused before it writes anything.
func TestOneKeyForAStore(t *testing.T) {
	a, b := newSealer(t, newKey(t)), newSealer(t, newKey(t))
	w := newWorld(t, oneStep)
	run := func(s crypt.Sealer) error {
		t.Helper()
		n, err := engine.NewNode(engine.Config{Store: w.mem, Invoker: w.inv, Sealer: s, Options: w.opts})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx) }()
		select {
		case <-n.Ready():
			cancel()
			return <-done
		case err := <-done:
			return err
		}
	}
	for _, step := range []struct {
		name   string
		sealer crypt.Sealer
		refuse bool
	}{
		{"without a key", nil, false},
		{"the first key", a, false},
		{"another key", b, true},
		{"no key any more", nil, true},
		{"the first key again", a, false},
	} {
		before, err := w.mem.Join(t.Context(), "probe", time.Minute, 1)
		if err != nil {
			t.Fatal(err)
		}
		err = run(step.sealer)
		var key *crypt.KeyError
		if refused := errors.As(err, &key); refused != step.refuse || !refused && err != nil {
			t.Errorf("%s: Run = %v, want refused = %t", step.name, err, step.refuse)
		}
		if step.refuse && (key.ID != a.KeyID() || !strings.Contains(err.Error(), a.KeyID()) || step.sealer != nil && !strings.Contains(err.Error(), step.sealer.KeyID())) {
			t.Errorf("%s: %v does not say which key is needed and which was given", step.name, err)
		}
		after, err := w.mem.Join(t.Context(), "probe", time.Minute, 1)
		if err != nil {
			t.Fatal(err)
		}
		if joined := after - before - 1; joined != 0 && step.refuse {
			t.Errorf("%s: it joined the store", step.name)
		}
	}
}

// blind is a Sealer with the right key that opens nothing but the mark of the
// history, without which no engine starts.
type blind struct{ crypt.Sealer }

func (b blind) Open(where, sealed []byte) ([]byte, error) {
	if bytes.HasPrefix(where, []byte("history")) {
		return b.Sealer.Open(where, sealed)
	}
	return nil, &crypt.KeyError{ID: b.KeyID(), Hint: "none"}
}

// A run whose rows another key sealed is left alone by takeover, visibly, and
// the others are taken.
func TestTakeOverLeavesAloneWhatItCannotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, secretFlow+oneStep)
		key := newSealer(t, newKey(t))
		w.cfg = func(c *engine.Config) { c.Sealer = key }
		block := func(ctx context.Context, n int) error { <-ctx.Done(); return ctx.Err() }
		w.shop.on("reserve", block)
		first := w.start()
		sealed := w.submit(first, "pay", map[string]string{"card": "canary-card"})
		open := w.submit(first, "one", nil)
		first.kill(t)
		time.Sleep(w.opts.Lease)
		w.shop.on("reserve", nil)
		w.cfg = func(c *engine.Config) { c.Sealer = blind{key} }
		second := w.start()
		// The definition holds a sensitive default, so neither can be read without the key.
		if n, err := second.TakeOver(t.Context()); n != 0 || err != nil {
			t.Errorf("TakeOver = %d, %v, want 0", n, err)
		}
		for _, run := range []status.RunID{sealed, open} {
			var missing *crypt.KeyError
			if err := second.Quarantined()[run]; !errors.As(err, &missing) {
				t.Errorf("trouble of run %d = %v, want a KeyError", run, err)
			}
		}
		second.drain(t)
		w.cfg = func(c *engine.Config) { c.Sealer = key }
		third := w.start()
		if n, err := third.TakeOver(t.Context()); n > 2 || err != nil { // its scanner may have been quicker
			t.Errorf("TakeOver = %d, %v, want 2 or what the patrol left", n, err)
		}
		w.wait(third, open, status.RunSucceeded)
		if s, err := third.Wait(t.Context(), sealed); err != nil || !s.Status().Final() { // how does not matter: somebody could read it
			t.Errorf("Wait = %v, %v, want an end", s, err)
		}
		third.drain(t)
	})
}

// checked is an Invoker that lacks an agent.
type checked struct {
	*direct
	err error
}

func (c checked) Check(context.Context, invoke.AgentSpec) error { return c.err }

// A run that needs an agent which is missing here is left to an engine that
// has it.
func TestTakeOverLeavesAloneWhatItCannotCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneStep)
		w.shop.on("reserve", func(ctx context.Context, n int) error { <-ctx.Done(); return ctx.Err() })
		first := w.start()
		run := w.submit(first, "one", nil)
		first.kill(t)
		time.Sleep(w.opts.Lease)
		w.shop.on("reserve", nil)
		w.cfg = func(c *engine.Config) { c.Invoker = checked{w.inv, errors.New("engine-agent-shop is missing")} }
		second := w.start()
		if n, err := second.TakeOver(t.Context()); n != 0 || err != nil {
			t.Errorf("TakeOver = %d, %v, want 0", n, err)
		}
		if err := second.Adopt(t.Context(), run); err == nil || !strings.Contains(err.Error(), "is missing") {
			t.Errorf("Adopt = %v, want the reason", err)
		}
		second.drain(t)
		w.cfg = nil
		third := w.start()
		if err := third.Adopt(t.Context(), run); err != nil {
			t.Errorf("Adopt = %v", err)
		}
		w.wait(third, run, status.RunSucceeded)
		third.drain(t)
	})
}

// S13, S22, S33: a definition is read back from the store alone, by an engine
// that has never seen its source.
func TestDefinitionsAreReadBack(t *testing.T) {
	w := newWorld(t, orderFlow)
	st := memory.New(memory.Options{})
	first := journal.NewDefinitions(st, nil)
	ids, err := first.Put(t.Context(), w.def)
	if err != nil {
		t.Fatal(err)
	}
	again, err := first.Put(t.Context(), w.def)
	if err != nil || again["order"] != ids["order"] {
		t.Errorf("Put again = %v, %v, want %v", again, err, ids)
	}
	wf, err := journal.NewDefinitions(st, nil).Workflow(t.Context(), ids["order"])
	if err != nil || wf.Name != "order" || len(wf.Steps) != 3 || wf.Digest != w.def.Digest() {
		t.Errorf("Workflow = %+v, %v", wf, err)
	}
	if _, err := first.Workflow(t.Context(), 999); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Workflow(999) = %v, want ErrNotFound", err)
	}
}

// A lease that is lost while a call is prepared, because a secret takes long to
// resolve, keeps the call from being sent.
func TestLeaseLostWhileACallIsPrepared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, secretFlow)
		store := w.faulty()
		sealer := newSealer(t, newKey(t))
		var slow atomic.Bool
		slow.Store(true)
		w.cfg = func(c *engine.Config) {
			c.Sealer = sealer
			c.Secrets = func(string) (string, error) {
				if slow.CompareAndSwap(true, false) {
					store.noTick.Store(true)
					time.Sleep(2 * w.opts.Lease)
				}
				return "canary-token", nil
			}
		}
		n := w.start()
		run := w.submit(n, "pay", map[string]string{"card": "canary-card"})
		time.Sleep(3 * w.opts.Lease)
		if calls := w.shop.called("charge"); len(calls) > 0 {
			t.Errorf("a call was sent %v after the lease was lost", calls[0].at)
		}
		store.noTick.Store(false)
		w.wait(n, run, status.RunSucceeded)
		if calls := w.shop.called("charge"); len(calls) != 1 {
			t.Errorf("charge was called %d times, want once", len(calls))
		}
		n.drain(t)
	})
}
