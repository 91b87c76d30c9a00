package machine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// A Record holds an event and the decision about it. The records of a run are its history.
// Decide makes records, and readers of a journal make them too. State.Apply folds them into
// a state. A record never changes.
type Record struct {
	at    model.Instant
	event Event
	run   *model.RunPatch
	nodes []model.NodePatch // changes of nodes, ascending by node number

	commands []Command  // not persisted: only the process that committed the record executes them
	late     bool       // not persisted: see the method Late
	secret   bool       // not persisted: the event holds bytes, such as a checkpoint, that may be sensitive
	final    bool       // not persisted: the run had finished before; this record only answers the event
	names    []NodeName // not persisted: see the method NewNodes
	cache    *cache     // not persisted: cached values, which are valid only once this record is committed

	base    *State // not persisted: the state on which the record was decided
	records int32  // not persisted: the number of records in base when this record was decided
}

// decidedOn reports whether the record was decided on s and s has not changed since. Then
// the run and nodes in the record are complete and replace those of s.
func (r *Record) decidedOn(s *State) bool {
	return r.base == s && r.records == s.run.Records && s != nil
}

// Empty reports whether the record changes nothing and its event need not be recorded. Then
// there is nothing to commit.
func (r Record) Empty() bool {
	if r.run != nil || len(r.nodes) > 0 {
		return false
	}
	if r.final {
		return true
	}
	return !says(r.event)
}

// says reports whether an event is recorded even if it changes nothing. That is so for a
// takeover, and for a verb, because the person who sent it looks for the answer in the
// journal.
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

// Delta returns what the record changes. The caller must not change it.
func (r *Record) Delta() model.Delta { return model.Delta{At: r.at, Run: r.run, Nodes: r.nodes} }

// At returns the record's time on the store's clock.
func (r Record) At() time.Time { return r.at.Time() }

// Event returns what happened. If a verb was refused, it returns a Refused.
func (r Record) Event() Event { return r.event }

// Refused returns why a verb changed nothing, if the record is the answer to a refused
// verb. On a finished run such a record is Empty: the engine answers the verb and does not
// commit the record.
func (r Record) Refused() (Refused, bool) {
	v, ok := r.event.(Refused)
	return v, ok
}

// Late reports whether the event answers an attempt that is not open, or that never
// existed. Such an answer is evidence and changes nothing, in any state of the run (S28).
// The record may still hold changes, because time may have passed. A checkpoint or
// heartbeat of such an attempt does not count as an answer. Late is not persisted.
func (r Record) Late() bool { return r.late }

// Commands returns what the process that commits the record must do afterwards. A record
// that was read from a journal has none.
func (r Record) Commands() []Command { return r.commands }

// RunState returns the run's state after the record, if the record changes it.
func (r Record) RunState() (status.RunState, bool) {
	if r.run != nil && r.run.Mask&model.RunStateBit != 0 {
		return r.run.To.State, true
	}
	return status.RunInvalid, false
}

// A StepRow is the entry of one changed node in the journal's `steps` column.
type StepRow struct {
	Node       int
	State      status.StepState
	Failures   int       // number of attempts that ended without a result; only for display (S63)
	Attempt    int       // number of attempts started: of the undo if it has begun, otherwise of the step
	CompleteBy time.Time // latest complete-by of the open attempts; zero if none is open
}

// Steps returns a row for each node whose row the record changes, ascending by node number.
// s is the state before the record.
func (r Record) Steps(s *State) []StepRow {
	return r.AppendSteps(make([]StepRow, 0, len(r.nodes)), s)
}

// AppendSteps appends the result of Steps to rows.
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

// stepRow returns the row of a node. A for_each step calls no agent itself. Its row shows
// it as waiting for its instances, because every row that shows a running step must have a
// complete-by (S10).
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

// A NodeName is the name of an instance that a record adds.
type NodeName struct {
	Node int
	Step int
	Name string // such as ship["berlin"]
}

// NewNodes returns the instances of for_each steps that the record adds. Only the process
// that decided the record knows them: a record that was read from a journal returns none.
func (r Record) NewNodes() []NodeName { return r.names }

// Sensitive reports whether the record must be sealed. That is so if its bytes hold
// sensitive values, or the fixed parts of a text that contains a secret, such as `Bearer `
// before a token.
func (r Record) Sensitive() bool {
	sensitive := r.secret
	r.values(func(h model.Held) {
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

// values calls the function f with every value in the record.
func (r Record) values(f func(model.Held)) {
	switch ev := r.event.(type) {
	case Started:
		f(model.Held{V: ev.Vars})
	case AttemptOK:
		f(model.Held{V: ev.Output})
	case SettleRequested:
		f(model.Held{V: ev.Output})
	case AttemptFailed:
		f(model.Held{V: ev.Data})
	case SignalReceived:
		f(model.Held{V: ev.Payload})
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
	}
}

// Apply folds the next record of the run into the state, in place. It evaluates no
// expression and does not need the definition: the record contains the new values of the
// fields. The caller must apply the records in the order in which they were committed, each
// exactly once.
func (s *State) Apply(r Record) {
	if !r.Empty() {
		c := s.Change(&r)
		c.Apply()
	}
}

// Change computes the change that a record makes to the state.
func (s *State) Change(r *Record) Change {
	empty := r.Empty()
	c := Change{s: s, at: r.at, event: r.event, patches: r.nodes, cache: r.cache, empty: empty, tells: r.final || !empty, run: s.run}
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

// A Command is work that the engine must do after the record has been committed, and only
// then. Decide derives commands when it makes a record. A process that did not commit the
// record itself never executes them.
type Command interface{ command() }

// Invoke calls an agent.
type Invoke struct {
	Attempt        AttemptID
	Purpose        sdk.Purpose
	Step           int    // index in Workflow.Steps
	Key            string // each.key of the instance; "" = the node is not an instance
	Agent          string // key of Workflow.Agents
	Action         string
	Input          dsl.Value // may hold references to secrets
	IdempotencyKey string
	ForwardKey     string
	// Number of the attempt as people see it, counted from 1 within its purpose and round.
	Number     int
	CompleteBy time.Time
	Checkpoint *sdk.Checkpoint // the last checkpoint of an earlier attempt; nil if there is none
}

// Stop tells the agent that the answer to a running call is not needed any more. It does
// not close the attempt. It is sent in two cases. First, the run turned back, and the
// action is read-only or may be interrupted. Second, the agent was silent for too long, and
// the attempt is closed already.
type Stop struct {
	Attempt AttemptID
}

// Alert reports something to operators (S59).
type Alert struct {
	Kind    string // parked, compensation_failed, overdue, late_reply; an engine adds set_aside and slow_decision
	Step    string // step name; "" = the alert is about the whole run
	Code    string
	Message string
}

func (Invoke) command() {}
func (Stop) command()   {}
func (Alert) command()  {}
