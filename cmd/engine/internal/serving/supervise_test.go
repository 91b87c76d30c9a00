package serving

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
)

// patience is how long tests wait for something that must happen.
const patience = 60 * time.Second

// lossyStore is a database that cannot be joined: first it is away, then it has
// lost what was recorded.
type lossyStore struct {
	store.Store
	joins int
	stop  context.CancelFunc // when it goes on after that
}

func (s *lossyStore) Join(ctx context.Context, address string, lease time.Duration, writers int) (store.EngineID, error) {
	switch s.joins++; s.joins {
	case 1:
		return 0, errors.New("the database is away")
	case 3:
		s.stop()
	}
	return 0, &store.LossError{Store: "postgres", From: 1, To: 2, Known: "0/5", Switch: "0/4"}
}

// supervise --every goes on after a pass that failed, and stops where the database
// has lost what was recorded: two histories are not worked on.
func TestSuperviseEveryStopsOnLoss(t *testing.T) {
	st := &lossyStore{Store: memory.New(memory.Options{})}
	a := &cli.App{Stdout: io.Discard, Stderr: io.Discard, Lookup: os.LookupEnv, Environ: os.Environ, Now: time.Now}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	st.stop = cancel
	err := superviseEvery(ctx, a, &session.Session{Store: store.Complete(st)}, time.Millisecond)
	var loss *store.LossError
	if !errors.As(err, &loss) || ctx.Err() != nil {
		t.Errorf("error %v after %d joins, want a loss that ends the command", err, st.joins)
	}
}
