package owner

import (
	"maps"
	"math"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/clock"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// A decider turns events of runs into rows of their journals. It is the one place where
// this engine decides. Shards decide with it on the runs that they own. Runs whose agents
// are missing here are decided with it too, by a decider that starts no call. One
// goroutine at a time uses a decider.
type decider struct {
	n        *Shared
	engine   store.EngineID
	capacity invoke.Capacity // from which slots are reserved; nil = nothing is limited
	starts   starter
	most     int // bytes of events that one row may hold

	// ready returns what the pool has decided about an event; nil = nothing. If the field
	// is nil there is no pool, and each decision is made at once, also if it costs much.
	ready func(*ownedRun, *delivery, clock.Moment) *costlyDecision

	scratch   machine.Scratch
	rows      journal.Scratch
	allowance dsl.Allowance // of the decision at hand
	spares    spares
}

// newUnstaffedDecider returns a decider for one run whose agents are missing here. All
// events of the run go into one row, however large they are.
func newUnstaffedDecider(n *Shared, engine store.EngineID, specs map[string]invoke.AgentSpec, missing map[string]string) *decider {
	return &decider{n: n, engine: engine, starts: newNoCalls(specs, missing), most: math.MaxInt}
}

// one decides one event, and reserves a slot for every call that the decision starts, so
// that each committed call can be sent. The run may use the slot of the call that the
// event answers. If another run has taken a slot in between, one decides again: Decide is
// pure, so that is safe. A decision that costs too much for a shard is returned, and the
// pool makes it. made is what the pool has decided about the event; nil = nothing.
func (c *decider) one(r *ownedRun, f *pendingCommit, d *delivery, made *costlyDecision, at time.Time, now clock.Moment) (machine.Record, *costlyDecision) {
	in := machine.Input{At: at, Event: d.Event, Engine: int32(c.engine), Scratch: &c.scratch, Allowance: &c.allowance,
		Ceilings: c.n.cfg.Options.Ceilings, Journal: r.stored}
	own := c.starts.own(d)
	if own != nil {
		defer own.Release() // if it is not used
	}
	var full map[string]bool // agents that reported free slots and then refused them twice
	if made != nil {
		full = made.full
	}
	for try := 0; ; try++ {
		var rec machine.Record
		if made != nil {
			rec = made.rec
			r.tellSlow(&f.Transition, made.took)
		} else {
			in.Slots = c.starts.slots(r, d, own, full, now)
			c.allowance = *dsl.NewAllowance(c.cost())
			if rec = machine.Decide(r.wf, r.state, in); c.ready != nil && c.allowance.Over() {
				own.HandBack(d.Slot)
				return machine.Record{}, newCostlyDecision(r, d, in, full)
			}
		}
		commands := rec.Commands()
		agent, ok := c.starts.reserve(r, f, own, commands)
		if ok {
			f.commands = append(f.commands, commands...)
			return rec, nil
		}
		if try > 0 || made != nil {
			if full = maps.Clone(full); full == nil {
				full = map[string]bool{}
			}
			full[agent] = true
		}
		made = nil
	}
}

// cost returns what the expressions of one decision may cost here.
func (c *decider) cost() int64 {
	if c.ready == nil {
		return machine.MaxDecisionCost
	}
	return shardCost
}

// recall returns events for calls whose complete-by has passed at the given time and
// which this engine knows it has not sent. Such a call must not count as one whose answer
// is missing.
func (c *decider) recall(r *ownedRun, at time.Time) []*delivery {
	if due, ok := r.state.NextDue(); !ok || due.After(at) || !r.owned {
		return nil
	}
	var unsent []*delivery
	for _, a := range r.state.ExpiredAttempts(r.wf, at) {
		if !c.n.Calls.Recall(r.id, a.ID) {
			continue
		}
		unsent = append(unsent, &delivery{Answer: call.Answer{
			Event:   machine.AttemptDeferred{Attempt: a.ID, Until: at.Add(c.n.cfg.Options.MinScan), Why: call.WhyTooLate},
			Arrived: at, Attempt: a.ID, CompleteBy: a.CompleteBy,
		}})
	}
	return unsent
}

// spares are what a shard has used and fills again, so that a decision allocates
// little.
type spares struct {
	facts [][]story.Fact   // were told
	flown []*pendingCommit // have landed and were acted on
}

// blankFacts returns an empty list of facts: those of a transition are made for
// observers only, and are much larger than all else it needs.
func (sp *spares) blankFacts() []story.Fact {
	if n := len(sp.facts); n > 0 {
		list := sp.facts[n-1]
		sp.facts = sp.facts[:n-1]
		return list
	}
	return make([]story.Fact, 0, 4)
}

// toldFacts keeps a list whose facts have been told.
func (sp *spares) toldFacts(f *pendingCommit) {
	const most, longest = 256, 16 // what lies idle is bounded
	list := f.facts
	f.facts = nil
	if list == nil || cap(list) > longest || len(sp.facts) == most {
		return
	}
	clear(list)
	sp.facts = append(sp.facts, list[:0])
}

// blankCommit returns a pendingCommit with nothing in it.
func (sp *spares) blankCommit() *pendingCommit {
	if n := len(sp.flown); n > 0 {
		f := sp.flown[n-1]
		sp.flown = sp.flown[:n-1]
		return f
	}
	return &pendingCommit{}
}

// doneWith keeps a pendingCommit that has landed and was acted on. It has no other
// user any more: the committer is done with it once it has told the shard.
func (sp *spares) doneWith(f *pendingCommit) {
	const most = 256 // what lies idle is bounded
	if len(sp.flown) == most {
		return
	}
	commands := f.commands
	if clear(commands); cap(commands) > 16 {
		commands = nil
	}
	*f = pendingCommit{commands: commands[:0]}
	sp.flown = append(sp.flown, f)
}
