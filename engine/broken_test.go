package engine_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A tamperedStore shows one run's rows as somebody left them who can write to the
// state.
type tamperedStore struct {
	store.Full
	run    status.RunID
	change func(rows []store.Row) []store.Row
}

func (s *tamperedStore) Load(ctx context.Context, runs ...status.RunID) ([]store.Loaded, error) {
	all, err := s.Full.Load(ctx, runs...)
	for i, l := range all {
		if l.Head.Run == s.run {
			all[i].Rows = s.change(l.Rows)
		}
	}
	return all, err
}

// I13: an engine does not go on with a run whose history does not verify, says so,
// and goes on with the others; so do all that read it. Verifying names the row.
func TestBrokenHistoryIsLeftAlone(t *testing.T) {
	flip := func(rows []store.Row) []store.Row {
		rows[0].Data = bytes.Clone(rows[0].Data)
		rows[0].Data[len(rows[0].Data)-1] ^= 1
		return rows
	}
	cut := func(rows []store.Row) []store.Row { return rows[:0] }
	key := newSealer(t, newKey(t))
	for name, c := range map[string]struct {
		sealer crypt.Sealer
		change func([]store.Row) []store.Row
	}{
		"changed, with a key": {key, flip}, "changed, without a key": {nil, flip}, "cut, with a key": {key, cut}, "cut, without a key": {nil, cut},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, oneStep)
				w.cfg = func(cfg *engine.Config) { cfg.Sealer = c.sealer }
				w.shop.on("reserve", func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() })
				first := w.start()
				bad, good := w.submit(first, "one", nil), w.submit(first, "one", nil)
				synctest.Wait()
				first.kill(t)
				time.Sleep(w.opts.Lease)
				w.shop.on("reserve", nil)
				defs := journal.NewDefinitions(w.mem, c.sealer)
				verify := func(s store.Store) error {
					t.Helper()
					found, err := journal.Verify(t.Context(), s, c.sealer, defs, []status.RunID{bad, good})
					if err != nil || len(found) != 2 || found[1].Err != nil {
						t.Fatalf("verify: %+v, %v", found, err)
					}
					return found[0].Err
				}
				if err := verify(w.mem); err != nil {
					t.Errorf("an intact history: %v", err)
				}
				tampered := &tamperedStore{store.Complete(w.mem), bad, c.change}
				var broken *journal.HistoryError
				if err := verify(tampered); !errors.As(err, &broken) || broken.Run != int64(bad) || broken.Seq != 0 {
					t.Errorf("verify: %v, want it to name row 0 of run %d", err, bad)
				}
				w.store = tampered
				second := w.start()
				time.Sleep(time.Minute)
				if err := second.Quarantined()[bad]; !errors.As(err, &broken) || broken.Seq != 0 {
					t.Errorf("trouble = %v, want a HistoryError of row 0", err)
				}
				if err := second.Adopt(t.Context(), bad); !errors.As(err, &broken) {
					t.Errorf("adopt: %v, want a HistoryError", err)
				}
				w.wait(second, good, status.RunSucceeded)
				op := operator.Operator{Store: tampered, Sealer: c.sealer, Defs: defs}
				if _, err := op.Ask(t.Context(), bad, machine.CancelRequested{By: "ann"}, "ann"); !errors.As(err, &broken) {
					t.Errorf("ask: %v, want a HistoryError", err)
				}
				if _, err := (journal.Reader{Store: tampered, Sealer: c.sealer, Defs: defs}).Follow(t.Context(), bad, 1, nil, journal.FollowOptions{}); !errors.As(err, &broken) {
					t.Errorf("follow: %v, want a HistoryError", err)
				}
				second.drain(t)
			})
		})
	}
}

// The last rows of a run that are missing are found by what the run's own row says.
func TestVerifyFindsAMissingEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneStep)
		n := w.start()
		run := w.submit(n, "one", nil)
		w.wait(n, run, status.RunSucceeded)
		defs := journal.NewDefinitions(w.mem, nil)
		var last int32
		cut := &tamperedStore{store.Complete(w.mem), run, func(rows []store.Row) []store.Row {
			last = rows[len(rows)-1].Seq
			return rows[:len(rows)-1]
		}}
		for name, store := range map[string]store.Store{"intact": w.mem, "cut": cut} {
			found, err := journal.Verify(t.Context(), store, nil, defs, []status.RunID{run, 12345})
			if err != nil || len(found) != 1 {
				t.Fatalf("%s: %+v, %v, want one run: the other does not exist", name, found, err)
			}
			var broken *journal.HistoryError
			if errors.As(found[0].Err, &broken); name == "intact" && found[0].Err != nil || name == "cut" && (broken == nil || broken.Seq != last) {
				t.Errorf("%s: %v", name, found[0].Err)
			}
			broken = nil
			_, err = journal.Load(t.Context(), store, nil, defs, run)
			if errors.As(err, &broken); name == "intact" && err != nil || name == "cut" && (broken == nil || broken.Seq != last) {
				t.Errorf("%s: load: %v", name, err)
			}
			broken = nil
			_, err = journal.Reader{Store: store, Defs: defs}.Follow(t.Context(), run, 1, nil, journal.FollowOptions{}) // must not wait for rows that will not come
			if errors.As(err, &broken); name == "intact" && err != nil || name == "cut" && (broken == nil || broken.Seq != last) {
				t.Errorf("%s: follow: %v", name, err)
			}
		}
		n.drain(t)
	})
}

// A missing row of a takeover is found also if the status of the run does not show it: with and without
// the row, the run is running.
func TestMissingTakeoverOfAnOpenRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneStep)
		w.shop.on("reserve", func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() })
		first := w.start()
		run := w.submit(first, "one", nil)
		synctest.Wait()
		first.kill(t)
		second := w.start()
		time.Sleep(2 * w.opts.Lease)
		cut := func(rows []store.Row) []store.Row { return rows[:1] }
		var broken *journal.HistoryError
		_, err := journal.Load(t.Context(), &tamperedStore{store.Complete(w.mem), run, cut}, nil, journal.NewDefinitions(w.mem, nil), run)
		if !errors.As(err, &broken) || broken.Seq != 1 {
			t.Errorf("load: %v, want a HistoryError of row 1", err)
		}
		second.kill(t)
	})
}

// A run that began without a key goes on with one, and is protected as a whole from
// then on. A run that an engine without the key begins is refused a day later.
func TestKeyComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneStep)
		key := newSealer(t, newKey(t))
		time.Sleep(time.Until(time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC))) // ids of runs tell the time from 2020 on
		w.shop.on("reserve", func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() })
		first := w.start()
		run := w.submit(first, "one", nil)
		synctest.Wait()
		first.kill(t)
		time.Sleep(w.opts.Lease)
		w.shop.on("reserve", nil)
		w.cfg = func(cfg *engine.Config) { cfg.Sealer = key }
		second := w.start()
		w.wait(second, run, status.RunSucceeded)
		second.drain(t)

		// Rows without a tag, such as an engine writes that has not noticed the key yet.
		begin := func() status.RunID {
			t.Helper()
			id, err := w.mem.Join(t.Context(), "without a key", time.Minute, 1)
			if err != nil {
				t.Fatal(err)
			}
			writer, err := w.mem.OpenWriter(t.Context(), id, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			head, rows, err := store.LoadRun(t.Context(), w.mem, run)
			if err != nil {
				t.Fatal(err)
			}
			at := time.Now()
			fresh := naming.FirstRunOf(at)
			records, err := journal.DecodeRow(key, run, rows[0])
			if err != nil {
				t.Fatal(err)
			}
			data, err := (&journal.RowEncoder{Run: fresh}).Encode(at, records)
			if err != nil {
				t.Fatal(err)
			}
			out, err := writer.Commit(t.Context(), []store.Transition{{Run: fresh, At: at, Workflow: head.Workflow, State: status.RunRunning, Owner: &id, NextCheck: store.Never, Data: data}})
			if err != nil || !out[0].Landed {
				t.Fatalf("commit: %+v, %v", out, err)
			}
			return fresh
		}
		early := begin()
		time.Sleep(25 * time.Hour)
		late := begin()
		defs := journal.NewDefinitions(w.mem, key)
		found, err := journal.Verify(t.Context(), w.mem, key, defs, []status.RunID{run, early, late})
		if err != nil || len(found) != 3 {
			t.Fatalf("verify: %+v, %v", found, err)
		}
		if found[0].Err != nil || found[0].Summed == 0 || found[0].Tagged == 0 || found[1].Err != nil {
			t.Errorf("the run that went on with a key: %+v, one begun on that day: %v", found[0], found[1].Err)
		}
		var broken *journal.HistoryError
		if !errors.As(found[2].Err, &broken) || broken.Seq != 0 {
			t.Errorf("a run begun without a key a day later: %v, want a HistoryError", found[2].Err)
		}
	})
}
