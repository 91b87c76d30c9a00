package machine_test

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// replying returns the first record of a run whose replies go to the given sink, and the state after
// it.
func replying(wf *dsl.Workflow, at time.Time, sink string, waits bool) (machine.Record, *machine.State, []string) {
	s := machine.NewState()
	ev := machine.Started{RunID: 7, Name: "r-7", ReplyTo: sink, Correlation: "o-1", Waits: waits}
	rec := machine.Decide(wf, s, machine.Input{At: at, Event: ev})
	_, replies := rec.Replies(s)
	s.Apply(rec)
	return rec, s, replies
}

// Each record says which replies of the run it causes (S67): accepted and started come first, and a state
// is reported when the run reaches it. A run without replies causes none.
func TestReplies(t *testing.T) {
	wf, at := flow(do("a"), func(wf *dsl.Workflow) { wf.CompensationMode = dsl.ModeManual }), time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	rec, s, first := replying(wf, at, "table:orders", false)
	if want := []string{"accepted", "started"}; !slices.Equal(first, want) {
		t.Errorf("the first record causes %q, want %q", first, want)
	}
	if to, _ := rec.Replies(machine.NewState()); to == nil || *to != (model.ReplyTo{Sink: "table:orders", Correlation: "o-1"}) {
		t.Errorf("the replies go to %+v", to)
	}
	step := func(e machine.Event, want ...string) {
		t.Helper()
		at = at.Add(time.Second)
		rec := machine.Decide(wf, s, machine.Input{At: at, Event: e})
		to, got := rec.Replies(s)
		if !slices.Equal(got, want) || to == nil && len(want) > 0 {
			t.Errorf("%T causes %q to %+v, want %q", e, got, to, want)
		}
		s.Apply(rec)
	}
	open := s.OpenAttempts(wf)[0]
	attempt := machine.AttemptID{Node: open.Node, Call: open.Call}
	step(machine.PauseRequested{})
	step(machine.ResumeRequested{})
	step(machine.AttemptFailed{Attempt: attempt, Code: "declined", Permanent: true}, "parked")
	step(machine.PauseRequested{})
	step(machine.CompensateRequested{}, "failed")
	step(machine.RetryRequested{})
	if to, got := machine.Lost(at, machine.EngineLost{Deaths: 3}, status.RunRunning).Replies(s); to != nil && len(got) > 0 {
		t.Errorf("a run that must not be read causes %q", got)
	}
	if _, _, none := replying(wf, at, "", false); none != nil {
		t.Errorf("a run without replies causes %q", none)
	}
	_, s, first = replying(wf, at, "table:orders", true)
	if want := []string{"accepted"}; !slices.Equal(first, want) {
		t.Errorf("the first record of a run that waits causes %q, want %q", first, want)
	}
	step(machine.SlotsFreed{Admitted: true}, "started")
}

// The sink and the correlation id survive the journal and a snapshot.
func TestRepliesAreKept(t *testing.T) {
	wf, at := flow(do("a")), time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	rec, s, _ := replying(wf, at, "webhook:orders", false)
	row, err := wire.Encode([]machine.Record{rec})
	if err != nil {
		t.Fatal(err)
	}
	read, err := wire.Decode(row)
	if err != nil {
		t.Fatal(err)
	}
	again := machine.NewState()
	again.Apply(read[0])
	if !reflect.DeepEqual(again.Run().Reply, s.Run().Reply) || s.Run().Reply == nil {
		t.Errorf("the journal has %+v, the state %+v", again.Run().Reply, s.Run().Reply)
	}
	more, err := wire.Encode([]machine.Record{read[0]})
	if err != nil || !bytes.Equal(more, row) {
		t.Errorf("written again as %x, %v, want %x", more, err, row)
	}
}
