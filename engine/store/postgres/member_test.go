package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// T7: the server's clock may be set back after an engine was declared dead, so
// that the lease lies in the future again. The engine stays dead: its runs have
// been taken over.
func TestDeadEngineStaysDead(t *testing.T) {
	dsn := migrated(t)
	b, db := newBench(t, dsn), raw(t, dsn)
	must(t, db, `UPDATE engine.member SET dead = true, lease_until = clock_timestamp() + interval '1 hour' WHERE engine = $1`, int64(b.id))
	if _, err := b.Tick(t.Context(), b.id, time.Hour, 1); !errors.Is(err, store.ErrLapsed) {
		t.Errorf("tick of a dead engine: err = %v, want ErrLapsed", err)
	}
	if live, err := store.Complete(b).Live(t.Context()); err != nil || len(live) != 0 {
		t.Errorf("live engines = %v, err = %v, want 0", live, err)
	}
}
