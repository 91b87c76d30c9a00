package machine_test

import (
	"testing"

	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
)

// S28, S35: whatever state a run is in, an answer to no open attempt is late,
// however often it comes, and changes nothing.
func TestLateAnswers(t *testing.T) {
	answers := func(id machine.AttemptID) []machine.Event {
		return []machine.Event{
			machine.AttemptOK{Attempt: id, Output: js(`{}`)}, machine.AttemptFailed{Attempt: id, Code: "flaky"},
			machine.AttemptUnknown{Attempt: id, Code: "agent_lost"}, machine.AttemptNotDone{Attempt: id}, machine.AttemptDeferred{Attempt: id, Why: "full"},
		}
	}
	for _, c := range explained {
		t.Run(c.name, func(t *testing.T) {
			p := c.run(t)
			due, isDue := p.s.NextDue()
			ids := []machine.AttemptID{{Node: 0, Call: 99}, {Node: 99, Call: 1}, {Node: -1, Call: 0}}
			for _, call := range p.calls {
				if a := p.s.Nodes()[call.Attempt.Node].Find(call.Attempt.Call); a.Status != model.AttemptOpen {
					ids = append(ids, call.Attempt)
				}
			}
			for _, id := range ids {
				for _, ev := range answers(id) {
					for range 2 {
						rec := machine.Decide(p.wf, p.s, machine.Input{At: p.s.Last(), Event: ev, Slots: nobody})
						if !rec.Late() {
							t.Fatalf("%T of %+v is not called late", ev, id)
						}
						if len(rec.Commands()) > 0 {
							t.Fatalf("%T of %+v commands %v", ev, id, rec.Commands())
						}
						if _, isTime := rec.Event().(machine.TimePassed); !rec.Empty() && !isTime {
							t.Fatalf("%T of %+v is recorded", ev, id)
						}
					}
				}
				if rec := machine.Decide(p.wf, p.s, machine.Input{At: p.s.Last(), Event: machine.AttemptProgress{Attempt: id}}); rec.Late() {
					t.Errorf("progress of %+v is no answer", id)
				}
			}
			if !isDue {
				return
			}
			for _, id := range ids { // also when time has passed meanwhile
				rec := machine.Decide(p.wf, p.s, machine.Input{At: due, Event: machine.AttemptOK{Attempt: id, Output: js(`{}`)}})
				if _, isTime := rec.Event().(machine.TimePassed); !rec.Late() || !rec.Empty() && !isTime {
					t.Errorf("got %T for %+v", rec.Event(), id)
				}
			}
		})
	}
}
