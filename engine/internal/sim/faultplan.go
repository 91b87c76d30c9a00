package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A faultPlan is what a world is made of and what may go wrong in it. It is drawn
// from the seed; a world has some of the misfortunes, rarely all.
type faultPlan struct {
	engines, runs   int
	lease, trouble  time.Duration
	writers, shards int
	slots           int           // of each engine at the far side; 0 = no limit
	crash           bool          // engines are killed
	drain           bool          // engines are stopped in order
	freeze          bool          // whole engines stand still: neither store nor agents hear of them
	freezeMembers   bool          // Supervisors stand still: their calls to the store wait
	freezeAgents    bool          // what goes to and comes from agents is held up
	lose            int           // one in so many messages to or from the store is lost; 0 = none
	loseReplies     int           // one in so many replies of agents is lost; 0 = none
	double          int           // one in so many replies comes again, anywhere; 0 = none
	late            int           // one in so many replies is held beyond its complete-by; 0 = none
	defers          int           // one in so many calls is not sent; 0 = none
	hints           bool          // the store tells when something waits
	slow            bool          // each message to the store takes a while
	orphans         bool          // agents go on when their engine dies, until their complete-by
	skew            time.Duration // by which the store's clock is ahead of the engines'
	stubborn        bool          // the far side refuses undos for good
	detached        bool          // runs are submitted to nobody
	verbs           bool          // people meddle
	moody           bool          // the far side fails in its many ways
	venom           venom         // what a run does to engines that decide it
}

// newFaultPlan draws a fault plan.
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
		lease: time.Duration(1+rng.IntN(2)) * time.Second, trouble: time.Duration(5+rng.IntN(15)) * time.Second,
		writers: 1 + rng.IntN(2), shards: 1 + rng.IntN(2), slots: rng.IntN(2) * (1 + rng.IntN(3)),
		crash: flip(), drain: flip(), freeze: flip(), freezeMembers: flip(), freezeAgents: flip(),
		lose: oneIn(40), loseReplies: oneIn(20), double: oneIn(8), late: oneIn(12), defers: oneIn(30),
		hints: flip(), slow: flip(), orphans: flip(), skew: time.Duration(rng.IntN(3)-1) * time.Duration(rng.IntN(3600)) * time.Second, stubborn: rng.IntN(4) == 0,
		detached: rng.IntN(3) == 0, verbs: rng.IntN(3) == 0, moody: rng.IntN(4) > 0,
	}
	if rng.IntN(8) == 0 {
		w.venom = venom(1 + rng.IntN(2))
		w.slots = max(w.slots, 3) // it is in the question of what may start that it bites
	}
	return w
}

// String is for people.
func (w faultPlan) String() string { return fmt.Sprintf("%+v", w.plain()) }

// plain is a faultPlan without its String method.
func (w faultPlan) plain() any {
	type plain faultPlan
	return plain(w)
}
