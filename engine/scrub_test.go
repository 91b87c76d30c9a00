package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// scrubFlow is two steps of an agent whose configuration holds a secret. The
// first step returns a sensitive output that the second step does not get.
const scrubFlow = `
agent "vault" {
  config { token = secret("env:VAULT_TOKEN") }
}
workflow "pay" {
  deadline = "1h"
  variable "card" {
    type      = string
    sensitive = true
  }
  step "issue" {
    action       = agent.vault.issue
    compensation = "none"
    input { note = var.card }
  }
  step "charge" {
    action       = agent.vault.charge
    depends_on   = [step.issue]
    compensation = "none"
    retry { max_attempts = 2 }
    input { note = "nothing secret" }
  }
}`

type vaultConfig struct {
	Token string `agent:"token"`
}

type vaultIn struct {
	Note string `agent:"note"`
}

type vaultOut struct {
	Code string `agent:"code,sensitive"`
}

// I13: every sensitive text that an agent may know of a run is scrubbed from
// what it logs, from its failures and from its unknown outcomes: a variable, an
// output of another step, and a secret of its configuration.
func TestWhatAgentsSayIsScrubbed(t *testing.T) {
	const all = "canary-card, canary-code and canary-token"
	synctest.Test(t, func(t *testing.T) {
		vault := sdk.New("vault", "1.0.0")
		sdk.Configure(vault, func(context.Context, vaultConfig) error { return nil })
		sdk.Action(vault, "issue", func(context.Context, *sdk.Call, vaultIn) (vaultOut, error) { return vaultOut{"canary-code"}, nil })
		sdk.Action(vault, "charge", func(_ context.Context, c *sdk.Call, _ vaultIn) (sdk.None, error) {
			if c.Attempt == 1 {
				return sdk.None{}, sdk.Unknown(fmt.Errorf("lost track of %s", all), "unavailable")
			}
			return sdk.None{}, &sdk.Failure{Code: "declined", Message: "no money on " + all, Permanent: true}
		}, sdk.Idempotent(), sdk.Errors("declined"))
		if err := vault.Configure(t.Context(), []byte(`{"token":"canary-token"}`)); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, oneStep)
		w.inv.agents["vault"] = vault
		w.def = define(t, scrubFlow, vault)
		sealer := newSealer(t, newKey(t))
		w.cfg = func(c *engine.Config) {
			c.Sealer = sealer
			c.Secrets = func(string) (string, error) { return "canary-token", nil }
		}
		logged := ""
		w.inv.before = func(call invoke.Call) error {
			if call.Request.Step == "charge" {
				logged = call.Scrub("charging " + all)
			}
			return nil
		}
		n := w.start()
		run := w.submit(n, "pay", map[string]string{"card": "canary-card"})
		s := w.wait(n, run, status.RunFailed)
		if want := "charging (sensitive), (sensitive) and (sensitive)"; logged != want {
			t.Errorf("what the agent logs is kept as %q, want %q", logged, want)
		}
		story := w.transcript(run) + fmt.Sprint(s.Failure())
		for _, want := range []string{"lost track of (sensitive), (sensitive) and (sensitive)", "no money on (sensitive), (sensitive) and (sensitive)"} {
			if !strings.Contains(story, want) {
				t.Errorf("the story lacks %q:\n%s", want, story)
			}
		}
		if strings.Contains(story, "canary") {
			t.Errorf("the story shows a sensitive value:\n%s", story)
		}
		n.drain(t)
	})
}
