package wire

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
)

func js(text string) dsl.Value { return dsl.NewValue([]byte(text), nil, nil) }

// What a template compares and what it sets is the same, field by field, and it touches
// nothing else.
func TestTemplatesAgreeWithTheTables(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	at, call := model.Instant(1_000), int32(2)
	ok := machine.AttemptOK{Attempt: machine.AttemptID{Node: 1, Call: 2}, Output: js(`{"id":1}`)}
	started := machine.Started{RunID: 9, Name: "name", Key: "key", Vars: js(`{"a":1}`), Trigger: "manual", StartedBy: "ann"}
	for _, k := range []template{stepStarts, stepEnds, stepEndsKnown} {
		differs := func(n *model.Node) uint64 { return startDiffers(n, at, call) }
		if k != stepStarts {
			differs = func(n *model.Node) uint64 { return endDiffers(n, at, ok.Output) }
		}
		checkUsual(t, rng, fmt.Sprintf("node %d", k), model.NodeFields, nodeCodec, templates[k].follow, func() *model.Node { return &model.Node{More: &model.More{}} }, differs,
			func(n *model.Node, mask uint64) { k.set(n, mask, at, call, ok.Output) })
		differsOf := func(a *model.Attempt) uint64 { return attemptStartDiffers(a, at) }
		if k != stepStarts {
			differsOf = func(a *model.Attempt) uint64 { return attemptEndDiffers(a, at) }
		}
		checkUsual(t, rng, fmt.Sprintf("attempt %d", k), model.AttemptFields, attemptCodec, templates[k].attemptFollow, func() *model.Attempt { return &model.Attempt{Call: call} }, differsOf,
			func(a *model.Attempt, mask uint64) { setAttempt(a, mask, at) })
	}
	checkUsual(t, rng, "run accepted", model.RunFields, runCodec, runAccepted.follows(), func() *model.Run { return &model.Run{Head: &model.Head{}, Rare: &model.Rare{}} },
		func(r *model.Run) uint64 { return acceptDiffers(r, at, &started) },
		func(r *model.Run, mask uint64) { runAccepted.set(r, mask, at, started) })
	checkUsual(t, rng, "run ended", model.RunFields, runCodec, runEnded.follows(), func() *model.Run { return &model.Run{Head: &model.Head{}, Rare: &model.Rare{}} },
		func(r *model.Run) uint64 { return endedDiffers(r, at) },
		func(r *model.Run, mask uint64) { runEnded.set(r, mask, at, machine.TimePassed{}) })
}

func checkUsual[T any](t *testing.T, rng *rand.Rand, name string, fields []model.Field[T], codecs []codec[T], follow uint64, fresh func() *T, differs func(*T) uint64, set func(*T, uint64)) {
	t.Helper()
	other := func(i int) *T { // a field like no template leaves it, if possible
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
	d := &decoder{b: make([]byte, 64), at: at, format: Format}
	for k := range d.b {
		d.b[k] = byte(rng.IntN(9))
	}
	f.get(d, v)
	return d.err == nil
}

// A later attempt that changes what a first one does is told from a first one.
func TestCodecLaterAttemptToTheLetter(t *testing.T) {
	at := model.Instant(1_700_000_000_000_000)
	for _, call := range []int32{1, 2, 300} {
		n, a := model.Node{More: &model.NoMore, Deps: 1, Input: model.StoredValue{V: js(`{"x":1}`)}}, model.Attempt{Call: call, CompleteBy: at + 5}
		setStart(&n, startFollow, at, call)
		setAttempt(&a, templates[stepStarts].attemptFollow, at)
		delta := model.Delta{At: at, Nodes: []model.NodePatch{{
			Node: 3, Mask: templates[stepStarts].node, To: &n, Attempts: []model.AttemptPatch{{Mask: uint16(templates[stepStarts].attempt), To: a}},
		}}}
		want := machine.NewRecord(machine.TimePassed{}, delta)
		if templateOf(&delta.Nodes[0], at, want.Event()) != stepStarts {
			t.Fatalf("call %d is no start by its template", call)
		}
		data, err := Encode([]machine.Record{want})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := Same(&want, &got[0]); err != nil {
			t.Errorf("call %d: %v", call, err)
		}
	}
}
