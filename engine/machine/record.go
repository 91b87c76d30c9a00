package machine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// A Record is one step of a run's history: what happened and what was decided
// about it. Records are made by Decide or read from a journal, folded by
// State.Apply, and never changed.
type Record struct {
	at    model.Instant
	event Event
	run   *model.RunPatch
	nodes []model.NodePatch // ascending by number

	commands []Command  // not persisted: only the process that lands the record acts on it
	late     bool       // not persisted
	secret   bool       // not persisted: bytes of which the machine knows nothing may be sensitive
	final    bool       // not persisted: an answer to what reached a finished run
	names    []NodeName // not persisted
	cache    *cache     // not persisted: what was cached under the assumption that this record lands

	base    *State // not persisted: the state it was decided on, and
	records int32  // how many records that had; the nodes are then what they become
}

// decidedOn reports whether s is what the record was decided on: then its run
// and nodes are as they will be.
func (r *Record) decidedOn(s *State) bool {
	return r.base == s && r.records == s.run.Records && s != nil
}

// Empty reports whether the record changes nothing and says nothing: there is
// nothing to commit.
func (r Record) Empty() bool {
	if r.run != nil || len(r.nodes) > 0 {
		return false
	}
	if r.final {
		return true
	}
	return !says(r.event)
}

// says reports whether an event is recorded although it changes nothing: a takeover, and
// a verb, because the person who asked finds the answer in the journal.
func says(event Event) bool {
	if _, takeover := event.(TakenOver); takeover {
		return true
	}
	_, _, verb := Asked(event)
	return verb
}

// NewRecord returns the record of an event and of what it changed, as a journal holds it.
func NewRecord(event Event, d model.Delta) Record {
	return Record{event: event, at: d.At, run: d.Run, nodes: d.Nodes}
}

// Delta returns what the record changes. The caller must not change it.
func (r *Record) Delta() model.Delta { return model.Delta{At: r.at, Run: r.run, Nodes: r.nodes} }

// At returns the record's time on the store's clock.
func (r Record) At() time.Time { return r.at.Time() }

// Event returns what happened. It is a Refused where a verb did not apply.
func (r Record) Event() Event { return r.event }

// Refused returns why a verb changed nothing, if this is the answer to one.
// On a finished run such a record is Empty: it is answered, not recorded.
func (r Record) Refused() (Refused, bool) {
	v, ok := r.event.(Refused)
	return v, ok
}

// Late reports whether the event was the answer of an attempt that is not open
// any more, or never was: evidence that changes nothing (S28), whatever state
// the run is in. The record need not be empty: time may have passed. Progress of
// such an attempt is no answer. It is not persisted.
func (r Record) Late() bool { return r.late }

// Commands returns what the process that lands the record must do afterwards.
// A decoded record has none.
func (r Record) Commands() []Command { return r.commands }

// RunState returns the run's state after the record, if the record changes it.
func (r Record) RunState() (status.RunState, bool) {
	if r.run != nil && r.run.Mask&model.RunStateBit != 0 {
		return r.run.To.State, true
	}
	return status.RunInvalid, false
}

// A StepRow is what the journal's `steps` column holds of one changed node.
type StepRow struct {
	Node       int
	State      status.StepState
	Failures   int       // attempts that ended without result; shown, never decides (S63)
	Attempt    int       // attempts started, of the undo once it has begun
	CompleteBy time.Time // of the open attempts, the latest; zero unless one is open
}

// Steps returns the rows of the nodes that the record changes, ascending. s is
// the state before the record.
func (r Record) Steps(s *State) []StepRow {
	return r.AppendSteps(make([]StepRow, 0, len(r.nodes)), s)
}

// AppendSteps appends to rows what Steps returns.
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

// stepRow is a node's row. A for_each step runs nothing itself: it shows as
// waiting for its instances, so that a running row always has a complete-by
// (S10).
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
	Name string // step["key"]
}

// NewNodes returns the instances of for_each steps that the record adds. It is
// only known to the process that decided the record.
func (r Record) NewNodes() []NodeName { return r.names }

// Sensitive reports whether the record's bytes hold sensitive values or the
// literal text around a secret, so that they must be encrypted at rest.
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

// values calls f with every value the record holds.
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

// Apply folds the next record of the run into the state, in place. It needs
// neither the definition nor expressions: the record says what the fields
// become. Records are applied in the order in which they were committed, each
// once.
func (s *State) Apply(r Record) {
	if !r.Empty() {
		c := s.Change(&r)
		c.Apply()
	}
}

// Change computes what a record makes of the state.
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

// A Command is what the shell must do after the record that holds it has been
// committed, and only then. Commands are derived from a record; a process that
// did not land the record itself never executes them.
type Command interface{ command() }

// Invoke calls an agent.
type Invoke struct {
	Attempt        AttemptID
	Purpose        sdk.Purpose
	Step           int    // index in Workflow.Steps
	Key            string // each.key, or ""
	Agent          string // key of Workflow.Agents
	Action         string
	Input          dsl.Value // may hold references to secrets
	IdempotencyKey string
	ForwardKey     string
	Number         int // attempt number for people, from 1, within its purpose and round
	CompleteBy     time.Time
	Checkpoint     *sdk.Checkpoint // what an earlier attempt recorded last; nil = none
}

// Stop tells the agent that a running call is not wanted any more. It does not
// close the attempt. Two cases exist: the run turned back and the action is
// read-only or may be interrupted; or the agent was silent for too long, and the
// attempt is closed already.
type Stop struct {
	Attempt AttemptID
}

// Alert tells an operator (S59).
type Alert struct {
	Kind    string // parked, compensation_failed, overdue, late_reply; an engine adds set_aside and slow_decision
	Step    string // step name, or ""
	Code    string
	Message string
}

func (Invoke) command() {}
func (Stop) command()   {}
func (Alert) command()  {}
