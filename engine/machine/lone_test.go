package machine_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/internal/wire"
)

// What a row's time tells can be left out and comes back as it was; what belongs to
// another time, to several records or to another format stays whole.
func TestSingleRecordHeader(t *testing.T) {
	lone, saved := 0, 0
	for seed := uint64(1); seed <= 200; seed++ {
		w, err := runWorld(newChooser(seed), false)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for k, row := range w.j.rows {
			records, err := wire.Decode(row)
			if err != nil || len(records) == 0 {
				t.Fatalf("seed %d row %d: %d records, %v", seed, k, len(records), err)
			}
			at := records[len(records)-1].At()
			rest, version, ok := wire.CutSingle(row, at)
			if ok != (len(records) == 1) {
				t.Fatalf("seed %d row %d: %d records: %v", seed, k, len(records), ok)
			}
			if _, _, other := wire.CutSingle(row, at.Add(time.Microsecond)); other {
				t.Fatalf("seed %d row %d: the time was left out though the row has another", seed, k)
			}
			if !ok {
				continue
			}
			lone, saved = lone+1, saved+len(row)-len(rest)
			back, err := wire.AppendSingle([]byte("before"), rest, version, at)
			if err != nil || !bytes.Equal(back, append([]byte("before"), row...)) {
				t.Fatalf("seed %d row %d: came back as %x, was %x (%v)", seed, k, back, row, err)
			}
			if n := len(back) - len(rest) - len("before"); n > wire.HeaderSize {
				t.Fatalf("%d bytes in front, want %d at most", n, wire.HeaderSize)
			}
		}
	}
	if lone < 1000 || saved < 10*lone {
		t.Errorf("%d rows of one record lost %d bytes", lone, saved)
	}

	none, err := wire.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"none": none, "nothing": nil, "cut": {wire.Format, 1}, "older": {2, 1, 5, 8, 0, 0}} {
		if _, _, ok := wire.CutSingle(data, time.UnixMicro(5)); ok {
			t.Errorf("%s: cut", name)
		}
	}
	if _, err := wire.AppendSingle(nil, nil, wire.Format+1, noon); !errors.Is(err, wire.ErrFormat) {
		t.Errorf("a newer format: %v, want ErrFormat", err)
	}
	if _, err := wire.AppendSingle(nil, nil, 2, noon); !errors.Is(err, wire.ErrCorrupt) {
		t.Errorf("a format without single-record headers: %v, want ErrCorrupt", err)
	}
}
