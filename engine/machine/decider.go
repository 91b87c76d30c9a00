package machine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/moving"
)

// An Input holds all data that Decide reads besides the state and the workflow.
type Input struct {
	At    time.Time // time of the event on the store's clock; never before the run's last record
	Event Event
	// Slots holds, for each agent name, how many calls may start now. An agent that is not in
	// the map has no limit. If a step finds no free slot, it is held.
	Slots map[string]Slot
	// Next is the workflow to which the event Migrated moves the run; nil = this engine cannot read
	// that workflow, or the event is not a Migrated.
	Next *dsl.Workflow
	// Past is the ended run that Started.From names. If a Started names a run, and Past is nil or
	// the run cannot be restarted (moving.Restart), the decision changes nothing.
	Past *moving.Past
	// Ceilings limits the size of the run. The field Journal is the present size of the run's
	// journal in the store, in bytes.
	Ceilings Ceilings
	Journal  int64
	// Allowance limits the total cost of all expressions of the decision. If it is nil, only the
	// limit of each single expression applies. If the allowance is used up (Over), the next
	// expression fails with expression_error, and usually the step of this expression fails, too. If
	// the allowance was less than MaxDecisionCost, the caller must drop the record, and decide again
	// with a larger allowance.
	Allowance *dsl.Allowance
	// Scratch is memory that the decision may use again. If it is nil, the decision allocates
	// new memory.
	Scratch *Scratch
}

// MaxDecisionCost limits the total cost of the expressions of one decision, in nominal
// nanoseconds of one core. It is twenty times the limit of a single expression. Every engine
// uses this value, so that all engines make the same record.
const MaxDecisionCost = 10_000_000_000

// A Slot says how many calls of one agent can start at the moment of a decision.
type Slot struct {
	Free int // number of calls that may start now
	// Other runs in this engine may have steps that wait for the agent. Yield is the highest
	// priority of these steps; 0 = there are none, or all have priority 0. A step with a lower
	// priority leaves the free slots to these steps. But if the event of the decision is a
	// SlotsFreed, the first step may start in any case, because the engine sends this event to the
	// run whose turn it is.
	Yield int
	// Time before which no call can start, such as the next probe of an open circuit. If it is
	// zero, calls wait only until a slot becomes free.
	Until time.Time
	Why   string // why no call can start: "circuit open", "full", "secret env:X is not set"
	// Down is true if the agent has no working process in this engine. The agent may work in
	// another engine. Decide does not use this field.
	Down bool
}

// A Scratch holds memory that several decisions use, one after the other, to save allocations. The
// zero Scratch is ready to use. Only one goroutine at a time may use a Scratch. The records that
// Decide returns never point into a Scratch.
type Scratch struct {
	d decider
}

// decider returns a decider for a new decision. It uses the memory of s, or new memory if s is
// nil.
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
	clear(d.taken)
	if cap(d.commands) > keptScratch {
		d.commands = nil
	}
	*d = decider{
		draft: d.draft, used: d.used[:0], deferred: d.deferred[:0], commands: d.commands[:0],
		ready: d.ready, fan: d.fan, launch: d.launch, undo: d.undo, passed: d.passed,
		seen: seen{results: d.seen.results}, taken: d.taken,
	}
	return d
}

// A decider makes one decision. It works on a draft: it copies a node when it first changes the
// node, and it never changes the run or the nodes of the state itself.
type decider struct {
	wf *dsl.Workflow
	s  *State
	in Input
	at model.Instant

	event Event
	run   model.Run
	head  model.Head // copy of the run's Head that the decision may change
	rare  model.Rare // copy of the run's Rare that the decision may change
	draft draft
	added int // number of nodes that the decision adds to those of the state

	commands []Command
	names    []model.InstanceName
	late     bool // the event answers an attempt that is not open
	stray    bool // the event is a checkpoint or a heartbeat of an attempt that is not open
	secret   bool // the event or a node contains bytes that may be sensitive

	grown int64 // total size of the values that this decision adds, in bytes

	arrived []signal // signals that the event of this decision brings
	// Signals that belonged to a group which has no run, and are early signals again.
	returned []signal
	// Numbers of the signals that ended a wait in this decision, or were handed over to a group.
	taken map[int32]bool

	looped int // number of iterations that this decision has planned

	still bool // this decision may start no call, because the engine must first load the new agents

	used []use // slots that this decision has taken, by agent
	// Agents whose call the engine did not send, as the event of this decision says
	// (AttemptDeferred).
	deferred []string

	// Node number + 1 of the for_each step of which the methods `passAll` and `giveUp` are ending
	// instances now, so that `aggregate` does nothing. 0 means that there is none.
	frozen int

	ready  queue // steps whose dependencies have ended
	fan    queue // for_each steps whose next instances may begin
	launch queue // nodes whose planned call may start now
	undo   queue // nodes whose undo may be possible now
	passed queue // steps whose undo has ended or was not needed

	seen seen // scope and settings that the expressions of this decision use
}

// open prepares the decider for a decision on the state s.
func (d *decider) open(wf *dsl.Workflow, s *State, in Input) {
	d.wf, d.s, d.in = wf, s, in
	d.run = s.run
	d.head, d.rare = *s.run.Head, *s.run.Rare
	d.run.Head, d.run.Rare = &d.head, &d.rare
	d.at = max(model.ToInstant(in.At), s.run.Last)
	s.private = false // from now on the record may share nodes with the state
	d.event = normal(in.Event)
	if s.cache == nil || s.cache.pending {
		s.cache = &cache{}
	}
}

// Each type below embeds the decider and has the methods for one concern. The methods are in
// other files.

// slots decides which agents can be called now, and which nodes must wait for an agent. A
// slot is free if Input.Slots lists it as free and this decision has not taken it.
type slots struct{ *decider }

// caller begins and ends attempts of nodes. The type caller does not decide what happens after an
// attempt: the types forward and undoing do that.
type caller struct{ *decider }

// answers handles the answers of agents to attempts.
type answers struct{ *decider }

// clocks handles the deadlines and the attempts whose time has passed.
type clocks struct{ *decider }

// forward handles the steps of a run that has not turned back: they begin, are repeated,
// and end.
type forward struct{ *decider }

// undoing makes a run turn back and undoes the effects of its steps. It also undoes a single
// step before the next attempt of that step (undo.go).
type undoing struct{ *decider }

// handover gives early signals to the runs of groups (handover.go).
type handover struct{ *decider }

// waits begins and ends the steps that call no agent: values, timers, and waits for signals.
// These steps use no slot, and they have no effect.
type waits struct{ handover }

// loops begins and ends the iterations of repeat steps (loop.go).
type loops struct{ *decider }

// ending parks a run, unparks it, and ends it.
type ending struct{ *decider }

// verbs handles the verbs, such as cancel.
type verbs struct{ *decider }

func (d *decider) slots() slots     { return slots{d} }
func (d *decider) caller() caller   { return caller{d} }
func (d *decider) answers() answers { return answers{d} }
func (d *decider) clocks() clocks   { return clocks{d} }
func (d *decider) forward() forward { return forward{d} }
func (d *decider) undoing() undoing { return undoing{d} }
func (d *decider) waits() waits     { return waits{handover{d}} }
func (d *decider) ending() ending   { return ending{d} }
func (d *decider) verbs() verbs     { return verbs{d} }

// A use counts the slots of one agent that this decision has taken.
type use struct {
	agent string
	calls int
}

// The type seen caches data that several expressions of one decision need: the scope, and the
// settings that were evaluated last.
type seen struct {
	scope dsl.Scope
	ready bool // the field `scope` has been filled in
	// The function returns the result of the step with the given index, as it is in this decision.
	results  func(int) dsl.StepResult
	each     dsl.EachItem  // each.key and each.value in the present scope
	step     int32         // index of the step whose settings are in the field `settings`
	settings *dsl.Settings // settings of the step in the field `step`; nil = not evaluated yet

	undo undoInputs // values with which the field `undoSettings` was computed
	// Settings for the undo of the node in undo.n; nil = not evaluated yet.
	undoSettings *dsl.Settings
}

// An undoInputs holds the values on which the settings of a node's undo may depend. While they
// stay the same, the settings stay the same, too.
type undoInputs struct {
	n               *model.Node
	output          model.StoredValue
	known, timedOut bool
	said            *model.FailureText
	failure         dsl.Failure
}

// nothing returns the record of an event that has no effect. It contains only the event.
func (d *decider) nothing() Record { return Record{at: d.at, event: d.event} }

// count returns the number of nodes of the run, including those that this decision adds.
func (d *decider) count() int { return max(len(d.s.nodes), int(d.run.Steps)) + d.added }

// get returns node i as this decision has left it. The caller must not change it.
func (d *decider) get(i int) *model.Node {
	if n := d.draft.find(i); n != nil {
		return n
	}
	if i < len(d.s.nodes) {
		return d.s.nodes[i]
	}
	return d.edit(i)
}

// edit returns the draft's copy of node i, which the caller may change. If the copy is new,
// pointers from earlier calls of the method `get` still point to the node in the state.
func (d *decider) edit(i int) *model.Node {
	if n := d.draft.find(i); n != nil {
		return n
	}
	return d.draft.add(i, d.s.before(i))
}

func (d *decider) step(n *model.Node) *dsl.Step { return d.wf.Steps[n.Step] }

// name returns the name of node i as people write it.
func (d *decider) name(i int) string { return model.NodeName(d.wf, i, d.get(i)) }

// alert adds a command that reports something to operators (S59).
func (d *decider) alert(kind, step, code, message string) {
	d.commands = append(d.commands, Alert{Kind: kind, Step: step, Code: code, Message: message})
}

// runState returns the status of the run. It computes the status from fields of the run such as
// Parked and Paused.
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
	case r.Begun && (r.Waits > 0 && r.Waits == r.Live || r.Awaits):
		return status.RunWaiting
	case r.Begun:
		return status.RunRunning
	}
	return status.RunQueued
}

// liveNodes returns how many nodes will continue without a person.
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

// pivotOpen reports whether the outcome of the pivot is unknown. It returns false if the
// workflow has no pivot.
func (d *decider) pivotOpen() bool {
	if d.wf.Pivot < 0 || d.wf.Pivot >= int(d.run.Steps) || d.run.Passed {
		return false
	}
	n := d.get(d.wf.Pivot)
	return n.OwnEffect() == status.EffectMaybe && n.Undo == model.UndoNone
}

// forwardOpen reports whether steps may begin. It returns false if the run waits for a place or its
// unique key, has turned back, is parked, or has ended.
func (d *decider) forwardOpen() bool {
	return d.run.Phase == model.PhaseForward && !d.run.Parked && d.run.Finished == 0 && !d.run.Awaits
}

// hopeless reports whether only a person can deal with the effect that node i may have.
func (d *decider) hopeless(i int) bool { return hopeless(d.wf, d.get(i)) }

// failure returns the failure m of node i in the form that expressions and people see.
func (d *decider) failure(i int, m model.Miss) dsl.Failure {
	return dsl.Failure{Step: d.step(d.get(i)).Name, Code: m.Code, Message: m.Message}
}

// ceilings returns the ceilings that apply to this decision.
func (d *decider) ceilings() Ceilings { return d.in.Ceilings.WithDefaults() }

// exceeded reports whether the run has reached the ceiling for records, for the journal or for
// values, and returns the failure for this. If so, no step of the run may make its first attempt or
// another attempt.
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

// grow counts the size of a value that the decision adds to the run, and returns true. If the run
// would exceed its ceiling for values, grow returns the failure and false. The parameter `what` is
// the name of the value in the message of this failure.
func (d *decider) grow(what string, bytes int) (model.Miss, bool) {
	most, sum := d.ceilings().Values, d.s.values.bytes+d.grown+int64(bytes)
	if sum > most {
		return limitMiss("values", "%s has %d bytes; with it the inputs and outputs of the run's steps would have %d together; the ceiling is %d",
			what, bytes, sum, most), false
	}
	d.grown += int64(bytes)
	return model.Miss{}, true
}

// fits checks whether the run may have new instances. If so, it adds the sizes of the
// each.values of these instances to the size of the run, and returns true. If the run would exceed
// its ceiling for instances or for values, fits returns the failure and false.
func (d *decider) fits(each dsl.Each) (model.Miss, bool) {
	most, there := d.ceilings().Instances, d.count()-int(d.run.Steps)
	// A move has added the instances that existed then to the workflow's list of steps.
	if len(d.run.Moves) > 0 {
		for _, step := range d.wf.Steps {
			if step.Instance {
				there++
			}
		}
	}
	if n := len(each.Keys); n > most-there {
		return limitMiss("instances", "for_each has %d keys; with %d instances that the run has already, the ceiling is %d", n, there, most), false
	}
	bytes := 0
	for k := range each.Values {
		bytes += len(each.Values[k].JSON())
	}
	return d.grow("for_each", bytes)
}
