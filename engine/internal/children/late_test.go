package children

import (
	"context"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// After complete-by, the child run is asked to turn back, and the call waits for its end. The call for
// an undo ends.
func TestLateCalls(t *testing.T) {
	for purpose, ends := range map[sdk.Purpose]bool{sdk.PurposeDo: false, sdk.PurposeUndo: true} {
		r := newRoom(t)
		answer := make(chan error, 1)
		e := &call.Spec{Run: 7, Name: "top-7", Flow: r.parent, Invoke: machine.Invoke{
			Attempt: machine.AttemptID{Call: 1}, Purpose: purpose, Agent: r.parent.ChildAgent(), IdempotencyKey: "key", ForwardKey: "key", CompleteBy: time.Now().Add(-time.Hour),
		}}
		w := &waiter{waits: r.Waits, id: callID{e.Run, e.Invoke.Attempt}, Spec: *e, done: func(_ sdk.Reply, _ status.Kept, err error) { answer <- err }, busy: true}
		r.waits[w.id] = w
		if err := r.ask(context.Background()); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-answer:
			if !ends {
				t.Errorf("the call ends with %v, want it to wait for the child run", err)
			}
		default:
			if ends {
				t.Error("the call for the undo has not ended")
			}
		}
		if w.stop == ends {
			t.Errorf("the child run is asked to turn back: %t", w.stop)
		}
	}
}
