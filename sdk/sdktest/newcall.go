package sdktest

import (
	"io"
	"log/slog"

	"github.com/saga-engine/engine/sdk"
)

// NewCall returns a Call for a unit test that calls the function of an action directly. It is the
// zero Call with a Logger that writes all levels to the log of the test. The parameter t is a
// *testing.T, *testing.B or *testing.F. The caller may set the other fields of the Call.
func NewCall(t interface{ Output() io.Writer }) *sdk.Call {
	return &sdk.Call{Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))}
}
