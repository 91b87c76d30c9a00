package session

import (
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/internal/pause"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store/sqlite"
)

// OpenJoining opens the state of a module for a command that records new runs. If another process
// has locked an embedded state, OpenJoining sets Session.Locked. Then the other process works on
// the recorded runs.
func OpenJoining(ctx context.Context, a *cli.App, dir, shown string) (*Session, error) {
	s, err := OpenWriter(ctx, a, dir, shown)
	var locked *sqlite.LockedError
	if !errors.As(err, &locked) {
		return s, err
	}
	t, err := Resolve(a, dir, shown)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(keyPatience); ; {
		s, err := OpenTo(ctx, a, t, ToSpeak)
		if err != nil {
			return nil, err
		}
		s.Locked = true
		ids, err := journal.KeysOf(ctx, s.Store)
		if err != nil {
			return nil, errors.Join(s.Wrap("ask which key seals", err), s.opened.Close())
		}
		if s.Sealer != nil || len(ids) > 0 {
			return s, nil
		}
		s.Close()
		if time.Now().After(end) {
			return nil, cli.Failed("State without a key", "Another process has locked %s and has not begun to work on it. Try again when it has.", t.Shown)
		}
		if err := pause.For(ctx, keyPause); err != nil {
			return nil, err
		}
	}
}

// OpenJoining waits at most keyPatience for the encryption key of an embedded state, with a pause
// of keyPause between two tries. It waits because an engine first makes the file of a new embedded
// state, and makes the key a moment later. If a command recorded a run between these two moments,
// the run's row would have no tag, and no engine would work on the run.
const (
	keyPatience = 10 * time.Second
	keyPause    = 20 * time.Millisecond
)
