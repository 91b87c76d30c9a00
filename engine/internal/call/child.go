package call

import "slices"

// startChild starts a call for a child run. Nothing prevents the call: it needs no slot, no secret
// and no lease. If it was sent before, it must find its child run again. So the run must never
// learn that the call was not sent.
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
