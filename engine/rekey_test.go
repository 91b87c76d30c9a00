package engine_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/rekey"
	"github.com/saga-engine/engine/engine/story"
)

// of returns how much data the key with this id has sealed or tagged.
func (w *world) of(sealer crypt.Sealer, id string) int {
	w.t.Helper()
	uses, err := journal.CountKeys(w.t.Context(), store.Complete(w.mem), sealer)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, u := range uses {
		if u.Key == id {
			return u.Total()
		}
	}
	return 0
}

// verifies checks the histories of runs with one key.
func (w *world) verifies(sealer crypt.Sealer, runs ...status.RunID) {
	w.t.Helper()
	found, err := journal.Verify(w.t.Context(), w.mem, sealer, journal.NewDefinitions(w.mem, sealer), runs)
	if err != nil || len(found) != len(runs) {
		w.t.Fatalf("Verify = %d runs, %v", len(found), err)
	}
	for _, v := range found {
		if v.Err != nil || v.Tagged != v.Rows {
			w.t.Errorf("run %d: %d of %d rows tagged, %v", v.Head.Run, v.Tagged, v.Rows, v.Err)
		}
	}
}

// secret checks that nothing of the runs is stored in plain text.
func (w *world) secret(when string, runs ...status.RunID) {
	w.t.Helper()
	for _, run := range runs {
		if bytes.Contains(w.stored(run), []byte("canary")) {
			w.t.Errorf("%s a sensitive value is stored in the clear", when)
		}
	}
}

// The key of a store is changed while an engine works on its runs: a run that has ended, one
// whose agent is at work, and somebody who follows that one. The engine goes on, makes no
// further call, and in the end the older key is not needed any more (I13, decision 0020).
func TestKeyIsChangedUnderRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, secretFlow)
		a, b := newKey(t), newKey(t)
		older, both, newer := newSealer(t, a), newSealer(t, b, a), newSealer(t, b)
		use := func(s crypt.Sealer) {
			w.cfg = func(c *engine.Config) {
				c.Sealer = s
				c.Secrets = func(string) (string, error) { return "canary-token", nil }
			}
		}
		use(older)
		first := w.start()
		ended := w.submit(first, "pay", map[string]string{"card": "canary-card"})
		w.wait(first, ended, status.RunSucceeded)
		gate := make(chan struct{})
		w.shop.on("charge", func(ctx context.Context, _ int) error {
			select {
			case <-gate:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		open := w.submit(first, "pay", map[string]string{"card": "canary-card"})
		time.Sleep(time.Second)
		first.kill(t)
		time.Sleep(w.opts.Lease)

		use(both)
		second := w.start()
		if _, err := second.TakeOver(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		w.secret("before", ended, open)
		w.verifies(both, ended, open)
		if w.of(both, older.KeyID()) == 0 || w.of(both, newer.KeyID()) == 0 {
			t.Fatal("not both keys are in use")
		}
		calls := len(w.shop.called("charge"))

		var told []int
		followed := make(chan error, 1)
		go func() {
			_, err := journal.Reader{Store: w.mem, Sealer: both, Defs: journal.NewDefinitions(w.mem, both)}.Follow(t.Context(), open, 0, func(number int, facts []story.Fact) {
				for i := range facts {
					told = append(told, number+i)
				}
			}, journal.FollowOptions{})
			followed <- err
		}()
		time.Sleep(2 * time.Second) // the reader has read the rows of the older key

		r, err := journal.Reseal(t.Context(), store.Complete(w.mem), both)
		if err != nil || r.Runs != 2 || r.Busy != 0 || len(r.Refused) > 0 || r.Done.Rows == 0 || r.Done.Definitions != 1 || r.Done.Settings != 1 {
			t.Errorf("Reseal = %+v, %v, want both runs, the definition and the setting", r, err)
		}
		w.secret("after", ended, open)
		w.verifies(newer, ended, open)
		if n := w.of(both, older.KeyID()); n != 0 {
			t.Errorf("%d rows of the older key are left", n)
		}
		if r, err := journal.Reseal(t.Context(), store.Complete(w.mem), both); err != nil || r.Runs != 0 || r.Done.Total() != 0 {
			t.Errorf("the second Reseal = %+v, %v, want nothing to do", r, err)
		}

		close(gate)
		w.wait(second, open, status.RunSucceeded)
		if n := len(w.shop.called("charge")); n != calls {
			t.Errorf("%d calls, want the %d from before", n, calls)
		}
		if err := <-followed; err != nil || !slices.IsSorted(told) || len(slices.Compact(slices.Clone(told))) != len(told) || len(told) != told[len(told)-1] {
			t.Errorf("the reader was told %v, %v, want each fact once", told, err)
		}
		w.verifies(newer, ended, open)
		if busy, err := journal.FinishRotation(t.Context(), store.Complete(w.mem), both); err != nil || len(busy) > 0 {
			t.Errorf("FinishRotation = %+v, %v", busy, err)
		}
		second.drain(t)
		use(newer)
		w.start().drain(t)
		w.secret("in the end", ended, open)
	})
}

// Messages and late replies are sealed again, too, and a run whose history is wrong stays as
// it is.
func TestRestIsSealedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneStep)
		a, b := newKey(t), newKey(t)
		older, both, newer := newSealer(t, a), newSealer(t, b, a), newSealer(t, b)
		w.cfg = func(c *engine.Config) { c.Sealer = older }
		n := w.start()
		run, wrong := w.submit(n, "one", nil), w.submit(n, "one", nil)
		w.wait(n, run, status.RunSucceeded)
		w.wait(n, wrong, status.RunSucceeded)
		n.drain(t)
		verb := machine.CancelRequested{By: "ann", Reason: "canary"}
		w.post(run, store.MessageVerb, verb, time.Now())
		data, err := journal.EncodeMessage(older, run, verb)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.mem.KeepLate(t.Context(), store.LateReply{Run: run, Node: 0, Call: 1, Step: "reserve", Outcome: "ok", Data: data}); err != nil {
			t.Fatal(err)
		}
		_, rows, err := store.LoadRun(t.Context(), w.mem, wrong)
		if err != nil {
			t.Fatal(err)
		}
		forged := rekey.Resealed{Run: wrong, Next: int32(len(rows)), At: rows[len(rows)-1].At, Data: rows[len(rows)-1].Data, Rows: rows[:1]}
		if err := w.mem.Reseal(t.Context(), forged); err != nil {
			t.Fatal(err)
		}

		if err := journal.PinKey(t.Context(), w.mem, both, time.Now()); err != nil {
			t.Fatal(err)
		}
		r, err := journal.Reseal(t.Context(), store.Complete(w.mem), both)
		if err != nil || r.Runs != 1 || r.Done.Messages != 1 || r.Done.LateReplies != 1 || len(r.Refused) != 1 || r.Refused[0].Run != int64(wrong) {
			t.Errorf("Reseal = %+v, %v, want one run, and the other refused", r, err)
		}
		var history *journal.HistoryError
		if len(r.Refused) == 1 && !errors.As(r.Refused[0], &history) {
			t.Errorf("refused because %v, want a HistoryError", r.Refused[0])
		}
		messages, late, err := w.mem.AllMessages(t.Context(), run)
		if err != nil || len(messages) != 1 || len(late) != 1 {
			t.Fatalf("letters = %+v, %+v, %v", messages, late, err)
		}
		for _, data := range [][]byte{messages[0].Data, late[0].Data} {
			if e, err := journal.DecodeMessage(newer, run, data); err != nil || e != machine.Event(verb) || bytes.Contains(data, []byte("canary")) {
				t.Errorf("it opens to %+v, %v, want the verb", e, err)
			}
		}
		w.verifies(newer, run)
		if _, got, err := store.LoadRun(t.Context(), w.mem, wrong); err != nil || len(got) != len(rows)+1 || !bytes.Equal(got[0].Data, rows[0].Data) {
			t.Errorf("the run with a wrong history has changed: %v", err)
		}
		if n := w.of(both, older.KeyID()) + w.of(both, ""); n != len(rows)+1 {
			t.Errorf("%d rows are not of the newer key, want the %d of the wrong history", n, len(rows)+1)
		}
	})
}

// An engine whose membership has ended does not join again with a key that is not the newest.
func TestEngineWithTheFormerKeyDoesNotJoinAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneStep)
		a, b := newKey(t), newKey(t)
		w.cfg = func(c *engine.Config) { c.Sealer = newSealer(t, a) }
		n := w.start()
		both := newSealer(t, b, a)
		if err := journal.PinKey(t.Context(), w.mem, both, time.Now()); err != nil {
			t.Fatal(err)
		}
		run := w.submit(n, "one", nil) // it works on until then
		w.wait(n, run, status.RunSucceeded)
		busy, err := journal.FinishRotation(t.Context(), store.Complete(w.mem), both)
		if err != nil || len(busy) != 1 || busy[0].Engine != n.Engine() {
			t.Errorf("FinishRotation = %+v, %v, want engine %d in the way", busy, err, n.Engine())
		}
		if err := w.mem.Leave(t.Context(), n.Engine()); err != nil {
			t.Fatal(err)
		}
		<-n.Done()
		var key *crypt.KeyError
		if err := <-n.done; !errors.As(err, &key) || key.ID != both.KeyID() {
			t.Errorf("Run = %v, want a KeyError about the newer key", err)
		}
	})
}
