package machine_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/line"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

var update = flag.Bool("update", false, "write the golden journal anew")

// Promise 11: records survive their codec.
func TestCodecRoundTrip(t *testing.T) {
	for seed := uint64(1); seed <= 300; seed++ {
		w, err := runWorld(newChooser(seed), false)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for k, row := range w.j.rows {
			records, err := wire.Decode(row)
			if err != nil {
				t.Fatalf("seed %d record %d: %v", seed, k, err)
			}
			again, err := wire.Encode(records)
			if err != nil || !bytes.Equal(row, again) {
				t.Fatalf("seed %d record %d: decoding and encoding changed it (%v)", seed, k, err)
			}
		}
	}
}

// Every event survives with all its fields.
func TestCodecEvents(t *testing.T) {
	id := machine.AttemptID{Node: 3, Call: 7}
	for _, ev := range []machine.Event{
		machine.Started{RunID: 1 << 60, Name: "o-1", Key: "k", Vars: dsl.NewValue([]byte(`{"a":1}`), []string{"/a"}, nil), Trigger: "manual", StartedBy: "ann"},
		machine.AttemptOK{Attempt: id, Output: dsl.NewValue([]byte(`{"h":null}`), nil, []dsl.Secret{{Path: "/h", Parts: []dsl.SecretPart{{Text: "x"}, {Ref: "env:Y"}}}})},
		machine.AttemptFailed{Attempt: id, Code: "code", Message: "code", Permanent: true, RetryAfter: time.Minute},
		machine.AttemptUnknown{Attempt: id, Code: "agent_lost", Message: "gone", RetryAfter: time.Second},
		machine.AttemptNotDone{Attempt: id},
		machine.AttemptDeferred{Attempt: id, Until: noon, Why: "full"},
		machine.AttemptProgress{Attempt: id, Number: 4, Note: "half", Blob: []byte{1, 2}},
		machine.AttemptProgress{Attempt: id, Number: 4, Blob: []byte{}}, machine.AttemptProgress{Attempt: id},
		machine.Started{RunID: 1, Name: "o-2", Line: line.Line{Lift: -50, Limit: 3, Key: "eu"}, Waits: true},
		machine.Started{RunID: 1, Name: "o-3", Line: line.Line{Lift: 40}}, machine.SlotsFreed{Admitted: true},
		machine.TimePassed{}, machine.SlotsFreed{}, machine.TakenOver{By: 2, From: 1}, machine.EngineLost{Deaths: 3, Why: "gone"},
		machine.CancelRequested{NoCompensate: true, By: "ann", Reason: "why", Ask: 7}, machine.CancelRequested{By: "ann", Reason: "why", Code: "replaced"},
		machine.PauseRequested{By: "ann", Reason: "why", Ask: 7},
		machine.ResumeRequested{Extend: time.Hour, By: "ann", Reason: "why", Ask: 7},
		machine.ParentWaits{Until: noon.Add(time.Hour), By: "o-42", Ask: 7},
		machine.RetryRequested{Step: "step", NewKey: true, Extend: time.Hour, By: "ann", Reason: "why", Ask: 7},
		machine.CompensateRequested{Step: "step", Retry: true, By: "ann", Reason: "why", Ask: 7},
		machine.CompensateRequested{Skip: true},
		machine.SettleRequested{Step: "step", As: machine.SettleUndone, Output: js(`{"a":1}`), By: "ann", Reason: "why", Ask: 7},
		machine.Refused{Verb: "retry", Reason: "why", By: "ann", Ask: 7},
	} {
		data, err := wire.Encode([]machine.Record{machine.NewRecord(ev, model.Delta{At: model.ToInstant(noon)})})
		if err != nil {
			t.Fatalf("%T: %v", ev, err)
		}
		back, err := wire.Decode(data)
		if err != nil || len(back) != 1 {
			t.Fatalf("%T: %v", ev, err)
		}
		if !reflect.DeepEqual(back[0].Event(), ev) || !back[0].At().Equal(noon) {
			t.Errorf("got %+v at %v, want %+v", back[0].Event(), back[0].At(), ev)
		}
		if data, err = wire.EncodeEvent(ev); err != nil {
			t.Fatalf("%T: %v", ev, err)
		}
		if alone, err := wire.DecodeEvent(data); err != nil || !reflect.DeepEqual(alone, ev) {
			t.Errorf("alone: got %+v (%v), want %+v", alone, err, ev)
		}
	}
}

func TestCodecSeveralRecords(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"))), "do a")
	p.ok("a", "do b")
	var all []machine.Record
	for _, row := range p.j.rows {
		records, err := wire.Decode(row)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, records...)
	}
	row, err := wire.Encode(all)
	if err != nil {
		t.Fatal(err)
	}
	s := machine.NewState()
	if err := foldRow(s, row); err != nil {
		t.Fatal(err)
	}
	if err := sameFold(p.s, s); err != nil {
		t.Error(err)
	}
}

func TestCodecRefusesWhatItCannotRead(t *testing.T) {
	good, err := wire.Encode([]machine.Record{machine.NewRecord(machine.TimePassed{}, model.Delta{At: 5})})
	if err != nil {
		t.Fatal(err)
	}
	newer := append([]byte{}, good...)
	newer[0] = wire.Format + 1
	if _, err := wire.Decode(newer); !errors.Is(err, wire.ErrFormat) {
		t.Errorf("newer format: got %v, want ErrFormat", err)
	}
	for name, data := range map[string][]byte{
		"empty": {}, "format zero": {0, 0}, "cut": good[:len(good)-1], "more": append(append([]byte{}, good...), 0), "long count": {1, 255, 255, 3},
	} {
		if _, err := wire.Decode(data); !errors.Is(err, wire.ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
	}
	type alien struct{ machine.Event }
	if _, err := wire.Encode([]machine.Record{machine.NewRecord(alien{}, model.Delta{})}); err == nil {
		t.Error("an unknown event must not encode")
	}
}

// The masks have 64 bits; the tables must fit.
func TestCodecTablesFit(t *testing.T) {
	if len(model.RunFields) > 64 || len(model.NodeFields) > 64 || len(model.AttemptFields) > 16 {
		t.Errorf("%d run, %d node, %d attempt fields", len(model.RunFields), len(model.NodeFields), len(model.AttemptFields))
	}
	var n uint64
	for i := range model.RunFields { // the record's RunState reads the first bit
		if !model.RunFields[i].Same(&model.Run{State: status.RunRunning, Head: &model.NoHead, Rare: &model.NoRare}, &model.Run{Head: &model.NoHead, Rare: &model.NoRare}) {
			n |= 1 << i
		}
	}
	if n != model.RunStateBit {
		t.Errorf("the run's state has mask %b", n)
	}
}

// Sequential runs of five steps with 100-byte outputs cost well under 300
// bytes a record; nothing is stored twice.
func TestCodecSize(t *testing.T) {
	var steps []any
	for i := range 5 {
		s := do(fmt.Sprintf("step_%d", i))
		if i > 0 {
			after(fmt.Sprintf("step_%d", i-1))(s)
		}
		s.Input = func(sc *dsl.Scope) (dsl.Value, error) {
			if i == 0 {
				return sc.Vars, nil
			}
			return sc.Step(i - 1).One.Output, nil
		}
		steps = append(steps, s)
	}
	wf := flow(steps...)
	s := machine.NewState()
	total, records := 0, 0
	now := noon
	deliver := func(ev machine.Event) machine.Record {
		rec := machine.Decide(wf, s, machine.Input{At: now, Event: ev})
		data, err := wire.Encode([]machine.Record{rec})
		if err != nil {
			t.Fatal(err)
		}
		total += len(data)
		records++
		s.Apply(rec)
		return rec
	}
	rec := deliver(machine.Started{RunID: 1 << 52, Name: "order-1042", Vars: js(`{"order":"` + strings.Repeat("v", 80) + `"}`), Trigger: "manual", StartedBy: "ann"})
	for i := range 5 {
		now = now.Add(37 * time.Millisecond)
		inv := rec.Commands()[0].(machine.Invoke)
		rec = deliver(machine.AttemptOK{Attempt: inv.Attempt, Output: js(fmt.Sprintf(`{"n":%d,"out":"%s"}`, i, strings.Repeat("o", 84)))})
	}
	if s.Status() != status.RunSucceeded {
		t.Fatalf("got %s", s.Status())
	}
	if total/records > 200 {
		t.Errorf("%d bytes a record, want at most 200", total/records)
	}
	t.Logf("%d bytes in %d records, %d a record", total, records, total/records)
}

// Journals of every format still fold to the same states: 1 and 2 as the engines
// of their time wrote them, 3 as the present one does. Only the last is ever
// written anew.
func TestCodecGoldenJournal(t *testing.T) {
	last := filepath.Join("testdata", fmt.Sprintf("journal-v%d.txt", wire.Format))
	if *update {
		writeGolden(t, last)
	}
	for n := 1; n <= wire.Format; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			foldGolden(t, filepath.Join("testdata", fmt.Sprintf("journal-v%d.txt", n)), byte(n))
		})
	}
}

func foldGolden(t *testing.T, path string, version byte) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := machine.NewState()
	var story []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if row, isRow := strings.CutPrefix(line, "row "); isRow {
			raw, err := hex.DecodeString(row)
			if err != nil {
				t.Fatal(err)
			}
			if raw[0] != version {
				t.Fatalf("a row of format %d", raw[0])
			}
			if err := foldRow(s, raw); err != nil {
				t.Fatal(err)
			}
		} else if want, isState := strings.CutPrefix(line, "state "); isState {
			story = append(story, want)
			if got := goldenState(s); got != want {
				t.Errorf("after row %d:\ngot  %s\nwant %s", len(story), got, want)
			}
		}
	}
	if len(story) < 10 {
		t.Errorf("only %d states checked", len(story))
	}
}

// goldenState is what must stay readable for ever: what people see.
func goldenState(s *machine.State) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s failure=%s/%s undone=%d", s.Name(), s.Status(), s.Failure().Step, s.Failure().Code, int(s.Run().Undone))
	if due, ok := s.NextDue(); ok {
		fmt.Fprintf(&b, " due=%s", due.Format("15:04:05.000"))
	}
	for v := range story.Nodes(s, nil) {
		fmt.Fprintf(&b, "; %s %s %s attempts=%d failures=%d in=%s out=%s", v.Name, v.State, v.Effect, v.Attempts, v.Failures, v.Input.JSON(), v.Output.JSON())
	}
	return b.String()
}

func writeGolden(t *testing.T, path string) {
	p := start(t, flow(
		do("a", each("k", "l"), parallel(1)), do("b", after("a"), idempotent, agent("bank"), heartbeat(second(25)), continueIt),
		do("c", after("b"), tries(2)), do("r", after("b"), undoByKey, undoFirst, tries(2)), runDeadline(second(600)),
	), "do a[k]")
	p.event(machine.PauseRequested{By: "ann", Reason: "a break", Ask: 3}).event(machine.ResumeRequested{By: "ann", Extend: second(700), Ask: 4})
	p.ok("a[k]", "do a[l]")
	p.ok("a[l]", "do b")
	p.unknown("b", "agent_lost")
	p.slots = map[string]machine.Slot{"bank": {Until: p.now.Add(second(5)), Why: "circuit open"}}
	p.wait(second(1))
	p.slots = nil
	p.wait(second(4), "do b")
	p.beat("b").checkpoint("b", 3, "at 3")
	p.event(machine.TakenOver{By: 2, From: 1}, "do b")
	p.ok("b", "do c", "do r")
	p.event(machine.AttemptUnknown{Attempt: p.call("r", 0).Attempt, Code: "unavailable", RetryAfter: 500 * time.Millisecond})
	p.fail("c", "flaky")
	p.wait(second(1), "do c", "undo r")
	p.checkpoint("r", 1, "").ok("r", "do r")
	p.event(machine.RetryRequested{By: "ann", Ask: 5}).refused("not parked")
	p.ok("r")
	p.permanent("c", "no_carrier", "undo r")
	p.ok("r")
	p.wait(second(31), "undo b")
	p.unknown("b", "internal")
	p.wait(second(1), "undo b")
	p.ok("b", "undo a[k]", "undo a[l]")
	p.ok("a[k]")
	p.permanent("a[l]", "gone", "alert compensation_failed")
	p.event(machine.CompensateRequested{Step: `a["l"]`, Skip: true, By: "ann", Reason: "by hand", Ask: 6}).is("compensated")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(p.golden()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// golden writes the rows of a play, and the state after each.
func (p *play) golden() string {
	var b strings.Builder
	s := machine.NewState()
	for _, row := range p.j.rows {
		if err := foldRow(s, row); err != nil {
			p.t.Fatal(err)
		}
		fmt.Fprintf(&b, "row %x\nstate %s\n", row, goldenState(s))
	}
	return b.String()
}

// Whatever the bytes, decoding ends with records that survive being written, or
// an error, and folding records never fails.
func FuzzDecodeRecords(f *testing.F) {
	for seed := uint64(1); seed <= 10; seed++ {
		w, err := runWorld(newChooser(seed), false)
		if err != nil {
			f.Fatal(err)
		}
		for _, row := range w.j.rows {
			f.Add(row)
		}
	}
	for _, old := range released {
		f.Add(fromHex(f, old.two))
	}
	wf := flow(do("a"), do("b", after("a")))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, err := wire.Decode(data)
		plain := machine.NewState()
		var scratch wire.Reader
		if _, other := foldCounted(&scratch, plain, wf, data, nil); errors.Is(err, wire.ErrCorrupt) != errors.Is(other, wire.ErrCorrupt) || errors.Is(err, wire.ErrFormat) != errors.Is(other, wire.ErrFormat) {
			t.Fatalf("decoding says %v, folding %v", err, other)
		}
		if err != nil {
			if !errors.Is(err, wire.ErrCorrupt) && !errors.Is(err, wire.ErrFormat) {
				t.Fatalf("unexpected error %v", err)
			}
			return
		}
		again, err := wire.Encode(records)
		if err != nil {
			t.Fatal(err)
		}
		back, err := wire.Decode(again)
		if err != nil || len(back) != len(records) {
			t.Fatalf("%d records became %d: %v", len(records), len(back), err)
		}
		for k := range back {
			if err := wire.Same(&records[k], &back[k]); err != nil {
				t.Fatal(err)
			}
		}
		s := machine.NewState()
		for pass := range 2 {
			if pass == 1 {
				if err := sameFold(s, plain); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range records {
				story.Facts(wf, s, r)
				r.Steps(s)
				r.Sensitive()
				s.Apply(r)
				s.NextDue()
			}
		}
		for v := range story.Nodes(s, wf) {
			_ = v.Name
		}
		s.OpenAttempts(wf)
		s.Held()
	})
}

// Whatever the bytes, decoding an event ends with an event that encodes again,
// or an error.
func FuzzDecodeEvent(f *testing.F) {
	id := machine.AttemptID{Node: 3, Call: 7}
	for _, ev := range []machine.Event{
		machine.AttemptOK{Attempt: id, Output: js(`{"a":1}`)}, machine.AttemptUnknown{Attempt: id, Code: "agent_lost", RetryAfter: time.Second},
		machine.AttemptProgress{Attempt: id, Number: 4, Note: "half", Blob: []byte{}}, machine.AttemptDeferred{Attempt: id, Until: noon, Why: "full"},
		machine.CancelRequested{By: "ann", Ask: 7}, machine.SettleRequested{Step: "a", As: machine.SettleUndone, Output: js(`{"a":1}`), Ask: 9}, machine.Refused{Verb: "retry", Ask: 1},
	} {
		data, err := wire.EncodeEvent(ev)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		data = append([]byte{1}, data[1:]...)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ev, err := wire.DecodeEvent(data)
		if err != nil {
			if !errors.Is(err, wire.ErrCorrupt) && !errors.Is(err, wire.ErrFormat) {
				t.Fatalf("unexpected error %v", err)
			}
			return
		}
		again, err := wire.EncodeEvent(ev)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := wire.DecodeEvent(again); err != nil || !reflect.DeepEqual(back, ev) {
			t.Fatalf("got %+v (%v), want %+v", back, err, ev)
		}
	})
}

// An event may have times with nanoseconds and of any time zone. The event of the record has them
// as the journal stores them, so encoding and decoding do not change it (promise 11).
func TestCodecEventsWithNanoseconds(t *testing.T) {
	odd := noon.Add(time.Hour + 7*time.Nanosecond).In(time.FixedZone("", 7200))
	child := machine.Started{RunID: 7, Name: "o-7", Parent: 3, ParentName: "p", ParentStep: "s", Until: odd}
	for _, ev := range []machine.Event{
		machine.Started{RunID: 7, Name: "o-7", StartBy: odd}, child,
		machine.Started{RunID: 7, Name: "o-7", StartBy: odd, ReplyTo: "webhook:x"},
	} {
		rec := machine.Decide(flow(do("a")), machine.NewState(), machine.Input{At: noon, Event: ev})
		data, err := wire.Encode([]machine.Record{rec})
		if err != nil {
			t.Fatal(err)
		}
		back, err := wire.Decode(data)
		if err != nil || len(back) != 1 {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back[0].Event(), rec.Event()) {
			t.Errorf("got %+v, want %+v", back[0].Event(), rec.Event())
		}
	}
}
