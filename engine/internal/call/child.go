package call

import "slices"

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
	handle := w.cfg.Children.Start(&c.Spec, c.answered)
	w.mu.Lock()
	c.handle = handle
	unwanted := c.unwanted
	w.mu.Unlock()
	if unwanted {
		handle.Stop()
	}
}
