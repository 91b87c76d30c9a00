package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/internal/sim/flows"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// The limits of a world. A world that exceeds one of them panics, and the message names the seed of
// the world. So a world that never ends stops the process with the stacks of all goroutines,
// instead of hanging.
const (
	longest  = 72 * time.Hour // simulated time; an ordinary world takes at most some hours
	maxSteps = 3_000_000      // number of messages to or from the store, and of lines of the trace
)

// A world is one simulation: engines, a store, a remote service, and what the checks have
// recorded.
type world struct {
	seed       uint64
	conditions faultPlan
	plan       plan
	def        *dsl.Definition
	flow       *dsl.Workflow
	store      *memory.Store
	remote     *remote
	nodes      []*node
	client     *node              // submits runs without an owner; connected to the store, but without an engine
	frozen     []gate             // gates between an engine and the store; the index is the number of the engine
	still      []gate             // gates between the Supervisor of an engine and the store
	agentGates []gate             // gates between an engine and agents
	ctx        context.Context    // for the whole simulation: for goroutines that may outlive one call
	cancel     context.CancelFunc // ends ctx
	wg         sync.WaitGroup

	mu       sync.Mutex // protects the fields below
	rng      *rand.Rand
	healedAt time.Time // time at which the faults ended; zero = they have not ended yet
	// The last time at which no engine could take over runs, because each engine had ended or was
	// ending.
	idleAt  time.Time
	stories map[status.RunID]*runLog
	order   []*runLog // runs in the order of their first rows
	// Each run has a map from a Request.Fence in its calls to the number of the engine that made
	// these calls.
	fences    map[status.RunID]map[int64]int
	buried    map[store.EngineID]bool // engines that the store has declared dead
	questions []question
	faults    []string
	log       bytes.Buffer // the trace
	steps     int          // see maxSteps
	start     time.Time
	latest    time.Time // latest complete-by of all calls so far
	lates     int       // number of late replies that were stored as evidence
	obeyed    int       // how many times a run got a new owner while verbs waited in its inbox
	poisonous status.RunID
	bites     int           // how many times an engine began to decide the poisonous run
	over      chan struct{} // closed after all checks: then shards that hang continue
	kin       *kin          // what a world with families has in addition; nil = the world has no families
}

// The methods `judges`, `people` and `registry` return the world as another type. Each of these
// types has the methods for one concern.

func (w *world) judges() judges     { return judges{w} }
func (w *world) people() people     { return people{w} }
func (w *world) registry() registry { return registry{w} }

// A node is one engine of the simulation. It may crash and start again many times.
type node struct {
	w *world
	n int

	mu     sync.Mutex // protects the fields `node` and `slots`
	node   *engine.Node
	slots  *slots
	lease  time.Time     // end of the engine's lease, by the engine's clock; protected by world.mu
	permit bool          // the engine may scan the runs of other engines once; protected by world.mu
	lag    time.Duration // how far the engine's estimate of store time is behind store time; protected by world.mu
	works  bool          // the engine runs and was not asked to end; protected by world.mu
}

func (n *node) set(node *engine.Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.node = node
}

func (n *node) get() *engine.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.node
}

// setWorks records whether the engine works: it runs, and was neither killed nor asked to end.
func (n *node) setWorks(is bool) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.works = is
}

// name returns an engine's name in the trace.
func (n *node) name() string { return fmt.Sprintf("e%d", n.n) }

// now returns store time. The clocks of the engines may differ from store time by up to an
// hour.
func (w *world) now() time.Time { return time.Now().Add(w.conditions.skew) }

// patience returns how long engines may take to notice a due run after the faults have ended. The
// time is enough for a lease to expire and for two scans of the runs of other engines. It is
// longer if there is a poisonous run, because that run crashes or blocks several engines.
func (w *world) patience() time.Duration {
	d := 4*w.conditions.lease + 5*time.Second
	if w.conditions.venom != harmless {
		d += time.Duration(store.MaxDeaths+len(w.nodes)) * (3*w.conditions.lease + 5*time.Second)
	}
	return d
}

func (w *world) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// draws decides at random whether a fault happens. It returns true in one of n calls on
// average. It returns false if n is 0 or if the faults have ended.
func (w *world) draws(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return n > 0 && w.healedAt.IsZero() && w.rng.IntN(n) == 0
}

// output decodes the output in an agent's reply in the same way as the engine.
func (w *world) output(req sdk.Request, reply sdk.Reply) (dsl.Value, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.order {
		if s.name != req.Run {
			continue
		}
		if i, ok := s.state.FindNode(s.flow, s.kin.now(req.Step)); ok {
			return s.flow.Steps[story.Node(s.state, s.flow, i).Step].Do.Output(reply.Output)
		}
	}
	return dsl.Value{}, errors.New("the journal does not know the step")
}

func (w *world) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faultLocked(format, args...)
}

func (w *world) faultLocked(format string, args ...any) {
	const enough = 20
	w.traceLocked("FAULT "+format, args...)
	if len(w.faults) < enough {
		w.faults = append(w.faults, fmt.Sprintf(format, args...))
	}
}

func (w *world) stepLocked() {
	if w.steps++; w.steps > maxSteps {
		panic(fmt.Sprintf("seed %d: the world has not ended after %d steps", w.seed, maxSteps))
	}
}

// trace adds a line to the trace.
func (w *world) trace(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.traceLocked(format, args...)
}

func (w *world) traceLocked(format string, args ...any) {
	const enough = 4 << 20
	w.stepLocked()
	if w.log.Len() > enough {
		w.cancel()
		if len(w.faults) == 0 {
			w.faults = append(w.faults, "the world does not come to rest")
		}
		return
	}
	fmt.Fprintf(&w.log, "%9.3f ", time.Since(w.start).Seconds())
	fmt.Fprintf(&w.log, format, args...)
	w.log.WriteByte('\n')
}

// judges has the methods that check the runs of a simulation at its end. They record each
// broken promise as a fault.
type judges struct{ *world }

// people has the methods that send verbs to the runs of a simulation, as people would do.
type people struct{ *world }

// A question is a verb that was sent to a run in the name of a person.
type question struct {
	id   store.MessageID
	run  status.RunID
	verb string
	by   string
}

// registry has the methods that record and check calls and answers, leases, and engines that
// were declared dead.
type registry struct{ *world }

// snapshotRows is the number of journal rows between two snapshots. It is small, so that short
// simulated runs have snapshots, too.
func (w *world) snapshotRows() int { return 1 + int(w.seed%5) }

// A runLog is the state of a run, computed from its journal rows after each commit. The checks use
// the runLog, because the states that engines keep in memory may be wrong.
type runLog struct {
	id      status.RunID
	name    string
	flow    *dsl.Workflow
	state   *machine.State
	rows    int
	history journal.RowEncoder // checks that each row continues the rows before it
	records []machine.Record
	facts   []story.Fact
	started map[attempt]int
	sent    map[attempt]int
	row     store.Head // newest head of the run that the checks have read from the store
	// Number of answers to an attempt that reached an engine before complete-by.
	heard    map[attempt]int
	accepted int // number of accepted verbs
	// How many times the run got a status that needs a person; the key is the status.
	turns map[string]int
	// Facts that answer verbs; the key is the id of the message with the verb.
	answers map[int64][]story.Fact
	skipped map[string]bool // steps whose effect a person decided to leave
	stopped bool            // a person cancelled the run without undo
	kin     relation        // what the checks of families need
	// Verbs that waited when the run got its present owner, and that are not answered yet; the
	// key is the id of the message.
	unheard map[int64]bool
}

// An attempt identifies a call by the two values that agents see: the step and the number of the
// attempt. A new round of a step uses the same numbers again, so several calls may have the same
// key.
type attempt struct {
	step   string
	number int
}

func (w *world) storyLocked(run status.RunID) *runLog {
	s := w.stories[run]
	if s == nil {
		s = &runLog{id: run, state: machine.NewState(), started: map[attempt]int{}, sent: map[attempt]int{}, heard: map[attempt]int{}, turns: map[string]int{}, answers: map[int64][]story.Fact{}, skipped: map[string]bool{}}
		w.stories[run] = s
		w.order = append(w.order, s)
	}
	return s
}

// A kin is what a world with families has in addition: a module of package flows, whose runs start
// child runs and announce their states, and whose limits count for all engines together.
type kin struct {
	w      *world
	module *flows.Module
	defs   *journal.Definitions

	// The mutex of the world protects the following fields.
	home   map[store.EngineID]*node // engine process of each membership
	flying int                      // calls of the agent `far` that are in flight
	most   int                      // largest value of the field `flying`
	starts []time.Time              // times at which calls of the agent `far` started in the last second
	hits   map[string]int           // number of faults, by kind of fault and construct
	full   int                      // submissions that were refused because a limit was reached

	tries int        // number of times that people try to migrate a run
	rng   *rand.Rand // chooses the variants; only the goroutine of the method `migrate` uses it
	// The module and its variants, and their definitions, as far as people have needed them. Each
	// variant is made from the module before it in the list.
	modules []*flows.Module
	linked  []*dsl.Definition
	byKey   map[string]*flows.Module // modules by the digests of their definitions
}

// A relation is what the checks of families need to know of a run.
type relation struct {
	parent status.RunID // 0 = the run is no child run
	step   string       // step or instance of the parent that started the run
	void   bool         // the parent had turned back before the run began
	until  time.Time    // time until which the parent waits for the run; zero = the run has no parent
	undone bool         // the run had succeeded, and turned back because its parent was undone
	// For each state that the run had after a commit: the workflows that the run had when it
	// reached the state. The state must be announced if a notify block of such a workflow names it.
	must map[string][]*dsl.Workflow
	// For each state that the run has reached, even if the run left it within one commit: the
	// workflows that the run had then, oldest first.
	reached map[string][]*dsl.Workflow
	moved
}
