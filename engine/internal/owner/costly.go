package owner

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/clock"
	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/internal/lists"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// These constants are limits for one decision. A normal decision takes some microseconds. If the
// expressions of a decision cost more than shardCost, the decision would block the other runs of
// the shard for too long. So the decision pool makes this decision. In the pool, the expressions
// may cost more.
const (
	// shardCost is the largest cost of a decision that a shard makes itself, in nominal
	// nanoseconds, as dsl.Allowance counts them.
	shardCost = 5_000_000

	// DecisionLimit is how long a decision may take in real time. A decision with the largest
	// allowed cost takes approximately 10 s. So if a decision exceeds this limit, the decision
	// hangs, or the machine has too little CPU.
	DecisionLimit = 30 * time.Second

	// slowDecision is the duration of a slow decision. A decision that takes at least so long
	// delays other costly decisions and the calls of its run. So it leads to an alert. An engine
	// raises at most one such alert while the run stays in its memory.
	slowDecision = time.Second
)

// A slowDecisionError says that a decision took longer than DecisionLimit.
type slowDecisionError struct{ limit time.Duration }

// Error says that the decision took longer than the limit, and names the limit.
func (e *slowDecisionError) Error() string {
	return fmt.Sprintf("the expressions of one decision were evaluated for longer than %s", e.limit)
}

// Hint returns a text that says what a person can do.
func (e *slowDecisionError) Hint() string {
	return "make the workflow's expressions cheaper, or give the engine more CPU, and start the engine again"
}

// AlertQuarantined is the kind of the alert about a run that this engine has quarantined.
const AlertQuarantined = "quarantined"

// AlertSlow is the kind of an alert. It says that a decision took at least slowDecision.
const AlertSlow = "slow_decision"

// reportSlow adds an alert to the transition t if a decision was slow. The parameter `took` is the
// duration of the decision. A decision is slow if it took slowDecision or longer. reportSlow does
// nothing if this engine has already raised such an alert since it has loaded the run.
func (r *ownedRun) reportSlow(t *store.Transition, took time.Duration) {
	if took < slowDecision || r.slow {
		return
	}
	r.slow = true
	t.Alerts = append(t.Alerts, store.Alert{Kind: AlertSlow, Message: fmt.Sprintf(
		"the engine took %s to evaluate the expressions of one decision: make them cheaper, or move the work into an agent", took.Round(time.Millisecond))})
}

// A DecisionPool makes costly decisions on a few goroutines. It takes one decision from each
// workflow in turn, so that the runs of one workflow do not delay the runs of another. A goroutine
// ends when no decision waits, or when more goroutines exist than are allowed.
type DecisionPool struct {
	size   int           // how many goroutines work at the same time
	spare  int           // largest number of additional goroutines that replace hanging ones
	limit  time.Duration // duration after which a decision counts as hanging
	Decide func(*dsl.Workflow, *machine.State, machine.Input) machine.Record
	clock  *clock.Clock

	mu      sync.Mutex                   // protects the fields below
	waiting map[*dsl.Workflow][]poolTask // for each workflow, the decisions that wait
	turns   []*dsl.Workflow              // workflows with waiting decisions; the first is next
	busy    int                          // number of goroutines that exist now, including hanging ones
	hanging int                          // number of goroutines whose decision takes longer than the field `limit`
	slowest time.Duration                // duration of the slowest decision so far
}

func newDecisionPool(clock *clock.Clock) *DecisionPool {
	size := max(1, runtime.GOMAXPROCS(0)/2)
	return &DecisionPool{size: size, spare: size, limit: DecisionLimit, Decide: machine.Decide, clock: clock, waiting: map[*dsl.Workflow][]poolTask{}}
}

// A poolTask is a decision that waits in the pool.
type poolTask struct {
	*costlyDecision
	to   *taskQueue      // queue of the run's shard; the result is posted there
	done <-chan struct{} // closed when the shard's membership has ended
}

// add queues a decision for the pool, and does not block. Later the pool posts the result to the
// given queue of a shard. If the shard's membership ends before the pool begins this decision, the
// pool drops the decision.
func (p *DecisionPool) add(c *costlyDecision, to *taskQueue, done <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting[c.flow]) == 0 {
		p.turns = append(p.turns, c.flow)
	}
	p.waiting[c.flow] = append(p.waiting[c.flow], poolTask{c, to, done})
	p.grow()
}

// Longest returns the duration of the slowest decision so far.
func (p *DecisionPool) Longest() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slowest
}

// grow starts a goroutine if a decision waits and the limit of goroutines allows it. The
// caller holds mu.
func (p *DecisionPool) grow() {
	if len(p.turns) > 0 && p.busy < p.size+min(p.hanging, p.spare) {
		p.busy++
		go p.work()
	}
}

// work makes decisions until none is waiting, or until more goroutines exist than are allowed.
func (p *DecisionPool) work() {
	for {
		p.mu.Lock()
		if len(p.turns) == 0 || p.busy > p.size+min(p.hanging, p.spare) {
			p.busy--
			p.mu.Unlock()
			return
		}
		c := p.next()
		p.mu.Unlock()
		select {
		case <-c.done: // the membership has ended: no shard waits for this decision
		default:
			p.make(c)
		}
	}
}

// next removes the next decision from the field `waiting` and returns it. If the workflow has more
// decisions, next moves the workflow to the end of the field `turns`. The caller holds mu.
func (p *DecisionPool) next() poolTask {
	flow := p.turns[0]
	p.turns = lists.DropFirst(p.turns, 1)
	list := p.waiting[flow]
	c := list[0]
	if list = lists.DropFirst(list, 1); len(list) == 0 {
		delete(p.waiting, flow)
	} else {
		p.waiting[flow] = list
		p.turns = append(p.turns, flow)
	}
	return c
}

// make makes a decision and posts the record to the shard. If the decision takes longer than
// p.limit, make posts an error to the shard as soon as this time has passed. In this case make also
// posts the record when the decision is made, and the shard ignores this record.
func (p *DecisionPool) make(c poolTask) {
	c.in.At = decidedAt(c.state, c.d, p.clock.Now())
	late := false // the decision has taken longer than p.limit; protected by p.mu
	guardian := time.AfterFunc(p.limit, func() {
		p.mu.Lock()
		late, p.slowest = true, max(p.slowest, p.limit)
		p.hanging++
		p.grow()
		p.mu.Unlock()
		c.to.give(task{back: &costlyDecision{r: c.r, err: &slowDecisionError{p.limit}, instead: c.costlyDecision}})
	})
	var rec machine.Record
	began := time.Now()
	err := guard.Do(func() error {
		rec = p.Decide(c.flow, c.state, c.in)
		return nil
	})
	took := time.Since(began)
	guardian.Stop()
	p.mu.Lock()
	p.slowest = max(p.slowest, took)
	if late {
		p.hanging--
	}
	p.mu.Unlock()
	c.rec, c.err, c.took = rec, err, took
	c.to.give(task{back: c.costlyDecision})
}
