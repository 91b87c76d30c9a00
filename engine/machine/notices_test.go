package machine_test

import (
	"slices"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A record reaches a state only if the run was not in it before: a verb to a parked run, or a retry
// that parks the run again in the same decision, reaches nothing.
func TestReached(t *testing.T) {
	p := start(t, flow(do("a"), func(wf *dsl.Workflow) { wf.CompensationMode = dsl.ModeManual }), "do a")
	want := func(e machine.Event, want ...string) {
		t.Helper()
		rec := machine.Decide(p.wf, p.s, machine.Input{At: p.now, Event: e})
		if got := rec.Reached(); !slices.Equal(got, want) {
			t.Errorf("%T reaches %q, want %q", e, got, want)
		}
	}
	fail := machine.AttemptFailed{Attempt: p.call("a", 0).Attempt, Code: "declined", Permanent: true}
	want(fail, "parked")
	want(machine.AttemptOK{Attempt: fail.Attempt, Output: dsl.NewValue([]byte(`{}`), nil, nil)}, "succeeded")
	want(machine.PauseRequested{})
	p.permanent("a", "declined", "alert parked").is("parked")
	want(machine.PauseRequested{})
	want(machine.CompensateRequested{}, "failed")
	want(machine.RetryRequested{})
	if got := machine.Lost(p.now, machine.EngineLost{Deaths: 3}, status.RunRunning).Reached(); len(got) > 0 {
		t.Errorf("a run that must not be read reaches %q", got)
	}
}
