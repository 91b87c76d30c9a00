package machine

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// What is written out by hand agrees with the tables, field by field: which
// fields differ, and which lie behind a pointer.
func TestDiffAgreesWithTheTables(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	// read fills v from random bytes until they can be read.
	read := func(get func(*decoder)) {
		for {
			d := &decoder{b: make([]byte, 64), at: 7, format: format}
			for k := range d.b {
				d.b[k] = byte(rng.IntN(9))
			}
			if get(d); d.err == nil {
				return
			}
		}
	}
	for i, f := range nodeFields {
		differed := false
		for range 200 {
			a, b := node{more: &more{}}, node{more: &more{}}
			read(func(d *decoder) { a = node{more: &more{}}; f.get(d, &a) })
			read(func(d *decoder) { b = node{more: &more{}}; f.get(d, &b) })
			mask := diff(nodeFields, &a, &b)
			if mask&^(1<<i) != 0 || diffNode(&a, &b) != mask {
				t.Fatalf("node field %d: the table says %b, diffNode %b", i, mask, diffNode(&a, &b))
			}
			differed = differed || mask != 0
			if behind := !reflect.DeepEqual(a.more, b.more); behind && moreBits>>i&1 == 0 {
				t.Fatalf("node field %d lies behind the pointer, but moreBits does not say so", i)
			}
		}
		if !differed {
			t.Errorf("node field %d never differed", i)
		}
	}
	for i, f := range runFields {
		differed := false
		for range 200 {
			var a, b run
			fresh := func(r *run) { *r = run{head: &head{}, trouble: &trouble{}} }
			fresh(&a)
			fresh(&b)
			read(func(d *decoder) { fresh(&a); f.get(d, &a) })
			read(func(d *decoder) { fresh(&b); f.get(d, &b) })
			mask := diff(runFields, &a, &b)
			if mask&^(1<<i) != 0 || diffRun(&a, &b) != mask {
				t.Fatalf("run field %d: the table says %b, diffRun %b", i, mask, diffRun(&a, &b))
			}
			differed = differed || mask != 0
			if !reflect.DeepEqual(a.head, b.head) && headBits>>i&1 == 0 || !reflect.DeepEqual(a.trouble, b.trouble) && troubleBits>>i&1 == 0 {
				t.Fatalf("run field %d lies behind a pointer, but no mask says so", i)
			}
		}
		if !differed {
			t.Errorf("run field %d never differed", i)
		}
	}
	for i, f := range attemptFields {
		differed := false
		for range 200 {
			var a, b attempt
			read(func(d *decoder) { a = attempt{}; f.get(d, &a) })
			read(func(d *decoder) { b = attempt{}; f.get(d, &b) })
			mask := diff(attemptFields, &a, &b)
			if mask&^(1<<i) != 0 || uint64(diffAttempt(a, b)) != mask {
				t.Fatalf("attempt field %d: the table says %b, diffAttempt %b", i, mask, diffAttempt(a, b))
			}
			differed = differed || mask != 0
		}
		if !differed {
			t.Errorf("attempt field %d never differed", i)
		}
	}
	for k, h := range nodeValues(&node{more: &more{}}) {
		var found uint64
		for i, f := range nodeFields {
			n := node{more: &more{}}
			read(func(d *decoder) { n = node{more: &more{}}; f.get(d, &n) })
			for range 50 {
				if *nodeValues(&n)[k] != *h {
					found |= 1 << i
				}
				read(func(d *decoder) { n = node{more: &more{}}; f.get(d, &n) })
			}
		}
		if found != valueBits[k] {
			t.Errorf("value %d has the bits %b, want %b", k, valueBits[k], found)
		}
	}
}

// Nobody has changed what all nodes and runs share.
func checkShared(t *testing.T) {
	t.Helper()
	if !reflect.DeepEqual(noMore, more{}) || noHead != (head{}) || !reflect.DeepEqual(noTrouble, trouble{}) || !reflect.DeepEqual(blank, node{more: &noMore}) {
		t.Fatal("what states share was changed")
	}
	for i := range pristine {
		if !reflect.DeepEqual(pristine[i], node{step: int32(i), state: StepPending, more: &noMore}) {
			t.Fatalf("the step %d that states share was changed", i)
		}
	}
}
