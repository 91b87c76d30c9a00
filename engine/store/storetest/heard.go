package storetest

import (
	"errors"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// heard returns a transition that makes an actor the owner of a run. The parameter `read` is the
// number of messages of the run that the actor has read before.
func heard(a actor, run status.RunID, seq, read int32) store.Transition {
	t := next(run, seq)
	t.Owner, t.Heard = &a.id, &read
	return t
}

var heardRules = []rule{
	{name: "heard/a claim lands only if nothing was said since", why: "a cancel that was recorded before the claim is decided before the first call (S85; language.md, Verbs before work)", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		ids := w.started(a, 4)
		said := w.posted(ids[1], 1)
		w.posted(ids[3], 2)
		stale := func(what string, o store.Outcome) {
			w.Helper()
			if o.Landed || !errors.Is(o.Err, store.ErrStale) {
				w.Errorf("%s: outcome = %+v, want ErrStale", what, o)
			}
		}
		// The store refuses the takeover of a run if engine b has not read all messages of
		// the run. First the takeover is the only transition of its batch. Then its batch
		// also has transitions that are committed.
		stale("alone", w.commit(b.writers[0], heard(b, ids[1], 1, 0))[0])
		w.wantRows(ids[1], 1)
		out := w.commit(b.writers[0], heard(b, ids[0], 1, 0), heard(b, ids[1], 1, 0), next(ids[2], 1), heard(b, ids[3], 1, 1))
		if !out[0].Landed || !out[2].Landed {
			w.Errorf("outcomes = %+v, want the first and the third landed", out)
		}
		stale("beside others", out[1])
		stale("more than were read", out[3])
		for i, want := range []actor{b, a, a, a} {
			if h, _ := w.load(ids[i]); h.Owner != want.id {
				w.Errorf("run %d is owned by engine %d, want %d", ids[i], h.Owner, want.id)
			}
		}
		w.wantMessages(ids[1], said...)
		// An engine that has read all messages can take over the run. It does not matter
		// whether its row consumes the messages.
		answers := heard(b, ids[1], 1, 1)
		answers.Consumed = said
		w.land(b.writers[0], answers, heard(b, ids[3], 1, 2))
		w.wantMessages(ids[1])
	}},
	{name: "heard/beside whatever else a batch holds", why: "claims share commits with rows of every kind", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		for name, change := range map[string]func(t *store.Transition, said store.MessageID){
			"creates": func(*store.Transition, store.MessageID) {},
			"alerts":  func(t *store.Transition, _ store.MessageID) { t.Alerts = []store.Alert{{Kind: "overdue"}} },
			"instances": func(t *store.Transition, _ store.MessageID) {
				t.NewNodes = []store.NodeName{{Node: 1, Name: "a[0]"}}
			},
			"answers": func(t *store.Transition, said store.MessageID) { t.Consumed = []store.MessageID{said} },
		} {
			ids := w.started(a, 3)
			w.posted(ids[0], 1)
			other := next(ids[2], 1)
			change(&other, w.posted(ids[2], 1)[0])
			out := w.commit(b.writers[0], heard(b, ids[0], 1, 0), heard(b, ids[1], 1, 0), other, w.create(b))
			if out[0].Landed || !errors.Is(out[0].Err, store.ErrStale) || !out[1].Landed || !out[2].Landed || !out[3].Landed {
				w.Errorf("beside %s: outcomes = %+v, want ErrStale, then landed", name, out)
			}
			w.wantRows(ids[0], 1)
		}
	}},
	{name: "heard/a lost answer is not taken back", why: "sent again under the same token it is the same row: what landed stays, and what was refused stays so", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		for _, landed := range []bool{true, false} {
			ids := w.started(a, 2)
			w.posted(ids[1], 1)
			w.Lose(w.T, landed)
			out := w.commit(b.writers[0], heard(b, ids[0], 1, 0), heard(b, ids[1], 1, 0))
			if !out[0].Landed || out[1].Landed || !errors.Is(out[1].Err, store.ErrStale) {
				w.Errorf("lost after landing = %t: outcomes = %+v, want landed, ErrStale", landed, out)
			}
			w.wantRows(ids[0], 2)
			w.wantRows(ids[1], 1)
		}
	}},
}
