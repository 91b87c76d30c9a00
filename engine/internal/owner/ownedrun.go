package owner

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/story"
)

// runPhase is what an owned run can do now.
type runPhase uint8

const (
	phaseLoading runPhase = iota // its journal is being read
	phaseReady
	phaseQuarantined // deciding or storing went wrong here; err says why
)

// An ownedRun is a run in the memory of the engine that owns it. Only its
// shard's goroutine uses it.
type ownedRun struct {
	id    status.RunID
	phase runPhase
	err   error // in phaseQuarantined: why

	wf    *dsl.Workflow
	state *machine.State // ahead of the journal by the transition in flight
	specs map[string]invoke.AgentSpec
	notes
	owned bool           // the journal says that this engine is the owner
	owner store.EngineID // owner when it was loaded
	seq   int32          // number of its next journal row
	fence int32          // seq of the row that made this engine the owner
	bound time.Time      // next_check as the run's row holds it
	facts int            // facts told so far
	link  journal.Link   // of its last journal row

	stored int64 // bytes of its journal
	weight int64 // what the shard counts for its memory

	pending []*delivery
	commit  *pendingCommit  // on its way to the store; nil = nothing
	away    *costlyDecision // the pool decides now, and events wait; nil = the pool does not decide
	decided *costlyDecision // the pool's decision, until it is used
	slow    bool            // people were told that it takes long to decide
	adopts  []Adoption
	waiters []chan *machine.State
	inbox   inbox
	heard   *int32 // how many messages were read before the takeover; nil = there are more
	unheard bool   // messages that waited at the takeover are not read yet: nothing starts

	suspect  bool // its last owner died: it is taken in hand before each decision until a step, an undo or the run is settled
	deaths   int  // engines that died with it in hand, as the store knows
	inHand   bool // the store knows that this engine has it in hand
	grasping bool // the store is being told that this engine has it in hand
}

// A pendingCommit is a transition on its way to the store, and what follows once it
// has landed.
type pendingCommit struct {
	commit.Item
	r          *ownedRun
	deliveries []*delivery
	link       journal.Link // of its row
	facts      []story.Fact // of the kinds that an observer takes
	told       int          // number of facts of all kinds
	commands   []machine.Command
	reserved   []invoke.AgentSpec // one slot each
	started    *Start
	adopting   bool
	late       []*delivery     // messages that came too late to count
	events     []machine.Event // of the records; kept only in builds with failpoints
}

// release gives reserved slots back.
func (f *pendingCommit) release(c invoke.Capacity) {
	if c == nil {
		return
	}
	for _, spec := range f.reserved {
		c.Release(spec, 1)
	}
	f.reserved = nil
}

// An Adoption asks the shard to take a run over from an owner that is dead or late.
type Adoption struct {
	From     store.EngineID // the owner from which it may be taken; 0 = a run without an owner
	Story    *Story         // the run as it was read; nil = it must be read
	Specs    map[string]invoke.AgentSpec
	Read     bool      // its inbox was read with it, or was empty
	Messages []Message // of the inbox, to be decided in the row that takes the run over
	Done     func(error)

	Suspect bool // the run's owner died
	Deaths  int  // engines that died with the run in hand
}

// name returns the run's public id, as far as it is known.
func (r *ownedRun) name() string {
	if r.state != nil && r.state.Name() != "" {
		return r.state.Name()
	}
	return naming.RunName(r.id)
}

func (r *ownedRun) adopting() bool { return r.commit != nil && r.commit.adopting }

// becoming reports whether a waiting event makes this engine the owner.
func (r *ownedRun) becoming() bool {
	return slices.ContainsFunc(r.pending, func(d *delivery) bool {
		_, taken := d.Event.(machine.TakenOver)
		return taken || d.start != nil
	})
}

// wanted reports whether a waiting event asks to take the run from its present owner.
func (r *ownedRun) wanted() bool {
	return slices.ContainsFunc(r.adopts, func(a Adoption) bool { return a.From == r.owner })
}

// time sets the complete-by of the attempt that a message answers.
func (r *ownedRun) time(d *delivery) {
	if _, ok := answered(d.Event); d.message == 0 || !ok {
		return
	}
	if a, ok := r.state.OpenAttempt(r.wf, d.Attempt); ok {
		d.CompleteBy = a.CompleteBy
	}
}

// callSpec copies out of the run what a call needs.
func (r *ownedRun) callSpec(inv machine.Invoke, capacity invoke.Capacity) call.Spec {
	return call.Spec{Run: r.id, Name: r.state.Name(), Flow: r.wf, Fence: r.fence, Agent: r.specs[inv.Agent], Invoke: inv,
		Sensitive: slices.Clip(r.sensitive), Refusals: r.refusals[inv.Attempt.Node], Silence: r.state.Silence(inv.Attempt), Capacity: capacity}
}

// weigh notes in held how much memory the run takes now, after its state has changed.
// present is false for a run that the shard forgets.
func (r *ownedRun) weigh(held *atomic.Int64, present bool) {
	weight := int64(0)
	if present && r.state != nil {
		weight = r.state.Weight()
	}
	held.Add(weight - r.weight)
	r.weight = weight
}

// A costlyDecision is a decision that the pool makes. The pool reads the copy of the
// state only, so that the shard may read the run's own meanwhile.
type costlyDecision struct {
	r     *ownedRun
	d     *delivery
	flow  *dsl.Workflow
	base  *machine.State // the run's own, when the pool got the decision
	state *machine.State // the copy
	in    machine.Input

	rec  machine.Record // what was decided, unless err
	err  error
	took time.Duration

	full map[string]bool // agents that refused what they had offered, before

	instead *costlyDecision // the decision that took too long, if this is its error; nil = none
}

// newCostlyDecision returns a decision for the pool to make.
func newCostlyDecision(r *ownedRun, d *delivery, in machine.Input, full map[string]bool) *costlyDecision {
	in.Slots = maps.Clone(in.Slots) // the shard fills them again
	in.Scratch = nil
	in.Allowance = dsl.NewAllowance(machine.MaxDecisionCost)
	return &costlyDecision{r: r, d: d, flow: r.wf, base: r.state, state: r.state.Clone(), in: in, full: full}
}

// A Story is a run as an engine has read it.
type Story struct {
	journal.Run
	rows     []store.Row
	notes    notes
	specs    map[string]invoke.AgentSpec // of its agents
	specsErr error                       // why specs is nil
}

// Moves reports whether an engine could go on with a run in this state, had it
// the agents.
func Moves(s status.RunState) bool {
	return !s.Final() && !s.NeedsHuman() && s != status.RunPaused
}

// notes are values that an engine keeps of a run in addition to its state.
type notes struct {
	// sensitive are the sensitive strings of its variables and outputs, for
	// redaction; it only grows.
	sensitive []string
	refusals  map[int]int // by node: how often in a row its call was not sent
}

// note collects the sensitive strings that an event brings, and counts calls
// that were not sent.
func (n *notes) note(e machine.Event) {
	switch e := e.(type) {
	case machine.Started:
		n.sensitive = append(n.sensitive, e.Vars.SensitiveStrings()...)
	case machine.AttemptOK:
		n.sensitive = append(n.sensitive, e.Output.SensitiveStrings()...)
	case machine.SettleRequested:
		n.sensitive = append(n.sensitive, e.Output.SensitiveStrings()...)
	case machine.AttemptFailed:
		n.sensitive = append(n.sensitive, e.Data.SensitiveStrings()...)
	}
	n.count(e)
}

// count counts how often in a row a node's call was not sent.
func (n *notes) count(e machine.Event) {
	switch e := e.(type) {
	case machine.AttemptDeferred:
		if n.refusals == nil {
			n.refusals = map[int]int{}
		}
		n.refusals[e.Attempt.Node]++
	case machine.AttemptOK:
		delete(n.refusals, e.Attempt.Node)
	case machine.AttemptFailed:
		delete(n.refusals, e.Attempt.Node)
	case machine.AttemptUnknown:
		delete(n.refusals, e.Attempt.Node)
	case machine.AttemptNotDone:
		delete(n.refusals, e.Attempt.Node)
	case machine.TakenOver: // this engine may have the agents that the former owner lacked
		n.refusals = nil
	}
}
