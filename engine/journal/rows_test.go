package journal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// A row of one record leaves out the record's time if that is the time of the row, and
// holds it otherwise. Both are read with the right time. A newer format gives ErrFormat.
func TestRowWithoutItsTime(t *testing.T) {
	at := time.Date(2026, 3, 14, 10, 0, 0, 123_000, time.UTC)
	d := &dsl.Workflow{Name: "w"}
	rec := machine.Decide(d, machine.NewState(), machine.Input{At: at, Event: machine.Started{RunID: 7, Name: "r-7"}})
	encode := func(at time.Time) []byte {
		data, _, err := NewRow{Run: 7, At: at, Records: []machine.Record{rec}}.Encode(nil, &Scratch{})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	// What is stored stays readable for ever: 0x13 is a lone record of format 3. With
	// 0x40 a checksum follows it; what was stored before has neither.
	const before = "13010706722d3700000000c4860914020e0102770200"
	const stored = "53010706722d3700000000c4860914020e0102770200" + "1188c3d3"
	short, long := encode(at), encode(at.Add(time.Second))
	if hex.EncodeToString(short) != stored {
		t.Errorf("a row is written as %x, want %s", short, stored)
	}
	none, _, err := NewRow{Run: 7, At: at}.Encode(nil, &Scratch{})
	if err != nil || none[0] != crypt.MarkPlain|markSummed {
		t.Errorf("a row without a record: %x, %v", none, err)
	}
	two, _, err := NewRow{Run: 7, At: at, Records: []machine.Record{rec, rec}}.Encode(nil, &Scratch{})
	if err != nil || two[0] != crypt.MarkPlain|markSummed {
		t.Errorf("a row of two records: %x, %v", two, err)
	}
	if len(short) != len(long)-10 || short[0]&^markSummed < markLone || long[0] != crypt.MarkPlain|markSummed {
		t.Errorf("%x of its own time, %x of another", short, long)
	}
	old, err := hex.DecodeString(before)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []store.Row{{At: at, Data: short}, {At: at.Add(time.Second), Data: long}, {At: at, Data: old}} {
		was := bytes.Clone(row.Data)
		records, err := DecodeRow(nil, 7, row)
		if err != nil || len(records) != 1 || !records[0].At().Equal(at) {
			t.Errorf("%x: %v, %v", row.Data, records, err)
		}
		if !bytes.Equal(row.Data, was) {
			t.Errorf("reading changed the row: %x, was %x", row.Data, was)
		}
	}
	newer := append([]byte{short[0] + 1}, short[1:]...)
	if _, err := DecodeRow(nil, 7, store.Row{At: at, Data: newer}); !errors.Is(err, wire.ErrFormat) {
		t.Errorf("a newer format: %v, want ErrFormat", err)
	}
}
