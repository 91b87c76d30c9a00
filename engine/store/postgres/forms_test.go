package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

func (b *bench) writer(t *testing.T) *Writer {
	t.Helper()
	w, ok := b.w.(*Writer)
	if !ok {
		t.Fatalf("the writer is a %T", b.w)
	}
	return w
}

// forms are the ways in which a submission reaches the server, each made alone.
// They return whether it landed, the run that was in its way, and an error.
func (b *bench) forms(t *testing.T) map[string]func(store.Transition) (landed bool, met status.RunID, err error) {
	t.Helper()
	w := b.writer(t)
	prepared := func(tr store.Transition) *commit {
		c := &commit{w: w, token: w.token(), items: []store.Transition{tr}, out: make([]store.Outcome, 1)}
		w.batch.fill(c.items)
		return c
	}
	send := func(tr store.Transition, ifNone bool) (bool, status.RunID, error) {
		_, landed, err := prepared(tr).send(context.WithoutCancel(t.Context()), ifNone)
		return err == nil && (landed == nil || landed[tr.Run]), 0, err
	}
	return map[string]func(store.Transition) (bool, status.RunID, error){
		"a batch": func(tr store.Transition) (bool, status.RunID, error) { return send(tr, false) },
		"a batch that is sent again": func(tr store.Transition) (bool, status.RunID, error) {
			return send(tr, true)
		},
		"a transaction of its own": func(tr store.Transition) (bool, status.RunID, error) {
			s := submission{w: w, t: tr, name: tr.Names.Public(tr.Run), token: w.token()}
			var sub store.Submitted
			err := s.once(context.WithoutCancel(t.Context()), &sub)
			if err != nil || sub.Exists {
				return false, sub.Run, err
			}
			return true, 0, nil
		},
	}
}

// S29: a commit that is sent again waits for an earlier sending that its old
// server process still works on, in every form: only then is final what it finds.
func TestEveryFormWaitsForTheFence(t *testing.T) {
	dsn := migrated(t)
	db := raw(t, dsn)
	b := newBench(t, dsn)
	run := status.RunID(0)
	forms := b.forms(t)
	forms["a lone transition"] = func(tr store.Transition) (bool, status.RunID, error) {
		tr.Names = nil
		err := b.commit(context.WithoutCancel(t.Context()), tr)
		return err == nil, 0, err
	}
	for name, form := range forms {
		run++
		tr := b.create(run)
		tr.Names = &naming.Names{Workflow: "w", Key: name}
		tx, err := db.BeginTx(context.WithoutCancel(t.Context()), nil) // the old server process
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(`SELECT 1 FROM engine.fence WHERE engine = $1 FOR NO KEY UPDATE`, int64(b.id)); err != nil {
			t.Fatal(err)
		}
		type end struct {
			landed bool
			err    error
		}
		done := make(chan end, 1)
		go func() {
			landed, _, err := form(tr)
			done <- end{landed, err}
		}()
		var early *end
		for waiting := 0; waiting == 0 && early == nil; {
			if err := db.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting); err != nil {
				t.Fatal(err)
			}
			select {
			case e := <-done:
				early = &e
			case <-time.After(2 * time.Millisecond):
			}
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if early != nil {
			t.Errorf("%s: %+v while an earlier sending holds the fence", name, *early)
			continue
		}
		if e := <-done; !e.landed || e.err != nil {
			t.Errorf("%s: %+v after the fence was free, want it landed", name, e)
		}
	}
}

// S48: a server whose log ends before what it has confirmed, on the same timeline,
// is a backup that was restored.
func TestRestoredBackup(t *testing.T) {
	s := open(t, migrated(t))
	if _, err := store.Complete(s).Live(t.Context()); err != nil {
		t.Fatal(err)
	}
	line, _ := s.lineage.reached()
	if !s.lineage.ticked(line, 1<<60) {
		t.Fatal("the server is not known")
	}
	if err := s.identifyAgain(t.Context()); err != nil {
		t.Fatal(err)
	}
	var lost *store.LossError
	if _, err := s.Join(t.Context(), "x", time.Hour, 1); !errors.As(err, &lost) || lost.From != lost.To {
		t.Errorf("join: err = %v, want *LossError on one timeline", err)
	}
}
