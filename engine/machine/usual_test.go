package machine

import (
	"bytes"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// sameRecord says in what of their persisted parts two records differ.
func sameRecord(a, b *Record) error {
	x, y := &encoder{at: a.at}, &encoder{at: b.at}
	for e, r := range map[*encoder]*Record{x: a, y: b} {
		e.uint(uint64(r.at))
		if err := e.event(r.event); err != nil {
			return err
		}
	}
	if !bytes.Equal(x.b, y.b) {
		return fmt.Errorf("%+v at %d became %+v at %d", a.event, a.at, b.event, b.at)
	}
	if (a.run == nil) != (b.run == nil) || len(a.nodes) != len(b.nodes) {
		return fmt.Errorf("%d nodes and run %v became %d and %v", len(a.nodes), a.run != nil, len(b.nodes), b.run != nil)
	}
	if a.run != nil {
		if err := samePatch("run", runCodec, a.at, a.run.Mask, b.run.Mask, &a.run.To, &b.run.To); err != nil {
			return err
		}
	}
	for k := range a.nodes {
		p, q := &a.nodes[k], &b.nodes[k]
		if p.Node != q.Node || len(p.Attempts) != len(q.Attempts) {
			return fmt.Errorf("node %d with %d attempts became %d with %d", p.Node, len(p.Attempts), q.Node, len(q.Attempts))
		}
		if err := samePatch("node", nodeCodec, a.at, p.Mask, q.Mask, p.To, q.To); err != nil {
			return err
		}
		for j := range p.Attempts {
			v, w := &p.Attempts[j], &q.Attempts[j]
			if v.To.Call != w.To.Call {
				return fmt.Errorf("call %d became %d", v.To.Call, w.To.Call)
			}
			if err := samePatch("attempt", attemptCodec, a.at, uint64(v.Mask), uint64(w.Mask), &v.To, &w.To); err != nil {
				return err
			}
		}
	}
	return nil
}

// samePatch compares the fields that patches change. References are compared as
// such: a record that was read does not know their values.
func samePatch[T any](what string, fields []codec[T], at model.Instant, m, n uint64, a, b *T) error {
	if m != n {
		return fmt.Errorf("%s: fields %b became %b", what, m, n)
	}
	for ; m != 0; m &= m - 1 {
		x, y := &encoder{at: at}, &encoder{at: at}
		i := bits.TrailingZeros64(m)
		fields[i].put(x, a)
		fields[i].put(y, b)
		if !bytes.Equal(x.b, y.b) {
			return fmt.Errorf("%s field %d: %x became %x", what, i, x.b, y.b)
		}
	}
	return nil
}

// Every usual change is one that runs make, to the letter and with a difference,
// and no step ends in another way, unless more than one attempt does.
func TestUsualChangesAreUsual(t *testing.T) {
	seen := map[string]int{}
	count := func(what string, k int, exact bool) { seen[fmt.Sprintf("%s %d %v", what, k, exact)]++ }
	for seed := uint64(1); seed <= 300; seed++ {
		w, err := runWorld(newChooser(seed), false)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, row := range w.j.rows {
			records, err := DecodeRecords(row)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				if p := r.run; p != nil {
					k := usuallyRun(p, r.at, r.event)
					count("run", int(k), p.Mask == k.fields(r.event))
				}
				for i := range r.nodes {
					p := &r.nodes[i]
					k := usually(p, r.at, r.event)
					exact := k != usualNot && p.Mask == k.fields(r.event) && uint64(p.Attempts[0].Mask) == usuals[k].attempt
					if ok, is := r.event.(AttemptOK); is && ok.Attempt.Node == p.Node && len(p.Attempts) == 1 && k == usualNot && p.Mask&1 != 0 && p.To.State == StepSucceeded {
						t.Errorf("seed %d: a step ends and it is not usual: fields %b", seed, p.Mask)
					}
					count("node", int(k), exact)
				}
			}
		}
	}
	for _, what := range []string{
		"node 1 true", "node 1 false", "node 2 true", "node 2 false", "node 3 true", "node 3 false",
		"run 1 true", "run 1 false", "run 2 true", "run 2 false",
	} {
		if seen[what] == 0 {
			t.Errorf("no record has %q: %v", what, seen)
		}
	}
	t.Log(seen)
}

// What a usual change compares and what it sets is the same, field by field, and
// it touches nothing else.
func TestUsualChangesAgreeWithTheTables(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	at, call := model.Instant(1_000), int32(2)
	ok := AttemptOK{Attempt: AttemptID{Node: 1, Call: 2}, Output: js(`{"id":1}`)}
	started := Started{RunID: 9, Name: "name", Key: "key", Vars: js(`{"a":1}`), Trigger: "manual", StartedBy: "ann"}
	for _, k := range []usualKind{usualStart, usualEnd, usualEndKnown} {
		differs := func(n *model.Node) uint64 { return startDiffers(n, at, call) }
		if k != usualStart {
			differs = func(n *model.Node) uint64 { return endDiffers(n, at, ok.Output) }
		}
		checkUsual(t, rng, fmt.Sprintf("node %d", k), model.NodeFields, nodeCodec, usuals[k].follow, func() *model.Node { return &model.Node{More: &model.More{}} }, differs,
			func(n *model.Node, mask uint64) { k.set(n, mask, at, call, ok.Output) })
		differsOf := func(a *model.Attempt) uint64 { return attemptStartDiffers(a, at) }
		if k != usualStart {
			differsOf = func(a *model.Attempt) uint64 { return attemptEndDiffers(a, at) }
		}
		checkUsual(t, rng, fmt.Sprintf("attempt %d", k), model.AttemptFields, attemptCodec, usuals[k].attemptFollow, func() *model.Attempt { return &model.Attempt{Call: call} }, differsOf,
			func(a *model.Attempt, mask uint64) { setAttempt(a, mask, at) })
	}
	checkUsual(t, rng, "run accepted", model.RunFields, runCodec, runAccepted.follows(), func() *model.Run { return &model.Run{Head: &model.Head{}, Trouble: &model.Trouble{}} },
		func(r *model.Run) uint64 { return acceptDiffers(r, at, &started) },
		func(r *model.Run, mask uint64) { runAccepted.set(r, mask, at, started) })
	checkUsual(t, rng, "run ended", model.RunFields, runCodec, runEnded.follows(), func() *model.Run { return &model.Run{Head: &model.Head{}, Trouble: &model.Trouble{}} },
		func(r *model.Run) uint64 { return endedDiffers(r, at) },
		func(r *model.Run, mask uint64) { runEnded.set(r, mask, at, TimePassed{}) })
}

func checkUsual[T any](t *testing.T, rng *rand.Rand, name string, fields []model.Field[T], codecs []codec[T], follow uint64, fresh func() *T, differs func(*T) uint64, set func(*T, uint64)) {
	t.Helper()
	other := func(i int) *T { // a field like no usual change leaves it, if possible
		for {
			v := fresh()
			if scramble(rng, codecs[i], v, 7) {
				return v
			}
		}
	}
	for i := range fields {
		bit := uint64(1) << i
		if follow&bit == 0 {
			continue
		}
		noticed := false
		for range 50 {
			v, was := other(i), other(i)
			fields[i].Copy(was, v)
			if got := differs(v)&bit != 0; got {
				noticed = true
				set(v, follow&^bit)
				if !fields[i].Same(v, was) {
					t.Fatalf("%s: field %d is set though it is not asked for", name, i)
				}
			}
			set(v, bit)
			if differs(v)&bit != 0 {
				t.Fatalf("%s: field %d differs after it was set", name, i)
			}
			for j := range fields {
				w := fresh()
				set(w, bit)
				if j != i && !fields[j].Same(w, fresh()) {
					t.Fatalf("%s: field %d is set with field %d", name, j, i)
				}
			}
		}
		if !noticed {
			t.Errorf("%s: field %d never differs", name, i)
		}
	}
}

// scramble reads a field from random bytes; it may fail.
func scramble[T any](rng *rand.Rand, f codec[T], v *T, at model.Instant) bool {
	d := &decoder{b: make([]byte, 64), at: at, format: format}
	for k := range d.b {
		d.b[k] = byte(rng.IntN(9))
	}
	f.get(d, v)
	return d.err == nil
}

// Records that are nearly usual, one thing or several being different, are read
// as they were written.
func TestCodecNearlyUsual(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	usual, changed := 0, 0
	for seed := uint64(1); seed <= 60; seed++ {
		w, err := runWorld(newChooser(seed), false)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for k, row := range w.j.rows {
			for range 8 {
				records, err := DecodeRecords(row)
				if err != nil {
					t.Fatal(err)
				}
				r := &records[0]
				for range 1 + rng.IntN(2) {
					disturb(rng, r)
				}
				data, err := EncodeRecords(records)
				if err != nil {
					t.Fatal(err)
				}
				back, err := DecodeRecords(data)
				if err != nil {
					t.Fatalf("seed %d record %d: %v: %x", seed, k, err, data)
				}
				if err := sameRecord(r, &back[0]); err != nil {
					t.Fatalf("seed %d record %d: %v: %x", seed, k, err, data)
				}
				for i := range r.nodes {
					if usually(&r.nodes[i], r.at, r.event) != usualNot {
						usual++
					}
				}
				if !bytes.Equal(data, row) {
					changed++
				}
			}
		}
	}
	if usual < 1000 || changed < 1000 {
		t.Errorf("%d usual changes in %d records that were disturbed: the test is void", usual, changed)
	}
}

// A later attempt that changes what a first one does is told from a first one.
func TestCodecLaterAttemptToTheLetter(t *testing.T) {
	at := model.ToInstant(noon)
	for _, call := range []int32{1, 2, 300} {
		n, a := model.Node{More: &model.NoMore, Deps: 1, Input: model.Held{V: js(`{"x":1}`)}}, model.Attempt{Call: call, CompleteBy: at + 5}
		setStart(&n, startFollow, at, call)
		setAttempt(&a, usuals[usualStart].attemptFollow, at)
		want := Record{at: at, event: TimePassed{}, nodes: []model.NodePatch{{
			Node: 3, Mask: usuals[usualStart].node, To: &n, Attempts: []model.AttemptPatch{{Mask: uint16(usuals[usualStart].attempt), To: a}},
		}}}
		if usually(&want.nodes[0], at, want.event) != usualStart {
			t.Fatalf("call %d is no usual start", call)
		}
		data, err := EncodeRecords([]Record{want})
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeRecords(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := sameRecord(&want, &got[0]); err != nil {
			t.Errorf("call %d: %v", call, err)
		}
	}
}

// disturb changes something of a record that was read.
func disturb(rng *rand.Rand, r *Record) {
	switch what := rng.IntN(10); {
	case what == 0:
		r.at += model.Instant(rng.IntN(3)) * 500_000
	case what == 1:
		if ev, ok := r.event.(AttemptOK); ok {
			ev.Attempt.Node += rng.IntN(2)
			ev.Attempt.Call += rng.IntN(2)
			ev.Output = []dsl.Value{{}, js(`{"other":1}`), ev.Output}[rng.IntN(3)]
			r.event = ev
		}
	case what == 2:
		if ev, ok := r.event.(Started); ok {
			ev.RunID += RunID(rng.IntN(2))
			ev.Key = []string{"", "other"}[rng.IntN(2)]
			ev.Trigger, ev.StartedBy = ev.StartedBy, ev.Trigger
			ev.Vars = []dsl.Value{{}, js(`{"other":1}`), ev.Vars}[rng.IntN(3)]
			r.event = ev
		}
	case what == 3:
		if r.run == nil {
			return
		}
		h, tr := *r.run.To.Head, *r.run.To.Trouble
		r.run.To.Head, r.run.To.Trouble = &h, &tr
		disturbPatch(rng, runCodec, &r.run.Mask, &r.run.To, r.at)
		if r.run.To.Steps = max(0, r.run.To.Steps); r.run.Mask == 0 {
			r.run = nil
		}
	case len(r.nodes) == 0:
	case what < 7:
		p := &r.nodes[rng.IntN(len(r.nodes))]
		m := *p.To.More
		p.To.More = &m
		disturbPatch(rng, nodeCodec, &p.Mask, p.To, r.at)
	default:
		p := &r.nodes[rng.IntN(len(r.nodes))]
		if len(p.Attempts) == 0 || what == 7 {
			p.Attempts = append(p.Attempts, model.AttemptPatch{To: model.Attempt{Call: 1 + int32(rng.IntN(3))}})
		}
		a := &p.Attempts[rng.IntN(len(p.Attempts))]
		a.To.Call += int32(rng.IntN(2))
		mask := uint64(a.Mask)
		disturbPatch(rng, attemptCodec, &mask, &a.To, r.at)
		a.Mask = uint16(mask)
	}
}

// disturbPatch changes the value of a field, or whether it changes.
func disturbPatch[T any](rng *rand.Rand, fields []codec[T], mask *uint64, v *T, at model.Instant) {
	i := rng.IntN(len(fields))
	if in := *mask; in != 0 && rng.IntN(3) > 0 { // one of those that change
		for range rng.IntN(bits.OnesCount64(in)) {
			in &= in - 1
		}
		i = bits.TrailingZeros64(in)
	}
	if *mask>>i&1 == 1 && rng.IntN(2) == 0 {
		*mask &^= 1 << i
		return
	}
	for !scramble(rng, fields[i], v, at) {
	}
	*mask |= 1 << i
}

// What an ordinary run of steps takes, to the byte, beside what people gave it:
// every step's output is the next one's input.
func TestCodecSizeOfSteps(t *testing.T) {
	wf := chain(5)
	for i, s := range wf.Steps {
		s.Input = func(sc *dsl.Scope) (dsl.Value, error) {
			if i == 0 {
				return sc.Vars, nil
			}
			return sc.Step(i - 1).One.Output, nil
		}
	}
	s := NewState()
	vars := js(`{"order":"0123456789"}`)
	started := Started{RunID: 1 << 52, Name: "r-0123456789", Vars: vars, Trigger: "manual", StartedBy: "ann"}
	said := len("r-0123456789") + len(vars.JSON()) + len("manual") + len("ann") + len("order")
	events, given, beside := []Event{started}, []int{said}, []int{33}
	for i := range 5 {
		output := js(fmt.Sprintf(`{"n":%d,"out":"%s"}`, i, strings.Repeat("o", 96)))
		events = append(events, AttemptOK{Attempt: AttemptID{Node: i, Call: 1}, Output: output})
		given, beside = append(given, len(output.JSON())), append(beside, 23)
	}
	beside[5] = 19 // the run ends
	var scratch Scratch
	fold := NewState()
	most := 18.0 // allocations to read the first record
	room := make([]byte, 0, 256)
	for k, ev := range events {
		at := noon.Add(time.Duration(k) * time.Millisecond)
		records := []Record{Decide(wf, s, Input{At: at, Event: ev})}
		row, err := EncodeRecords(records)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(row) - given[k]; got != beside[k] {
			t.Errorf("record %d has %d bytes beside what was given, want %d", k, got, beside[k])
		}
		t.Logf("record %d: %d bytes: %x", k, len(row), row)
		if n := testing.AllocsPerRun(100, func() {
			if _, err := scratch.AppendRecords(room, records); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("record %d: %.0f allocations to write it", k, n)
		}
		if n := testing.AllocsPerRun(100, func() {
			if _, err := DecodeRecords(row); err != nil {
				t.Fatal(err)
			}
		}); n > most {
			t.Errorf("record %d: %.0f allocations to read it", k, n)
		}
		most = 13
		s.Apply(records[0])
		if _, err := scratch.Fold(fold, wf, row, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := sameFold(s, fold); err != nil || s.Status() != RunSucceeded {
		t.Errorf("%s: %v", s.Status(), err)
	}
}
