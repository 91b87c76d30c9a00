package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/internal/pgtest"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// T6: the volume of a real server runs full, first under its tables, then under its
// log, which ends the server: the engine says so, loses nothing that was
// confirmed, and what it was about to commit lands once, when there is room and
// a server again.
func TestVolumeFull(t *testing.T) {
	c, err := pgtest.StartOnVolume(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Free(), c.Stop()); err != nil {
			t.Error(err)
		}
	})
	dsn, err := c.Database(t.Context(), "full")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	log := newLines()
	s, err := Open(t.Context(), dsn, Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	b := benchOn(t, s)
	var (
		run  status.RunID
		data = make([]byte, 2000)
		kept []status.RunID
	)
	batch := func() []store.Transition {
		var out []store.Transition
		for range 20 {
			run++
			n := b.create(run)
			n.Data, n.Names = data, &naming.Names{Name: fmt.Sprint("n", run), Workflow: "w", Key: fmt.Sprint("k", run)}
			out = append(out, n)
		}
		return out
	}
	// commit lands one batch after the other until ctx ends, and then the one at
	// hand.
	commit := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		go func() {
			for {
				items := batch()
				for landed := false; !landed; { // as the engine does: again, with the very same rows
					out, err := b.w.Commit(t.Context(), items)
					landed = err == nil
					for i, o := range out {
						if mine := errors.Is(o.Err, store.ErrExists) || o.Landed || o.Submitted.Exists && o.Submitted.Run == items[i].Run; !mine {
							done <- fmt.Errorf("run %d: %+v", items[i].Run, o)
							return
						}
						kept = append(kept, items[i].Run)
					}
					if t.Context().Err() != nil {
						done <- fmt.Errorf("the test has ended: %w", err)
						return
					}
				}
				if ctx.Err() != nil {
					done <- nil
					return
				}
			}
		}()
		return done
	}
	check := func() {
		t.Helper()
		db := raw(t, dsn)
		for _, table := range []string{"run", "journal", "run_name", "context"} {
			if n := count(t, db, "SELECT count(*) FROM engine."+table); n != len(kept) {
				t.Errorf("%d rows in %s, want one for each of the %d runs that landed", n, table, len(kept))
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	if err := c.Fill(); err != nil {
		t.Fatal(err)
	}
	done := commit(ctx)
	log.await(t, "the database's disk is full")
	cancel()
	if err := c.Free(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Tick(t.Context(), b.id, time.Hour, 10); err != nil {
		t.Errorf("tick: %v", err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	check()

	// The log needs a new file, and there is no room for one.
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	if err := c.Fill(); err != nil {
		t.Fatal(err)
	}
	db := raw(t, dsn)
	for range 100 {
		if _, err = db.ExecContext(t.Context(), `SELECT pg_switch_wal()`); err != nil {
			break
		}
		if _, err = db.ExecContext(t.Context(), `INSERT INTO engine.pass VALUES ('full', now()) ON CONFLICT (name) DO UPDATE SET not_before = now()`); err != nil {
			break
		}
	}
	if err == nil {
		t.Fatal("the server's log grows on a full volume")
	}
	done = commit(ctx)
	select {
	case <-c.Ended():
	case <-time.After(time.Minute):
		t.Fatal("the server goes on without its log")
	}
	cancel()
	if err := errors.Join(c.Free(), c.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	check()
}
