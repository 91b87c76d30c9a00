package storetest

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

var commitRules = []rule{
	{name: "commit/what landed loads back", why: "the journal is the truth: an engine that takes over has nothing else (S22)", run: func(w *world) {
		a := w.join(w.Store, 1)
		c := w.create(a)
		w.land(a.writers[0], c)
		n := next(c.Run, 1)
		n.Data = bytes.Repeat([]byte{0, 255, 'x'}, 5000)
		w.land(a.writers[0], n)
		head, rows := w.load(c.Run)
		if want := []store.Row{{Seq: 0, At: c.At, Data: c.Data}, {Seq: 1, At: n.At, Data: n.Data}}; !reflect.DeepEqual(rows, want) {
			w.Errorf("rows = %.200v, want %.200v", rows, want)
		}
		want := store.Head{Run: c.Run, Name: head.Name, Workflow: w.flow, State: status.RunRunning, Owner: a.id, NextCheck: c.NextCheck, CreatedAt: c.At}
		if head != want {
			w.Errorf("head = %+v, want %+v", head, want)
		}
	}},
	{name: "commit/a stale run does not harm its neighbours", why: "batches mix runs: one that another engine moved on must not cost the others a commit", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 3)
		moved := next(ids[1], 1)
		moved.State = status.RunPaused
		w.land(a.writers[0], moved)
		late := end(ids[1], 1, status.RunSucceeded)
		out := w.commit(a.writers[0], next(ids[0], 1), late, next(ids[2], 1))
		if !out[0].Landed || !out[2].Landed || out[1].Landed || !errors.Is(out[1].Err, store.ErrStale) {
			w.Errorf("outcomes = %+v, want landed, ErrStale, landed", out)
		}
		if h, _ := w.load(ids[1]); h.State != status.RunPaused || !h.FinishedAt.IsZero() {
			w.Errorf("the stale transition changed the run: %+v", h)
		}
		w.wantRows(ids[1], 2)
	}},
	{name: "commit/a create that collides is refused", why: "a run id under a foreign token is another run: make a new id, never take it for a success", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		c := w.create(a)
		w.land(a.writers[0], c)
		again, other := c, w.create(b)
		again.Owner, again.Data = &b.id, []byte("foreign")
		out := w.commit(b.writers[0], again, other)
		if out[0].Landed || !errors.Is(out[0].Err, store.ErrExists) || !out[1].Landed {
			w.Errorf("outcomes = %+v, want ErrExists, landed", out)
		}
		if h, rows := w.load(c.Run); h.Owner != a.id || string(rows[0].Data) != string(c.Data) {
			w.Errorf("the collision changed the run: %+v", h)
		}
	}},
	{name: "commit/creates and changes share a batch", why: "one statement serves both shapes", run: func(w *world) {
		a := w.join(w.Store, 1)
		id := w.started(a, 1)[0]
		w.land(a.writers[0], end(id, 1, status.RunSucceeded), w.create(a))
	}},
	{name: "commit/a run may be created in its final state", why: "a run whose first decision fails it is one record", run: func(w *world) {
		a := w.join(w.Store, 1)
		c := w.create(a)
		c.State, c.NextCheck = status.RunFailed, store.Never
		w.land(a.writers[0], c)
		if h, _ := w.load(c.Run); !h.FinishedAt.Equal(c.At) {
			w.Errorf("finished at %v, want %v", h.FinishedAt, c.At)
		}
	}},
	{name: "commit/batches that break the rules are refused whole", why: "two rows of one run in one statement corrupt the history when the first is stale; unsorted arrays deadlock", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		for name, batch := range map[string][]store.Transition{
			"one run twice": {next(ids[0], 1), next(ids[0], 2)},
			"unsorted":      {next(ids[1], 1), next(ids[0], 1)},
		} {
			if _, err := a.writers[0].Commit(w.ctx, batch); err == nil {
				w.Errorf("%s: committed", name)
			}
		}
		w.wantRows(ids[0], 1)
		w.wantRows(ids[1], 1)
	}},
	{name: "commit/an empty batch is nothing", why: "a committer may drain to nothing", run: func(w *world) {
		a := w.join(w.Store, 1)
		if out, err := a.writers[0].Commit(w.ctx, nil); err != nil || len(out) != 0 {
			w.Errorf("outcomes = %v, err = %v", out, err)
		}
	}},
	{name: "commit/a thousand runs in one batch", why: "a batch is what queued during the previous commit, up to 1,000 rows", run: func(w *world) {
		a := w.join(w.Store, 1)
		var batch []store.Transition
		for _, id := range w.started(a, 1000) {
			batch = append(batch, next(id, 1))
		}
		w.land(a.writers[0], batch...)
		w.wantRows(batch[999].Run, 2)
	}},
	{name: "commit/an impossible row is refused without harming its neighbours", why: "constraints forbid illegal rows (S10, S53); one bad run must not stop the engine", run: func(w *world) {
		a := w.join(w.Store, 1)
		bad := map[string]func(*store.Transition){
			"running without complete-by": func(t *store.Transition) {
				t.Steps = []store.StepRow{{Node: 0, State: status.StepSucceeded}, {Node: 1, State: status.StepRunning, Attempt: 1}}
			},
			"no such step state": func(t *store.Transition) { t.Steps = []store.StepRow{{State: 99}} },
			"no such run state":  func(t *store.Transition) { t.State = 9 },
			"negative owner":     func(t *store.Transition) { t.Owner = ptr(store.EngineID(-1)) },
			"no data":            func(t *store.Transition) { t.Data = nil },
			"oversized":          func(t *store.Transition) { t.Data = make([]byte, store.MaxRowBytes+1) },
			"back to the queue":  func(t *store.Transition) { t.State = status.RunQueued },
		}
		for name, spoil := range bad {
			ids := w.started(a, 3)
			t := next(ids[1], 1)
			spoil(&t)
			out := w.commit(a.writers[0], next(ids[0], 1), t, next(ids[2], 1))
			if !out[0].Landed || !out[2].Landed {
				w.Errorf("%s: neighbours = %+v", name, out)
			}
			if out[1].Landed || out[1].Err == nil || errors.Is(out[1].Err, store.ErrStale) {
				w.Errorf("%s: outcome = %+v, want a refusal", name, out[1])
			}
			w.wantRows(ids[1], 1)
		}
	}},
	{name: "commit/final states absorb", why: "a run that ended has been reported and paid for; only a succeeded child is undone by its parent (S53)", run: func(w *world) {
		a := w.join(w.Store, 1)
		for _, final := range []status.RunState{status.RunSucceeded, status.RunFailed, status.RunCompensated, status.RunCancelled} {
			ids := w.started(a, 2)
			w.land(a.writers[0], end(ids[0], 1, final))
			again := next(ids[0], 2)
			again.State = status.RunRunning
			out := w.commit(a.writers[0], again, next(ids[1], 1))
			if out[0].Landed || out[0].Err == nil || !out[1].Landed {
				w.Errorf("%v to running: outcomes = %+v, want refused, landed", final, out)
			}
			if h, _ := w.load(ids[0]); h.State != final || h.FinishedAt.IsZero() {
				w.Errorf("%v became %+v", final, h)
			}
		}
		id := w.started(a, 1)[0]
		w.land(a.writers[0], end(id, 1, status.RunSucceeded))
		undo := next(id, 2)
		undo.State, undo.NextCheck = status.RunCompensating, base
		w.land(a.writers[0], undo)
		if h, _ := w.load(id); h.State != status.RunCompensating || !h.FinishedAt.IsZero() {
			w.Errorf("undone child = %+v, want compensating and not finished", h)
		}
		for _, to := range []status.RunState{status.RunPaused, status.RunFailed, status.RunCompensated, status.RunCompensationFailed, status.RunCancelled} {
			id := w.started(a, 1)[0]
			w.land(a.writers[0], end(id, 1, status.RunSucceeded))
			out := w.commit(a.writers[0], end(id, 2, to))
			if want := to != status.RunCancelled; out[0].Landed != want {
				w.Errorf("succeeded to %v: outcome = %+v, want landed = %t", to, out[0], want)
			}
			want := to
			if to == status.RunCancelled {
				want = status.RunSucceeded
			}
			if h, _ := w.load(id); h.State != want || h.FinishedAt.IsZero() == want.Final() {
				w.Errorf("succeeded to %v: %+v", to, h)
			}
		}
	}},
	{name: "commit/text that cannot be stored is mended", need: hasViews, why: "what an agent says must never keep a record from landing: one NUL would stop the run for ever", run: func(w *world) {
		a := w.join(w.Store, 1)
		id := w.started(a, 1)[0]
		t := next(id, 1)
		t.Alerts = []store.Alert{{Kind: "parked", Step: "s\xff", Code: "c\x00", Message: "m\x00\xfe"}}
		t.NewNodes = []store.NodeName{{Node: 3, Step: 2, Name: "ship[\"\x00\"]"}}
		w.land(a.writers[0], t)
		alerts, err := w.Other.Alerts(w.ctx, id, 10)
		if err != nil || len(alerts) != 1 || alerts[0].Message != "m\uFFFD\uFFFD" || alerts[0].Code != "c\uFFFD" {
			w.Errorf("alerts = %+v, err = %v", alerts, err)
		}
		if steps, err := w.Other.StepRows(w.ctx, id); err != nil || len(steps) != 4 || steps[3].Name != "ship[\"\uFFFD\"]" {
			w.Errorf("steps = %+v, err = %v", steps, err)
		}
	}},
	{name: "commit/markup and quotes are data", why: "SQL is never built from data (T20)", run: func(w *world) {
		a := w.join(w.Store, 1)
		evil := `'); DROP TABLE run; -- "{}$1\ ` + strings.Repeat("é", 50)
		s := w.submit(a.writers[0], w.create(a), naming.Names{Name: "n", Workflow: flowName, Key: evil})
		if r, err := w.Other.Find(w.ctx, "n"); err != nil || r.Run != s.Run || r.Key != evil {
			w.Errorf("find = %+v, err = %v", r, err)
		}
		if r, err := w.Other.Find(w.ctx, evil); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("find what no run is called = %+v, err = %v", r, err)
		}
		if rs, err := w.Other.Runs(w.ctx, store.RunFilter{Key: evil, Workflow: flowName}); err != nil || len(rs) != 1 {
			w.Errorf("runs = %+v, err = %v", rs, err)
		}
	}},
	{name: "commit/two writers move different runs at once", why: "runs are hashed to two writers; neither may wait for or see the other", run: func(w *world) {
		a := w.join(w.Store, 2)
		ids := w.started(a, 40)
		var wg sync.WaitGroup
		for n, wr := range a.writers {
			wg.Go(func() {
				for seq := int32(1); seq <= 10; seq++ {
					var batch []store.Transition
					for i := n; i < len(ids); i += 2 {
						batch = append(batch, next(ids[i], seq))
					}
					out, err := wr.Commit(w.ctx, batch)
					if err != nil || slices.ContainsFunc(out, func(o store.Outcome) bool { return !o.Landed }) {
						w.Errorf("writer %d seq %d: outcomes = %v, err = %v", n, seq, out, err)
					}
				}
			})
		}
		wg.Wait()
		for _, id := range ids {
			w.wantRows(id, 11)
		}
	}},
	{name: "commit/of two writers on one row one lands", why: "the journal's key is the optimistic lock; batches sorted by run cannot deadlock", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		ids := w.started(a, 30)
		for seq := int32(1); seq <= 5; seq++ {
			landed := make([][]store.Outcome, 2)
			var wg sync.WaitGroup
			for n, wr := range []store.Writer{a.writers[0], b.writers[0]} {
				wg.Go(func() {
					var batch []store.Transition
					for _, id := range ids {
						batch = append(batch, next(id, seq))
					}
					var err error
					if landed[n], err = wr.Commit(w.ctx, batch); err != nil {
						w.Errorf("writer %d: %v", n, err)
					}
				})
			}
			wg.Wait()
			for i := range landed[0] {
				x, y := landed[0][i], landed[1][i]
				if x.Landed == y.Landed || !x.Landed && !errors.Is(x.Err, store.ErrStale) || !y.Landed && !errors.Is(y.Err, store.ErrStale) {
					w.Fatalf("run %d seq %d: outcomes = %+v and %+v, want one landed and one ErrStale", ids[i], seq, x, y)
				}
			}
		}
	}},
	{name: "commit/an ended context is an error", why: "a caller that is going away must not wait for a store that is gone", run: func(w *world) {
		a := w.join(w.Store, 1)
		id := w.started(a, 1)[0]
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		if _, err := a.writers[0].Commit(ctx, []store.Transition{next(id, 1)}); !errors.Is(err, context.Canceled) {
			w.Errorf("err = %v, want context canceled", err)
		}
		w.land(a.writers[0], next(id, 1))
	}},
}

var unknownRules = []rule{
	{name: "unknown/a lost reply is landed, once", why: "the same batch under the same token finds its own rows: mine, not stale, not doubled", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		for seq := int32(1); seq <= 4; seq++ {
			w.Lose(w.T, true)
			w.land(a.writers[0], next(ids[0], seq), next(ids[1], seq))
		}
		w.wantRows(ids[0], 5)
		w.wantRows(ids[1], 5)
	}},
	{name: "unknown/a lost request is sent again", why: "whether a batch landed is never guessed", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		for seq := int32(1); seq <= 4; seq++ {
			w.Lose(w.T, false)
			w.land(a.writers[0], next(ids[0], seq), next(ids[1], seq))
		}
		w.wantRows(ids[0], 5)
	}},
	{name: "unknown/mine and stale are told apart", why: "of the rows that conflict on the second sending some are mine and some are foreign: only the token says", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		ids := w.started(a, 3)
		w.land(b.writers[0], next(ids[1], 1))
		for _, landed := range []bool{true, false} {
			w.Lose(w.T, landed)
			seq := int32(1)
			if !landed {
				seq = 2
				w.land(b.writers[0], next(ids[1], 2))
			}
			out := w.commit(a.writers[0], next(ids[0], seq), next(ids[1], seq), next(ids[2], seq))
			if !out[0].Landed || !out[2].Landed || !errors.Is(out[1].Err, store.ErrStale) {
				w.Errorf("lost after landing = %v: outcomes = %+v, want landed, ErrStale, landed", landed, out)
			}
		}
	}},
	{name: "unknown/a lost create is not a collision", why: "its own token makes it a success", run: func(w *world) {
		a := w.join(w.Store, 1)
		w.Lose(w.T, true)
		c := w.create(a)
		w.land(a.writers[0], c)
		w.wantRows(c.Run, 1)
	}},
	{name: "unknown/a lost submission lands once", why: "an accepted run is never lost and never doubled (I1); it must not report itself as an earlier run", run: func(w *world) {
		a := w.join(w.Store, 1)
		for i, landed := range []bool{true, false} {
			c := w.create(a)
			w.Lose(w.T, landed)
			n := naming.Names{Name: string(rune('a' + i)), Workflow: flowName, Key: string(rune('k' + i))}
			if s := w.submit(a.writers[0], c, n); s.Exists || s.Run != c.Run || s.Name != n.Name {
				w.Errorf("lost after landing = %v: submitted = %+v", landed, s)
			}
			w.wantRows(c.Run, 1)
		}
	}},
	{name: "unknown/a batch still in flight is waited for", why: "the fence row makes the second sending wait for the old backend; a mere re-read would say too early that nothing is there",
		need: func(h Harness) bool { return h.Hold != nil },
		run: func(w *world) {
			a := w.join(w.Store, 1)
			ids := w.started(a, 3)
			wait, release := w.Hold(w.T, ids[1], 1)
			landed := w.landLater(a.writers[0], next(ids[0], 1), next(ids[1], 1), next(ids[2], 1))
			wait(1)
			w.Cut(w.T)
			wait(2) // now the first try waits until release is called, and the second try waits for the first try
			release()
			landed()
			for _, id := range ids {
				w.wantRows(id, 2)
			}
		}},
	{name: "unknown/an ended context ends the wait", why: "shutdown must not hang on a store that does not answer",
		need: func(h Harness) bool { return h.Hold != nil },
		run: func(w *world) {
			a := w.join(w.Store, 1)
			id := w.started(a, 1)[0]
			wait, release := w.Hold(w.T, id, 1)
			ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
			done := make(chan error)
			go func() {
				_, err := a.writers[0].Commit(ctx, []store.Transition{next(id, 1)})
				done <- err
			}()
			wait(1)
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				w.Errorf("err = %v, want context canceled", err)
			}
			release()
		}},
	{name: "unknown/an error leaves the outcome open and sending again settles it", why: "one rule for everybody who commits (decision 0018): after an error nothing is known, and the same rows are sent again; they must not land twice, and what stands there must be theirs", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		batch := []store.Transition{next(ids[0], 1), next(ids[1], 1)}
		if _, err := a.writers[0].Commit(ctx, batch); err == nil || store.NothingLanded(err) {
			w.Errorf("err = %v, want one that promises nothing", err)
		}
		w.sendAgain(a.writers[0], batch)
		c := w.create(a)
		n := naming.Names{Name: "n", Workflow: flowName, Key: "k"}
		if _, err := Submit(ctx, a.writers[0], c, n); err == nil || store.NothingLanded(err) {
			w.Errorf("err = %v, want one that promises nothing", err)
		}
		for range 2 {
			if s := w.submit(a.writers[0], c, n); s.Run != c.Run {
				w.Errorf("submitted = %+v, want run %d", s, c.Run)
			}
		}
		w.wantRows(c.Run, 1)
	}},
	{name: "unknown/an interrupted batch is settled by sending it again", why: "what was in flight when its context ended may land after that: the second sending waits for it and finds it",
		need: func(h Harness) bool { return h.Hold != nil },
		run: func(w *world) {
			a := w.join(w.Store, 1)
			id := w.started(a, 1)[0]
			wait, release := w.Hold(w.T, id, 1)
			ctx, cancel := context.WithCancel(w.ctx)
			done := make(chan error)
			batch := []store.Transition{next(id, 1)}
			go func() {
				_, err := a.writers[0].Commit(ctx, batch)
				done <- err
			}()
			wait(1)
			cancel()
			if err := <-done; err == nil || store.NothingLanded(err) {
				w.Errorf("err = %v, want one that promises nothing", err)
			}
			release()
			w.sendAgain(a.writers[0], batch)
		}},
	{name: "unknown/only a fenced batch is sure not to have landed", why: "an engine that takes over reads the runs once: no part of a batch that was answered with ErrFenced may be there, or come later", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		ids := w.started(a, 2)
		w.LoseFenced(w.T, a.id, false)
		batch := []store.Transition{next(ids[0], 1), next(ids[1], 1)}
		for range 2 { // the first Commit begins before the engine is declared dead, the second Commit afterwards
			if _, err := a.writers[0].Commit(w.ctx, batch); !store.NothingLanded(err) {
				w.Errorf("err = %v, want one that promises that nothing landed", err)
			}
			w.wantRows(ids[0], 1)
			w.wantRows(ids[1], 1)
		}
		w.land(b.writers[0], batch...)
		w.wantRows(ids[0], 2)
	}},
}
