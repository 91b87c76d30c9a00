package sdk_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/schema"
)

// TestAnyErrors: codes that an input names stay definite failures, are not
// reported as undeclared, and declared ones keep their own entry.
func TestAnyErrors(t *testing.T) {
	type in struct {
		Code string `agent:"code"`
	}
	fail := func(_ context.Context, _ *sdk.Call, in in) (sdk.None, error) {
		return sdk.None{}, &sdk.Failure{Code: in.Code}
	}
	a := sdk.New("x", "1.0.0")
	sdk.Action(a, "open", fail, sdk.AnyErrors(), sdk.Errors("known"), sdk.AnyErrors())
	sdk.Action(a, "closed", fail, sdk.Errors("known"))
	s, err := a.Schema()
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Actions["open"].Errors; len(got) != 2 || got[0].Code != schema.AnyCode || got[1].Code != "known" {
		t.Errorf("errors=%v, want %q and known", got, schema.AnyCode)
	}
	for action, warns := range map[string]bool{"open": false, "closed": true} {
		var log strings.Builder
		reply, ok := a.Invoke(context.Background(), sdk.Request{
			Action: action, Purpose: sdk.PurposeDo, Input: []byte(`{"code":"made_up"}`), CompleteBy: time.Now().Add(time.Minute),
		}, sdk.InvokeOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if !ok || reply.Outcome != sdk.OutcomeFailed || reply.Code != "made_up" {
			t.Errorf("%s: reply=%+v, want the definite failure made_up", action, reply)
		}
		if got := strings.Contains(log.String(), "does not declare"); got != warns {
			t.Errorf("%s: warned=%v, want %v", action, got, warns)
		}
	}
}
