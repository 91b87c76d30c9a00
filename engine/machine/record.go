package machine

import (
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// A Record holds one event and the decision about it. The records of a run, in order, are its
// journal. Decide makes records. Readers of a journal make records, too. State.Apply applies a
// record to a state. No code changes a record after it was made.
type Record struct {
	at    model.Instant
	event Event
	run   *model.RunPatch
	nodes []model.NodePatch // changes of nodes, sorted by node number

	commands []Command // not persisted: only the process that committed the record executes them
	late     bool      // not persisted: the event answers an attempt that is not open
	// Not persisted. True if the record contains bytes, such as a checkpoint, that may be sensitive.
	secret bool
	// Not persisted. True if the run had ended before the event, so the record changes nothing.
	final bool
	// Not persisted: names of the instances that the record adds, and of the nodes that a move adds,
	// removes or renames.
	names []model.InstanceName
	// Not persisted: the cache that the decision has filled. If the cache is pending, its values
	// are valid only after this record was applied.
	cache *cache

	// Not persisted. The state on which the record was decided; nil = not decided on a state.
	base *State
	// Not persisted: the number of records in the state `base` when this record was decided.
	records int32
}

// decidedOn reports whether the record was decided on s, and s has not changed since. If so, the
// record contains the complete run and the complete nodes, which replace those in s.
func (r *Record) decidedOn(s *State) bool {
	return r.base == s && r.records == s.run.Records && s != nil
}

// Empty reports whether the record changes nothing and its event need not be recorded. If so, there
// is nothing to commit.
func (r Record) Empty() bool {
	if r.run != nil || len(r.nodes) > 0 {
		return false
	}
	if r.final {
		return true
	}
	return !says(r.event)
}

// says reports whether the journal needs a record of this event even if the event changes
// nothing. It returns true for a takeover. It also returns true for a verb or a refused verb,
// because the person who sent the verb looks for the answer in the journal.
func says(event Event) bool {
	if _, takeover := event.(TakenOver); takeover {
		return true
	}
	_, _, verb := Asked(event)
	return verb
}

// NewRecord makes a record from an event and changes that were read from a journal.
func NewRecord(event Event, d model.Delta) Record {
	return Record{event: event, at: d.At, run: d.Run, nodes: d.Nodes}
}

// Delta returns the changes that the record makes. The caller must not change the result.
func (r *Record) Delta() model.Delta { return model.Delta{At: r.at, Run: r.run, Nodes: r.nodes} }

// At returns the time of the record, by the store's clock.
func (r Record) At() time.Time { return r.at.Time() }

// Event returns the event of the record. If the decision refused a verb, it returns a Refused
// instead of the verb. If a late answer or checkpoint had no effect, but other things changed
// because time has passed, it returns TimePassed instead of that event.
func (r Record) Event() Event { return r.event }

// Refused returns why a verb was refused, and true. It returns false if the record refuses no
// verb. If the run has ended, a record with a refusal is Empty: the engine answers the verb
// and does not commit the record.
func (r Record) Refused() (Refused, bool) {
	v, ok := r.event.(Refused)
	return v, ok
}

// Late reports whether the event answers an attempt that is closed already, or that never
// existed. Such an answer is evidence and changes nothing, in any state of the run (S28). The
// record may still contain changes, because deadlines may have passed. A checkpoint or a
// heartbeat is not an answer. For a record that was read from a journal, Late returns false.
func (r Record) Late() bool { return r.late }

// Admits reports whether the record lets a run start that waited for a place or for its unique key.
// The store must commit such a record only if there is a place and the key is free.
func (r Record) Admits() bool {
	return r.run != nil && r.run.Mask&model.RunAwaitsBit != 0 && !r.run.To.Awaits
}

// Commands returns the work that must be done after the commit of the record, by the
// process that committed it. A record that was read from a journal has none.
func (r Record) Commands() []Command { return r.commands }

// RunState returns the state of the run after the record, and true. If the record does not
// change that state, it returns RunInvalid and false.
func (r Record) RunState() (status.RunState, bool) {
	if r.run != nil && r.run.Mask&model.RunStateBit != 0 {
		return r.run.To.State, true
	}
	return status.RunInvalid, false
}

// Reached returns the states that the run reaches with the record and that a notify block may
// announce. A run that leaves such a state and returns to it within one record does not reach it
// again. A record of EngineLost reaches no state: the run must not be read, so no notification can
// describe it.
func (r Record) Reached() []string {
	if r.run == nil {
		return nil
	}
	has := func(bit uint64) bool { return r.run.Mask&bit != 0 }
	var out []string
	if to := &r.run.To; has(model.RunParkedBit) && to.Parked {
		out = append(out, status.RunParked.String())
	}
	if to := &r.run.To; has(model.RunStuckBit) && to.Stuck {
		out = append(out, status.RunCompensationFailed.String())
	}
	if to := &r.run.To; has(model.RunOverdueBit) && to.Overdue {
		out = append(out, status.Overdue)
	}
	if state, changed := r.RunState(); changed && state.Final() {
		out = append(out, state.String())
	}
	return out
}

// Replies returns where the replies of a run go, and which replies the record causes, in order. s
// is the state before the record. Both results are nil if the run has no replies, or if the record
// changes only nodes. A record of EngineLost causes no reply, because the run must not be read. The
// first reply of a run is `accepted`: the run is stored. The reply `started` follows when the run
// counts as begun (Run.Begun) and goes forward, for example because its first step begins. If the
// run first parks or turns back, there is no such reply. Each other reply is the name of a state
// that the method Reached returns, without `overdue`.
func (r Record) Replies(s *State) (*model.ReplyTo, []string) {
	to := s.run.Reply
	if r.run != nil && r.run.Mask&model.RunReplyBit != 0 {
		to = r.run.To.Reply
	}
	if to == nil || r.run == nil {
		return nil, nil
	}
	var out []string
	if _, first := r.event.(Started); first {
		out = append(out, "accepted")
	}
	if after := &r.run.To; r.run.Mask&model.RunBegunBit != 0 && after.Begun && after.Phase == model.PhaseForward && !after.Parked {
		out = append(out, "started")
	}
	out = append(out, slices.DeleteFunc(r.Reached(), func(state string) bool { return state == status.Overdue })...)
	return to, out
}

// A StepRow is the entry of one changed node in the journal's `steps` column.
type StepRow struct {
	Node     int
	State    status.StepState
	Failures int // number of attempts that ended without a result; only for display (S63)
	// Number of started attempts of the undo. If there are none: number of started attempts of the
	// forward work.
	Attempt    int
	CompleteBy time.Time // latest complete-by of the open attempts; zero if none is open
}

// Steps returns a StepRow for each node whose StepRow the record changes, sorted by node
// number. s is the state before the record.
func (r Record) Steps(s *State) []StepRow {
	return r.AppendSteps(make([]StepRow, 0, len(r.nodes)), s)
}

// AppendSteps computes the same rows as the method Steps, and appends them to the list in the
// parameter `rows`. It returns the longer list.
func (r Record) AppendSteps(rows []StepRow, s *State) []StepRow {
	decided := r.decidedOn(s)
	for k := range r.nodes {
		p := &r.nodes[k]
		now := p.To
		if !decided {
			now = s.after(p)
		}
		row, was := stepRow(p.Node, now), stepRow(p.Node, s.before(p.Node))
		if row != was {
			rows = append(rows, row)
		}
	}
	return rows
}

// stepRow returns the row of the node n, which has the number i. A row with the state `running`
// must have a complete-by (S10). A for_each step has no complete-by, because it calls no agent
// itself. So its row has the state `waiting` while its instances run.
func stepRow(i int, n *model.Node) StepRow {
	row := StepRow{Node: i, State: n.Shown(), Failures: int(n.Fwd.Failures + n.Und.Failures), Attempt: int(n.Fwd.Total)}
	if n.Und.Total > 0 {
		row.Attempt = int(n.Und.Total)
	}
	var latest model.Instant
	for k := range n.Attempts {
		if n.Attempts[k].Status == model.AttemptOpen {
			latest = max(latest, n.Attempts[k].CompleteBy)
		}
	}
	row.CompleteBy = latest.Time()
	return row
}

// NewNodes returns the names of the instances that the record adds. If the record moves the run, it
// returns the names of the nodes that the move adds, removes or renames. Only a record that this
// process decided has this list. For a record that was read from a journal, NewNodes returns nil.
func (r Record) NewNodes() []model.InstanceName { return r.names }

// Sensitive reports whether the record must be sealed. It returns true if the record contains
// sensitive values, or a checkpoint that may be sensitive. It also returns true if the record
// contains the fixed parts of a text with a secret, such as `Bearer ` before a token.
func (r Record) Sensitive() bool {
	sensitive := r.secret
	r.values(func(h model.StoredValue) {
		if h.From.Kind != model.OriginInline {
			return
		}
		if len(h.V.Sensitive()) > 0 {
			sensitive = true
		}
		for _, s := range h.V.Secrets() {
			for _, p := range s.Parts {
				sensitive = sensitive || p.Text != ""
			}
		}
	})
	return sensitive
}

// values calls the function `f` with every value that the record contains.
func (r Record) values(f func(model.StoredValue)) {
	switch ev := r.event.(type) {
	case Started:
		f(model.StoredValue{V: ev.Vars})
		for k := range ev.Signals {
			f(model.StoredValue{V: ev.Signals[k].Payload})
		}
	case AttemptOK:
		f(model.StoredValue{V: ev.Output})
	case SettleRequested:
		f(model.StoredValue{V: ev.Output})
	case AttemptFailed:
		f(model.StoredValue{V: ev.Data})
	case SignalReceived:
		f(model.StoredValue{V: ev.Payload})
	}
	if r.run != nil && r.run.Mask&model.RunVarsBit != 0 {
		f(r.run.To.Vars)
	}
	if r.run != nil && r.run.Mask&model.RunOutputsBit != 0 {
		for _, o := range r.run.To.Outputs {
			f(o.Value)
		}
	}
	for k := range r.nodes {
		p := &r.nodes[k]
		for j, h := range model.NodeValues(p.To) {
			if p.Mask&model.ValueBits[j] != 0 {
				f(*h)
			}
		}
		if p.Mask&model.NodeGatheredBit != 0 && p.To.Collected != nil {
			for _, v := range p.To.Collected.Tail(p.To.Collected.Fresh) {
				f(model.StoredValue{V: v})
			}
		}
	}
}

// Apply applies the next record of the run to the state, in place. It evaluates no expression
// and does not need the definition, because the record contains the new values of the fields.
// The caller must apply the records in the order in which they were committed, each exactly
// once.
func (s *State) Apply(r Record) {
	if !r.Empty() {
		c := s.Change(&r)
		c.Apply()
	}
}

// Change computes the change that a record makes to the state. It does not change the state.
func (s *State) Change(r *Record) Change {
	empty := r.Empty()
	c := Change{s: s, at: r.at, event: r.event, patches: r.nodes, cache: r.cache, empty: empty, visible: r.final || !empty, run: s.run}
	if r.decidedOn(s) {
		if r.run != nil {
			c.run = r.run.To
		}
		return c
	}
	if r.run != nil {
		c.run = s.afterRun(r.run)
	}
	c.nodes = make([]*model.Node, len(r.nodes))
	for k := range r.nodes {
		c.nodes[k] = s.after(&r.nodes[k])
	}
	return c
}

// A Command is work that the engine must do, but only after it has committed the record.
// Decide makes the commands together with the record. A process that did not commit the record
// itself never executes them.
type Command interface{ command() }

// Invoke tells the engine to send one call to an agent.
type Invoke struct {
	Attempt        AttemptID
	Purpose        sdk.Purpose
	Step           int    // index in Workflow.Steps
	Key            string // each.key of the instance; "" = the node is not an instance
	Agent          string // key of the agent in Workflow.Agents
	Action         string
	Input          dsl.Value // input of the call; it may refer to secrets
	IdempotencyKey string
	// Idempotency key of the forward call, if this call is an undo or asks for the outcome of an
	// undo. Otherwise "".
	ForwardKey string
	// Number of the attempt, as people see it. The number starts again at 1 for each kind of call
	// and each round of attempts.
	Number     int
	CompleteBy time.Time
	Checkpoint *sdk.Checkpoint // last checkpoint of an earlier attempt; nil = there is none
	// Early signals with which the run of a group starts; nil = none. If the run of the group
	// exists already, it got these signals with its start.
	Signals []signal
	// Pause.On is true if the child is the run of a group, and the run around the group is paused
	// or parked. Pause.On can be true only for two kinds of calls: calls that a takeover sends
	// again, and calls of a decision that also parks the run.
	Pause PauseChild
	// NoCompensate is true if this call for a child run is sent again after a takeover, and the run
	// was cancelled without compensation before. A command Stop follows such a call.
	NoCompensate bool
}

// Stop tells the agent that the engine does not need the answer to a running call any more. Stop
// does not close the attempt. Decide makes a Stop in three cases. First, the run turned back, or
// would turn back and waits for its pivot, and the action is read-only or may be interrupted.
// Second, the agent was silent for too long, and the attempt is closed already. Third, the time for
// a child run is over.
type Stop struct {
	Attempt AttemptID
	// NoCompensate is true if the run was cancelled without compensation. A child run must then end
	// in the same way, and keep its effects. For a call of an agent, the field has no meaning.
	NoCompensate bool
	Reason       string // with NoCompensate: the reason that the person gave
}

// PauseChild tells the engine to pause the run of a group, because the run around the group is
// paused or parked. If the field On is false, it tells the engine that this pause is over. A call
// that a takeover sends again needs no PauseChild: the field Invoke.Pause of the call holds the
// same data.
type PauseChild struct {
	Attempt AttemptID // the open call that waits for the run of the group
	On      bool
	Parked  bool // with On: the run around the group is parked, and not paused
	// With On: the reason of the person who paused the run; "" = no reason, or Parked is true.
	Reason string
}

// Why returns the reason for the pause, for people.
func (p PauseChild) Why() string {
	switch {
	case p.Parked:
		return "the run around the group is parked"
	case p.Reason != "":
		return "the run around the group is paused: " + p.Reason
	}
	return "the run around the group is paused"
}

// BoundChild tells the engine until when a call waits for its child run. Decide makes it when this
// time has changed: the deadline of the run has changed, or the run was parked, or a parked run
// continues. After a takeover, a BoundChild follows each call that is sent again, unless the child
// must turn back. The reason is that the former owner may have ended before it sent the new time to
// the child.
type BoundChild struct {
	Attempt AttemptID // the open call that waits for the child run
	Until   time.Time // the new complete-by of this call
}

// Alert reports something to operators (S59).
type Alert struct {
	// The kind of the alert. This package uses the kinds `parked`, `compensation_failed`, `overdue`
	// and `notify_failed`. Other packages add the kinds `late_reply`, `quarantined`,
	// `slow_decision` and `snapshot_refused`.
	Kind    string
	Step    string // name of the step or instance; "" = the alert is about the whole run
	Code    string
	Message string
}

func (Invoke) command() {}
func (Stop) command()   {}
func (Alert) command()  {}

func (PauseChild) command() {}
func (BoundChild) command() {}

// MovedTo returns the id, in the store, of the workflow to which the record moved the run. It
// returns 0 if the record did not move the run.
func (r Record) MovedTo() int32 {
	if r.run == nil || r.run.Mask&model.RunMovesBit == 0 || len(r.run.To.Moves) == 0 {
		return 0
	}
	return r.run.To.Moves[len(r.run.To.Moves)-1].Workflow
}

// Moved returns the workflow that the run has after the record. If the record moved the run to
// another definition, this is a copy of the workflow in the parameter `next` (Input.Next), whose
// steps are numbered like the nodes of the run. If the record did not move the run, or `next` is
// nil, it is the workflow that the run had before the record, in the parameter `before`.
func (r Record) Moved(before, next *dsl.Workflow) *dsl.Workflow {
	if r.run == nil || r.run.Mask&model.RunMovesBit == 0 || next == nil {
		return before
	}
	moves := r.run.To.Moves
	return next.Renumbered(before, moves[len(moves)-1].StepOf)
}
