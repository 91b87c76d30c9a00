package machine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// An Input is what Decide decides on: an event, when it happened in store
// time, and what the deciding engine can start right now.
type Input struct {
	At    time.Time // store time; never before the run's last record
	Event Event
	// Slots says, by agent name, how many calls may start. An agent that is
	// absent has no limit. A step that finds no slot becomes held.
	Slots map[string]Slot
	// Engine is the membership of the deciding engine, Fence the seq of the
	// record that made it the owner; both are only copied into commands.
	Engine int32
	// Ceilings bound what the run may become, and Journal is how many bytes of the
	// run's history the store holds.
	Ceilings Ceilings
	Journal  int64
	// Allowance bounds what the expressions of the decision cost together; nil = only
	// the limit of each expression counts. Where it is Over the record is what an
	// overrun leads to: expression_error. A caller that gives less than
	// MaxDecisionCost throws such a record away and decides again with more.
	Allowance *dsl.Allowance
	// Scratch is memory that the decision may use; nil = its own.
	Scratch *Scratch
}

// MaxDecisionCost is what the expressions of one decision may cost together, in
// nominal nanoseconds of one core: as much as twenty expressions at their limit.
// Every engine gives as much, so that all come to the same record.
const MaxDecisionCost = 10_000_000_000

// A Slot is an agent's capacity at the moment of a decision.
type Slot struct {
	Free  int       // calls that may start now
	Until time.Time // no call can start before this (open circuit's next probe); zero = when a slot frees
	Why   string    // "circuit open", "full", "secret env:X is not set"
}

// A Scratch is memory that decisions and folds use one after the other, so that
// each does not ask for its own. The zero Scratch is ready to use. One goroutine at a time
// uses it; nothing that Decide returns refers to it.
type Scratch struct {
	d decider
}

// decider returns a decider to which nothing has happened yet.
func (s *Scratch) decider() *decider {
	if s == nil {
		return &decider{}
	}
	d := &s.d
	d.draft.reset()
	for _, q := range []*queue{&d.ready, &d.fan, &d.launch, &d.undo, &d.passed} {
		q.reset()
	}
	clear(d.used)
	clear(d.deferred)
	clear(d.commands)
	if cap(d.commands) > keptScratch {
		d.commands = nil
	}
	*d = decider{
		draft: d.draft, used: d.used[:0], deferred: d.deferred[:0], commands: d.commands[:0],
		ready: d.ready, fan: d.fan, launch: d.launch, undo: d.undo, passed: d.passed,
		seen: seen{results: d.seen.results}, taken: d.taken[:0],
	}
	return d
}

// A decider is one decision: a draft over the state. Nodes are copied when
// they are first changed; the state itself stays as it is.
type decider struct {
	wf *dsl.Workflow
	s  *State
	in Input
	at model.Instant

	event   Event
	run     model.Run
	head    model.Head    // the draft's copy of run's
	trouble model.Trouble // the draft's copy of run's
	draft   draft
	added   int // nodes beyond the state's

	commands []Command
	names    []NodeName
	late     bool // an answer to no open attempt
	stray    bool // a sign of progress of no open attempt
	secret   bool // the event holds bytes that may be sensitive

	grown int64 // bytes of values that this decision adds

	arrived signal  // the signal of this decision; Number 0 = none
	taken   []int32 // numbers of signals that waits have taken in this decision

	used     []use    // slots taken by this decision
	deferred []string // agents that have just refused a call

	frozen int // a for_each step, plus one, whose instances are being ended together

	ready  queue // steps whose dependencies have ended
	fan    queue // for_each steps that may begin instances
	launch queue // nodes to call an agent for
	undo   queue // nodes whose undo may be possible now
	passed queue // steps whose undo has passed

	seen seen // scope and settings that expressions of this decision use
}

// The parts of a decision. Each is the same decider with the methods of one concern. Their
// types are here, below all files with their methods.

// slots decides, within a decision, which agents can be called now, and which nodes wait
// for an agent. It sees the free slots of Input.Slots, less those that this decision has
// taken.
type slots struct{ *decider }

// caller begins and ends attempts of nodes. It does not decide what follows from the end
// of an attempt: answers and clocks hand that on to forward and undoing.
type caller struct{ *decider }

// answers handles what agents say about attempts.
type answers struct{ *decider }

// clocks lets time pass: it expires deadlines and attempts.
type clocks struct{ *decider }

// forward moves the forward part of a run: steps begin, are repeated, and end.
type forward struct{ *decider }

// undoing turns a run back and undoes what its steps have done. It also undoes a single
// step before that step is called again (rerun.go).
type undoing struct{ *decider }

// waits moves steps that call no agent: values, timers, and waits for signals. They hold
// no slot, and their effect is none.
type waits struct{ *decider }

// ending parks a run, lets it go on, and ends it.
type ending struct{ *decider }

// verbs handles what people ask of a run.
type verbs struct{ *decider }

func (d *decider) slots() slots     { return slots{d} }
func (d *decider) caller() caller   { return caller{d} }
func (d *decider) answers() answers { return answers{d} }
func (d *decider) clocks() clocks   { return clocks{d} }
func (d *decider) forward() forward { return forward{d} }
func (d *decider) undoing() undoing { return undoing{d} }
func (d *decider) waits() waits     { return waits{d} }
func (d *decider) ending() ending   { return ending{d} }
func (d *decider) verbs() verbs     { return verbs{d} }

// A use is how many slots of an agent are taken.
type use struct {
	agent string
	calls int
}

// A seen caches the scope that the expressions of one decision read, and the settings
// that they return. Each is made once.
type seen struct {
	scope    dsl.Scope
	ready    bool                     // scope is filled in
	results  func(int) dsl.StepResult // reads from this decider
	each     dsl.EachItem
	step     int32         // whose settings these are
	settings *dsl.Settings // nil = none yet

	undo         undoTold
	undoSettings *dsl.Settings // of the node in undo; nil = none yet
}

// An undoTold holds the values on which the limits of a node's undo may depend.
type undoTold struct {
	n               *model.Node
	output          model.Held
	known, timedOut bool
	said            *model.Saying
	failure         dsl.Failure
}

// nothing is the record of an event without consequences.
func (d *decider) nothing() Record { return Record{at: d.at, event: d.event} }

// count returns the number of nodes, added ones included.
func (d *decider) count() int { return max(len(d.s.nodes), int(d.run.Steps)) + d.added }

// get returns a node for reading.
func (d *decider) get(i int) *model.Node {
	if n := d.draft.find(i); n != nil {
		return n
	}
	if i < len(d.s.nodes) {
		return d.s.nodes[i]
	}
	return d.edit(i)
}

// edit returns a node for changing; what get returned for it before is stale.
func (d *decider) edit(i int) *model.Node {
	if n := d.draft.find(i); n != nil {
		return n
	}
	return d.draft.add(i, d.s.before(i))
}

func (d *decider) step(n *model.Node) *dsl.Step { return d.wf.Steps[n.Step] }

// name returns a node's name as people write it.
func (d *decider) name(i int) string { return model.NodeName(d.wf, i, d.get(i)) }

// alert tells an operator (S59).
func (d *decider) alert(kind, step, code, message string) {
	d.commands = append(d.commands, Alert{Kind: kind, Step: step, Code: code, Message: message})
}

// runState derives the run's state from its flags.
func (d *decider) runState() status.RunState {
	r := &d.run
	switch {
	case r.Finished != 0:
		return r.State
	case r.Stuck:
		return status.RunCompensationFailed
	case r.Lost():
		return status.RunParked
	case r.Parked:
		return status.RunParked
	case r.Paused:
		return status.RunPaused
	case r.Phase == model.PhaseUndo:
		return status.RunCompensating
	case r.Begun && r.Waits > 0 && r.Waits == r.Live:
		return status.RunWaiting
	case r.Begun:
		return status.RunRunning
	}
	return status.RunQueued
}

// liveNodes counts the nodes that will move without a person.
func (d *decider) liveNodes() int32 {
	live := d.s.run.Live
	for k := range d.draft.list {
		e := &d.draft.list[k]
		if e.old.Lives() {
			live--
		}
		if e.now.Lives() {
			live++
		}
	}
	return live
}

// pivotOpen reports whether the outcome of the pivot, the point of no return, is unknown.
func (d *decider) pivotOpen() bool {
	if d.wf.Pivot < 0 || d.wf.Pivot >= int(d.run.Steps) || d.run.Passed {
		return false
	}
	n := d.get(d.wf.Pivot)
	return n.Effect() == status.EffectMaybe && n.Undo == model.UndoNone
}

// forwardOpen reports whether steps may begin.
func (d *decider) forwardOpen() bool {
	return d.run.Phase == model.PhaseForward && !d.run.Parked && d.run.Finished == 0
}

// hopeless reports whether only a person can deal with the effect that a node may have.
func (d *decider) hopeless(i int) bool { return hopeless(d.wf, d.get(i)) }

// failure returns the failure that turns the run, as expressions and people see it.
func (d *decider) failure(i int, m model.Miss) dsl.Failure {
	return dsl.Failure{Step: d.step(d.get(i)).Name, Code: m.Code, Message: m.Message}
}

// ceilings returns those of this decision.
func (d *decider) ceilings() Ceilings { return d.in.Ceilings.WithDefaults() }

// exceeded reports whether the run has reached a ceiling. Then no step of it may begin, or
// make another attempt.
func (d *decider) exceeded() (model.Miss, bool) {
	c := d.ceilings()
	switch {
	case int(d.s.run.Records) >= c.Records:
		return limitMiss("records", "the run's history has %d records; the ceiling is %d", d.s.run.Records, c.Records), true
	case d.in.Journal >= c.Journal:
		return limitMiss("journal", "the run's history has %d bytes; the ceiling is %d", d.in.Journal, c.Journal), true
	case d.s.values.bytes+d.grown >= c.Values:
		return limitMiss("values", "the inputs and outputs of the run's steps have %d bytes together; the ceiling is %d",
			d.s.values.bytes+d.grown, c.Values), true
	}
	return model.Miss{}, false
}

// grow counts bytes of values that the decision adds to the run. It refuses what
// would pass the ceiling.
func (d *decider) grow(what string, bytes int) (model.Miss, bool) {
	most, sum := d.ceilings().Values, d.s.values.bytes+d.grown+int64(bytes)
	if sum > most {
		return limitMiss("values", "%s has %d bytes; with it the inputs and outputs of the run's steps would have %d together; the ceiling is %d",
			what, bytes, sum, most), false
	}
	d.grown += int64(bytes)
	return model.Miss{}, true
}

// roomFor reports whether the run may get the instances of a for_each step.
func (d *decider) roomFor(each dsl.Each) (model.Miss, bool) {
	most, there := d.ceilings().Instances, d.count()-int(d.run.Steps)
	if n := len(each.Keys); n > most-there {
		return limitMiss("instances", "for_each has %d keys; with %d instances that the run has already, the ceiling is %d", n, there, most), false
	}
	bytes := 0
	for k := range each.Values {
		bytes += len(each.Values[k].JSON())
	}
	return d.grow("for_each", bytes)
}
