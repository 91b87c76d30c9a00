package machine_test

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
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

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
			records, err := wire.Decode(row)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				run, nodes := wire.Forms(&r)
				if r.Delta().Run != nil {
					count("run", run.Template, run.Exact)
				}
				for i, p := range r.Delta().Nodes {
					if ok, is := r.Event().(machine.AttemptOK); is && ok.Attempt.Node == p.Node && len(p.Attempts) == 1 && nodes[i].Template == 0 && p.Mask&model.NodeStateBit != 0 && p.To.State == status.StepSucceeded {
						t.Errorf("seed %d: a step ends and it is not usual: fields %b", seed, p.Mask)
					}
					count("node", nodes[i].Template, nodes[i].Exact)
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

// Every record reads the same, whether it was written by templates or without.
func TestTemplatesAgreeWithTheGeneralForm(t *testing.T) {
	short, general := 0, 0
	for seed := uint64(1); seed <= 200; seed++ {
		w, err := runWorld(newChooser(seed), false)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for k, row := range w.j.rows {
			records, err := wire.Decode(row)
			if err != nil {
				t.Fatal(err)
			}
			all, err := wire.EncodeGeneral(records)
			if err != nil {
				t.Fatal(err)
			}
			back, err := wire.Decode(all)
			if err != nil || len(back) != len(records) {
				t.Fatalf("seed %d row %d: %d records became %d: %v", seed, k, len(records), len(back), err)
			}
			for i := range records {
				if err := wire.Same(&records[i], &back[i]); err != nil {
					t.Fatalf("seed %d row %d: %v", seed, k, err)
				}
			}
			short, general = short+len(row), general+len(all)
		}
	}
	if short >= general {
		t.Errorf("%d bytes by templates, %d without", short, general)
	}
	t.Logf("%d bytes by templates, %d without", short, general)
}

// Records that are nearly usual, one thing or several being different, are read
// as they were written.
func TestCodecNearlyUsual(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	usual, changed := 0, 0
	for seed := uint64(1); seed <= 90; seed++ {
		w, err := runWorld(newChooser(seed), false)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for k, row := range w.j.rows {
			for range 8 {
				records, err := wire.Decode(row)
				if err != nil {
					t.Fatal(err)
				}
				for range 1 + rng.IntN(2) {
					records[0] = disturb(rng, &records[0])
				}
				r := &records[0]
				data, err := wire.Encode(records)
				if err != nil {
					t.Fatal(err)
				}
				back, err := wire.Decode(data)
				if err != nil {
					t.Fatalf("seed %d record %d: %v: %x", seed, k, err, data)
				}
				if err := wire.Same(r, &back[0]); err != nil {
					t.Fatalf("seed %d record %d: %v: %x", seed, k, err, data)
				}
				_, nodes := wire.Forms(r)
				for _, form := range nodes {
					if form.Template != 0 {
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

// disturb returns a record that was read, with something of it changed.
func disturb(rng *rand.Rand, r *machine.Record) machine.Record {
	d, event := r.Delta(), r.Event()
	switch what := rng.IntN(10); {
	case what == 0:
		d.At += model.Instant(rng.IntN(3)) * 500_000
	case what == 1:
		if ev, ok := event.(machine.AttemptOK); ok {
			ev.Attempt.Node += rng.IntN(2)
			ev.Attempt.Call += rng.IntN(2)
			ev.Output = []dsl.Value{{}, js(`{"other":1}`), ev.Output}[rng.IntN(3)]
			event = ev
		}
	case what == 2:
		if ev, ok := event.(machine.Started); ok {
			ev.RunID += status.RunID(rng.IntN(2))
			ev.Key = []string{"", "other"}[rng.IntN(2)]
			ev.Trigger, ev.StartedBy = ev.StartedBy, ev.Trigger
			ev.Vars = []dsl.Value{{}, js(`{"other":1}`), ev.Vars}[rng.IntN(3)]
			event = ev
		}
	case what == 3:
		d.Run = disturbRun(rng, d.Run, d.At)
	case len(d.Nodes) == 0:
	case what < 7:
		p := &d.Nodes[rng.IntN(len(d.Nodes))]
		m := *p.To.More
		p.To.More = &m
		disturbPatch(rng, len(model.NodeFields), &p.Mask, p.To, d.At)
	default:
		p := &d.Nodes[rng.IntN(len(d.Nodes))]
		if len(p.Attempts) == 0 || what == 7 {
			p.Attempts = append(p.Attempts, model.AttemptPatch{To: model.Attempt{Call: 1 + int32(rng.IntN(3))}})
		}
		a := &p.Attempts[rng.IntN(len(p.Attempts))]
		a.To.Call += int32(rng.IntN(2))
		mask := uint64(a.Mask)
		disturbPatch(rng, len(model.AttemptFields), &mask, &a.To, d.At)
		a.Mask = uint16(mask)
	}
	return machine.NewRecord(event, d)
}

func disturbRun(rng *rand.Rand, p *model.RunPatch, at model.Instant) *model.RunPatch {
	if p == nil {
		return nil
	}
	h, tr := *p.To.Head, *p.To.Rare
	p.To.Head, p.To.Rare = &h, &tr
	disturbPatch(rng, len(model.RunFields), &p.Mask, &p.To, at)
	if p.To.Steps = max(0, p.To.Steps); p.Mask == 0 {
		return nil
	}
	return p
}

// disturbPatch changes the value of a field, or whether it changes.
func disturbPatch(rng *rand.Rand, fields int, mask *uint64, v any, at model.Instant) {
	i := rng.IntN(fields)
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
	for { // random bytes, until they can be read
		data := make([]byte, 64)
		for k := range data {
			data[k] = byte(rng.IntN(9))
		}
		if wire.ReadField(v, i, data, at) {
			break
		}
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
	s := machine.NewState()
	vars := js(`{"order":"0123456789"}`)
	started := machine.Started{RunID: 1 << 52, Name: "r-0123456789", Vars: vars, Trigger: "manual", StartedBy: "ann"}
	said := len("r-0123456789") + len(vars.JSON()) + len("manual") + len("ann") + len("order")
	events, given, beside := []machine.Event{started}, []int{said}, []int{33}
	for i := range 5 {
		output := js(fmt.Sprintf(`{"n":%d,"out":"%s"}`, i, strings.Repeat("o", 96)))
		events = append(events, machine.AttemptOK{Attempt: machine.AttemptID{Node: i, Call: 1}, Output: output})
		given, beside = append(given, len(output.JSON())), append(beside, 23)
	}
	beside[5] = 19 // the run ends
	var encoder wire.Encoder
	var reader wire.Reader
	fold := machine.NewState()
	most := 18.0 // allocations to read the first record
	room := make([]byte, 0, 256)
	for k, ev := range events {
		at := noon.Add(time.Duration(k) * time.Millisecond)
		records := []machine.Record{machine.Decide(wf, s, machine.Input{At: at, Event: ev})}
		row, err := wire.Encode(records)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(row) - given[k]; got != beside[k] {
			t.Errorf("record %d has %d bytes beside what was given, want %d", k, got, beside[k])
		}
		t.Logf("record %d: %d bytes: %x", k, len(row), row)
		if n := testing.AllocsPerRun(100, func() {
			if _, err := encoder.Append(room, records); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("record %d: %.0f allocations to write it", k, n)
		}
		if n := testing.AllocsPerRun(100, func() {
			if _, err := wire.Decode(row); err != nil {
				t.Fatal(err)
			}
		}); n > most {
			t.Errorf("record %d: %.0f allocations to read it", k, n)
		}
		most = 13
		s.Apply(records[0])
		if _, err := foldCounted(&reader, fold, wf, row, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := sameFold(s, fold); err != nil || s.Status() != status.RunSucceeded {
		t.Errorf("%s: %v", s.Status(), err)
	}
}
