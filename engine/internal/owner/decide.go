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

// A decider turns the events of a run into rows of the run's journal. Each shard has a
// decider for its runs. A run whose agents are missing here gets a separate decider, which
// starts no call. Only one goroutine at a time uses a decider.
type decider struct {
	n        *Shared
	engine   store.EngineID
	capacity invoke.Capacity // where slots of agents are reserved; nil = there is no limit
	starts   starter         // says which calls may start, and reserves their slots
	// most is a size in bytes: when the events of a row are larger, the row takes no further event.
	most int

	// ready returns the decision that the pool has made about an event; nil = the pool has made
	// none. If the field `ready` is nil, there is no pool. Then the decider makes even costly
	// decisions itself.
	ready func(*ownedRun, *delivery, clock.Moment) *costlyDecision

	scratch   machine.Scratch
	rows      journal.Scratch
	allowance dsl.Allowance // limits the cost of the expressions in the present decision
	spares    spares
}

// newUnstaffedDecider returns a decider for one run whose agents are missing here. The size of the
// events does not limit how many events the decider puts into one row. The parameter `missing`
// holds the reason for each missing agent.
func newUnstaffedDecider(n *Shared, engine store.EngineID, specs map[string]invoke.AgentSpec, missing map[string]string) *decider {
	return &decider{n: n, engine: engine, starts: newNoCalls(specs, missing), most: math.MaxInt}
}

// one decides the event d and returns the record. If the decision costs too much for a shard, the
// record is empty, and the second result is a costlyDecision, which the pool must make. Otherwise
// the second result is nil.
//
// The method `one` reserves a slot for every call of an agent that the decision starts, so that
// each committed call can be sent. If the event is the answer to a call, the run may use the slot
// of this call again. If no slot can be reserved, because another run has just taken it, the event
// is decided again. This is safe, because machine.Decide changes nothing.
//
// The parameter `made` is the decision that the pool has already made about the event; nil = none.
// The parameter `at` is the time of the record.
func (c *decider) one(r *ownedRun, f *pendingCommit, d *delivery, made *costlyDecision, at time.Time, now clock.Moment) (machine.Record, *costlyDecision) {
	in := machine.Input{At: at, Event: d.Event, Next: d.next, Scratch: &c.scratch, Allowance: &c.allowance,
		Ceilings: c.n.cfg.Options.Ceilings, Journal: r.stored}
	own := c.starts.own(d)
	if own != nil {
		defer own.Release() // gives the slot back if no call uses it
	}
	var full map[string]bool // agents whose slots seemed free, but could not be reserved
	if made != nil {
		full = made.full
	}
	for try := 0; ; try++ {
		var rec machine.Record
		if made != nil {
			rec = made.rec
			r.reportSlow(&f.Transition, made.took)
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

// cost returns the largest allowed cost of the expressions in one decision of this decider,
// in nominal nanoseconds. A decider without a pool allows more.
func (c *decider) cost() int64 {
	if c.ready == nil {
		return machine.MaxDecisionCost
	}
	return shardCost
}

// recall looks for calls of the run whose complete-by has passed at the time in the parameter `at`,
// and that this engine has certainly not sent. It makes sure that these calls will never be sent.
// For each of them it returns an event which says that the call was not sent. Without this event,
// the engine would decide that the call was sent and had no answer.
func (c *decider) recall(r *ownedRun, at time.Time) []*delivery {
	if due, ok := r.state.NextDue(); !ok || due.After(at) || !r.owned {
		return nil
	}
	var unsent []*delivery
	for _, a := range r.state.ExpiredAttempts(r.wf, at) {
		id := machine.AttemptID{Node: a.Node, Call: a.Call}
		if !c.n.Calls.Recall(r.id, id) {
			continue
		}
		unsent = append(unsent, &delivery{Answer: call.Answer{
			Event:   machine.AttemptDeferred{Attempt: id, Until: at.Add(c.n.cfg.Options.MinScan), Why: call.WhyTooLate},
			Arrived: at, Attempt: id, CompleteBy: a.CompleteBy,
		}})
	}
	return unsent
}

// A spares holds objects that a shard does not need any more. The shard uses them again, so
// that a decision allocates little memory.
type spares struct {
	facts [][]story.Fact   // empty lists for facts, to be used again
	flown []*pendingCommit // empty pendingCommits, to be used again
}

// blankFacts returns an empty list of facts. It reuses an old list if possible, because the facts
// of a transition need much more memory than everything else in the transition.
func (sp *spares) blankFacts() []story.Fact {
	if n := len(sp.facts); n > 0 {
		list := sp.facts[n-1]
		sp.facts = sp.facts[:n-1]
		return list
	}
	return make([]story.Fact, 0, 4)
}

// keepFacts keeps the list of facts of f for reuse. The caller must have passed these facts
// to the observer.
func (sp *spares) keepFacts(f *pendingCommit) {
	const most, longest = 256, 16 // limits for the kept lists: their number, and the length of each
	list := f.facts
	f.facts = nil
	if list == nil || cap(list) > longest || len(sp.facts) == most {
		return
	}
	clear(list)
	sp.facts = append(sp.facts, list[:0])
}

// blankCommit returns an empty pendingCommit. It reuses an old one if possible.
func (sp *spares) blankCommit() *pendingCommit {
	if n := len(sp.flown); n > 0 {
		f := sp.flown[n-1]
		sp.flown = sp.flown[:n-1]
		return f
	}
	return &pendingCommit{}
}

// doneWith keeps the pendingCommit f for reuse. The store must have committed f, and the
// shard must have started its calls. At that time the committer does not use f any more.
func (sp *spares) doneWith(f *pendingCommit) {
	const most = 256 // largest number of pendingCommits that are kept
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
