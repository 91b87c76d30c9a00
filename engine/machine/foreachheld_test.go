package machine_test

import (
	"testing"

	"github.com/saga-engine/engine/engine/machine"
)

// A for_each step whose further instances wait for a slot shows as waiting while one of its
// instances runs, whatever the event of the decision is. It shows as held only if none of its
// instances has begun.
func TestForEachWaitsWhileAnInstanceRuns(t *testing.T) {
	one, none := map[string]machine.Slot{"shop": {Free: 1}}, map[string]machine.Slot{"shop": {}}
	p := startWith(t, flow(do("a", each("k", "l"))), one, "do a[k]")
	p.state("a waiting", "a[k] running", "a[l] pending")
	p.slots = none
	p.event(machine.AttemptProgress{Attempt: p.call("a[k]", 0).Attempt}).state("a waiting", "a[k] running")
	p.ok("a[k]").state("a held", "a[k] succeeded", "a[l] pending")
	p.slots = one
	p.event(machine.SlotsFreed{}, "do a[l]").state("a waiting", "a[l] running")
	p.ok("a[l]").is("succeeded")

	p = startWith(t, flow(do("a", each("k", "l"))), none)
	p.state("a held", "a[k] pending").event(machine.SlotsFreed{}).state("a held")
}
