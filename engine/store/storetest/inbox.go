package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

var inboxRules = []rule{
	{name: "inbox/a message is durable and in order", why: "a verb that was acknowledged is answered, whatever happens to the owner or to the command that posted it (I1)", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		before := w.tick(a).Now
		want := []store.Message{
			{Run: ids[0], At: base, Kind: store.MessageVerb, By: "ann", Dedup: "one", Data: []byte{0, 255}},
			{Run: ids[0], At: base.Add(-time.Hour), Kind: store.MessageReply, By: "engine 7", Data: []byte("late")},
			{Run: ids[0], Kind: store.MessageVerb},
		}
		w.post(store.Message{Run: ids[1], Kind: store.MessageVerb})
		for i := range want {
			id, err := []store.Store{w.Store, w.Other}[i%2].Post(w.ctx, want[i])
			if err != nil || i > 0 && id <= want[i-1].ID || id <= 0 {
				w.Fatalf("post %d: id = %d, err = %v, want a rising number", i, id, err)
			}
			want[i].ID = id
		}
		got, err := w.Other.Messages(w.ctx, ids[0], 0, 10)
		if err != nil || len(got) != 3 {
			w.Fatalf("messages = %+v, err = %v, want 3", got, err)
		}
		if at := got[2].At; at.Before(before) || at.After(w.tick(a).Now) {
			w.Errorf("a message without a time has %v, want store time", at)
		}
		got[2].At = time.Time{}
		for i := range got {
			if len(got[i].Data) == 0 {
				got[i].Data = nil // a store may return nil or an empty slice for no data
			}
		}
		if !reflect.DeepEqual(got, want) {
			w.Errorf("messages = %+v\nwant       %+v", got, want)
		}
		if got, err := w.Store.Messages(w.ctx, ids[0], 0, 2); err != nil || len(got) != 2 || got[0].ID != want[0].ID {
			w.Errorf("two messages = %+v, err = %v", got, err)
		}
		if h, _ := w.load(ids[0]); h.Owner != a.id || h.State != status.RunRunning {
			w.Errorf("a message changed the run: %+v", h)
		}
	}},
	{name: "inbox/said twice is there once", why: "a command that does not know whether its message arrived posts it again (T3); it must not be answered twice", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		m := store.Message{Run: ids[0], Kind: store.MessageReply, Dedup: strings.Repeat("d", naming.MaxDedupLen)}
		got := make([]store.MessageID, 8)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() {
				var err error
				if got[i], err = []store.Store{w.Store, w.Other}[i%2].Post(w.ctx, m); err != nil {
					w.Errorf("post: %v", err)
				}
			})
		}
		wg.Wait()
		for _, id := range got {
			if id != got[0] {
				w.Errorf("ids = %v, want one", got)
			}
		}
		w.wantMessages(ids[0], got[0])
		m.Run = ids[1]
		if other := w.post(m); other == got[0] {
			w.Errorf("the same of another run: id = %d, want its own", other)
		}
		m.Run = ids[0]
		t := next(ids[0], 1)
		t.Consumed = got[:1]
		w.land(a.writers[0], t)
		again := w.post(m)
		if again <= got[0] {
			w.Errorf("said again after it was answered: id = %d, want more than %d", again, got[0])
		}
		w.wantMessages(ids[0], again)
		w.post(store.Message{Run: ids[0], Kind: store.MessageVerb})
		w.post(store.Message{Run: ids[0], Kind: store.MessageVerb})
		if got, err := w.Other.Messages(w.ctx, ids[0], 0, 10); err != nil || len(got) != 3 {
			w.Errorf("messages = %+v, err = %v: without a dedup each counts", got, err)
		}
	}},
	{name: "inbox/a full one takes no more", why: "while no engine is alive, one sender must not fill the store; others still get through", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		signal := func(i int) store.Message {
			return store.Message{Run: ids[0], Kind: store.MessageVerb, Dedup: fmt.Sprint("signal ", i), Most: 3}
		}
		var want []store.MessageID
		for i := range 3 {
			want = append(want, w.post(signal(i)))
		}
		for _, st := range []store.Store{w.Store, w.Other} {
			if id, err := st.Post(w.ctx, signal(3)); !errors.Is(err, naming.ErrInboxFull) {
				w.Errorf("message 4 of 3: id = %d, err = %v, want ErrInboxFull", id, err)
			}
		}
		if id, err := w.Store.Post(w.ctx, signal(1)); err != nil || id != want[1] {
			w.Errorf("posted again: id = %d, err = %v, want %d: it is there already", id, err, want[1])
		}
		w.wantMessages(ids[0], want...)
		w.post(store.Message{Run: ids[1], Kind: store.MessageVerb, Most: 1})
		if id, err := w.Store.Post(w.ctx, store.Message{Run: 77, Kind: store.MessageVerb, Most: 1}); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("post to no run: id = %d, err = %v, want ErrNotFound", id, err)
		}
		cancel := signal(4)
		cancel.Most = 4
		want = append(want, w.post(cancel), w.post(store.Message{Run: ids[0], Kind: store.MessageReply}))
		w.wantMessages(ids[0], want...)
		t := next(ids[0], 1)
		t.Consumed = want[:3]
		w.land(a.writers[0], t)
		w.wantMessages(ids[0], append(want[3:], w.post(signal(5)))...)
	}},
	{name: "inbox/a heavy one takes no more bytes", why: "1,000 signals of 1 MiB would fill the memory of the engine that reads them; a person must still be able to cancel the run", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		signal := func(i, size int) store.Message {
			return store.Message{Run: ids[0], Kind: store.MessageVerb, Dedup: fmt.Sprint("signal ", i), Data: make([]byte, size), Most: 10, MostBytes: 10_000}
		}
		want := []store.MessageID{w.post(signal(0, 6000)), w.post(signal(1, 3000)), w.post(signal(2, 0))}
		for _, st := range []store.Store{w.Store, w.Other} {
			if id, err := st.Post(w.ctx, signal(3, 1001)); !errors.Is(err, naming.ErrInboxBytes) || !errors.Is(err, naming.ErrInboxFull) {
				w.Errorf("byte 10,001 of 10,000: id = %d, err = %v, want ErrInboxBytes", id, err)
			}
		}
		want = append(want, w.post(signal(3, 1000))) // exactly 10,000 bytes
		if id, err := w.Store.Post(w.ctx, signal(1, 3000)); err != nil || id != want[1] {
			w.Errorf("posted again: id = %d, err = %v, want %d: it is there already", id, err, want[1])
		}
		few := signal(4, 1)
		few.Most = 4 // both bounds are reached: Post must return the error about the number
		if id, err := w.Store.Post(w.ctx, few); !errors.Is(err, naming.ErrInboxFull) || errors.Is(err, naming.ErrInboxBytes) {
			w.Errorf("message 5 of 4: id = %d, err = %v, want ErrInboxFull without ErrInboxBytes", id, err)
		}
		retry := signal(5, 500)
		retry.MostBytes = 10_500
		cancel := signal(6, 500)
		cancel.MostBytes = 0
		want = append(want, w.post(retry), w.post(cancel))
		only := store.Message{Run: ids[0], Kind: store.MessageVerb, MostBytes: 11_000} // no bound for the number
		want = append(want, w.post(only))
		only.Data = []byte{1}
		if id, err := w.Other.Post(w.ctx, only); !errors.Is(err, naming.ErrInboxBytes) {
			w.Errorf("byte 11,001 of 11,000: id = %d, err = %v, want ErrInboxBytes", id, err)
		}
		w.wantMessages(ids[0], want...)
		w.post(store.Message{Run: ids[1], Kind: store.MessageVerb, Data: make([]byte, 10), MostBytes: 10})
		if id, err := w.Store.Post(w.ctx, store.Message{Run: 77, Kind: store.MessageVerb, Data: make([]byte, 2), MostBytes: 1}); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("post to no run: id = %d, err = %v, want ErrNotFound", id, err)
		}
		t := next(ids[0], 1)
		t.Consumed = want[:1]
		w.land(a.writers[0], t)
		w.wantMessages(ids[0], append(want[1:], w.post(signal(7, 5000)))...)
	}},
	{name: "inbox/of no run is not found", why: "a verb on an unknown run must not be accepted and then lost", run: func(w *world) {
		for range 2 {
			if id, err := w.Store.Post(w.ctx, store.Message{Run: 77, Kind: store.MessageVerb, Dedup: "x"}); !errors.Is(err, store.ErrNotFound) {
				w.Errorf("post: id = %d, err = %v, want ErrNotFound", id, err)
			}
		}
		if got, err := w.Other.Messages(w.ctx, 77, 0, 10); len(got) != 0 || err != nil {
			w.Errorf("messages = %+v, err = %v, want none", got, err)
		}
	}},
	{name: "inbox/what cannot be kept is refused", why: "one bad byte must not stop a run's inbox for ever", run: func(w *world) {
		a := w.join(w.Store, 1)
		id := w.started(a, 1)[0]
		for name, m := range map[string]store.Message{
			"no kind":        {Run: id},
			"dedup too long": {Run: id, Kind: store.MessageVerb, Dedup: strings.Repeat("é", naming.MaxDedupLen+1)},
			"dedup not text": {Run: id, Kind: store.MessageVerb, Dedup: "a\x00"},
			"too large":      {Run: id, Kind: store.MessageVerb, Data: make([]byte, store.MaxRowBytes+1)},
		} {
			if got, err := w.Store.Post(w.ctx, m); err == nil {
				w.Errorf("%s: posted as %d", name, got)
			}
		}
		w.wantMessages(id)
		w.post(store.Message{Run: id, Kind: store.MessageVerb, By: "a\x00\xff'); --", Dedup: strings.Repeat("é", naming.MaxDedupLen)})
		if got, err := w.Other.Messages(w.ctx, id, 0, 10); err != nil || len(got) != 1 || got[0].By != "a\uFFFD\uFFFD'); --" {
			w.Errorf("messages = %+v, err = %v, want the text mended", got, err)
		}
	}},
	{name: "inbox/does not wait for the owner", why: "a message is never in conflict: a frozen owner must not keep people from speaking",
		need: func(h Harness) bool { return h.Hold != nil },
		run: func(w *world) {
			a := w.join(w.Store, 1)
			id := w.started(a, 1)[0]
			first := w.post(store.Message{Run: id, Kind: store.MessageVerb})
			wait, release := w.Hold(w.T, id, 1)
			t := next(id, 1)
			t.Consumed = []store.MessageID{first}
			landed := w.landLater(a.writers[0], t)
			wait(1)
			second := w.post(store.Message{Run: id, Kind: store.MessageVerb})
			w.wantMessages(id, first, second)
			release()
			landed()
			w.wantMessages(id, second)
		}},
	{name: "tick/shows for whom messages wait", why: "the owner learns of them with the renewal of its lease, though every hint is lost; of nobody's runs any engine may answer, and in doing so take them over", run: func(w *world) {
		a, b, gone := w.join(w.Store, 1), w.join(w.Other, 1), w.join(w.Other, 1)
		own, foreign, dead := w.started(a, 4), w.started(b, 2), w.started(gone, 2)
		free := next(own[1], 1)
		free.Owner, free.NextCheck = ptr(store.EngineID(0)), store.Never
		w.land(a.writers[0], free, end(own[2], 1, status.RunSucceeded))
		w.land(b.writers[0], end(foreign[1], 1, status.RunFailed))
		w.land(gone.writers[0], end(dead[0], 1, status.RunFailed))
		for _, id := range slices.Concat(own[:3], foreign, dead) {
			w.post(store.Message{Run: id, Kind: store.MessageVerb})
			w.post(store.Message{Run: id, Kind: store.MessageReply})
		}
		w.bury(gone)
		// The run `own[3]` has no message. The run `dead[1]` is an open run of a dead member: the
		// filter Addressed selects it, but Tick.Inbox leaves it out.
		w.wantInbox(a, own[0], own[1], own[2], dead[0])
		w.wantInbox(b, own[1], foreign[0], foreign[1], dead[0])
		if got, err := IDs(w.Store.Runs(w.ctx, Addressed(10))); err != nil || !slices.Equal(got, dead[1:2]) {
			w.Errorf("open runs of the dead that are spoken to = %v, err = %v, want %v", got, err, dead[1:2])
		}
		if got, err := w.Store.Tick(w.ctx, a.id, time.Hour, 1); err != nil || len(got.Inbox) != 1 {
			w.Errorf("tick with limit 1 = %+v, err = %v", got, err)
		}
		if got, err := IDs(w.Store.Runs(w.ctx, Orphans(0, 10))); err != nil || !slices.Equal(got, []status.RunID{own[1], dead[1]}) {
			w.Errorf("orphans = %v, err = %v, want %v", got, err, []status.RunID{own[1], dead[1]})
		}
		if got, err := IDs(w.Other.Runs(w.ctx, Abandoned(0, 10))); err != nil || !slices.Equal(got, dead[1:2]) {
			w.Errorf("orphans of the dead = %v, err = %v, want %v", got, err, dead[1:2])
		}
	}},
	{name: "tick/every waiting run has a turn", why: "runs that no engine can work on must not keep all others waiting", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Store, 1)
		ids := w.started(a, 7)
		for i := range ids { // the last run has the oldest message
			w.post(store.Message{Run: ids[len(ids)-1-i], Kind: store.MessageVerb})
		}
		page := func(x actor) []status.RunID {
			w.Helper()
			got, err := w.Store.Tick(w.ctx, x.id, time.Hour, 3)
			if err != nil {
				w.Fatal(err)
			}
			return got.Inbox
		}
		for range 2 {
			for _, want := range [][]status.RunID{ids[:3], ids[3:6], ids[6:]} {
				if got := page(a); !slices.Equal(got, want) {
					w.Errorf("page = %v, want %v", got, want)
				}
				// A page that engine a has read does not change the pages of engine b.
				if got := page(b); len(got) != 0 {
					w.Errorf("page of another engine = %v, want none", got)
				}
			}
		}
	}},
	{name: "orphans/a run at rest with a message", why: "a verb to a run whose engine is gone needs an engine that answers: nothing else would ever look at it", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 3)
		for i, to := range []status.RunState{status.RunParked, status.RunCompensationFailed, status.RunParked} {
			w.land(a.writers[0], end(ids[i], 1, to))
		}
		w.post(store.Message{Run: ids[1], Kind: store.MessageVerb})
		m := w.post(store.Message{Run: ids[2], Kind: store.MessageVerb})
		t := next(ids[2], 2)
		t.Consumed = []store.MessageID{m}
		w.land(a.writers[0], t)
		w.bury(a)
		if got, err := IDs(w.Other.Runs(w.ctx, Orphans(0, 10))); err != nil || !slices.Equal(got, ids[1:2]) {
			w.Errorf("orphans = %v, err = %v, want %v", got, err, ids[1:2])
		}
		if got, err := IDs(w.Other.Runs(w.ctx, Addressed(10))); err != nil || !slices.Equal(got, ids[1:2]) {
			w.Errorf("spoken to = %v, err = %v, want %v", got, err, ids[1:2])
		}
	}},
	{name: "wake/a message and a run of nobody are hinted at", why: "people and detached runs do not wait for the next scan; hints may be lost, so it is said until one comes",
		need: func(h Harness) bool { _, ok := h.Store.(store.Waker); return ok },
		run: func(w *world) {
			a := w.join(w.Store, 1)
			id := w.started(a, 1)[0]
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			hints := w.Harness.Store.(store.Waker).Wakes(ctx)
			w.hinted(hints, func() { w.post(store.Message{Run: id, Kind: store.MessageVerb}) })
			w.hinted(hints, func() {
				c := w.create(a)
				c.Owner = ptr(store.EngineID(0))
				w.submit(a.writers[0], c, naming.Names{Workflow: flowName})
			})
			cancel()
			deadline := time.After(10 * time.Second)
			for open := true; open; {
				select {
				case _, open = <-hints:
				case <-deadline:
					w.Fatal("the channel stays open after its context has ended")
				}
			}
		}},
}

// messaging has helpers that post messages and check inboxes.
type messaging struct{ *frame }

// hinted calls the function `say` every 200 ms until a hint arrives. The test fails if no
// hint arrives within 10 s.
func (w messaging) hinted(hints <-chan struct{}, say func()) {
	w.Helper()
	deadline := time.After(10 * time.Second)
	for {
		say()
		select {
		case <-hints:
			return
		case <-time.After(200 * time.Millisecond):
		case <-deadline:
			w.Fatal("no hint came")
		}
	}
}

func (w messaging) post(m store.Message) store.MessageID {
	w.Helper()
	id, err := w.Other.Post(w.ctx, m)
	if err != nil {
		w.Fatalf("post to run %d: %v", m.Run, err)
	}
	return id
}

// wantMessages checks that exactly these messages wait for a run.
func (w messaging) wantMessages(run status.RunID, want ...store.MessageID) {
	w.Helper()
	got, err := w.Store.Messages(w.ctx, run, 0, 1000)
	if err != nil {
		w.Fatalf("messages of run %d: %v", run, err)
	}
	var ids []store.MessageID
	for _, m := range got {
		ids = append(ids, m.ID)
	}
	if !slices.Equal(ids, want) {
		w.Errorf("messages of run %d = %v, want %v", run, ids, want)
	}
	for _, id := range want {
		if waits, err := w.Other.Waits(w.ctx, run, id); err != nil || !waits {
			w.Errorf("message %d of run %d waits: %t, err = %v", id, run, waits, err)
		}
		if waits, err := w.Other.Waits(w.ctx, run+1, id); err != nil || waits {
			w.Errorf("message %d of another run waits: %t, err = %v", id, waits, err)
		}
	}
}

// wantInbox checks that Tick.Inbox of an engine has exactly these runs, in any order.
func (w messaging) wantInbox(a actor, want ...status.RunID) {
	w.Helper()
	got := w.tick(a).Inbox
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.Errorf("inbox of engine %d = %v, want %v", a.id, got, want)
	}
}

var consumedRules = []rule{
	{name: "consumed/messages go with the row that answers them", why: "the answer and the end of the question are one: no crash between them can ask twice or never", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 3)
		m := w.posted(ids[0], 3)
		other := w.posted(ids[1], 1)
		t := next(ids[0], 1)
		t.Consumed = []store.MessageID{m[2], m[0]}
		w.land(a.writers[0], t, next(ids[1], 1), next(ids[2], 1))
		w.wantMessages(ids[0], m[1])
		w.wantMessages(ids[1], other...)
		w.wantInbox(a, ids[0], ids[1])
		if waits, err := w.Store.Waits(w.ctx, ids[0], m[2]); err != nil || waits {
			w.Errorf("a message that was answered waits: %t, err = %v", waits, err)
		}
		// One batch may consume messages of two runs, and also create a run and end another
		// run.
		t, u := next(ids[0], 2), end(ids[1], 2, status.RunSucceeded)
		t.Consumed, u.Consumed = m[1:2], other
		w.land(a.writers[0], t, u, w.create(a))
		w.wantMessages(ids[0])
		w.wantMessages(ids[1])
		w.wantInbox(a)
		// A row may consume a message that was removed before.
		t = next(ids[0], 3)
		t.Consumed = m
		w.land(a.writers[0], t)
	}},
	{name: "consumed/only the run's own", why: "a number that was mistaken must not cost another run what was said to it", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		m := w.posted(ids[1], 1)
		t := next(ids[0], 1)
		t.Consumed = m
		w.land(a.writers[0], t, next(ids[1], 1))
		w.wantMessages(ids[1], m...)
	}},
	{name: "consumed/a stale row keeps its messages", why: "what did not land answered nothing; its neighbours did", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		ids := w.started(a, 3)
		var asked [][]store.MessageID
		for _, id := range ids {
			asked = append(asked, w.posted(id, 2))
		}
		w.land(b.writers[0], next(ids[1], 1)) // a row that consumes no message
		var batch []store.Transition
		for i, id := range ids {
			t := next(id, 1)
			t.Consumed = asked[i]
			batch = append(batch, t)
		}
		out := w.commit(a.writers[0], batch...)
		if !out[0].Landed || !errors.Is(out[1].Err, store.ErrStale) || !out[2].Landed {
			w.Fatalf("outcomes = %+v, want landed, ErrStale, landed", out)
		}
		w.wantMessages(ids[0])
		w.wantMessages(ids[1], asked[1]...)
		w.wantMessages(ids[2])
		again := next(ids[1], 2)
		again.Consumed = asked[1]
		w.land(a.writers[0], again)
		w.wantMessages(ids[1])
	}},
	{name: "consumed/a refused row keeps its messages", why: "a run that cannot be stored is quarantined with what was said to it", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		m, n := w.posted(ids[0], 1), w.posted(ids[1], 1)
		bad, good := next(ids[0], 1), next(ids[1], 1)
		bad.State, bad.Consumed, good.Consumed = status.RunQueued, m, n
		out := w.commit(a.writers[0], bad, good)
		if out[0].Landed || !out[1].Landed {
			w.Errorf("outcomes = %+v, want refused, landed", out)
		}
		w.wantMessages(ids[0], m...)
		w.wantMessages(ids[1])
	}},
	{name: "consumed/a lost answer consumes once", why: "sent again under the same token it is the same row: what was said meanwhile waits for the next one", run: func(w *world) {
		a := w.join(w.Store, 1)
		for _, landed := range []bool{true, false} {
			ids := w.started(a, 2)
			m := w.posted(ids[0], 2)
			t := next(ids[0], 1)
			t.Consumed = m[:1]
			w.Lose(w.T, landed)
			w.land(a.writers[0], t, next(ids[1], 1))
			w.wantMessages(ids[0], m[1])
			w.wantRows(ids[0], 2)
			rest := next(ids[0], 2)
			rest.Consumed = m[1:]
			w.land(a.writers[0], rest)
			w.wantMessages(ids[0])
		}
		w.wantInbox(a)
	}},
	{name: "consumed/a fenced engine answers nothing", why: "survivors answer; the dead engine's answer did not land (I3)", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		id := w.started(a, 1)[0]
		m := w.posted(id, 2)
		w.bury(a)
		t := next(id, 1)
		t.Consumed = m[:1]
		if out, err := a.writers[0].Commit(w.ctx, []store.Transition{t}); !errors.Is(err, store.ErrFenced) {
			w.Errorf("outcomes = %+v, err = %v, want ErrFenced", out, err)
		}
		w.wantMessages(id, m...)
		t.Owner = &b.id // the row that consumes the message also makes engine b the owner
		w.land(b.writers[0], t)
		w.wantMessages(id, m[1])
		w.wantInbox(b, id)
	}},
	{name: "discard/only of runs that ended", why: "to an ended run nothing can be answered; of an open one only an answer removes a message", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		open, ended := w.posted(ids[0], 2), w.posted(ids[1], 3)
		if err := w.Other.Discard(w.ctx, ids[1], ended); err != nil {
			w.Errorf("discard of an open run: %v", err)
		}
		w.wantMessages(ids[1], ended...)
		w.land(a.writers[0], end(ids[1], 1, status.RunCancelled))
		w.wantInbox(a, ids[0], ids[1])
		for range 2 {
			if err := w.Other.Discard(w.ctx, ids[1], slices.Concat(ended[:2], open)); err != nil {
				w.Errorf("discard: %v", err)
			}
		}
		w.wantMessages(ids[0], open...)
		w.wantMessages(ids[1], ended[2])
		if err := w.Store.Discard(w.ctx, ids[1], ended); err != nil {
			w.Errorf("discard: %v", err)
		}
		w.wantInbox(a, ids[0])
		if err := w.Store.Discard(w.ctx, 77, ended); err != nil {
			w.Errorf("discard of no run: %v", err)
		}
		if err := w.Store.Discard(w.ctx, ids[1], nil); err != nil {
			w.Errorf("discard of nothing: %v", err)
		}
	}},
}

// posted puts n messages into a run's inbox, and returns the ids of the messages.
func (w messaging) posted(run status.RunID, n int) []store.MessageID {
	w.Helper()
	var ids []store.MessageID
	for i := range n {
		ids = append(ids, w.post(store.Message{Run: run, Kind: store.MessageVerb, By: "test", Data: fmt.Append(nil, i)}))
	}
	return ids
}
