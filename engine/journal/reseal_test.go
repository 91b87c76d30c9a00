package journal

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
)

// sealerOf returns a sealer with the given keys.
func sealerOf(t *testing.T, keys ...crypt.Key) crypt.Sealer {
	t.Helper()
	s, err := crypt.NewSealer(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keyPair returns two new keys.
func keyPair(t *testing.T) (older, newer crypt.Key) {
	t.Helper()
	var errs [2]error
	older, errs[0] = crypt.NewKey()
	newer, errs[1] = crypt.NewKey()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return older, newer
}

// twoKeys returns a sealer for the older of two keys, one for both of them with the newer one
// first, and one for the newer one.
func twoKeys(t *testing.T) (older, both, newer crypt.Sealer) {
	t.Helper()
	a, b := keyPair(t)
	return sealerOf(t, a), sealerOf(t, b, a), sealerOf(t, b)
}

// grown returns the rows with one more row behind them, which the sealer has tagged.
func grown(t *testing.T, reads crypt.Sealer, run status.RunID, rows []store.Row) []store.Row {
	t.Helper()
	var c chain
	for _, r := range rows {
		if err := c.follow(reads, run, r); err != nil {
			t.Fatalf("row %d: %v", r.Seq, err)
		}
	}
	at := historyTime.Add(time.Hour)
	data, _, err := NewRow{Run: run, Seq: c.rows, At: at, Before: c.Link}.Encode(reads, &Scratch{})
	if err != nil {
		t.Fatal(err)
	}
	return append(slices.Clone(rows), store.Row{Seq: c.rows, At: at, Data: data})
}

// journals are journals that a change of the key meets.
func journals(t *testing.T, older, both crypt.Sealer) map[string][]store.Row {
	t.Helper()
	mine := history(t, older, 7)
	plain := history(t, nil, 7)
	return map[string][]store.Row{
		"all rows of the older key":                       mine,
		"a row of the newer key at the end":               grown(t, both, 7, mine),
		"sealed by an earlier version":                    old(mine),
		"by an earlier version, then the older key":       grown(t, older, 7, old(mine)),
		"by an earlier version, then the newer key":       grown(t, both, 7, old(mine)),
		"plain, by an earlier version, then the older":    grown(t, older, 7, old(plain)),
		"checksums, then the older key":                   grown(t, older, 7, plain),
		"checksums, then the older key, then the newer":   grown(t, both, 7, grown(t, older, 7, plain)),
		"an earlier version, the older key and the newer": grown(t, both, 7, grown(t, older, 7, old(mine))),
	}
}

// An engine that has both keys reads a history in which either of them tagged rows, whichever
// rows came before the first tag. It still finds each change.
func TestHistoryOfTwoKeys(t *testing.T) {
	older, both, _ := twoKeys(t)
	for name, rows := range journals(t, older, both) {
		if at, err := verified(both, false, 7, rows); at >= 0 {
			t.Errorf("%s: row %d: %v", name, at, err)
		}
		last := len(rows) - 1
		if protectionOf(rows[last].Data[0]) != tagged {
			continue
		}
		for i := range rows {
			changed := slices.Clone(rows)
			changed[i].Data = bytes.Clone(rows[i].Data)
			changed[i].Data[len(changed[i].Data)-1] ^= 1
			if at, _ := verified(both, false, 7, changed); at < 0 {
				t.Errorf("%s: a change of row %d is not found", name, i)
			}
		}
	}
}

// Rows that were sealed again verify with the newer key alone, open to the same records, and
// hold nothing of the older key. Doing it again changes nothing.
func TestRowsAreSealedAgain(t *testing.T) {
	older, both, newer := twoKeys(t)
	for name, rows := range journals(t, older, both) {
		t.Run(name, func(t *testing.T) {
			r := &resealing{sealer: both, newest: newer}
			r.Done.Key = newer.KeyID()
			changed, link, err := r.rows(7, rows)
			if err != nil {
				t.Fatal(err)
			}
			if len(changed) == 0 {
				t.Fatal("nothing was sealed again")
			}
			again := slices.Clone(rows)
			for _, c := range changed {
				again[c.Seq] = c
			}
			if at, err := verified(newer, false, 7, again); at >= 0 {
				t.Fatalf("row %d: %v", at, err)
			}
			var c chain
			for i, row := range again {
				if id, has := c.keyOf(both, 7, row); has && id != newer.KeyID() {
					t.Errorf("row %d is still of key %q", i, id)
				}
				if protectionOf(row.Data[0]) != protectionOf(rows[i].Data[0]) {
					t.Errorf("row %d has another kind of check", i)
				}
				want, err := openRow(both, 7, rows[i])
				if err != nil {
					t.Fatal(err)
				}
				if got, err := openRow(newer, 7, row); err != nil || !bytes.Equal(got, want) {
					t.Errorf("row %d opens to %q, %v, want %q", i, got, err, want)
				}
			}
			if c.Link != link {
				t.Error("the link does not belong behind the last row")
			}
			if changed, _, err := r.rows(7, again); err != nil || len(changed) > 0 {
				t.Errorf("the second time %d rows change, %v", len(changed), err)
			}
		})
	}
}

// The count of each key tells which key sealed or tagged a row.
func TestRowsAreCountedByKey(t *testing.T) {
	older, both, newer := twoKeys(t)
	uses := keyUses{}
	for _, rows := range [][]store.Row{
		grown(t, both, 7, history(t, older, 7)),       // 5 rows of the older key, 1 of the newer
		grown(t, older, 7, old(history(t, older, 7))), // 1 sealed without a tag, 4 plain, 1 tagged
		history(t, nil, 7),                            // checksums
	} {
		uses.addRun(both, kept{Loaded: store.Loaded{Head: store.Head{Run: 7}, Rows: rows}})
	}
	got := uses.sorted(crypt.KeyIDs(both))
	if want := []KeyUse{{Key: newer.KeyID(), Rows: 1}, {Key: older.KeyID(), Rows: 7}}; !slices.Equal(got, want) {
		t.Errorf("with both keys: %+v, want %+v", got, want)
	}
	uses = keyUses{}
	uses.addRun(newer, kept{Loaded: store.Loaded{Head: store.Head{Run: 7}, Rows: history(t, older, 7)}})
	got = uses.sorted(crypt.KeyIDs(newer)) // the sealed row names its key, tags do not
	if want := []KeyUse{{Key: newer.KeyID()}, {Key: older.KeyID(), Rows: 1}, {Rows: 4}}; !slices.Equal(got, want) {
		t.Errorf("without the older key: %+v, want %+v", got, want)
	}
}

// The key of a store may be changed by an engine that has the former key, too. Until the
// change is finished, engines need both keys, and the newer one first.
func TestKeyMoves(t *testing.T) {
	a, b := keyPair(t)
	older, both, newer, oldFirst := sealerOf(t, a), sealerOf(t, b, a), sealerOf(t, b), sealerOf(t, a, b)
	other := testSealer(t)
	st := store.Complete(memory.New(memory.Options{}))
	pin := func(what string, s crypt.Sealer, refused string) {
		t.Helper()
		err := PinKey(t.Context(), st, s, historyTime)
		var key *crypt.KeyError
		switch {
		case refused == "" && err != nil:
			t.Errorf("%s: %v", what, err)
		case refused != "" && (!errors.As(err, &key) || key.ID != refused || key.Hint == ""):
			t.Errorf("%s: %v, want a KeyError about %s with a hint", what, err, refused)
		}
	}
	ids := func(want ...string) {
		t.Helper()
		if got, err := KeysOf(t.Context(), st); err != nil || !slices.Equal(got, want) {
			t.Errorf("keys of the store = %q, %v, want %q", got, err, want)
		}
	}
	ids()
	pin("the first key", older, "")
	ids(older.KeyID())
	early, err := st.Join(t.Context(), "early", time.Hour, 1)
	if err != nil {
		t.Fatal(err)
	}
	pin("a new key alone", newer, older.KeyID())
	pin("a new key before the former one", both, "")
	ids(newer.KeyID(), older.KeyID())
	pin("again", both, "")
	pin("the former key alone", older, newer.KeyID())
	pin("the new key alone", newer, older.KeyID())
	pin("the keys in the other order", oldFirst, newer.KeyID())
	pin("no key", nil, newer.KeyID())
	pin("another key", other, newer.KeyID())
	ids(newer.KeyID(), older.KeyID())

	// An engine that began with the former key holds the end up; one that began since does not.
	if _, err := st.Join(t.Context(), "late", time.Hour, 1); err != nil {
		t.Fatal(err)
	}
	if busy, err := FinishRotation(t.Context(), st, both); err != nil || len(busy) != 1 || busy[0].Engine != early {
		t.Errorf("FinishRotation = %+v, %v, want the early engine", busy, err)
	}
	ids(newer.KeyID(), older.KeyID())
	if err := st.Leave(t.Context(), early); err != nil {
		t.Fatal(err)
	}
	if _, err := FinishRotation(t.Context(), st, newer); err == nil {
		t.Error("a rotation is finished without the older key")
	}
	for range 2 { // the second time there is nothing to do
		if busy, err := FinishRotation(t.Context(), st, both); err != nil || len(busy) > 0 {
			t.Errorf("FinishRotation = %+v, %v", busy, err)
		}
		ids(newer.KeyID())
	}
	if _, err := Reseal(t.Context(), st, both); err != nil { // the mark of the history
		t.Fatal(err)
	}
	pin("the new key alone, at the end", newer, "")
	pin("both keys, at the end", both, "")
	pin("the former key, at the end", older, newer.KeyID())
}
