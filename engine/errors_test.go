package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store/naming"
)

// missing is an error about an agent that knows a remedy.
type missing struct{}

func (missing) Error() string { return "agent is not installed" }
func (missing) Hint() string  { return "install the agent" }

// People know a run by its public name: messages and logs say no other. That
// another engine may have the agent is said only where the agent is missing.
func TestMessagesNameTheRun(t *testing.T) {
	if got := (&journal.RunError{Run: 36, Err: errors.New("oh")}).Error(); got != "run r-10 is quarantined: oh" {
		t.Errorf("Error() = %q, want the derived name", got)
	}
	for name, tt := range map[string]struct {
		cause error
		want  string
	}{
		"agent":  {missing{}, "(install the agent; an engine that has this agent can go on with the run)"},
		"secret": {errors.New("secret env:NOPE is not set"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, oneStep)
				w.shop.on("reserve", func(ctx context.Context, n int) error { <-ctx.Done(); return ctx.Err() })
				first := w.start()
				s, err := first.Submit(t.Context(), engine.Submission{Definition: w.def, Workflow: "one", Vars: w.vars("one", nil), Name: "order-7"})
				if err != nil {
					t.Fatal(err)
				}
				first.kill(t)
				time.Sleep(w.opts.Lease)
				var log strings.Builder
				w.cfg = func(c *engine.Config) {
					c.Invoker = checked{w.inv, tt.cause}
					c.Logger = slog.New(slog.NewTextHandler(&log, nil))
				}
				second := w.start()
				err = second.Adopt(t.Context(), s.Run)
				if err == nil || !strings.Contains(err.Error(), "run order-7 is quarantined") {
					t.Errorf("Adopt = %v, want the run's public name", err)
				}
				if tt.want == "" && strings.Contains(err.Error(), "an engine that has") || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Adopt = %v, want hint %q", err, tt.want)
				}
				if n, err := second.TakeOver(t.Context()); n != 0 || err != nil {
					t.Errorf("TakeOver = %d, %v, want 0", n, err)
				}
				second.drain(t)
				if !strings.Contains(log.String(), "run="+naming.RunName(s.Run)) && !strings.Contains(log.String(), "run=order-7") {
					t.Errorf("log does not name the run: %s", &log)
				}
			})
		})
	}
}
