package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A venom says how a poisonous run harms the engine that decides it.
type venom int

const (
	harmless venom = iota // there is no poisonous run
	deadly                // the engine ends in the middle of the decision
	numbing               // the decision never returns: the shard hangs
)

var _ fmt.Stringer = venom(0)

// String returns the name of a venom.
func (v venom) String() string {
	return []string{"harmless", "deadly", "numbing"}[v]
}

// A faultPlan holds the sizes of a simulation and the faults that can happen in it. The seed
// determines the plan. Most plans have only some of the faults.
type faultPlan struct {
	engines, runs    int
	lease, faultTime time.Duration
	writers, shards  int
	slots            int           // largest number of calls that one engine may have in flight; 0 = no limit
	crash            bool          // engines are killed
	drain            bool          // engines are asked to stop, and leave the store in an orderly way
	freeze           bool          // complete engines are frozen: nothing that they send reaches the store or agents
	freezeMembers    bool          // Supervisors are frozen: their calls to the store wait
	freezeAgents     bool          // calls to agents and their answers are delayed
	lose             int           // N = one of N messages to or from the store is lost; 0 = none
	loseReplies      int           // N = one of N replies of agents is lost; 0 = none
	double           int           // N = one of N replies is delivered a second time, to any engine; 0 = none
	late             int           // N = one of N replies arrives only after complete-by of its call; 0 = none
	defers           int           // N = one of N calls is not sent (invoke.Deferred); 0 = none
	hints            bool          // the store sends hints when a run has work
	slow             bool          // a third of the messages to and from the store are delayed
	orphans          bool          // agents continue their calls until complete-by, even after their engine has ended
	skew             time.Duration // by how much the store's clock is ahead of the engines' clocks; it may be negative
	stubborn         bool          // the remote service permanently refuses some undos
	detached         bool          // runs are submitted without an owner
	verbs            bool          // people send verbs
	moody            bool          // calls of the remote service fail in many ways (type mood)
	venom            venom         // how the poisonous run harms the engines that decide it
}

// newFaultPlan returns a random fault plan.
func newFaultPlan(rng *rand.Rand) faultPlan {
	flip := func() bool { return rng.IntN(2) == 0 }
	oneIn := func(n int) int {
		if flip() {
			return 0
		}
		return n/2 + rng.IntN(n)
	}
	w := faultPlan{
		engines: 2 + rng.IntN(2), runs: 1 + rng.IntN(3),
		lease: time.Duration(1+rng.IntN(2)) * time.Second, faultTime: time.Duration(5+rng.IntN(15)) * time.Second,
		writers: 1 + rng.IntN(2), shards: 1 + rng.IntN(2), slots: rng.IntN(2) * (1 + rng.IntN(3)),
		crash: flip(), drain: flip(), freeze: flip(), freezeMembers: flip(), freezeAgents: flip(),
		lose: oneIn(40), loseReplies: oneIn(20), double: oneIn(8), late: oneIn(12), defers: oneIn(30),
		hints: flip(), slow: flip(), orphans: flip(), skew: time.Duration(rng.IntN(3)-1) * time.Duration(rng.IntN(3600)) * time.Second, stubborn: rng.IntN(4) == 0,
		detached: rng.IntN(3) == 0, verbs: rng.IntN(3) == 0, moody: rng.IntN(4) > 0,
	}
	if rng.IntN(8) == 0 {
		w.venom = venom(1 + rng.IntN(2))
		// The poisonous run stops or hangs its engine when the engine asks how many slots are free.
		// An engine asks this only if its slots are limited.
		w.slots = max(w.slots, 3)
	}
	return w
}

// String returns the plan as text for people.
func (w faultPlan) String() string { return fmt.Sprintf("%+v", w.plain()) }

// plain returns the plan as a type without the String method. So %+v prints the fields and
// does not call String again.
func (w faultPlan) plain() any {
	type plain faultPlan
	return plain(w)
}
