package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
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
func (b *bench) forms(t *testing.T) map[string]func(engine.Transition) (landed bool, met machine.RunID, err error) {
	t.Helper()
	w := b.writer(t)
	prepared := func(tr engine.Transition) *commit {
		c := &commit{w: w, token: w.token(), items: []engine.Transition{tr}, out: make([]engine.Outcome, 1)}
		w.batch.fill(c.items)
		return c
	}
	send := func(tr engine.Transition, ifNone bool) (bool, machine.RunID, error) {
		_, landed, err := prepared(tr).send(context.WithoutCancel(t.Context()), ifNone)
		return err == nil && (landed == nil || landed[tr.Run]), 0, err
	}
	return map[string]func(engine.Transition) (bool, machine.RunID, error){
		"a batch": func(tr engine.Transition) (bool, machine.RunID, error) { return send(tr, false) },
		"a batch that is sent again": func(tr engine.Transition) (bool, machine.RunID, error) {
			return send(tr, true)
		},
		"a transaction of its own": func(tr engine.Transition) (bool, machine.RunID, error) {
			s := submission{w: w, t: tr, name: tr.Names.Public(tr.Run), token: w.token()}
			var sub engine.Submitted
			err := s.once(context.WithoutCancel(t.Context()), &sub)
			if err != nil || sub.Exists {
				return false, sub.Run, err
			}
			return true, 0, nil
		},
	}
}

// I11: a run that succeeded keeps its key in every form of the statement, and one
// that was cancelled frees it in every form.
func TestEveryFormKnowsWhoHoldsAKey(t *testing.T) {
	b := newBench(t, migrated(t))
	run := machine.RunID(0)
	submit := func(key string) engine.Transition {
		run++
		tr := b.create(run)
		tr.Names = &engine.Names{Workflow: "w", Key: key}
		return tr
	}
	ended := func(key string, state machine.RunState) machine.RunID {
		t.Helper()
		tr := submit(key)
		for _, tr := range []engine.Transition{tr, {Run: tr.Run, Seq: 1, At: at, State: state, NextCheck: engine.Never, Data: []byte("1")}} {
			if err := b.commit(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
		}
		return tr.Run
	}
	holder := ended("held", machine.RunSucceeded)
	for name, form := range b.forms(t) {
		landed, met, err := form(submit("held"))
		if landed || met != 0 && met != holder {
			t.Errorf("%s: landed=%t, met run %d, err = %v; run %d has succeeded and holds the key", name, landed, met, err, holder)
		}
		switch v := judge(err); {
		case name == "a batch" && v != taken:
			t.Errorf("%s: err = %v, want that the key is taken", name, err)
		case name != "a batch" && err != nil:
			t.Errorf("%s: err = %v, want none: the conflict can be seen", name, err)
		}
		ended(name, machine.RunCancelled)
		if landed, _, err := form(submit(name)); !landed || err != nil {
			t.Errorf("%s: landed=%t, err = %v; the run that had the key was cancelled", name, landed, err)
		}
	}
	c := &commit{w: b.writer(t), items: []engine.Transition{submit("held")}, out: make([]engine.Outcome, 1), doubt: []int{0}}
	c.meet(t.Context())
	if s := c.out[0].Submitted; !s.Exists || s.Run != holder || len(c.doubt) != 0 {
		t.Errorf("a question about the key: %+v, want run %d", s, holder)
	}
}

// S29: a commit that is sent again waits for an earlier sending that its old
// server process still works on, in every form: only then is final what it finds.
func TestEveryFormWaitsForTheFence(t *testing.T) {
	dsn := migrated(t)
	db := raw(t, dsn)
	b := newBench(t, dsn)
	run := machine.RunID(0)
	forms := b.forms(t)
	forms["a lone transition"] = func(tr engine.Transition) (bool, machine.RunID, error) {
		tr.Names = nil
		err := b.commit(context.WithoutCancel(t.Context()), tr)
		return err == nil, 0, err
	}
	for name, form := range forms {
		run++
		tr := b.create(run)
		tr.Names = &engine.Names{Workflow: "w", Key: name}
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

// S48: the lineage of a server: what has been replaced is told from what has lost
// something, whoever notices it.
func TestLineage(t *testing.T) {
	w := &Writer{}
	row := mark{run: 7, seq: 3, token: 5}
	known := func(there bool) func(mark) (bool, error) { return func(mark) (bool, error) { return there, nil } }
	fresh := func() *lineage {
		l := newLineage()
		if _, err := l.see(identity{system: 1, line: 2, at: 100}, known(true)); err != nil {
			t.Fatal(err)
		}
		if !l.confirm(w, 2, row) || !l.ticked(2, 100) {
			t.Fatal("the server that is known does not count")
		}
		return l
	}
	for name, test := range map[string]struct {
		id    identity
		there bool
		wrong bool // it must not be written to
		lost  bool
	}{
		"the same server":                     {id: identity{system: 1, line: 2, at: 150}, there: true},
		"a backup restored, on its timeline":  {id: identity{system: 1, line: 2, at: 50, back: true}, there: true, lost: true},
		"the former primary":                  {id: identity{system: 1, line: 1, at: 500}, there: true, wrong: true},
		"another cluster":                     {id: identity{system: 9, line: 2, at: 500}, there: true, wrong: true},
		"a standby":                           {id: identity{system: 1, standby: true}},
		"promoted with everything":            {id: identity{system: 1, line: 3, at: 150, replayed: 100}, there: true},
		"promoted behind what was confirmed":  {id: identity{system: 1, line: 3, at: 150, replayed: 99}, there: true, lost: true},
		"promoted without a row, by position": {id: identity{system: 1, line: 3, at: 150, replayed: 100}, there: false, lost: true},
		"promoted without a row":              {id: identity{system: 1, line: 3, at: 150}, there: false, lost: true},
	} {
		l := fresh()
		_, err := l.see(test.id, known(test.there))
		var wrong *engine.WrongServerError
		if errors.As(err, &wrong) != test.wrong || err != nil && !test.wrong {
			t.Errorf("%s: err = %v, want *WrongServerError: %t", name, err, test.wrong)
		}
		if lost := l.err() != nil; lost != test.lost {
			t.Errorf("%s: loss = %v, want one: %t", name, l.err(), test.lost)
		}
	}

	l := fresh()
	l.join(4)
	if l.moved(4) {
		t.Error("the server counts as replaced since the engine joined")
	}
	if _, err := l.see(identity{system: 1, line: 3, at: 150, replayed: 100}, known(true)); err != nil {
		t.Fatal(err)
	}
	if !l.moved(4) {
		t.Error("an engine that joined on the former primary goes on as before")
	}
	if l.confirm(w, 2, mark{run: 8, seq: 1, token: 6}) || len(l.marks) != 0 {
		t.Errorf("what the former primary confirmed counts: %v", l.marks)
	}
	if l.ticked(2, 900) || l.known != 0 {
		t.Error("what a tick on the former primary said counts")
	}
	if !l.stale(2) || l.stale(3) {
		t.Error("connections to the former primary are used, or those to the new one are not")
	}
}

// S48: a server whose log ends before what it has confirmed, on the same timeline,
// is a backup that was restored.
func TestRestoredBackup(t *testing.T) {
	s := open(t, migrated(t))
	if _, err := s.LiveEngines(t.Context()); err != nil {
		t.Fatal(err)
	}
	line, _ := s.lineage.reached()
	if !s.lineage.ticked(line, 1<<60) {
		t.Fatal("the server is not known")
	}
	if err := s.lookAgain(t.Context()); err != nil {
		t.Fatal(err)
	}
	var lost *engine.LossError
	if _, err := s.Join(t.Context(), "x", time.Hour, 1); !errors.As(err, &lost) || lost.From != lost.To {
		t.Errorf("join: err = %v, want *LossError on one timeline", err)
	}
}
