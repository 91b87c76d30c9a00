package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// A reply at the limit counts. One above it, or nested more deeply than anything
// reads, is a bad reply: its outcome is unknown, what it may have done is undone,
// and the run is not stuck (T21).
func TestReplySizes(t *testing.T) {
	const limit = 2000
	sized := func(n int) string { return `{"id":"` + strings.Repeat("x", n-len(`{"id":""}`)) + `"}` }
	for _, c := range []struct {
		name, reply string
		want        status.RunState
	}{
		{"limit - 1", sized(limit - 1), status.RunSucceeded},
		{"limit", sized(limit), status.RunSucceeded},
		{"limit + 1", sized(limit + 1), status.RunCompensated},
		{"100 times the limit", sized(100 * limit), status.RunCompensated},
		{"deep", `{"id":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}`, status.RunCompensated},
		{"deeper than any reader", strings.Repeat("[", 100_000), status.RunCompensated},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, orderFlow)
				w.opts.MaxValue = limit
				w.inv.around = func(_ context.Context, call invoke.Call) (sdk.Reply, bool) {
					if call.Request.Step != "charge" || call.Request.Purpose != sdk.PurposeDo {
						return sdk.Reply{}, false
					}
					return sdk.Reply{Outcome: sdk.OutcomeResult, Output: json.RawMessage(c.reply)}, true
				}
				n := w.start()
				run := w.submit(n, "order", nil)
				state := w.wait(n, run, c.want)
				if c.want != status.RunSucceeded && state.Failure().Code != sdk.CodeBadReply {
					t.Errorf("the run failed with %+v, want %s", state.Failure(), sdk.CodeBadReply)
				}
				n.drain(t)
			})
		})
	}
}

// Variables at the limit are accepted, those above it are refused before anything
// is stored (T21).
func TestSubmissionSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 2000
		w := newWorld(t, orderFlow)
		w.opts.MaxValue = limit
		n := w.start()
		empty := len(w.vars("order", map[string]string{"fail": ""}).JSON())
		for size, ok := range map[int]bool{limit - 1: true, limit: true, limit + 1: false, 100 * limit: false} {
			_, err := n.Submit(t.Context(), engine.Submission{
				Definition: w.def, Workflow: "order", Vars: w.vars("order", map[string]string{"fail": strings.Repeat("x", size-empty)}),
			})
			if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "more than the 2000 allowed") {
				t.Errorf("%d bytes of variables: %v, want accepted: %t", size, err, ok)
			}
		}
		n.drain(t)
	})
}
