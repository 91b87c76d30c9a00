package call

import (
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// childWait is how long after complete-by the end of a child run still counts. The parent waits
// that long, because only the end of the child run says whether the child run has an effect.
const childWait = 10 * 365 * 24 * time.Hour

// startChild starts a call for a child run. The call needs no slot, no secret and no lease, so
// startChild always sends it, unless StopAll was called. startChild never reports the call as not
// sent: an earlier engine may have sent the same call, and then a child run exists already.
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
	child := w.cfg.Children.Start(&spec, func(reply sdk.Reply, kept status.Kept, err error) {
		c.kept = kept
		c.answered(reply, err)
	})
	w.mu.Lock()
	c.child = child
	wishes := c.wishes
	c.wishes = nil
	w.mu.Unlock()
	for _, wish := range wishes {
		wish(child)
	}
}

// PauseChild asks the run of a group to pause or to resume.
func (w *Caller) PauseChild(run status.RunID, pause machine.PauseChild) {
	w.askChild(run, pause.Attempt, func(child ChildCall) { child.Pause(pause) })
}

// BoundChild changes the time until which a call waits for its child run.
func (w *Caller) BoundChild(run status.RunID, bound machine.BoundChild) {
	w.askChild(run, bound.Attempt, func(child ChildCall) { child.Bound(bound) })
}

// askChild asks something of the child run of a call, as soon as the call has started. It returns
// false if no such call is in flight.
func (w *Caller) askChild(run status.RunID, attempt machine.AttemptID, wish func(ChildCall)) bool {
	w.mu.Lock()
	c := w.kids[callID{run, attempt}]
	if c == nil {
		w.mu.Unlock()
		return false
	}
	child := c.child
	if child == nil {
		c.wishes = append(c.wishes, wish)
	}
	w.mu.Unlock()
	if child != nil {
		wish(child)
	}
	return true
}
