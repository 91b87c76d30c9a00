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

// runPhase says what an owned run can do now.
type runPhase uint8

const (
	// phaseLoading: the journal is being read, or a row that removes the owner is being committed.
	phaseLoading     runPhase = iota
	phaseReady                // events can be decided
	phaseQuarantined          // a decision or a commit went wrong here; the field `err` says why
)

// An ownedRun is a run in the memory of this engine. Usually this engine owns the run (see the
// field `owned`), submits it, or finds out whether it can take the run over. Only the goroutine of
// the run's shard uses an ownedRun. There is one exception: the method DecideUnstaffed makes an
// ownedRun that no shard knows, and uses it on the goroutine of its caller.
type ownedRun struct {
	id    status.RunID
	phase runPhase
	err   error // why the run is quarantined; nil in other phases

	wf       *dsl.Workflow
	examined *dsl.Workflow               // workflow for which the field `parent` was computed; nil = none yet
	parent   bool                        // a step of the workflow starts child runs
	state    *machine.State              // state of the run; contains the changes of the transition in flight, which the journal does not have yet
	specs    map[string]invoke.AgentSpec // agents of the run, by name
	notes
	moved     bool           // the run is being read again, because it was moved to another definition
	reopening bool           // the run has ended, and a message asks for its undo
	owned     bool           // the journal says that this engine is the owner
	owner     store.EngineID // owner of the run when the run was loaded; 0 = none
	seq       int32          // number of the run's next journal row
	// fence is the number of the journal row that made the present owner of the run its owner.
	fence int32
	bound time.Time    // next_check of the run in the store: the time at which an engine must look at the run
	facts int          // number of facts of the run so far, of all kinds
	link  journal.Link // data of the run's latest journal rows, from which the tag or checksum of the next row is computed

	stored int64 // size of the run's journal, in bytes
	short  shortcut
	weight int64 // estimated memory of the run, in bytes; shard.memory is the sum for all runs

	pending      []*delivery           // events that wait for their decision
	commit       *pendingCommit        // transition that is being committed; nil = none
	away         *costlyDecision       // decision that the pool is making while other events wait; nil = none
	decided      *costlyDecision       // decision that the pool has made and that was not used yet; nil = none
	slow         bool                  // this engine has raised an alert that decisions of this run take long
	adopts       []Adoption            // takeovers of the run that are not complete
	waiters      []chan *machine.State // channels that receive the state when the run has ended or needs a person
	inbox        inbox
	messagesRead *int32 // number of messages that the takeover has read, if it has read the whole inbox; otherwise nil
	unheard      bool   // some messages that waited at the takeover may be unread, so no call may start

	// suspect is true if the run may have crashed an engine: an engine died while it had the run in
	// hand, or this engine has taken the run from an owner that is gone. Then the shard takes the
	// run in hand before each decision. The run is no suspect any more when a step or an undo has
	// ended, or when the run has ended or needs a person.
	suspect  bool
	deaths   int  // number of engines that died with the run in hand, according to the store
	inHand   bool // the store has recorded that this engine has the run in hand
	grasping bool // this engine has asked the store to record that it has the run in hand

	leaving bool // this engine is asking the store whether another engine lives; see the function `leave`
	// down is the store time at which the function `leave` found that a step waits for an agent
	// that does not work here. When `leave` asks the store for other engines, it sets down again.
	// Zero = no such step was found.
	down time.Time
}

// A pendingCommit is a transition that is being committed, with the work that follows the
// commit.
type pendingCommit struct {
	commit.Item
	r          *ownedRun
	deliveries []*delivery        // events that the transition decides
	link       journal.Link       // link of the run after the transition's row; see ownedRun.link
	facts      []story.Fact       // facts of the kinds that an observer asked for
	factCount  int                // number of facts of the transition, of all kinds
	commands   []machine.Command  // work that follows the commit, such as calls
	reserved   []invoke.AgentSpec // agents of the reserved slots; one entry for each slot
	started    *Start             // set if the transition creates the run; otherwise nil
	moved      bool               // the transition moves the run to another definition
	startBy    time.Time          // latest time to send a call of an agent with a rate_limit; zero = no such call
	adopting   bool               // the transition takes the run over
	late       []*delivery        // answers from the inbox that arrived too late to count
	events     []machine.Event    // events of the records; kept only in builds with failpoints
}

// release gives the reserved slots back to c. If c is nil, there is no limit and no slot.
func (f *pendingCommit) release(c invoke.Capacity) {
	if c == nil {
		return
	}
	for _, spec := range f.reserved {
		c.Release(spec, 1)
	}
	f.reserved = nil
}

// sendBy returns the last time at which a call of this agent may be sent; zero = only complete-by
// limits the call. The calls that start child runs have no agent, so no rate_limit applies to them.
func (f *pendingCommit) sendBy(spec invoke.AgentSpec) time.Time {
	if spec.Agent == nil || spec.RateLimit.Calls == 0 {
		return time.Time{}
	}
	return f.startBy
}

// An Adoption asks the shard to take over a run that has no owner, or whose owner is dead or
// late.
type Adoption struct {
	From     store.EngineID // owner from which the run may be taken; 0 = a run without an owner
	Story    *Story         // the run as it was read; nil = it must be read first
	Specs    map[string]invoke.AgentSpec
	Read     bool      // the inbox was read together with the run, or was empty
	Messages []Message // messages of the inbox; the engine decides them together with the takeover
	// Done is called once with the outcome of the takeover. If the membership ends first, it may
	// never be called.
	Done func(error)

	// Suspect is true if the run may make engines crash: an engine died with the run in hand, or
	// the former owner is gone.
	Suspect bool
	Deaths  int // number of engines that died with the run in hand
}

// AlertSnapshot is the kind of an alert. The alert says that the snapshot of a run was damaged or
// changed, and that an engine has read the whole journal instead.
const AlertSnapshot = "snapshot_refused"

const (
	// snapshotBytes is a size in bytes. Usually a run gets a snapshot when it has
	// Options.SnapshotRows rows since the last snapshot. But it gets a snapshot earlier if the
	// rows since the last snapshot have at least snapshotBytes bytes.
	snapshotBytes = 4 << 20
	// rowsPerFactor limits how many bytes snapshots add to the bytes that a run writes. The rows
	// since the last snapshot must be at least F times as large as the next snapshot, where F is
	// Options.SnapshotRows divided by rowsPerFactor. With the default of 1,000 rows, F is 4, so
	// snapshots add at most a quarter to the bytes of the rows. A run whose state grows with each
	// row gets few snapshots.
	rowsPerFactor = 250
)

// A shortcut says when a run needs its next snapshot.
type shortcut struct {
	// next is the number of rows that the last snapshot covers. If a later snapshot could not be
	// stored, next is the number of rows that this snapshot would cover. 0 = there was no snapshot.
	next   int32
	stored int64 // size of these rows, in bytes
	size   int64 // size of the last snapshot that was made, in bytes; 0 = none was made
	busy   bool  // a snapshot is being stored

	refused *journal.SnapshotError // the next row of the run raises an alert about this error; nil = no alert
}

// due reports whether a run needs a snapshot now. The run has `seq` rows with `stored` bytes
// together. The parameter `every` is the usual number of rows between two snapshots.
func (s *shortcut) due(seq int32, stored int64, every int) bool {
	rows, bytes := int(seq-s.next), stored-s.stored
	return !s.busy && (rows >= every || bytes >= snapshotBytes) && s.pays(bytes, every)
}

// pays reports whether the rows since the last snapshot are large enough for a snapshot of s.size
// bytes. The parameter `bytes` is the size of these rows. The parameter `every` is the usual number
// of rows between two snapshots.
func (s *shortcut) pays(bytes int64, every int) bool {
	return bytes >= s.size*int64(every)/rowsPerFactor
}

// reportRefused adds an alert to the transition t if the snapshot of the run was refused.
func (r *ownedRun) reportRefused(t *store.Transition) {
	if r.short.refused == nil {
		return
	}
	t.Alerts = append(t.Alerts, store.Alert{Kind: AlertSnapshot, Message: r.short.refused.Error()})
	r.short.refused = nil
}

// name returns the run's public id. While the id is not known it returns the internal id.
func (r *ownedRun) name() string {
	if r.state != nil && r.state.Name() != "" {
		return r.state.Name()
	}
	return naming.RunName(r.id)
}

func (r *ownedRun) adopting() bool { return r.commit != nil && r.commit.adopting }

// becoming reports whether a waiting event makes this engine the owner: a start or a
// takeover.
func (r *ownedRun) becoming() bool {
	return slices.ContainsFunc(r.pending, func(d *delivery) bool {
		_, taken := d.Event.(machine.TakenOver)
		return taken || d.start != nil
	})
}

// atRest reports whether the run only waits for a person, a signal, a time, a child run, a place or
// its unique key, and the journal contains everything that this engine knows about the run. A run
// that waits for a free slot is not at rest: it continues as soon as another call ends.
func (r *ownedRun) atRest() bool {
	if r.phase != phaseReady || !r.owned || r.commit != nil || r.away != nil || r.decided != nil || len(r.pending) > 0 ||
		len(r.adopts) > 0 || len(r.waiters) > 0 || r.suspect || r.grasping || r.leaving || r.unheard || r.inbox.busy() {
		return false
	}
	if r.calling() || slices.ContainsFunc(r.state.Held(), func(h machine.HeldAgent) bool { return h.Until.IsZero() }) {
		return false
	}
	s := r.state.Status()
	if r.state.InFlight() { // all calls in flight are for child runs
		return true
	}
	if s.NeedsHuman() || s == status.RunWaiting || s == status.RunPaused || r.waitsInLine() && !s.Final() {
		return true
	}
	_, timed := r.state.NextDue() // timed = the run waits for the end of a backoff or cool-down, or has a deadline
	return timed && !s.Final()
}

// calling reports whether the run waits for the answer of an agent. A call for a child run does
// not count: any engine can send it again.
func (r *ownedRun) calling() bool {
	if !r.state.InFlight() || !r.hasChildren() {
		return r.state.InFlight()
	}
	for _, a := range r.state.OpenAttempts(r.wf) {
		if a.Agent != r.wf.ChildAgent() {
			return true
		}
	}
	return false
}

// hasChildren reports whether a step of the run's workflow starts child runs.
func (r *ownedRun) hasChildren() bool {
	if r.examined != r.wf {
		r.examined = r.wf
		r.parent = r.wf.StartsChildren()
	}
	return r.parent
}

// wanted reports whether a waiting Adoption asks this engine to take the run from its
// present owner.
func (r *ownedRun) wanted() bool {
	return slices.ContainsFunc(r.adopts, func(a Adoption) bool { return a.From == r.owner })
}

// time copies the complete-by of the answered attempt into d. It does nothing if d did not
// come in a message, or if the call of this attempt is not in flight.
func (r *ownedRun) time(d *delivery) {
	if _, ok := answered(d.Event); d.message == 0 || !ok {
		return
	}
	if a, ok := r.state.OpenAttempt(r.wf, d.Attempt); ok {
		d.CompleteBy = a.CompleteBy
	}
}

// callSpec returns everything that is needed for the call in the command inv. The slot of the call
// was reserved with capacity.Reserve. If the parameter `capacity` is nil, the number of calls has
// no limit. The parameter `startBy` is the last time at which the call may be sent; zero = only
// complete-by limits the call.
func (r *ownedRun) callSpec(inv machine.Invoke, capacity invoke.Capacity, startBy time.Time) call.Spec {
	return call.Spec{Run: r.id, Name: r.state.Name(), Flow: r.wf, Fence: r.fence, Priority: r.state.Run().Line.Priority(), Agent: r.specs[inv.Agent], Invoke: inv,
		Sensitive: slices.Clip(r.sensitive), Refusals: r.refusals[inv.Attempt.Node], Silence: r.state.Silence(inv.Attempt), Capacity: capacity, StartBy: startBy}
}

// weigh estimates again how much memory the run needs. The parameter `memory` is the sum of the
// estimates for all runs of the shard, in bytes. weigh corrects this sum. The parameter `present`
// is false if the run is not in memory any more.
func (r *ownedRun) weigh(memory *atomic.Int64, present bool) {
	weight := int64(0)
	if present && r.state != nil {
		weight = r.state.Weight()
	}
	memory.Add(weight - r.weight)
	r.weight = weight
}

// A costlyDecision is a decision that the pool makes. The pool works on a copy of the
// state, so that the shard may read the run's own state at the same time.
type costlyDecision struct {
	r     *ownedRun
	d     *delivery
	flow  *dsl.Workflow
	base  *machine.State // state of the run when the shard passed the decision to the pool
	state *machine.State // copy of base; the pool works on it
	in    machine.Input

	rec  machine.Record // the record; only valid if err is nil
	err  error
	took time.Duration

	full map[string]bool // agents whose slots seemed free, but could not be reserved

	// instead is usually nil. If instead is set, this costlyDecision only reports that another
	// decision takes too long: the decision in the field `instead`.
	instead *costlyDecision
}

// newCostlyDecision returns a decision for the pool.
func newCostlyDecision(r *ownedRun, d *delivery, in machine.Input, full map[string]bool) *costlyDecision {
	in.Slots = maps.Clone(in.Slots) // a copy, because the shard uses the map again
	in.Scratch = nil
	in.Allowance = dsl.NewAllowance(machine.MaxDecisionCost)
	return &costlyDecision{r: r, d: d, flow: r.wf, base: r.state, state: r.state.Clone(), in: in, full: full}
}

// A Story is a run as this engine has read it from the store.
type Story struct {
	journal.Run
	// rows holds the rows that were read. If the run was read with its snapshot, these are not all
	// rows of the run.
	rows  []store.Row
	notes notes
	// specs holds the agents of the run. The method Fold does not set this field.
	specs  map[string]invoke.AgentSpec
	unable error // why this engine cannot call the agents; nil = it can, or it has not checked
	// specsErr says why a configuration of the agents could not be evaluated; nil = there was no
	// error.
	specsErr error
}

// wrote reports whether the row of the transition t is one of the rows that were read.
func (st *Story) wrote(t *store.Transition) bool {
	return slices.ContainsFunc(st.rows, t.Wrote)
}

// Moves reports whether a run with this status can continue without a person, if an engine has its
// agents.
func Moves(s status.RunState) bool {
	return !s.Final() && !s.NeedsHuman() && s != status.RunPaused
}

// A notes holds values about a run that an engine keeps in addition to the run's state.
type notes struct {
	// sensitive holds the sensitive strings of the run's variables and outputs, for
	// redaction. Strings are never removed.
	sensitive []string
	refusals  map[int]int // for each node, how many times in a row its call was not sent
}

// keep adds sensitive strings. It leaves out a string that is among the last 32 strings, because a
// loop often returns the same strings in each iteration.
func (n *notes) keep(texts []string) {
	const last = 32
	for _, s := range texts {
		if !slices.Contains(n.sensitive[max(0, len(n.sensitive)-last):], s) {
			n.sensitive = append(n.sensitive, s)
		}
	}
}

// note collects the sensitive strings in an event, and counts calls that were not sent.
func (n *notes) note(e machine.Event) {
	switch e := e.(type) {
	case machine.Started:
		n.keep(e.Vars.SensitiveStrings())
	case machine.AttemptOK:
		n.keep(e.Output.SensitiveStrings())
	case machine.SettleRequested:
		n.keep(e.Output.SensitiveStrings())
	case machine.AttemptFailed:
		n.keep(e.Data.SensitiveStrings())
	}
	n.count(e)
}

// count updates the field `refusals` after the event e.
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
	case machine.TakenOver: // count again from 0: the new owner may have agents that the former owner did not have
		n.refusals = nil
	}
}

// Resume implements journal.Noter: it replaces all notes.
func (n *notes) Resume(k journal.Notes) { *n = notes{sensitive: k.Sensitive, refusals: k.Refusals} }

// Note implements journal.Noter.
func (n *notes) Note(e machine.Event) { n.note(e) }

// waitsInLine reports whether the run waits for a place or for its unique key.
func (r *ownedRun) waitsInLine() bool { return r.state.Run().Awaits }
