package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// wide returns a run of n instances that are all in flight, and the answer of
// one of them.
func wide(tb testing.TB, n int) (*dsl.Workflow, *machine.State, machine.Input) {
	tb.Helper()
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%05d", i)
	}
	wf := flow(do("a", each(keys...), tries(3)), do("b", after("a")))
	s := machine.NewState()
	s.Apply(machine.Decide(wf, s, machine.Input{At: noon, Event: machine.Started{RunID: 1, Name: "wide"}}))
	if open := len(s.OpenAttempts(wf)); open != n {
		tb.Fatalf("%d attempts are open, want %d", open, n)
	}
	answer := machine.AttemptOK{Attempt: machine.AttemptID{Node: 1 + n/2, Call: 1}, Output: js(`{"id":"0123456789"}`)}
	return wf, s, machine.Input{At: noon.Add(time.Second), Event: answer}
}

// A step of a run with 10,000 instances costs what one of a run with 10 does.
func TestWideRunsCostNoMore(t *testing.T) {
	allocs := func(n int) float64 {
		wf, s, in := wide(t, n)
		return testing.AllocsPerRun(200, func() { machine.Decide(wf, s, in) })
	}
	small, large := allocs(10), allocs(10_000)
	if large > 1.5*small {
		t.Errorf("Decide: %.0f allocations with 10 instances, %.0f with 10,000", small, large)
	}
	bytes := func(n int) int {
		wf, s, in := wide(t, n)
		data, err := wire.Encode([]machine.Record{machine.Decide(wf, s, in)})
		if err != nil {
			t.Fatal(err)
		}
		return len(data)
	}
	if a, b := bytes(10), bytes(10_000); b > a+8 {
		t.Errorf("the record has %d bytes with 10 instances, %d with 10,000", a, b)
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			wf, s, in := wide(b, n)
			b.ReportAllocs()
			for b.Loop() {
				machine.Decide(wf, s, in)
			}
		})
	}
}

func BenchmarkApply(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			wf, s, in := wide(b, n)
			rec := machine.Decide(wf, s, in)
			b.ReportAllocs()
			for b.Loop() {
				s.Apply(rec)
			}
		})
	}
}

func BenchmarkCodec(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		wf, s, in := wide(b, n)
		rec := []machine.Record{machine.Decide(wf, s, in)}
		data, err := wire.Encode(rec)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("encode/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.Encode(rec); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("decode/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.Decode(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWholeRun is a sequential run of five steps, from its acceptance to
// its end.
func BenchmarkWholeRun(b *testing.B) {
	wf := flow(do("a"), do("b", after("a")), do("c", after("b")), do("d", after("c")), do("e", after("d")))
	out := js(`{"id":"0123456789"}`)
	b.ReportAllocs()
	for b.Loop() {
		s := machine.NewState()
		s.Apply(machine.Decide(wf, s, machine.Input{At: noon, Event: machine.Started{RunID: 1, Name: "r"}}))
		for i := range 5 {
			s.Apply(machine.Decide(wf, s, machine.Input{At: noon, Event: machine.AttemptOK{Attempt: machine.AttemptID{Node: i, Call: 1}, Output: out}}))
		}
		if s.Status() != status.RunSucceeded {
			b.Fatal(s.Status())
		}
	}
}
