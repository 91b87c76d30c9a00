package storetest

import (
	"slices"
	"strconv"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/replies"
)

// keepsReplies reports whether the store under test keeps replies.
func keepsReplies(h Harness) bool { _, ok := replies.Of(h.Store); return ok }

// boxes returns two outboxes: `mine` of the store under test, and `others` of a second store with
// the same data.
func boxes(w *world) (mine, others replies.Outbox) {
	mine, _ = replies.Of(w.Store)
	others, _ = replies.Of(w.Other)
	return mine, others
}

// posting returns the transition t with replies for a sink.
func posting(t store.Transition, sink string, states ...string) store.Transition {
	t.Post = &naming.Post{Sink: sink, Correlation: "c-1", States: states}
	return t
}

// told returns each reply as NUMBER:STATE.
func told(list []replies.Reply) (out []string) {
	for _, r := range list {
		out = append(out, strconv.Itoa(int(r.N))+":"+r.State)
	}
	return out
}

// wantTold checks the replies that a call has returned.
func wantTold(w *world, list []replies.Reply, err error, want ...string) {
	w.Helper()
	if got := told(list); err != nil || !slices.Equal(got, want) {
		w.Errorf("replies = %q, err = %v, want %q", got, err, want)
	}
}

// replyRules are the rules for stores that keep replies (replies.Keeper).
var replyRules = []rule{
	{name: "replies/are written with the row or not at all", why: "no reply may tell what never happened, none may be lost, and their numbers have no gaps (S67)", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		_, others := boxes(w)
		first := posting(w.create(a), "table:q", "accepted", "started")
		first.Names = &naming.Names{Workflow: flowName, Name: "order-7", Key: "k-7"}
		plain := w.create(a)
		w.land(a.writers[0], first, plain)
		// The name of this run belongs to another run, so the store must keep nothing of the new
		// run.
		again := posting(w.create(a), "table:q", "accepted")
		again.Names = first.Names
		if out, err := a.writers[0].Commit(w.ctx, []store.Transition{again}); err != nil || !out[0].Submitted.Exists {
			w.Fatalf("the same name again: %+v, err = %v", out, err)
		}
		parked := posting(next(first.Run, 1), "table:q", "parked")
		parked.Alerts = []store.Alert{{Kind: "parked", Step: "charge"}}
		parked.Announce = []string{"parked"}
		w.land(a.writers[0], parked, next(plain.Run, 1))
		stale := posting(next(first.Run, 1), "table:q", "failed")
		if out, err := b.writers[0].Commit(w.ctx, []store.Transition{stale}); err != nil || out[0].Landed {
			w.Fatalf("a stale row: %+v, err = %v", out, err)
		}
		w.bury(a)
		if out, err := a.writers[0].Commit(w.ctx, []store.Transition{posting(next(first.Run, 2), "table:q", "failed")}); err == nil {
			w.Fatalf("the row of a dead engine: %+v", out)
		}
		got, err := others.OfRun(w.ctx, first.Run)
		wantTold(w, got, err, "1:accepted", "2:started", "3:parked")
		if r := got[0]; r.Name != "order-7" || r.Key != "k-7" || r.Workflow != flowName || r.Correlation != "c-1" || r.Sink != "table:q" || !r.At.Equal(first.At) || r.Done {
			w.Errorf("the first reply: %+v", r)
		}
		if alerts, err := w.Store.Alerts(w.ctx, first.Run, 10); err != nil || len(alerts) != 1 {
			w.Errorf("a reply is no alert: %+v, err = %v", alerts, err)
		}
		if got, err := others.OfRun(w.ctx, plain.Run); err != nil || len(got) != 0 {
			w.Errorf("a run without replies has %+v, err = %v", got, err)
		}
	}},
	{name: "replies/are taken once and in the order of their run", why: "a consumer must not read that a run has succeeded before it reads that the run was accepted (S67)", run: func(w *world) {
		a := w.join(w.Store, 1)
		mine, others := boxes(w)
		one, two, other := posting(w.create(a), "table:q", "accepted", "started"), posting(w.create(a), "table:q", "accepted"), posting(w.create(a), "table:p", "accepted")
		w.land(a.writers[0], one, two, other)
		got, err := others.Waiting(w.ctx, "table:q", 10)
		wantTold(w, got, err, "1:accepted", "2:started", "1:accepted")
		got, err = mine.Take(w.ctx, "table:q", 10)
		wantTold(w, got, err, "1:accepted", "1:accepted")
		got, err = others.Take(w.ctx, "table:q", 10)
		wantTold(w, got, err, "2:started")
		got, err = mine.Take(w.ctx, "table:q", 10)
		wantTold(w, got, err)
		lag, err := others.Lag(w.ctx)
		if err != nil || len(lag) != 1 || lag[0].Sink != "table:p" || lag[0].Waiting != 1 || !lag[0].Oldest.Equal(other.At) {
			w.Errorf("lag = %+v, err = %v", lag, err)
		}
		if err := mine.Hint(w.ctx, "q", "p"); err != nil {
			w.Errorf("hint: %v", err)
		}
	}},
	{name: "replies/are claimed by one engine and come back when it is silent", why: "an engine that dies must not keep a reply for itself, and two engines must not overtake each other", run: func(w *world) {
		a := w.join(w.Store, 1)
		mine, others := boxes(w)
		one, two := posting(w.create(a), "webhook:q", "accepted", "started"), posting(w.create(a), "webhook:q", "accepted")
		w.land(a.writers[0], one, two, posting(w.create(a), "table:q", "accepted"))
		due := func(want ...string) {
			w.Helper()
			if got, err := others.Due(w.ctx, "webhook:", "webhook;", 10); err != nil || !slices.Equal(got, want) {
				w.Errorf("due = %q, err = %v, want %q", got, err, want)
			}
		}
		due("webhook:q")
		got, err := mine.Claim(w.ctx, "webhook:q", 1, time.Hour)
		wantTold(w, got, err, "1:accepted")
		if len(got) != 1 || got[0].Run != one.Run || got[0].Tries != 1 {
			w.Errorf("claimed %+v", got)
		}
		// This claim ends at once, because its duration is 0. The claim of a dead engine ends in
		// the same way, but later.
		got, err = others.Claim(w.ctx, "webhook:q", 10, 0)
		wantTold(w, got, err, "1:accepted")
		due("webhook:q")
		got, err = others.Claim(w.ctx, "webhook:q", 10, time.Hour)
		wantTold(w, got, err, "1:accepted")
		if len(got) != 1 || got[0].Run != two.Run || got[0].Tries != 2 {
			w.Errorf("claimed again: %+v", got)
		}
		due()
		// After a reply was delivered, the next reply of its run can be claimed. The first
		// reply stays delivered.
		for range 2 {
			if err := mine.Delivered(w.ctx, replies.ID{Run: one.Run, N: 1}, replies.ID{Run: 77, N: 1}); err != nil {
				w.Fatal(err)
			}
		}
		got, err = mine.Claim(w.ctx, "webhook:q", 10, time.Hour)
		wantTold(w, got, err, "2:started")
		if err := mine.Later(w.ctx, replies.ID{Run: one.Run, N: 2}, time.Hour, "refused"); err != nil {
			w.Fatal(err)
		}
		due()
		if err := others.Later(w.ctx, replies.ID{Run: one.Run, N: 2}, 0, "refused again"); err != nil {
			w.Fatal(err)
		}
		due("webhook:q")
		got, err = mine.OfRun(w.ctx, one.Run)
		wantTold(w, got, err, "1:accepted", "2:started")
		if len(got) == 2 && (!got[0].Done || got[0].Why != "" || got[1].Done || got[1].Why != "refused again") {
			w.Errorf("the replies of the run: %+v", got)
		}
		// Later does not change a reply that is delivered already.
		if err := mine.Later(w.ctx, replies.ID{Run: one.Run, N: 1}, time.Hour, "late"); err != nil {
			w.Fatal(err)
		}
		due("webhook:q")
	}},
	{name: "replies/that wait keep their run for some days", why: "a sink that is down for a day loses nothing, and the outbox must not grow without end (S67)", run: func(w *world) {
		mine, _ := boxes(w)
		if _, ok := w.Store.Store.(store.Retainer); !ok {
			return // the store keeps all runs
		}
		a := w.join(w.Store, 1)
		now := time.Now()
		ended := func(sink string, ago time.Duration) status.RunID {
			c := w.create(a)
			c.At = now.Add(-30 * 24 * time.Hour)
			w.land(a.writers[0], c)
			t := posting(end(c.Run, 1, status.RunSucceeded), sink, "succeeded")
			t.At = now.Add(-ago)
			w.land(a.writers[0], t)
			return c.Run
		}
		taken, fresh, old := ended("table:taken", replies.KeepFor-time.Hour), ended("table:q", replies.KeepFor-time.Hour), ended("table:q", replies.KeepFor+time.Hour)
		got, err := mine.Take(w.ctx, "table:taken", 10)
		wantTold(w, got, err, "1:succeeded")
		w.forgets(w.Other, now.Add(-time.Hour), 2, 1)
		w.gone(taken, "taken")
		w.gone(old, "old")
		for _, run := range []status.RunID{taken, old} {
			got, err = mine.OfRun(w.ctx, run)
			wantTold(w, got, err)
		}
		got, err = mine.Take(w.ctx, "table:q", 10)
		wantTold(w, got, err, "1:succeeded")
		w.forgets(w.Store, now.Add(-time.Hour), 1, 0)
		w.gone(fresh, "fresh")
	}},
}
