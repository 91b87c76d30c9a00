package apply

import (
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/follow"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store/sqlite"
	"github.com/saga-engine/engine/engine/story"
)

// errFree is the cause with which awaitFree cancels the context of followOther. It means that the
// other process has ended, so the state is no longer locked.
var errFree = errors.New("the state is free")

// followOther follows the run while another process has locked the embedded state and works on the
// run. The result `done` is false if that process has ended before the run has ended. If
// followOther cannot open the state, or the run does not exist yet, it returns the parameter
// `locked` as the error.
func followOther(ctx context.Context, w *work, locked *sqlite.LockedError) (end follow.Outcome, done bool, err error) {
	s, err := session.OpenBeside(ctx, w.a, w.r.Dir, w.r.Shown)
	if err != nil {
		return follow.Outcome{}, false, locked
	}
	defer s.Close()
	row, err := earlierRun(ctx, w, s)
	if err != nil {
		return follow.Outcome{}, false, err
	}
	if row == nil {
		return follow.Outcome{}, false, locked
	}
	if err := attach(ctx, w, s, *row); err != nil {
		return follow.Outcome{}, false, err
	}
	w.begin(*row, true)
	followCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go awaitFree(followCtx, w, cancel)
	ends := make(chan follow.Followed, 1)
	go func() {
		ends <- w.Following(followCtx, s, func(ctx context.Context, from int, fn func(int, []story.Fact), o journal.FollowOptions) (*machine.State, error) {
			o.Poll = 500 * time.Millisecond
			return journal.Reader{Store: s.Store, Sealer: s.Sealer, Defs: s.Defs}.Follow(ctx, row.Run, from, fn, o)
		})
	}()
	ticker := time.NewTicker(follow.TickEvery)
	defer ticker.Stop()
	timeout, stopTimer := w.timeout()
	defer stopTimer()
	for {
		select {
		case fn := <-w.Updates:
			fn()
		case f := <-ends:
			switch {
			case f.Err == nil:
				return f.Outcome(row.Name), true, nil
			case errors.Is(context.Cause(followCtx), errFree):
				return follow.Outcome{}, false, nil
			}
			return follow.Outcome{}, false, f.Err
		case <-w.stops: // this process has no call in flight, so it can leave
			end, err := w.last(ctx, s, *row)
			return end, true, err
		case <-timeout:
			w.timedOut()
			end, err := w.last(ctx, s, *row)
			return end, true, err
		case <-ticker.C:
			w.View.Tick(w.a.Now())
		}
	}
}

// awaitFree tries each second to lock the embedded state. After the first success it unlocks
// the state and calls the function `free`.
func awaitFree(ctx context.Context, w *work, free context.CancelCauseFunc) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s, err := session.OpenWriter(ctx, w.a, w.r.Dir, w.r.Shown)
			if err == nil {
				s.Close()
				free(errFree)
				return
			}
		}
	}
}
