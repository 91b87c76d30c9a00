package journal

import (
	"bytes"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// testSealer returns a sealer with a new key.
func testSealer(t *testing.T) crypt.Sealer {
	t.Helper()
	key, err := crypt.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	s, err := crypt.NewSealer(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// I13: with a key a message is sealed together with its run, so that a person
// with access to the database cannot read it or move it to another run.
func TestMessagesAreSealedForTheirRun(t *testing.T) {
	s := testSealer(t)
	data, err := EncodeMessage(s, 7, machine.CancelRequested{By: "ann", Reason: "canary"})
	if err != nil {
		t.Fatal(err)
	}
	if data[0] != crypt.MarkSealed || bytes.Contains(data, []byte("canary")) {
		t.Errorf("the message is stored as %q, want it sealed", data)
	}
	if _, err := DecodeMessage(s, 7, data); err != nil {
		t.Errorf("open in its place: %v", err)
	}
	if e, err := DecodeMessage(s, 8, data); err == nil {
		t.Errorf("a message that was moved to another run opens as %+v", e)
	}
}

// I13: with a key a definition is sealed together with its digest.
func TestDefinitionsAreSealedForTheirDigest(t *testing.T) {
	s := testSealer(t)
	data, err := crypt.Wrap(s, definitionBinding("one"), []byte("canary"), true)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := crypt.Unwrap(s, definitionBinding("one"), data); err != nil || string(plain) != "canary" {
		t.Errorf("open in its place: %q, %v", plain, err)
	}
	if plain, err := crypt.Unwrap(s, definitionBinding("two"), data); err == nil {
		t.Errorf("a definition that was moved to another digest opens as %q", plain)
	}
}

// I13: a journal row is sealed together with its run and its number.
func TestRowsAreSealedForTheirPlace(t *testing.T) {
	s, at := testSealer(t), time.Date(2026, 3, 14, 10, 0, 0, 0, time.UTC)
	card := dsl.NewValue([]byte(`{"card":"canary"}`), []string{"/card"}, nil)
	rec := machine.Decide(&dsl.Workflow{Name: "w"}, machine.NewState(), machine.Input{At: at, Event: machine.Started{RunID: 7, Name: "r-7", Vars: card}})
	data, _, err := NewRow{Run: 7, Seq: 3, At: at, Records: []machine.Record{rec}}.Encode(s, &Scratch{})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("canary")) {
		t.Error("the row is stored in the clear")
	}
	for _, tc := range []struct {
		run  status.RunID
		seq  int32
		open bool
	}{{7, 3, true}, {8, 3, false}, {7, 4, false}} {
		if _, err := DecodeRow(s, tc.run, store.Row{Seq: tc.seq, At: at, Data: data}); (err == nil) != tc.open {
			t.Errorf("as row %d of run %d: err = %v, want it to open: %t", tc.seq, tc.run, err, tc.open)
		}
	}
}
