package machine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// Lost returns the record that parks a run with which engines died: what Decide
// makes of an EngineLost on an open run. It needs nothing of the run but the state
// that the run's row shows, because to read the journal may be what ends an engine.
// at must not be before the run's last record. A run that needs a person already
// keeps its state and raises no alert.
//
// Only the store keeps engines away from such a run (engine.Suspects). To the
// machine it is a run that is held, as one that is paused: answers count and
// clocks go on. A person's retry, cancel or compensate lets it go on.
func Lost(at time.Time, ev EngineLost, was RunState) Record {
	patch := model.RunPatch{Mask: model.RunLostBit, To: model.Run{
		Head: &model.NoHead, Trouble: &model.Trouble{LostAt: model.ToInstant(at), LostWhy: ev.Why},
	}}
	r := Record{at: model.ToInstant(at), event: ev, run: &patch}
	if !was.NeedsHuman() {
		patch.Mask |= model.RunStateBit
		patch.To.State = RunParked
		r.commands = []Command{Alert{Kind: RunParked.String(), Code: CodeEngineLost, Message: ev.Why}}
	}
	return r
}

// engineLost parks the run, once.
func (d *decider) engineLost(ev EngineLost) Record {
	if d.run.Lost() {
		return d.nothing()
	}
	return Lost(d.at.Time(), ev, d.run.State)
}

// found lets a run go on with which engines died.
func (d *decider) found() {
	r := &d.run
	if !r.Lost() {
		return
	}
	r.LostAt, r.LostWhy = 0, ""
	r.Begun = true // no run returns to the queue (S53)
	for i := range d.count() {
		if !d.get(i).Ended() {
			d.reopen(i)
		}
	}
}

// LostFailure is why the run is parked, as people see it.
func LostFailure(r *model.Run) dsl.Failure {
	return dsl.Failure{Code: CodeEngineLost, Message: r.LostWhy}
}
