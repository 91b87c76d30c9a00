package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/internal/pgtest"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storetest"
)

// replicated starts a primary and a standby, and opens a store that follows
// whichever takes writes.
func replicated(t *testing.T, sync bool) (primary, standby *pgtest.Cluster, b *bench) {
	t.Helper()
	primary, err := pgtest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, primary) })
	dsn, err := primary.Database(t.Context(), "runs")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	standby, err = primary.Standby(t.Context(), sync)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, standby) })
	both, err := pgtest.FailoverDSN("runs", primary, standby)
	if err != nil {
		t.Fatal(err)
	}
	return primary, standby, newBench(t, both)
}

func stop(t *testing.T, c *pgtest.Cluster) {
	if err := c.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func (b *bench) mustTick(t *testing.T) {
	t.Helper()
	if _, err := b.Tick(t.Context(), b.id, time.Hour, 1); err != nil {
		t.Fatalf("tick: %v", err)
	}
}

// T5: a synchronous standby that is promoted has all that was confirmed: the
// commit under way lands once, and the engine begins anew. The former primary,
// alive and writable, is never written to.
func TestSynchronousFailover(t *testing.T) {
	primary, standby, b := replicated(t, true)
	for run := status.RunID(1); run <= 20; run++ {
		if err := b.commit(t.Context(), b.create(run)); err != nil {
			t.Fatal(err)
		}
	}
	b.mustTick(t)
	alone, err := pgtest.FailoverDSN("runs", standby)
	if err != nil {
		t.Fatal(err)
	}
	reader := open(t, strings.ReplaceAll(alone, "target_session_attrs=read-write", ""))
	if _, err := reader.Post(t.Context(), store.Message{Run: 1, Kind: store.MessageVerb}); err == nil || !strings.Contains(err.Error(), "takes no writes") {
		t.Errorf("post to a standby: err = %v, want it to say that it takes no writes", err)
	}
	if err := errors.Join(primary.StopImmediate(), standby.Promote(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := b.commit(t.Context(), store.Transition{Run: 1, Seq: 1, At: at, Data: []byte("1")}); err != nil {
		t.Errorf("commit on the new primary: %v", err)
	}
	if _, err := b.Tick(t.Context(), b.id, time.Hour, 1); !errors.Is(err, store.ErrLapsed) {
		t.Errorf("tick: err = %v, want ErrLapsed, so that everything is read anew", err)
	}
	if err := b.commit(t.Context(), store.Transition{Run: 1, Seq: 2, At: at, Data: []byte("2")}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("commit of the former membership: err = %v, want ErrFenced", err)
	}
	b.join(t)
	b.mustTick(t)
	if loaded, err := b.Load(t.Context(), 1, 20); err != nil || len(loaded) != 2 || len(loaded[0].Rows) != 2 || len(loaded[1].Rows) != 1 {
		t.Errorf("loaded = %+v, err = %v, want all that was confirmed", loaded, err)
	}

	// The former primary comes back, and it is all that answers.
	if err := errors.Join(standby.StopImmediate(), primary.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err = b.commit(ctx, store.Transition{Run: 2, Seq: 1, At: at, Data: []byte("1")})
	var wrong *WrongServerError
	if !errors.As(err, &wrong) || wrong.Seen != 2 || wrong.Have != 1 {
		t.Errorf("commit on the former primary: err = %v, want *WrongServerError", err)
	}
	for name, try := range map[string]func() error{
		"tick": func() error { _, err := b.Tick(t.Context(), b.id, time.Hour, 1); return err },
		"post": func() error {
			_, err := b.Post(t.Context(), store.Message{Run: 1, Kind: store.MessageVerb})
			return err
		},
	} {
		if err := try(); !errors.As(err, &wrong) {
			t.Errorf("%s on the former primary: err = %v, want *WrongServerError", name, err)
		}
	}
}

// T5: an asynchronous standby that lagged is promoted: what was confirmed and is
// gone is noticed, whether or not a tick came in between, and nothing more is
// written.
func TestAsynchronousFailover(t *testing.T) {
	for name, tick := range map[string]bool{"by the log's position": true, "by a row that is gone": false} {
		t.Run(name, func(t *testing.T) {
			primary, standby, b := replicated(t, false)
			if err := b.commit(t.Context(), b.create(1)); err != nil {
				t.Fatal(err)
			}
			b.mustTick(t)
			if err := standby.Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := b.commit(t.Context(), store.Transition{Run: 1, Seq: 1, At: at, Data: []byte("1")}); err != nil {
				t.Fatal(err)
			}
			if tick {
				b.mustTick(t)
			}
			if err := errors.Join(primary.StopImmediate(), standby.Promote(t.Context())); err != nil {
				t.Fatal(err)
			}
			var lost *store.LossError
			err := b.commit(t.Context(), store.Transition{Run: 1, Seq: 2, At: at, Data: []byte("2")})
			if !errors.As(err, &lost) || lost.From != 1 || lost.To != 2 || lost.Known == "" || lost.Switch == "" {
				t.Errorf("commit: err = %v, want *LossError", err)
			}
			for name, try := range map[string]func() error{
				"tick":   func() error { _, err := b.Tick(t.Context(), b.id, time.Hour, 1); return err },
				"join":   func() error { _, err := b.Join(t.Context(), "x", time.Hour, 1); return err },
				"submit": func() error { _, err := storetest.Submit(t.Context(), b.w, b.create(9), naming.Names{}); return err },
				"post": func() error {
					_, err := b.Post(t.Context(), store.Message{Run: 1, Kind: store.MessageVerb})
					return err
				},
			} {
				if err := try(); !errors.As(err, &lost) {
					t.Errorf("%s: err = %v, want *LossError", name, err)
				}
			}
		})
	}
}

// T4: a server that crashes and starts again loses nothing that was confirmed,
// and work goes on by itself.
func TestCrashedServer(t *testing.T) {
	c, err := pgtest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, c) })
	if _, _, err := Migrate(t.Context(), c.DSN); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, c.DSN)
	if err := b.commit(t.Context(), b.create(1)); err != nil {
		t.Fatal(err)
	}
	for seq := int32(1); seq <= 3; seq++ {
		b.mustTick(t)
		if err := c.StopImmediate(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- c.Start(t.Context()) }()
		for {
			err := b.commit(t.Context(), store.Transition{Run: 1, Seq: seq, At: at, Data: []byte("1")})
			if err == nil {
				break
			}
			if errors.Is(err, store.ErrStale) || t.Context().Err() != nil {
				t.Fatalf("commit: %v", err)
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if _, rows, err := store.LoadRun(t.Context(), b, 1); err != nil || len(rows) != 4 {
		t.Errorf("%d rows, err = %v, want 4", len(rows), err)
	}
}
