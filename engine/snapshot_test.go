package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/rekey"
	"github.com/saga-engine/engine/engine/store/snapshots"
)

// longFlow has a loop of 80 calls, and uses what it collected. Its variable is sensitive if the
// state has a key.
func longFlow(sealer crypt.Sealer) string {
	return fmt.Sprintf(longSource, sealer != nil)
}

const longSource = `
workflow "long" {
  deadline = "1h"
  variable "card" {
    type      = string
    default   = ""
    sensitive = %t
  }
  step "poll" {
    action       = agent.shop.reserve
    compensation = "none"
    input {
      name = "poll"
      note = var.card
    }
    repeat {
      max_iterations = 80
      interval       = "1s"
      collect        = length(self.collected)
    }
  }
  step "charge" {
    action = agent.shop.charge
    input { name = "charge-${length(step.poll.collected)}" }
  }
}`

// A shortStore counts which runs are read whole and which from their snapshot, and shows
// snapshots as somebody left them who can write to the state.
type shortStore struct {
	store.Full
	rekey.Resealer
	keeper snapshots.Keeper
	change func(*snapshots.Loaded) // nil = as they are stored

	mu    sync.Mutex
	whole int   // runs that were read from their first row
	rows  []int // for each run that was read from its snapshot, how many rows were read
	kept  []snapshots.Snapshot
}

func (s *shortStore) Load(ctx context.Context, runs ...status.RunID) ([]store.Loaded, error) {
	s.mu.Lock()
	s.whole += len(runs)
	s.mu.Unlock()
	return s.Full.Load(ctx, runs...)
}

func (s *shortStore) KeepSnapshot(ctx context.Context, e store.EngineID, x snapshots.Snapshot) error {
	err := s.keeper.KeepSnapshot(ctx, e, x)
	if err == nil {
		s.mu.Lock()
		s.kept = append(s.kept, x)
		s.mu.Unlock()
	}
	return err
}

// changes sets how what is stored differs from what is shown; nil = not at all.
func (s *shortStore) changes(change func(*snapshots.Loaded)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change = change
}

// stored returns the snapshots that were stored.
func (s *shortStore) stored() []snapshots.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.kept)
}

func (s *shortStore) Snapshotted(ctx context.Context, runs ...status.RunID) ([]status.RunID, error) {
	return s.keeper.Snapshotted(ctx, runs...)
}

func (s *shortStore) LoadShort(ctx context.Context, run status.RunID) (snapshots.Loaded, error) {
	l, err := s.keeper.LoadShort(ctx, run)
	s.mu.Lock()
	s.rows = append(s.rows, len(l.Rows))
	change := s.change
	s.mu.Unlock()
	if err == nil && change != nil {
		change(&l)
	}
	return l, err
}

// forget forgets what was read so far.
func (s *shortStore) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole, s.rows = 0, nil
}

// short makes the world's engines store snapshots often, and returns the store that counts them.
func (w *world) short(sealer crypt.Sealer) *shortStore {
	s := &shortStore{Full: store.Complete(w.mem), Resealer: w.mem, keeper: w.mem}
	w.store, w.opts.SnapshotRows = s, 10
	w.cfg = func(c *engine.Config) { c.Sealer = sealer }
	return s
}

// sameState checks that a run has the same state whether it is read from its snapshot or from its
// first row. It returns the number of rows that the snapshot covers.
func (w *world) sameState(run status.RunID) int32 {
	w.t.Helper()
	defs := journal.NewDefinitions(w.mem, w.sealer())
	whole, err := journal.Load(w.t.Context(), w.mem, w.sealer(), defs, run)
	if err != nil {
		w.t.Fatal(err)
	}
	short, err := journal.LoadState(w.t.Context(), store.Complete(w.mem), w.sealer(), defs, run)
	if err != nil {
		w.t.Fatal(err)
	}
	if !bytes.Equal(wire.AppendState(nil, whole.State), wire.AppendState(nil, short.State)) {
		w.t.Error("the state from the snapshot differs from that of the journal")
	}
	if whole.Facts != short.Facts || whole.Stored != short.Stored || whole.Rows() != short.Rows() || whole.Next() != short.Next() {
		w.t.Errorf("from the snapshot %d facts, %d bytes, %d rows; from the journal %d, %d, %d", short.Facts, short.Stored, short.Rows(), whole.Facts, whole.Stored, whole.Rows())
	}
	if want := len(whole.Records) - len(short.Records); want < 0 || short.Covered == 0 && want > 0 {
		w.t.Errorf("%d records from the snapshot, %d from the journal", len(short.Records), len(whole.Records))
	}
	return short.Covered
}

// An engine stores snapshots of a long run. The engine that takes the run over reads the last one
// and the rows after it, and goes on as if it had read them all: with the collected values, the
// numbers of the facts, and the ceilings. The run's end is the same as without snapshots.
func TestLongRunIsLoadedFromItsSnapshot(t *testing.T) {
	for name, sealer := range map[string]crypt.Sealer{"with a key": newSealer(t, newKey(t)), "without a key": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, longFlow(sealer))
				s := w.short(sealer)
				first := w.start()
				card := ""
				if sealer != nil {
					card = "canary-card"
				}
				run := w.submit(first, "long", map[string]string{"card": card})
				for range 3 {
					time.Sleep(24 * time.Second)
					synctest.Wait()
					covered := w.sameState(run)
					if covered == 0 {
						t.Fatal("there is no snapshot after 20 iterations more")
					}
					s.forget()
					first.kill(t)
					time.Sleep(w.opts.Lease)
					first = w.start()
					if _, err := first.TakeOver(t.Context()); err != nil {
						t.Fatal(err)
					}
					if s.whole != 0 || len(s.rows) == 0 || slices.Max(s.rows) > 60 {
						t.Errorf("the takeover read %d whole runs and %v rows after snapshots, want few rows", s.whole, s.rows)
					}
				}
				w.wait(first, run, status.RunSucceeded)
				if got := w.shop.called("charge-80"); len(got) != 1 {
					t.Errorf("%d calls with 80 collected values", len(got))
				}
				if len(w.story.gaps) > 0 {
					t.Errorf("facts: %v", w.story.gaps)
				}
				first.drain(t)
				if len(s.stored()) < 4 {
					t.Errorf("%d snapshots were stored", len(s.stored()))
				}
				for _, x := range s.stored() {
					if bytes.Contains(x.Data, []byte("canary")) {
						t.Error("a snapshot holds a sensitive value in the clear")
					}
				}
				if alerts, err := w.mem.Alerts(t.Context(), run, 10); err != nil || len(alerts) > 0 {
					t.Errorf("alerts %+v, %v", alerts, err)
				}
			})
		})
	}
}

// A snapshot that was changed, that belongs to another run or to other rows, is not used: the
// engine reads the journal, tells operators, and stores a good snapshot again.
func TestChangedSnapshotIsRefused(t *testing.T) {
	key := newSealer(t, newKey(t))
	flip := func(at func(n int) int) func(*snapshots.Loaded, *shortStore) {
		return func(l *snapshots.Loaded, _ *shortStore) {
			l.Snapshot.Data = bytes.Clone(l.Snapshot.Data)
			l.Snapshot.Data[at(len(l.Snapshot.Data))] ^= 1
		}
	}
	for _, c := range []struct {
		name   string
		change func(*snapshots.Loaded, *shortStore)
	}{
		{"its first byte was changed", flip(func(int) int { return 0 })},
		{"a byte was changed", flip(func(n int) int { return n / 2 })},
		{"its last byte was changed", flip(func(n int) int { return n - 1 })},
		{"cut", func(l *snapshots.Loaded, _ *shortStore) { l.Snapshot.Data = l.Snapshot.Data[:len(l.Snapshot.Data)-1] }},
		{"empty", func(l *snapshots.Loaded, _ *shortStore) { l.Snapshot.Data = nil }},
		{"of another run", func(l *snapshots.Loaded, s *shortStore) {
			for _, x := range s.stored() {
				if x.Run != l.Head.Run {
					l.Snapshot.Data = x.Data
				}
			}
		}},
		{"an older one at the place of the last", func(l *snapshots.Loaded, s *shortStore) {
			i := slices.IndexFunc(s.stored(), func(x snapshots.Snapshot) bool { return x.Run == l.Head.Run && x.Next < l.Snapshot.Next })
			l.Snapshot.Data = s.stored()[i].Data
		}},
		{"of more rows than there are", func(l *snapshots.Loaded, _ *shortStore) { l.Snapshot.Next, l.Rows = 1<<30, nil }},
		{"of rows that were replaced", func(l *snapshots.Loaded, _ *shortStore) {
			l.Rows = slices.Clone(l.Rows)
			l.Rows[0].Data = bytes.Clone(l.Rows[0].Data)
			l.Rows[0].Data[len(l.Rows[0].Data)-1] ^= 1
		}},
	} {
		for _, sealer := range []crypt.Sealer{key, nil} {
			t.Run(fmt.Sprintf("%s, key %t", c.name, sealer != nil), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, longFlow(sealer))
					s := w.short(sealer)
					first := w.start()
					run := w.submit(first, "long", map[string]string{"card": ""})
					w.submit(first, "long", map[string]string{"card": ""})
					time.Sleep(55 * time.Second)
					first.kill(t)
					time.Sleep(w.opts.Lease)
					kept := len(s.stored())
					s.changes(func(l *snapshots.Loaded) {
						if l.Head.Run == run && len(s.stored()) == kept {
							c.change(l, s)
						}
					})
					second := w.start()
					if _, err := second.TakeOver(t.Context()); err != nil {
						t.Fatal(err)
					}
					w.wait(second, run, status.RunSucceeded)
					alerts, err := w.mem.Alerts(t.Context(), run, 10)
					if err != nil || len(alerts) != 1 || alerts[0].Kind != "snapshot_refused" || alerts[0].Message == "" {
						t.Errorf("alerts = %+v, %v, want one about the snapshot", alerts, err)
					}
					if !slices.ContainsFunc(s.stored()[kept:], func(x snapshots.Snapshot) bool { return x.Run == run }) {
						t.Error("no good snapshot was stored again")
					}
					second.drain(t)
					s.changes(nil)
					w.sameState(run)
				})
			})
		}
	}
}

// A change of the key gives all rows new tags, so it removes the snapshots of the former rows. The
// engine that works on the run meanwhile stores a new one, sealed with the newest key.
func TestSnapshotsAndAChangeOfTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newKey(t), newKey(t)
		older, both, newer := newSealer(t, a), newSealer(t, b, a), newSealer(t, b)
		w := newWorld(t, longFlow(older))
		s := w.short(older)
		first := w.start()
		run := w.submit(first, "long", map[string]string{"card": "canary-card"})
		time.Sleep(30 * time.Second)
		first.drain(t)
		w.cfg = func(c *engine.Config) { c.Sealer = both }
		second := w.start()
		if _, err := second.TakeOver(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := journal.Reseal(t.Context(), store.Complete(w.mem), both); err != nil {
			t.Fatal(err)
		}
		if early, err := journal.FinishRotation(t.Context(), store.Complete(w.mem), both); err != nil || len(early) > 0 {
			t.Fatalf("finish the rotation: %v, %v", early, err)
		}
		kept := len(s.stored())
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if len(s.stored()) == kept {
			t.Error("no snapshot was stored after the change")
		}
		second.kill(t)
		time.Sleep(w.opts.Lease)
		w.cfg = func(c *engine.Config) { c.Sealer = newer }
		third := w.start()
		s.forget()
		if _, err := third.TakeOver(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.whole != 0 || len(s.rows) == 0 {
			t.Errorf("the engine with the newest key read %d whole runs, and %d from a snapshot", s.whole, len(s.rows))
		}
		w.wait(third, run, status.RunSucceeded)
		if alerts, err := w.mem.Alerts(t.Context(), run, 10); err != nil || len(alerts) > 0 {
			t.Errorf("alerts %+v, %v", alerts, err)
		}
		third.drain(t)
	})
}

// The ceilings of a run count what came before the snapshot, too.
func TestCeilingsAfterASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, longFlow(nil))
		w.short(nil)
		first := w.start()
		run := w.submit(first, "long", map[string]string{"card": ""})
		time.Sleep(40 * time.Second)
		first.kill(t)
		time.Sleep(w.opts.Lease)
		w.opts.Ceilings.Journal = w.written(run)
		second := w.start()
		if _, err := second.TakeOver(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := w.wait(second, run, status.RunFailed); s.Failure().Code != machine.CodeLimit {
			t.Errorf("with a ceiling that the first engine reached the run failed with %+v", s.Failure())
		}
		second.drain(t)
	})
}

// A person's verb is answered by a record that a snapshot covers.
func TestAnswerBeforeASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, longFlow(nil))
		w.short(nil)
		n := w.start()
		run := w.submit(n, "long", map[string]string{"card": ""})
		time.Sleep(10 * time.Second)
		op := w.operator()
		op.Store = w.store
		id, err := op.Ask(t.Context(), run, machine.PauseRequested{By: "ann"}, "ann")
		if err == nil {
			err = op.Answer(t.Context(), run, id)
		}
		if err != nil {
			t.Fatal(err)
		}
		resume, err := op.Ask(t.Context(), run, machine.ResumeRequested{By: "ann"}, "ann")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(40 * time.Second)
		synctest.Wait()
		for _, id := range []store.MessageID{id, resume} {
			if err := op.Answer(t.Context(), run, id); err != nil {
				t.Errorf("the answer before a snapshot: %v", err)
			}
		}
		if w.sameState(run) == 0 {
			t.Error("there is no snapshot")
		}
		w.wait(n, run, status.RunSucceeded)
		n.drain(t)
	})
}

// A store that cannot keep a snapshot costs a run nothing.
func TestRunWithoutRoomForSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, longFlow(nil))
		s := w.short(nil)
		s.keeper = fullKeeper{w.mem}
		n := w.start()
		run := w.submit(n, "long", map[string]string{"card": ""})
		w.wait(n, run, status.RunSucceeded)
		n.drain(t)
		if len(s.stored()) > 0 {
			t.Error("a snapshot was stored")
		}
	})
}

// A fullKeeper has no room for a snapshot.
type fullKeeper struct{ snapshots.Keeper }

func (fullKeeper) KeepSnapshot(context.Context, store.EngineID, snapshots.Snapshot) error {
	return errors.New("no space is left")
}

// A moved run is loaded from a snapshot that was made after the move: with the names, the results and
// the agents of its present definition. Its steps have their numbers in the run, which differ from
// those in the file.
func TestMovedRunIsLoadedFromItsSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, longFlow(nil))
		s := w.short(nil)
		first := w.start()
		run := w.submit(first, "long", nil)
		time.Sleep(24 * time.Second)
		synctest.Wait()
		before := w.sameState(run)
		if before == 0 {
			t.Fatal("there is no snapshot after 24 s")
		}
		w.moveRun(run, define(t, movedLong(), w.shop.agent))
		synctest.Wait()
		if after := w.sameState(run); after != before {
			t.Fatalf("the snapshot covers %d rows right after the move, and %d before: want the one from before the move", after, before)
		}
		time.Sleep(24 * time.Second)
		synctest.Wait()
		if w.sameState(run) <= before {
			t.Fatal("there is no new snapshot 24 s after the move")
		}
		l, err := w.mem.LoadShort(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		l.Rows = l.Rows[:1] // without the rows after the snapshot, only its state tells of the move
		short, err := journal.Reader{Store: w.mem, Defs: journal.NewDefinitions(w.mem, nil)}.FoldShort(t.Context(), l, nil, notesNothing{})
		if err != nil || short.Covered == 0 {
			t.Fatalf("the snapshot alone covers %d rows, err = %v", short.Covered, err)
		}
		if got := short.Flow.Steps[0].Name; got != "ask" || len(short.Flow.Steps) != 3 {
			t.Errorf("from the snapshot, the run has %d steps, the first one is %s: want 3, and ask", len(short.Flow.Steps), got)
		}
		s.forget()
		first.kill(t)
		time.Sleep(w.opts.Lease)
		second := w.start()
		if _, err := second.TakeOver(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.whole != 0 || len(s.rows) == 0 {
			t.Errorf("the takeover read %d whole runs and %v rows after snapshots, want only a snapshot", s.whole, s.rows)
		}
		w.wait(second, run, status.RunSucceeded)
		for _, name := range []string{"first", "pay-80"} {
			if got := w.shop.called(name); len(got) != 1 {
				t.Errorf("%d calls of %s", len(got), name)
			}
		}
		if len(w.story.gaps) > 0 {
			t.Errorf("facts: %v", w.story.gaps)
		}
		second.drain(t)
		w.sameState(run)
		if alerts, err := w.mem.Alerts(t.Context(), run, 10); err != nil || len(alerts) > 0 {
			t.Errorf("alerts %+v, %v", alerts, err)
		}
	})
}

// A notesNothing is a journal.Noter that notes nothing.
type notesNothing struct{}

func (notesNothing) Resume(journal.Notes) {}
func (notesNothing) Note(machine.Event)   {}

// movedLong returns the definition of longFlow with another first step, and with other names.
func movedLong() string {
	text := strings.Replace(longFlow(nil), `  step "poll" {`, `  step "first" {
    action = agent.shop.charge
    input { name = "first" }
  }
  step "ask" {`, 1)
	text = strings.ReplaceAll(strings.ReplaceAll(text, "step.poll", "step.ask"), "charge-", "pay-")
	return text + `
moved {
  from = step.poll
  to   = step.ask
}`
}
