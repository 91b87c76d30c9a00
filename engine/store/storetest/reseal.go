package storetest

import (
	"bytes"
	"errors"
	"slices"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/rekey"
)

// reseals reports whether the store under test can replace sealed data, and its database user has
// the right to do so.
func reseals(h Harness) bool { _, ok := rekey.Of(h.Store); return ok && !h.Limited }

// resealer returns the role rekey.Resealer of two stores with the same data: `mine` of the store
// under test, and `others` of a second store, as another process would open it.
func (w *frame) resealer() (mine, others rekey.Resealer) {
	mine, _ = rekey.Of(w.Store)
	others, _ = rekey.Of(w.Other)
	return mine, others
}

// rekeyed returns the argument for a call of Reseal. The call replaces the data of the first n rows
// of the run, and adds one new row at the end of the run's journal.
func (w *frame) rekeyed(run status.RunID, n int) rekey.Resealed {
	w.Helper()
	_, rows := w.load(run)
	d := rekey.Resealed{Run: run, Next: int32(len(rows)), At: rows[len(rows)-1].At, Data: []byte("added")}
	for _, r := range rows[:n] {
		d.Rows = append(d.Rows, store.Row{Seq: r.Seq, Data: append([]byte("new"), r.Data...)})
	}
	return d
}

// resealRules are the rules for stores that can replace sealed data (rekey.Resealer).
var resealRules = []rule{
	{name: "reseal/changes data and nothing else", why: "a run that was sealed again must be the same run", run: func(w *world) {
		mine, _ := w.resealer()
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		w.land(a.writers[0], next(ids[0], 1), next(ids[1], 1))
		head, before := w.load(ids[0])
		d := w.rekeyed(ids[0], 2)
		if err := mine.Reseal(w.ctx, d); err != nil {
			w.Fatal(err)
		}
		after, rows := w.load(ids[0])
		if after != head {
			w.Errorf("head = %+v, want %+v as before", after, head)
		}
		if len(rows) != 3 || !bytes.Equal(rows[2].Data, []byte("added")) || !rows[2].At.Equal(d.At) {
			w.Fatalf("rows = %+v, want one more, with the time of the last", rows)
		}
		for i, r := range before {
			if !rows[i].At.Equal(r.At) || !bytes.Equal(rows[i].Data, append([]byte("new"), r.Data...)) {
				w.Errorf("row %d = %+v, want new data at the former time", i, rows[i])
			}
		}
		if _, rows := w.load(ids[1]); len(rows) != 2 || !bytes.Equal(rows[0].Data, []byte{1, 2, 3}) {
			w.Errorf("another run has %+v", rows)
		}
		w.land(a.writers[0], next(ids[0], 3))
	}},
	{name: "reseal/the owner's next row is stale", why: "the row would have been tagged for the former row before it", run: func(w *world) {
		mine, _ := w.resealer()
		a := w.join(w.Store, 1)
		ids := w.started(a, 1)
		if err := mine.Reseal(w.ctx, w.rekeyed(ids[0], 1)); err != nil {
			w.Fatal(err)
		}
		if out := w.commit(a.writers[0], next(ids[0], 1)); out[0].Landed || !errors.Is(out[0].Err, store.ErrStale) {
			w.Errorf("outcome = %+v, want ErrStale", out[0])
		}
		w.wantRows(ids[0], 2)
	}},
	{name: "reseal/not over a row that came meanwhile", why: "new tags must not be written for rows that nobody has checked", run: func(w *world) {
		mine, others := w.resealer()
		a := w.join(w.Store, 1)
		ids := w.started(a, 1)
		first, second := w.rekeyed(ids[0], 1), w.rekeyed(ids[0], 1)
		if err := others.Reseal(w.ctx, first); err != nil {
			w.Fatal(err)
		}
		_, want := w.load(ids[0])
		second.Messages = []store.Message{{ID: 1, Data: []byte("x")}}
		if err := mine.Reseal(w.ctx, second); !errors.Is(err, store.ErrStale) {
			w.Errorf("the second: err = %v, want ErrStale", err)
		}
		if _, got := w.load(ids[0]); !slices.EqualFunc(got, want, func(a, b store.Row) bool { return bytes.Equal(a.Data, b.Data) }) {
			w.Errorf("rows = %+v, want %+v", got, want)
		}
		short := w.rekeyed(ids[0], 1)
		short.Next = 9
		if err := mine.Reseal(w.ctx, short); !errors.Is(err, store.ErrStale) {
			w.Errorf("rows that are not there: err = %v, want ErrStale", err)
		}
		if _, got := w.load(ids[0]); len(got) != len(want) || !bytes.Equal(got[0].Data, want[0].Data) {
			w.Errorf("rows = %+v, want nothing of it", got)
		}
		if err := mine.Reseal(w.ctx, rekey.Resealed{Run: 7, Rows: []store.Row{{Data: []byte("x")}}, Next: 1, At: base, Data: []byte("x")}); !errors.Is(err, store.ErrStale) {
			w.Errorf("a run that is not there: err = %v, want ErrStale", err)
		}
	}},
	{name: "reseal/messages and late replies", why: "they are sealed, too, and nothing may keep an older key in use", run: func(w *world) {
		mine, others := w.resealer()
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		var messages []store.MessageID
		for _, run := range ids {
			id, err := w.Store.Post(w.ctx, store.Message{Run: run, Kind: store.MessageVerb, By: "ann", Data: []byte("verb")})
			if err != nil {
				w.Fatal(err)
			}
			messages = append(messages, id)
		}
		d := rekey.Resealed{Run: ids[0], Messages: []store.Message{{ID: messages[0], Data: []byte("new verb")}, {ID: messages[1], Data: []byte("of another run")}, {ID: 1 << 40}}}
		if hasEvidence(w.Harness) {
			for _, call := range []int32{1, 2} {
				if err := w.Store.KeepLate(w.ctx, store.LateReply{Run: ids[0], Node: 1, Call: call, Step: "charge", At: base, Outcome: "ok", Data: []byte("late")}); err != nil {
					w.Fatal(err)
				}
			}
			d.Late = []store.LateReply{{Run: ids[0], Node: 1, Call: 2, Outcome: "ok", Data: []byte("new late")}}
		}
		if err := mine.Reseal(w.ctx, d); err != nil {
			w.Fatal(err)
		}
		w.wantRows(ids[0], 1) // no row was changed, so Reseal added no row either
		got, late, err := others.AllMessages(w.ctx, ids...)
		if err != nil || len(got) != 2 || got[0].Run != ids[0] || got[0].ID != messages[0] || string(got[0].Data) != "new verb" || got[1].Run != ids[1] || string(got[1].Data) != "verb" {
			w.Errorf("messages = %+v, %v", got, err)
		}
		if hasEvidence(w.Harness) && (len(late) != 2 || late[0].Call != 1 || string(late[0].Data) != "late" || late[1].Run != ids[0] || string(late[1].Data) != "new late") {
			w.Errorf("late replies = %+v", late)
		}
		if ms, err := w.Other.Messages(w.ctx, ids[0], 0, 10); err != nil || len(ms) != 1 || ms[0].By != "ann" || ms[0].Kind != store.MessageVerb {
			w.Errorf("message = %+v, %v, want only its data changed", ms, err)
		}
		if none, late, err := mine.AllMessages(w.ctx); err != nil || len(none)+len(late) > 0 {
			w.Errorf("of no run: %+v, %+v, %v", none, late, err)
		}
	}},
	{name: "reseal/definitions in pages", why: "every definition is sealed, and a store may have many", run: func(w *world) {
		mine, others := w.resealer()
		for _, d := range []string{"d3", "d2"} {
			if _, err := w.Store.PutDefinition(w.ctx, store.Definition{Digest: d, Data: []byte(d), Workflows: []store.DefinedWorkflow{{Name: "w"}}}); err != nil {
				w.Fatal(err)
			}
		}
		if err := mine.ResealDefinition(w.ctx, "d2", []byte("new")); err != nil {
			w.Fatal(err)
		}
		if err := mine.ResealDefinition(w.ctx, "d9", []byte("new")); err != nil {
			w.Errorf("a definition that is not there: %v", err)
		}
		var got []string
		for after := ""; ; {
			page, err := others.Definitions(w.ctx, after, 2)
			if err != nil {
				w.Fatal(err)
			}
			for _, d := range page {
				got, after = append(got, d.Digest+"="+string(d.Data)), d.Digest
			}
			if len(page) < 2 {
				break
			}
		}
		if want := []string{"d1=definition", "d2=new", "d3=d3"}; !slices.Equal(got, want) {
			w.Errorf("definitions = %q, want %q", got, want)
		}
		if d, _, err := w.Other.Definition(w.ctx, w.flow); err != nil || len(d.Workflows) != 2 {
			w.Errorf("definition = %+v, %v", d, err)
		}
	}},
	{name: "reseal/a setting moves only from the known value", why: "two engines may change the key at once, and neither may undo what the other did", run: func(w *world) {
		mine, others := w.resealer()
		for _, step := range []struct {
			by              rekey.Resealer
			old, value, got string
		}{
			{mine, "", "a", "a"},
			{others, "", "b", "a"},
			{others, "a", "b,a", "b,a"},
			{mine, "a", "c,a", "b,a"},
			{mine, "b,a", "b", "b"},
		} {
			if got, err := step.by.Repin(w.ctx, "key", step.old, step.value); got != step.got || err != nil {
				w.Errorf("from %q to %q: %q, %v, want %q", step.old, step.value, got, err, step.got)
			}
		}
		if got, err := w.Other.Pin(w.ctx, "key", ""); got != "b" || err != nil {
			w.Errorf("the setting is %q, %v, want b", got, err)
		}
	}},
}
