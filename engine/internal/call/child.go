package call

import (
	"slices"
	"time"

	"github.com/saga-engine/engine/sdk"
)

// childWait is how long after complete-by the end of a child run still counts. The parent waits that
// long, because only the end of the child run says whether the child run has an effect.
const childWait = 10 * 365 * 24 * time.Hour

// startChild starts a call for a child run. The call needs no slot, no secret and no lease, so
// startChild always sends it. It never reports the call as not sent: an earlier engine may have sent
// the same call, and then a child run exists already.
func (w *Caller) startChild(c *Call) {
	c.redact.secrets = slices.Concat(c.Sensitive, c.Invoke.Input.SensitiveStrings())
	c.phase, c.sent = callSent, true
	w.mu.Lock()
	if w.quit {
		w.mu.Unlock()
		return
	}
	w.kids[c.id()] = c
	w.mu.Unlock()
	spec := c.Spec
	if c.Invoke.Purpose == sdk.PurposeDo { // the end of the child run counts also after complete-by
		c.Invoke.CompleteBy = c.Invoke.CompleteBy.Add(childWait)
	}
	handle := w.cfg.Children.Start(&spec, c.answered)
	w.mu.Lock()
	c.handle = handle
	unwanted := c.unwanted
	w.mu.Unlock()
	if unwanted {
		handle.Stop()
	}
}
