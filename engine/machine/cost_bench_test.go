package machine_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// chain is a workflow of n steps in a row.
func chain(n int) *dsl.Workflow {
	steps := make([]any, n)
	for i := range steps {
		if i == 0 {
			steps[i] = do("s0")
		} else {
			steps[i] = do(fmt.Sprintf("s%d", i), after(fmt.Sprintf("s%d", i-1)))
		}
	}
	return flow(steps...)
}

// payload is an output of 100 bytes, different for every step.
func payload(i int) dsl.Value {
	return js(fmt.Sprintf(`{"n":%08d,"out":"%080d"}`, i+10_000_000, i))
}

// chainRows are the journal rows of a chain of five steps until step `done` has
// ended.
func chainRows(tb testing.TB, wf *dsl.Workflow, done int) [][]byte {
	tb.Helper()
	s := machine.NewState()
	var rows [][]byte
	deliver := func(at time.Time, ev machine.Event) {
		rec := machine.Decide(wf, s, machine.Input{At: at, Event: ev})
		row, err := wire.Encode([]machine.Record{rec})
		if err != nil {
			tb.Fatal(err)
		}
		rows = append(rows, row)
		s.Apply(rec)
	}
	deliver(noon, machine.Started{RunID: 1 << 52, Name: "r-0123456789", Vars: js(`{"order":"0123456789"}`), Trigger: "manual", StartedBy: "ann"})
	for i := range done {
		deliver(noon.Add(time.Duration(i+1)*time.Millisecond), machine.AttemptOK{Attempt: machine.AttemptID{Node: i, Call: 1}, Output: payload(i)})
	}
	return rows
}

func foldRows(tb testing.TB, wf *dsl.Workflow, rows [][]byte) (*machine.State, int) {
	tb.Helper()
	s, facts := machine.NewState(), 0
	for _, row := range rows {
		records, err := wire.Decode(row)
		if err != nil {
			tb.Fatal(err)
		}
		for _, r := range records {
			facts += applyCounted(s, wf, r)
		}
	}
	return s, facts
}

// BenchmarkFold reads four rows of a run of five steps and folds them, as a
// takeover does.
func BenchmarkFold(b *testing.B) {
	wf := chain(5)
	rows := chainRows(b, wf, 3)
	b.Run("records", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if s, _ := foldRows(b, wf, rows); s.Status() != status.RunRunning {
				b.Fatal(s.Status())
			}
		}
	})
	b.Run("plain", func(b *testing.B) {
		var scratch wire.Reader
		b.ReportAllocs()
		for b.Loop() {
			if s := foldPlain(b, &scratch, wf, rows); s.Status() != status.RunRunning {
				b.Fatal(s.Status())
			}
		}
	})
}

func foldPlain(tb testing.TB, scratch *wire.Reader, wf *dsl.Workflow, rows [][]byte) *machine.State {
	tb.Helper()
	s := machine.NewState()
	for _, row := range rows {
		if _, err := foldCounted(scratch, s, wf, row, nil); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// BenchmarkEvent is what one event of a run of five steps costs: decided, told
// to the views, applied and encoded. An op is a whole run of six events.
func BenchmarkEvent(b *testing.B) {
	wf := chain(5)
	outputs := make([]dsl.Value, 5)
	for i := range outputs {
		outputs[i] = payload(i)
	}
	var scratch machine.Scratch
	var encoder wire.Encoder
	var row []byte
	var rows []machine.StepRow
	var records []machine.Record
	b.ReportAllocs()
	for b.Loop() {
		s := machine.NewState()
		deliver := func(ev machine.Event) {
			rec := machine.Decide(wf, s, machine.Input{At: noon, Event: ev, Scratch: &scratch})
			rows = rec.AppendSteps(rows[:0], s)
			s.Apply(rec)
			s.NextDue()
			records = append(records[:0], rec)
			var err error
			if row, err = encoder.Append(row[:0], records); err != nil {
				b.Fatal(err)
			}
		}
		deliver(machine.Started{RunID: 1 << 52, Name: "r-0123456789", Vars: js(`{"order":"0123456789"}`), Trigger: "manual", StartedBy: "ann"})
		for i := range 5 {
			deliver(machine.AttemptOK{Attempt: machine.AttemptID{Node: i, Call: 1}, Output: outputs[i]})
		}
		if s.Status() != status.RunSucceeded {
			b.Fatal(s.Status())
		}
	}
}

// BenchmarkStateBytes reports what a run of five steps in flight keeps in
// memory, three of its steps done, with and without its payloads' bytes.
func BenchmarkStateBytes(b *testing.B) {
	wf := chain(5)
	rows := chainRows(b, wf, 3)
	size := 0
	for _, row := range rows {
		size += len(row)
	}
	for _, kind := range []string{"records", "plain", "decided"} {
		b.Run(kind, func(b *testing.B) {
			var scratch wire.Reader
			states := make([]*machine.State, 2000)
			var before, after runtime.MemStats
			for b.Loop() {
				clear(states)
				runtime.GC()
				runtime.ReadMemStats(&before)
				for i := range states {
					switch kind {
					case "records":
						states[i], _ = foldRows(b, wf, rows)
					case "plain":
						states[i] = foldPlain(b, &scratch, wf, rows)
					default:
						states[i] = decidedRun(wf)
					}
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
			}
			b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/float64(len(states)), "B/run")
			b.ReportMetric(float64(size), "row-B/run")
			runtime.KeepAlive(states)
		})
	}
}

func decidedRun(wf *dsl.Workflow) *machine.State {
	s := machine.NewState()
	s.Apply(machine.Decide(wf, s, machine.Input{At: noon, Event: machine.Started{RunID: 1 << 52, Name: "r-0123456789", Vars: js(`{"order":"0123456789"}`), Trigger: "manual", StartedBy: "ann"}}))
	for i := range 3 {
		s.Apply(machine.Decide(wf, s, machine.Input{At: noon, Event: machine.AttemptOK{Attempt: machine.AttemptID{Node: i, Call: 1}, Output: payload(i)}}))
	}
	return s
}

// BenchmarkLong is one event late in a run of many steps in a row, and of many
// attempts of one step, against one early in a short run.
func BenchmarkLong(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("steps/%d", n), func(b *testing.B) {
			wf, s, in := longChain(b, n)
			b.ReportAllocs()
			for b.Loop() {
				machine.Decide(wf, s, in)
			}
		})
		b.Run(fmt.Sprintf("attempts/%d", n), func(b *testing.B) {
			wf, s, in := manyAttempts(b, n)
			b.ReportAllocs()
			for b.Loop() {
				machine.Decide(wf, s, in)
			}
		})
	}
}

// longChain returns a run of n+1 steps in a row of which all but the last two
// are done, and the answer of the one that runs.
func longChain(tb testing.TB, n int) (*dsl.Workflow, *machine.State, machine.Input) {
	tb.Helper()
	wf := chain(n + 1)
	s := machine.NewState()
	now := noon
	s.Apply(machine.Decide(wf, s, machine.Input{At: now, Event: machine.Started{RunID: 1, Name: "long"}}))
	for i := range n - 1 {
		now = now.Add(time.Millisecond)
		s.Apply(machine.Decide(wf, s, machine.Input{At: now, Event: machine.AttemptOK{Attempt: machine.AttemptID{Node: i, Call: 1}, Output: payload(i)}}))
	}
	return wf, s, machine.Input{At: now.Add(time.Millisecond), Event: machine.AttemptOK{Attempt: machine.AttemptID{Node: n - 1, Call: 1}, Output: payload(n)}}
}

// manyAttempts returns a run whose step has failed n-1 times, and the failure of
// its n-th attempt.
func manyAttempts(tb testing.TB, n int) (*dsl.Workflow, *machine.State, machine.Input) {
	tb.Helper()
	wf := flow(do("a", tries(dsl.Unbounded)), do("b", after("a")))
	s := machine.NewState()
	now := noon
	s.Apply(machine.Decide(wf, s, machine.Input{At: now, Event: machine.Started{RunID: 1, Name: "stubborn"}}))
	for i := range n - 1 {
		s.Apply(machine.Decide(wf, s, machine.Input{At: now, Event: machine.AttemptFailed{Attempt: machine.AttemptID{Node: 0, Call: i + 1}, Code: "unavailable", Message: "no"}}))
		due, ok := s.NextDue()
		if !ok {
			tb.Fatal("nothing is due")
		}
		now = due
		s.Apply(machine.Decide(wf, s, machine.Input{At: now, Event: machine.TimePassed{}}))
	}
	return wf, s, machine.Input{At: now, Event: machine.AttemptFailed{Attempt: machine.AttemptID{Node: 0, Call: n}, Code: "unavailable", Message: "no"}}
}
