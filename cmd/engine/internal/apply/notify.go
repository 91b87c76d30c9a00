package apply

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// notifyPatience is how long apply waits for the notifications of its run. If an agent is down,
// another engine, or the next apply, calls it again.
const notifyPatience = 10 * time.Second

// notified waits until the notifications of the run have ended. It stops to wait after
// notifyPatience, or when the user stops the command. Then a note says what is left.
func notified(ctx context.Context, w *work, e *engineRun, run store.RunRow) {
	ctx, cancel := context.WithTimeout(ctx, notifyPatience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- e.node.AwaitNotifications(ctx, run) }()
	for {
		select {
		case fn := <-w.Updates:
			fn()
		case c := <-w.circuits:
			w.View.Circuit(c)
		case <-w.stops:
			cancel()
			interrupt(w, e)
		case err := <-done:
			if err != nil {
				w.View.Note("A notification of the run has not ended. The next engine serve or engine apply goes on with it; engine show lists it.")
			}
			return
		}
	}
}
