package wire

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/saga-engine/engine/engine/internal/model"
)

// What is written out by hand agrees with the tables, field by field: which
// fields differ, and which lie behind a pointer.
func TestDiffAgreesWithTheTables(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	// read fills v from random bytes until they can be read.
	read := func(get func(*decoder)) {
		for {
			d := &decoder{b: make([]byte, 64), at: 7, format: Format}
			for k := range d.b {
				d.b[k] = byte(rng.IntN(9))
			}
			if get(d); d.err == nil {
				return
			}
		}
	}
	for i, f := range nodeCodec {
		differed := false
		for range 200 {
			a, b := model.Node{More: &model.More{}}, model.Node{More: &model.More{}}
			read(func(d *decoder) { a = model.Node{More: &model.More{}}; f.get(d, &a) })
			read(func(d *decoder) { b = model.Node{More: &model.More{}}; f.get(d, &b) })
			mask := model.Diff(model.NodeFields, &a, &b)
			if mask&^(1<<i) != 0 || model.DiffNode(&a, &b) != mask {
				t.Fatalf("node field %d: the table says %b, diffNode %b", i, mask, model.DiffNode(&a, &b))
			}
			differed = differed || mask != 0
			if behind := !reflect.DeepEqual(a.More, b.More); behind && model.MoreBits>>i&1 == 0 {
				t.Fatalf("node field %d lies behind the pointer, but moreBits does not say so", i)
			}
		}
		if !differed {
			t.Errorf("node field %d never differed", i)
		}
	}
	for i, f := range runCodec {
		differed := false
		for range 200 {
			var a, b model.Run
			fresh := func(r *model.Run) { *r = model.Run{Head: &model.Head{}, Rare: &model.Rare{}} }
			fresh(&a)
			fresh(&b)
			read(func(d *decoder) { fresh(&a); f.get(d, &a) })
			read(func(d *decoder) { fresh(&b); f.get(d, &b) })
			mask := model.Diff(model.RunFields, &a, &b)
			if mask&^(1<<i) != 0 || model.DiffRun(&a, &b) != mask {
				t.Fatalf("run field %d: the table says %b, diffRun %b", i, mask, model.DiffRun(&a, &b))
			}
			differed = differed || mask != 0
			if !reflect.DeepEqual(a.Head, b.Head) && model.HeadBits>>i&1 == 0 || !reflect.DeepEqual(a.Rare, b.Rare) && model.RareBits>>i&1 == 0 {
				t.Fatalf("run field %d lies behind a pointer, but no mask says so", i)
			}
		}
		if !differed {
			t.Errorf("run field %d never differed", i)
		}
	}
	for i, f := range attemptCodec {
		differed := false
		for range 200 {
			var a, b model.Attempt
			read(func(d *decoder) { a = model.Attempt{}; f.get(d, &a) })
			read(func(d *decoder) { b = model.Attempt{}; f.get(d, &b) })
			mask := model.Diff(model.AttemptFields, &a, &b)
			if mask&^(1<<i) != 0 || uint64(model.DiffAttempt(a, b)) != mask {
				t.Fatalf("attempt field %d: the table says %b, diffAttempt %b", i, mask, model.DiffAttempt(a, b))
			}
			differed = differed || mask != 0
		}
		if !differed {
			t.Errorf("attempt field %d never differed", i)
		}
	}
	for k, h := range model.NodeValues(&model.Node{More: &model.More{}}) {
		var found uint64
		for i, f := range nodeCodec {
			n := model.Node{More: &model.More{}}
			read(func(d *decoder) { n = model.Node{More: &model.More{}}; f.get(d, &n) })
			for range 50 {
				if *model.NodeValues(&n)[k] != *h {
					found |= 1 << i
				}
				read(func(d *decoder) { n = model.Node{More: &model.More{}}; f.get(d, &n) })
			}
		}
		if found != model.ValueBits[k] {
			t.Errorf("value %d has the bits %b, want %b", k, model.ValueBits[k], found)
		}
	}
}
