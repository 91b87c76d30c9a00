package sdktest_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/sdktest"
)

// outputOf has the log of a test.
type outputOf struct{ bytes.Buffer }

func (o *outputOf) Output() io.Writer { return o }

// An action that logs and reports its progress works with a Call of a unit test.
func TestNewCall(t *testing.T) {
	action := func(_ context.Context, c *sdk.Call, _ sdk.None) (sdk.None, error) {
		c.Logger.Debug("half done", "items", 3)
		c.Heartbeat(0.5, "half done")
		return sdk.None{}, c.Checkpoint(1, nil)
	}
	var log outputOf
	if _, err := action(t.Context(), sdktest.NewCall(&log), sdk.None{}); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), `level=DEBUG msg="half done" items=3`) {
		t.Errorf("logged %q", log.String())
	}
	sdktest.NewCall(t).Logger.Info("a *testing.T can be used")
}
