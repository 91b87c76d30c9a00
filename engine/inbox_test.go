package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk"
)

// found is an answer with an output.
func found(t *testing.T, w *world, node, call int, id string) machine.Event {
	t.Helper()
	out, err := w.def.Workflow("order").Steps[node].Do.Output([]byte(`{"id":"` + id + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	return machine.AttemptOK{Attempt: machine.AttemptID{Node: node, Call: call}, Output: out}
}

// S85, S76: what a person says to a run reaches the engine that owns it, which
// answers soon although it was idle, and the message goes with the answer.
func TestVerbReachesTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", block)
		n := w.start()
		run := w.submit(n, "order", nil)
		time.Sleep(5 * time.Second)
		op, began := w.operator(), time.Now()
		id, err := op.Ask(t.Context(), run, machine.PauseRequested{By: "ann"}, "ann")
		if err != nil {
			t.Fatal(err)
		}
		if err := op.Answer(t.Context(), run, id); err != nil {
			t.Errorf("Answer = %v", err)
		}
		if d := time.Since(began); d > 200*time.Millisecond {
			t.Errorf("answered after %s", d)
		}
		if s := w.check(run); s.Status() != status.RunPaused {
			t.Errorf("run is %v, want paused", s.Status())
		}
		// Twice is refused, by whoever asks and by whoever decides.
		var refused *operator.RefusedError
		if _, err := op.Ask(t.Context(), run, machine.RetryRequested{By: "ann"}, "ann"); !errors.As(err, &refused) {
			t.Errorf("Ask = %v, want a refusal", err)
		}
		lost := w.post(run, store.MessageVerb, machine.RetryRequested{By: "ann"}, time.Time{})
		if err := op.Answer(t.Context(), run, lost); !errors.As(err, &refused) || refused.Reason == "" {
			t.Errorf("Answer = %v, want a refusal with a reason", err)
		}
		w.empty(run)
		n.drain(t)
	})
}

// S85: messages that come while a commit is on its way, and many at once, are
// answered each once, in order of arrival.
func TestManyMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		n, run := w.under("charge")
		var ids []store.MessageID
		for i := range 400 { // more than are read at once
			var e machine.Event = machine.PauseRequested{By: "ann"}
			if i%2 == 1 {
				e = machine.ResumeRequested{By: "ann"}
			}
			ids = append(ids, w.post(run, store.MessageVerb, e, time.Time{}))
		}
		for _, id := range ids {
			if err := w.operator().Answer(t.Context(), run, id); err != nil {
				t.Fatalf("Answer of %d = %v", id, err)
			}
		}
		w.empty(run)
		records := w.records(run)
		var answered []store.MessageID
		for _, r := range records {
			if ask, _, ok := machine.Asked(r.Event()); ok {
				answered = append(answered, store.MessageID(ask))
			}
		}
		if len(answered) != len(ids) {
			t.Fatalf("%d answers to %d messages", len(answered), len(ids))
		}
		for i := range ids {
			if answered[i] != ids[i] {
				t.Fatalf("answer %d is of message %d, want %d", i, answered[i], ids[i])
			}
		}
		n.drain(t)
	})
}

// S16, S35: an answer that reached another engine in time counts, whoever owns
// the run now, and does so once.
func TestAnswerFromTheInboxCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		n, run := w.under("book")
		w.post(run, store.MessageReply, found(t, w, 2, 1, "elsewhere"), time.Now())
		s := w.wait(n, run, status.RunSucceeded)
		if got := output(t, s, "id"); got != "elsewhere" {
			t.Errorf("output = %q", got)
		}
		w.empty(run)
		n.drain(t)
	})
}

// S28 (What counts): an answer that waits in the inbox and came in time counts
// even for an engine that takes the run over when the time is past.
func TestAnswerInTimeCountsAtATakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("book", block)
		first := w.start()
		run := w.submit(first, "order", nil)
		time.Sleep(time.Second)
		first.kill(t)
		time.Sleep(8 * time.Second)
		w.post(run, store.MessageReply, found(t, w, 2, 1, "in time"), time.Now())
		time.Sleep(time.Minute)
		second := w.start()
		s := w.wait(second, run, status.RunSucceeded)
		if got := output(t, s, "id"); got != "in time" {
			t.Errorf("output = %q", got)
		}
		if calls := w.shop.called("book"); len(calls) != 1 {
			t.Errorf("book was called %d times", len(calls))
		}
		w.empty(run)
		second.drain(t)
	})
}

// S28: an answer in the inbox that came too late changes nothing, is counted, is
// kept as evidence and goes; of an ended run too.
func TestLateAnswerFromTheInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		n, run := w.under("book")
		w.post(run, store.MessageReply, found(t, w, 1, 7, "never asked"), time.Now())
		time.Sleep(time.Second)
		if late, err := w.mem.LateReplies(t.Context(), run); err != nil || len(late) != 1 || late[0].Step != "charge" || late[0].Outcome != "ok" || len(late[0].Data) == 0 {
			t.Errorf("late = %+v, %v", late, err)
		}
		w.empty(run)
		w.post(run, store.MessageReply, found(t, w, 2, 1, "done"), time.Now())
		s := w.wait(n, run, status.RunSucceeded)
		if got := output(t, s, "id"); got != "done" {
			t.Errorf("output = %q", got)
		}
		_, rows, err := store.LoadRun(t.Context(), w.mem, run)
		if err != nil {
			t.Fatal(err)
		}
		w.post(run, store.MessageReply, found(t, w, 2, 9, "after the end"), time.Now())
		w.post(run, store.MessageVerb, machine.PauseRequested{By: "ann"}, time.Time{})
		time.Sleep(time.Minute)
		w.empty(run)
		if late, err := w.mem.LateReplies(t.Context(), run); err != nil || len(late) != 2 {
			t.Errorf("late = %+v, %v, want two", late, err)
		}
		if got := w.story.lateReplies(); got != 2 {
			t.Errorf("counted %d late replies, want 2", got)
		}
		if _, now, err := store.LoadRun(t.Context(), w.mem, run); err != nil || len(now) != len(rows) {
			t.Errorf("%d rows, %v: an ended run has grown from %d", len(now), err, len(rows))
		}
		n.drain(t)
	})
}

// S73: what cannot be read here is left for a version that can, shows, blocks
// nothing behind it, and costs next to nothing.
func TestMessageThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", block)
		st := &countStore{Full: store.Complete(w.mem)}
		w.store = st
		n := w.start()
		run := w.submit(n, "order", nil)
		if _, err := w.mem.Post(t.Context(), store.Message{Run: run, Kind: store.MessageVerb, Data: []byte{0, 250, 1}}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.mem.Post(t.Context(), store.Message{Run: run, Kind: 77, Data: []byte{0, 250, 1}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		id := w.post(run, store.MessageVerb, machine.PauseRequested{By: "ann"}, time.Time{})
		within(t, time.Minute, "answer", func(ctx context.Context) error { return w.operator().Answer(ctx, run, id) })
		if err := n.Quarantined()[run]; err == nil || !strings.Contains(err.Error(), "newer") {
			t.Errorf("trouble = %v", err)
		}
		st.reset()
		time.Sleep(9 * time.Second) // before anything of the run is due
		if got := st.count("Messages"); got > 9 {
			t.Errorf("its inbox was read %d times in 9 s", got)
		}
		if left, err := w.mem.Messages(t.Context(), run, 0, 10); err != nil || len(left) != 2 {
			t.Errorf("inbox = %+v, %v, want the two that cannot be read", left, err)
		}
		n.kill(t)
	})
}

// S59, S60: a verb to a run at rest whose owner is gone is answered by whoever
// takes the run over, in the very row that does.
func TestVerbToARunAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.Replace(orderFlow, `deadline = "1h"`, `compensation { mode = "manual" }`, 1))
		w.faulty()
		var works atomic.Bool
		w.shop.on("book", func(context.Context, int) error {
			if works.Load() {
				return nil
			}
			return &sdk.Failure{Code: "no_carrier", Permanent: true}
		})
		first := w.start()
		run := w.submit(first, "order", nil)
		w.wait(first, run, status.RunParked)
		first.drain(t)
		w.store = w.mem
		second := w.start()
		time.Sleep(time.Minute)
		head, before, err := store.LoadRun(t.Context(), w.mem, run)
		if err != nil || head.Owner == second.Engine() {
			t.Fatalf("head = %+v, %v: a run at rest was taken over", head, err)
		}
		works.Store(true)
		op := w.operator()
		id, err := op.Ask(t.Context(), run, machine.RetryRequested{Step: "book", By: "ann"}, "ann")
		if err != nil {
			t.Fatal(err)
		}
		within(t, 5*time.Second, "answer", func(ctx context.Context) error { return op.Answer(ctx, run, id) })
		w.wait(second, run, status.RunSucceeded)
		_, rows, err := store.LoadRun(t.Context(), w.mem, run)
		if err != nil {
			t.Fatal(err)
		}
		records, err := journal.DecodeRow(nil, run, rows[len(before)])
		if err != nil || len(records) < 2 {
			t.Fatalf("the row of the takeover = %+v, %v", records, err)
		}
		_, taken := records[0].Event().(machine.TakenOver)
		asked := false
		for _, r := range records {
			ask, _, ok := machine.Asked(r.Event())
			asked = asked || ok && ask == int64(id)
		}
		if !taken || !asked {
			t.Errorf("the row holds %d records, want the takeover and the verb", len(records))
		}
		second.drain(t)
	})
}

// A message is answered once although commits are answered stale or not at all.
func TestMessagesAreAnsweredOnce(t *testing.T) {
	for _, fault := range []string{"stale", "lost before", "lost after"} {
		t.Run(fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, orderFlow)
				w.shop.on("charge", block)
				st := w.faulty()
				n := w.start()
				run := w.submit(n, "order", nil)
				time.Sleep(time.Second)
				switch fault {
				case "stale":
					st.stale.Store(2)
				default:
					times := 0
					st.mu.Lock()
					st.plan = func(_ int, after bool) error {
						if times < 2 && after == (fault == "lost after") {
							times++
							return errDown
						}
						return nil
					}
					st.mu.Unlock()
				}
				ids := []store.MessageID{
					w.post(run, store.MessageVerb, machine.PauseRequested{By: "a"}, time.Time{}),
					w.post(run, store.MessageVerb, machine.ResumeRequested{By: "a"}, time.Time{}),
				}
				for _, id := range ids {
					within(t, time.Minute, "answer", func(ctx context.Context) error { return w.operator().Answer(ctx, run, id) })
				}
				time.Sleep(3 * time.Second)
				w.empty(run)
				records := w.records(run)
				asked := 0
				for _, r := range records {
					if _, _, ok := machine.Asked(r.Event()); ok {
						asked++
					}
				}
				if asked != 2 {
					t.Errorf("%d answers to 2 messages", asked)
				}
				n.kill(t)
			})
		})
	}
}

// A pageStore shows a page of a tick's lists only.
type pageStore struct {
	store.Full
	limit int
}

func (s pageStore) Tick(ctx context.Context, e store.EngineID, lease time.Duration, limit int) (store.Tick, error) {
	return s.Full.Tick(ctx, e, lease, min(limit, s.limit))
}

// S60, S85: runs for which messages wait that nobody here can read do not keep
// what is said to others from being answered, however many they are.
func TestUnreadableMessagesDoNotStarveOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", block)
		w.store = pageStore{store.Complete(w.mem), 5}
		n := w.start()
		for range 30 {
			run := w.submit(n, "order", nil)
			if _, err := w.mem.Post(t.Context(), store.Message{Run: run, Kind: store.MessageVerb, By: "the future", Data: []byte("what?")}); err != nil {
				t.Fatal(err)
			}
		}
		last := w.submit(n, "order", nil)
		time.Sleep(30 * time.Second) // the others are known
		op := w.operator()
		id, err := op.Ask(t.Context(), last, machine.PauseRequested{By: "ann"}, "ann")
		if err != nil {
			t.Fatal(err)
		}
		within(t, 10*time.Second, "answer", func(ctx context.Context) error { return op.Answer(ctx, last, id) })
		n.kill(t)
	})
}
