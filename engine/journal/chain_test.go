package journal

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

var historyTime = time.Date(2026, 3, 14, 10, 0, 0, 0, time.UTC)

// history makes the rows of a run as an engine could write them: with one record, with
// none, with several, and with a sensitive value if there is a key.
func history(t *testing.T, sealer crypt.Sealer, run status.RunID) []store.Row {
	t.Helper()
	record := func(at time.Time) machine.Record {
		vars := dsl.Value{}
		if sealer != nil {
			vars = dsl.NewValue([]byte(`{"card":"1"}`), []string{"/card"}, nil)
		}
		return machine.Decide(&dsl.Workflow{Name: "w"}, machine.NewState(), machine.Input{At: at, Event: machine.Started{RunID: run, Name: "r", Vars: vars}})
	}
	plain := func(at time.Time) machine.Record {
		return machine.Decide(&dsl.Workflow{Name: "w"}, machine.NewState(), machine.Input{At: at, Event: machine.Started{RunID: run, Name: "r"}})
	}
	var rows []store.Row
	e := RowEncoder{Sealer: sealer, Run: run}
	for i := range 5 {
		at := historyTime.Add(time.Duration(i) * time.Second)
		records := [][]machine.Record{{record(at)}, {plain(at)}, nil, {plain(at), plain(at)}, {plain(at)}}[i]
		data, err := e.Encode(at, records)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, store.Row{Seq: int32(i), At: at, Data: data})
	}
	return rows
}

// old returns rows as earlier versions wrote them.
func old(rows []store.Row) []store.Row {
	var out []store.Row
	for _, r := range rows {
		body, _, _ := cutCheck(r.Data)
		body = bytes.Clone(body)
		body[0] &^= markFlags
		out = append(out, store.Row{Seq: r.Seq, At: r.At, Data: body})
	}
	return out
}

// verified returns the number of the first row that does not verify, and why; -1 =
// all do.
func verified(sealer crypt.Sealer, strict bool, run status.RunID, rows []store.Row) (int, error) {
	c := chain{strict: strict}
	for i, r := range rows {
		if err := c.follow(sealer, run, r); err != nil {
			return i, err
		}
	}
	return -1, nil
}

// A change of one row, or of the order of rows, is found, with the number of the row.
func TestHistoryFindsChanges(t *testing.T) {
	for name, sealer := range map[string]crypt.Sealer{"with a key": testSealer(t), "without a key": nil} {
		t.Run(name, func(t *testing.T) {
			rows, others := history(t, sealer, 7), history(t, sealer, 8)
			if at, err := verified(sealer, sealer != nil, 7, rows); at >= 0 {
				t.Fatalf("row %d of an intact history: %v", at, err)
			}
			for i := range rows {
				for n := range rows[i].Data {
					changed := slices.Clone(rows)
					changed[i].Data = bytes.Clone(rows[i].Data)
					changed[i].Data[n] ^= 1
					if at, _ := verified(sealer, false, 7, changed); at != i {
						t.Errorf("byte %d of row %d changed: found in row %d", n, i, at)
					}
				}
			}
			e := RowEncoder{Sealer: sealer, Run: 7}
			other, err := e.Encode(rows[0].At, nil)
			if err != nil {
				t.Fatal(err)
			}
			twin := []store.Row{{At: rows[0].At, Data: other}}
			bare := faultPlain
			if sealer == nil {
				bare = faultBare
			}
			renumbered := func(rows ...store.Row) []store.Row {
				for i := range rows {
					rows[i].Seq = int32(i)
				}
				return rows
			}
			for what, c := range map[string]struct {
				rows []store.Row
				at   int
				why  error
			}{
				"a row is missing":                   {[]store.Row{rows[0], rows[1], rows[3], rows[4]}, 2, faultMissing},
				"the first row is missing":           {rows[1:], 0, faultMissing},
				"a row is missing and the rest up":   {renumbered(rows[0], rows[1], rows[3], rows[4]), 2, faultChanged},
				"two rows are swapped":               {renumbered(rows[0], rows[2], rows[1], rows[3], rows[4]), 1, faultChanged},
				"a row comes twice":                  {renumbered(rows[0], rows[1], rows[1], rows[2], rows[3]), 2, faultChanged},
				"rows are in another order":          {[]store.Row{rows[0], rows[2], rows[1]}, 1, faultMissing},
				"a row of another run":               {[]store.Row{rows[0], rows[1], others[2], rows[3]}, 2, faultChanged},
				"another time":                       {[]store.Row{rows[0], {Seq: 1, At: rows[1].At.Add(time.Microsecond), Data: rows[1].Data}}, 1, faultChanged},
				"another first row, written well":    {append(slices.Clone(twin[:1]), rows[1:]...), 1, faultChanged},
				"a row that says nothing":            {[]store.Row{rows[0], {Seq: 1, At: rows[1].At}}, 1, faultChanged},
				"a row that is cut short":            {[]store.Row{rows[0], {Seq: 1, At: rows[1].At, Data: rows[1].Data[:3]}}, 1, faultChanged},
				"a row in the form of before":        {[]store.Row{rows[0], old(rows)[1], rows[2]}, 1, bare},
				"the last row in the form of before": {append(slices.Clone(rows[:4]), old(rows)[4]), 4, bare},
			} {
				if at, err := verified(sealer, false, 7, c.rows); at != c.at || !errors.Is(err, c.why) {
					t.Errorf("%s: row %d, %v; want row %d, %v", what, at, err, c.at, c.why)
				}
			}
		})
	}
}

// With a key, a history that was made without that key is refused: one in the format of
// earlier versions, one with checksums, and one with tags of another key.
func TestHistoryNeedsTheKey(t *testing.T) {
	sealer := testSealer(t)
	for what, rows := range map[string][]store.Row{
		"the form of before": old(history(t, nil, 7)),
		"checksums":          history(t, nil, 7),
	} {
		if at, err := verified(sealer, true, 7, rows); at != 0 || !errors.Is(err, faultPlain) {
			t.Errorf("%s: row %d, %v", what, at, err)
		}
		if at, err := verified(sealer, false, 7, rows); at >= 0 {
			t.Errorf("%s, of a run from before the key: row %d, %v", what, at, err)
		}
	}
	if at, err := verified(sealer, false, 7, history(t, testSealer(t), 7)); at != 0 || !errors.Is(err, faultChanged) {
		t.Errorf("another key's tags: row %d, %v", at, err)
	}
}

// A run of an earlier version continues with checked rows. The first checked row covers
// the old rows: a change of an old row is found there.
func TestHistoryGoesOnFromBefore(t *testing.T) {
	sealer := testSealer(t)
	for name, s := range map[string]struct{ before, after crypt.Sealer }{
		"without a key": {nil, nil}, "with a key": {sealer, sealer}, "with a key since": {nil, sealer},
	} {
		t.Run(name, func(t *testing.T) {
			rows := old(history(t, s.before, 7))
			var c chain
			for _, r := range rows {
				if err := c.follow(s.after, 7, r); err != nil {
					t.Fatal(err)
				}
			}
			at := historyTime.Add(time.Minute)
			data, _, err := NewRow{Run: 7, Seq: 5, At: at, Before: c.Link}.Encode(s.after, &Scratch{})
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, store.Row{Seq: 5, At: at, Data: data})
			if at, err := verified(s.after, false, 7, rows); at >= 0 {
				t.Fatalf("row %d: %v", at, err)
			}
			for i := range 5 {
				changed := slices.Clone(rows)
				changed[i].Data = bytes.Clone(rows[i].Data)
				changed[i].Data[len(changed[i].Data)-1] ^= 1
				if at, _ := verified(s.after, false, 7, changed); at != 5 {
					t.Errorf("old row %d changed: found in row %d, want 5", i, at)
				}
			}
		})
	}
}

// A run that began without a key has checksums. It continues with tags, and they cover
// its earlier rows, too.
func TestHistoryGoesOnWithAKey(t *testing.T) {
	sealer := testSealer(t)
	rows := history(t, nil, 7)
	var c chain
	for _, r := range rows {
		if err := c.follow(sealer, 7, r); err != nil {
			t.Fatal(err)
		}
	}
	at := historyTime.Add(time.Minute)
	data, _, err := NewRow{Run: 7, Seq: 5, At: at, Before: c.Link}.Encode(sealer, &Scratch{})
	if err != nil {
		t.Fatal(err)
	}
	rows = append(rows, store.Row{Seq: 5, At: at, Data: data})
	// An attacker can compute new checksums for a changed row and later rows, but no tag.
	forged := history(t, nil, 7)
	e := RowEncoder{Run: 7}
	for i := range forged {
		if forged[i].Data, err = e.Encode(forged[i].At, nil); err != nil {
			t.Fatal(err)
		}
	}
	forged = append(forged, rows[5])
	if at, err := verified(sealer, false, 7, forged); at != 5 || !errors.Is(err, faultChanged) {
		t.Errorf("forged checksums: row %d, %v, want the tag of row 5 to tell", at, err)
	}
	if at, err := verified(sealer, false, 7, rows); at >= 0 {
		t.Errorf("row %d: %v", at, err)
	}
	if at, err := verified(nil, false, 7, rows); at >= 0 {
		t.Errorf("read without the key: row %d: %v", at, err)
	}
}

func BenchmarkHistory(b *testing.B) {
	key, err := crypt.NewKey()
	if err != nil {
		b.Fatal(err)
	}
	sealer, err := crypt.NewSealer(key)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		sealer crypt.Sealer
	}{{"tag", sealer}, {"checksum", nil}} {
		for _, size := range []int{130, 1000} {
			b.Run(fmt.Sprintf("%s-%d", c.name, size), func(b *testing.B) {
				data := append(make([]byte, 0, size+64), make([]byte, size)...)
				var l Link
				for b.Loop() {
					data[0] = crypt.MarkPlain
					_, l = l.bind(c.sealer, 7, 3, historyTime, data)
				}
			})
		}
	}
}
