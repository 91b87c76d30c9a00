package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
)

// listener is a run whose loop waits for signals, and a second state that is folded from the bytes.
type listener struct {
	t       *testing.T
	wf      *dsl.Workflow
	s, twin *machine.State
	at      time.Time
}

func listen(t *testing.T) *listener {
	l := &listener{t: t, wf: flow(await("w", "go", repeat(dsl.Repeat{}, 1_000_000))), s: machine.NewState(), twin: machine.NewState(), at: noon}
	l.say(machine.Started{RunID: 42, Name: "o-42", Vars: js(`{}`), Trigger: "manual", StartedBy: "ann"})
	return l
}

// say decides on an event and applies the record, also to the second state.
func (l *listener) say(e machine.Event) machine.Record {
	l.t.Helper()
	l.at = l.at.Add(time.Second)
	rec := machine.Decide(l.wf, l.s, machine.Input{At: l.at, Event: e})
	row, err := wire.Encode([]machine.Record{rec})
	if err != nil {
		l.t.Fatal(err)
	}
	if err := foldRow(l.twin, row); err != nil {
		l.t.Fatal(err)
	}
	l.s.Apply(rec)
	return rec
}

func (l *listener) signal(id string) machine.Record {
	l.t.Helper()
	return l.say(machine.SignalReceived{Name: "go", ID: id, Payload: js(`1`)})
}

func id(k int) string { return fmt.Sprintf("id-%06d", k) }

// A run remembers the newest ids of signals. So a long loop that waits for signals with ids takes no
// more memory than a short one.
func TestRunRemembersTheNewestIDsOfSignals(t *testing.T) {
	l := listen(t)
	for k := range machine.MaxSignalIDs {
		l.signal(id(k))
	}
	full, image := l.s.Weight(), len(wire.AppendState(nil, l.s.Clone()))
	for k := range 100 {
		l.signal(id(machine.MaxSignalIDs + k))
	}
	if got := l.s.Weight(); got != full {
		t.Errorf("the run takes %d bytes after 100 signals more, before %d", got, full)
	}
	if got := len(wire.AppendState(nil, l.s.Clone())); got > image+100 {
		t.Errorf("a snapshot takes %d bytes after 100 signals more, before %d", got, image)
	}
	if !wire.SameState(l.s, l.twin) {
		t.Error("the state from the journal differs")
	}
	restored, err := wire.DecodeState(wire.AppendState(nil, l.s.Clone()))
	if err != nil {
		t.Fatal(err)
	}
	l.twin = restored // from now on the second state is one from a snapshot
	accepted := l.s.Signals()
	for _, known := range []int{100, machine.MaxSignalIDs, machine.MaxSignalIDs + 99} {
		if l.signal(id(known)); l.s.Signals() != accepted {
			t.Fatalf("the run has accepted %s a second time", id(known))
		}
	}
	if l.signal(id(99)); l.s.Signals() != accepted+1 {
		t.Errorf("the run still knows the id %s", id(99))
	}
	if l.signal(id(100)); l.s.Signals() != accepted+2 {
		t.Errorf("the run still knows the id %s, and it is not one of the newest", id(100))
	}
	if !wire.SameState(l.s, l.twin) {
		t.Error("the state from the snapshot and the rows after it differs")
	}
	if weight := l.twin.Weight(); weight != l.s.Weight() {
		t.Errorf("the state from the snapshot takes %d bytes, want %d", weight, l.s.Weight())
	}
}

// The journals of older engines say nothing about forgotten ids. They give the same state as before:
// no id is forgotten.
func TestOldJournalsForgetNoID(t *testing.T) {
	l := listen(t)
	for k := range machine.MaxSignalIDs + 10 {
		l.s.Apply(machine.NewRecord(machine.SignalReceived{Name: "go", ID: id(k), Payload: js(`1`)}, model.Delta{At: model.ToInstant(l.at)}))
	}
	accepted := l.s.Signals()
	l.s.Apply(machine.NewRecord(machine.SignalReceived{Name: "go", ID: id(0), Payload: js(`1`)}, model.Delta{At: model.ToInstant(l.at)}))
	if got := l.s.Signals(); got != accepted {
		t.Errorf("the run has accepted %d signals, want %d: it knew the id", got, accepted)
	}
}

// The signals that no step has taken yet have a bound in bytes.
func TestTooManyBytesOfEarlySignalsAreRefused(t *testing.T) {
	p := start(t, flow(do("a"), await("w", "go", after("a"))), "do a")
	big := `"` + strings.Repeat("x", 1<<20) + `"`
	before := p.s.Weight()
	for k := range machine.MaxSignalBytes/(1<<20) - 1 {
		p.signal("go", big)
		if _, refused := p.last.Refused(); refused {
			t.Fatalf("signal %d was refused", k)
		}
	}
	if grown := p.s.Weight() - before; grown < machine.MaxSignalBytes-2<<20 {
		t.Errorf("the run weighs %d bytes more, and its signals have more", grown)
	}
	p.signal("go", big).refused("the signals that no step has taken yet would have")
	p.refused("bytes; the run keeps at most 16777216")
	p.signal("go", `"small"`)
	if _, refused := p.last.Refused(); refused {
		t.Error("a small signal was refused, and there is room for it")
	}
	p.event(machine.SignalReceived{Name: "go", Fail: "late", Reason: strings.Repeat("x", 1<<20)}).refused("the run keeps at most")
}
