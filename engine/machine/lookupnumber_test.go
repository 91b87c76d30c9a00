package machine_test

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
)

// Each further lookup of one outcome has the next number, also while the step is being undone.
func TestLookupsOfAnUndoAreNumbered(t *testing.T) {
	p := start(t, flow(do("a", lookup, undoBlind)), "do a")
	p.event(machine.CancelRequested{}).state("a running")
	p.unknown("a", "agent_lost", "lookup a")
	for number := 1; number <= 3; number++ {
		call := p.call("a", 0)
		if a := p.s.Nodes()[0].Find(call.Attempt.Call); call.Number != number || int(a.Number) != number || a.Kind != model.CallLookup {
			t.Errorf("lookup %d of the outcome: the call has number %d, its attempt has number %d", number, call.Number, a.Number)
		}
		p.unknown("a", "unavailable", nth(number < 3)...)
		if number < 3 {
			p.wait(time.Duration(number)*time.Second, "lookup a")
		}
	}
}

// nth returns the commands that follow a lookup without an answer: none if another lookup follows
// after a pause, and the undo after the last lookup.
func nth(another bool) []string {
	if another {
		return nil
	}
	return []string{"undo a"}
}
