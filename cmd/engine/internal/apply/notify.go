package apply

import (
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// notifyPatience is how long apply waits for the notifications of its run. If a notification has
// not ended then, another engine or the next apply continues with it.
const notifyPatience = 10 * time.Second

// notified waits until the notifications of the run have ended, and until the replies of the run to
// a webhook or an agent are delivered. If the parameter `child` is a child run that needs a human,
// notified waits for the notifications of that run, too. It stops waiting after notifyPatience, or
// when the user stops the command. Then it prints a note that a notification or a reply is not
// delivered yet.
func notified(ctx context.Context, w *work, e *engineRun, run, child store.RunRow) {
	ctx, cancel := context.WithTimeout(ctx, notifyPatience)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := errors.Join(e.node.AwaitNotifications(ctx, run), e.node.AwaitReplies(ctx, run))
		if child.Run != 0 {
			err = errors.Join(err, e.node.AwaitNotifications(ctx, child))
		}
		done <- err
	}()
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
				w.View.Note("A notification or a reply of the run is not delivered yet. The next engine serve or engine apply continues with it; engine show lists it.")
			}
			return
		}
	}
}
