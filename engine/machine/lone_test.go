package machine

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

// What a row's time tells can be left out and comes back as it was; what belongs to
// another time, to several records or to another format stays whole.
func TestLone(t *testing.T) {
	lone, saved := 0, 0
	for seed := uint64(1); seed <= 200; seed++ {
		w, err := runWorld(newChooser(seed), false)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for k, row := range w.j.rows {
			records, err := DecodeRecords(row)
			if err != nil || len(records) == 0 {
				t.Fatalf("seed %d row %d: %d records, %v", seed, k, len(records), err)
			}
			at := records[len(records)-1].At()
			rest, version, ok := CutLone(row, at)
			if ok != (len(records) == 1) {
				t.Fatalf("seed %d row %d: %d records: %v", seed, k, len(records), ok)
			}
			if _, _, other := CutLone(row, at.Add(time.Microsecond)); other {
				t.Fatalf("seed %d row %d: the time was left out though the row has another", seed, k)
			}
			if !ok {
				continue
			}
			lone, saved = lone+1, saved+len(row)-len(rest)
			back, err := AppendLone([]byte("before"), rest, version, at)
			if err != nil || !bytes.Equal(back, append([]byte("before"), row...)) {
				t.Fatalf("seed %d row %d: came back as %x, was %x (%v)", seed, k, back, row, err)
			}
			if n := len(back) - len(rest) - len("before"); n > LoneHeading {
				t.Fatalf("%d bytes in front, want %d at most", n, LoneHeading)
			}
		}
	}
	if lone < 1000 || saved < 10*lone {
		t.Errorf("%d rows of one record lost %d bytes", lone, saved)
	}

	none, err := EncodeRecords(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"none": none, "nothing": nil, "cut": {format, 1}, "older": {2, 1, 5, kindTimePassed, 0, 0}} {
		if _, _, ok := CutLone(data, time.UnixMicro(5)); ok {
			t.Errorf("%s: cut", name)
		}
	}
	if _, err := AppendLone(nil, nil, format+1, noon); !errors.Is(err, ErrFormat) {
		t.Errorf("a newer format: %v, want ErrFormat", err)
	}
	if _, err := AppendLone(nil, nil, 2, noon); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a format without lone records: %v, want ErrCorrupt", err)
	}
}
