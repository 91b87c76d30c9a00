package machine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
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
	patch := runPatch{mask: runLostBit, to: run{
		head: &noHead, trouble: &trouble{lostAt: toInstant(at), lostWhy: ev.Why},
	}}
	r := Record{at: toInstant(at), event: ev, run: &patch}
	if !was.NeedsHuman() {
		patch.mask |= runStateBit
		patch.to.state = RunParked
		r.commands = []Command{Alert{Kind: RunParked.String(), Code: CodeEngineLost, Message: ev.Why}}
	}
	return r
}

// engineLost parks the run, once.
func (d *decider) engineLost(ev EngineLost) Record {
	if d.run.lost() {
		return d.nothing()
	}
	return Lost(d.at.time(), ev, d.run.state)
}

// lost reports whether engines died with the run, and nobody has said since how it
// goes on.
func (r *run) lost() bool { return r.lostAt != 0 }

// held reports whether the run is held whichever way it goes: it is paused, or
// engines died with it.
func (r *run) held() bool { return r.paused || r.lost() }

// found lets a run go on with which engines died.
func (d *decider) found() {
	r := &d.run
	if !r.lost() {
		return
	}
	r.lostAt, r.lostWhy = 0, ""
	r.begun = true // no run returns to the queue (S53)
	for i := range d.count() {
		if !d.get(i).ended() {
			d.reopen(i)
		}
	}
}

// lostFailure is why the run is parked, as people see it.
func (r *run) lostFailure() dsl.Failure {
	return dsl.Failure{Code: CodeEngineLost, Message: r.lostWhy}
}
