package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// phase says what the step, instance or undo of a row is doing.
type phase uint8

const (
	phasePending phase = iota
	phaseHeld
	phaseWaiting // the step waits for a signal, or for the end of a timer
	phaseRunning
	phaseBackoff
	phaseEnded
)

// A row holds what is known about one step, instance or undo of the board.
type row struct {
	name, action string
	undo         bool
	heading      bool // true = the row is not a step, but the heading above the undos
	after        []string
	undoable     bool

	phase   phase
	status  string // final status of the step or undo; "" = it has not ended
	attempt int
	of      int
	// When the first attempt, the timer, or the wait for a signal began; zero = not begun.
	begun time.Time
	// Time of the next attempt, of the next try to get a slot, or of the timer's end; zero = none.
	until   time.Time
	awaits  []string  // names of the signals for which the step waits; nil = it waits for none
	by      time.Time // complete-by of the attempt; zero = none yet
	limit   time.Time // deadline of the step or undo; zero = it has no deadline
	code    string
	message string
	took    time.Duration
	unknown bool // true = the outcome of the last attempt is unknown

	purpose  story.Purpose // purpose of the current or the next attempt
	coolDown bool          // true = the step pauses for a cool-down, not between two attempts
	agent    string        // name of the agent for which a held step waits

	step  *row      // for an instance, the row of its step; nil = the row is not an instance
	parts []*row    // for a step with for_each, the rows of the instances that are known so far
	total int       // number of instances of the step; 0 = not known, or none
	said  int       // number of times at which a "still running" line was due
	next  time.Time // time at which the next "still running" line is due; zero = no time is set
}

// A board is what a view knows about a run. The view computes it from all facts that it has
// received so far.
type board struct {
	story   Story
	forward []*row
	undos   []*row
	index   map[rowKey]*row
	// Rows that have ended and have a line of their own, in the order in which they ended, and the
	// heading of the undos.
	ended  []*row
	turned bool
	// Deadline of the run. After the run has turned back, it is the deadline of its compensation.
	deadline time.Time
	status   string // status of the run if it has ended or needs a human; "" = neither
	outputs  []story.NamedValue
	circuits map[string]Circuit
}

type rowKey struct {
	name string
	undo bool
}

func newBoard(s Story) *board {
	b := &board{story: s, index: map[rowKey]*row{}, circuits: map[string]Circuit{}}
	for _, st := range s.Steps {
		r := &row{name: st.Name, action: st.Action, after: st.After, undoable: st.Undo}
		b.forward = append(b.forward, r)
		b.index[rowKey{st.Name, false}] = r
	}
	return b
}

// base returns the name of a step without the key of an instance: `ship` for `ship["berlin"]`.
func base(name string) string {
	if i := strings.Index(name, "["); i > 0 {
		return name[:i]
	}
	return name
}

// at returns the row of a step, an instance or an undo. It makes the row if there is none yet.
func (b *board) at(name string, undo bool) *row {
	k := rowKey{name, undo}
	if r := b.index[k]; r != nil {
		return r
	}
	r := &row{name: name, undo: undo}
	b.index[k] = r
	step := b.index[rowKey{base(name), false}]
	instance := step != nil && step.name != name
	switch {
	case undo && instance && step.wide():
		r.join(b.at(step.name, true))
	case undo:
		b.undos = append(b.undos, r)
	case instance:
		r.action, r.undoable = step.action, step.undoable
		r.join(step)
	default:
		b.forward = append(b.forward, r)
	}
	return r
}

// join makes the row r an instance of the step.
func (r *row) join(step *row) {
	r.step = step
	step.parts = append(step.parts, r)
}

// manyInstances limits how many instances of a step a view shows one by one. A step with more
// instances has one line that counts its instances.
const manyInstances = 12

// wide reports whether a step has one line for all of its instances.
func (r *row) wide() bool { return r.total > manyInstances }

// collapsed reports whether the row is an instance without its own line: the line of its step
// counts this instance. An instance that is held or waits, makes a second attempt, or has failed
// always has its own line.
func (r *row) collapsed(b *board) bool {
	if r.step == nil || !b.wide(r.step) {
		return false
	}
	switch r.phase {
	case phasePending:
		return true
	case phaseRunning:
		return r.attempt <= 1
	case phaseEnded:
		return r.status != status.StepFailed.String() && r.status != status.StepCaught.String() && r.status != status.StepUndoFailed.String()
	}
	return false
}

// wide reports whether a step, or the undo of a step, has one line for all of its instances.
func (b *board) wide(r *row) bool {
	if !r.undo {
		return r.wide()
	}
	step := b.index[rowKey{r.name, false}]
	return step != nil && step.wide()
}

// leaves is the function that calls fn for each row without instances. For a row with instances, it
// calls fn for each instance instead.
func leaves(rows []*row, fn func(*row)) {
	for _, r := range rows {
		if len(r.parts) == 0 {
			fn(r)
		}
		for _, part := range r.parts {
			fn(part)
		}
	}
}

// apply updates the board with one fact.
func (b *board) apply(f story.Fact) {
	switch f.Kind {
	case story.FactRunCreated:
		b.deadline = f.RunDeadline
		return
	case story.FactRunTurned:
		b.turned, b.deadline = true, f.CompensationDeadline
		return
	case story.FactRunParked:
		b.status = orText(f.Status, "parked")
		return
	case story.FactRunFinished:
		b.status, b.outputs = f.Status, f.Outputs
		return
	case story.FactVerb, story.FactRunTakenOver, story.FactSignalReceived, story.FactRunAdmitted:
		b.status = f.Rest // the fact may leave the run as it was: parked, for example
		return
	}
	if f.Step == "" {
		return
	}
	undo := f.Undo || f.Kind == story.FactUndoStarted || f.Kind == story.FactUndoFinished
	if undo && len(b.undos) == 0 {
		b.ended = append(b.ended, &row{heading: true})
	}
	if step := b.index[rowKey{base(f.Step), false}]; step != nil {
		step.total = max(step.total, f.Among)
	}
	r := b.at(f.Step, undo)
	// If `again` is true, the row had ended before, and an operator has started another round of
	// attempts.
	again := r.phase == phaseEnded
	r.apply(f)
	if r.step != nil && undo {
		r.step.action = r.action
	}
	if r.phase == phaseEnded && !again && (len(r.parts) == 0 || b.wide(r)) && !r.collapsed(b) {
		b.ended = append(b.ended, r)
	}
}

func (r *row) apply(f story.Fact) {
	if f.Action != "" {
		r.action = f.Action
	}
	for _, limit := range []time.Time{f.StepDeadline, f.UndoDeadline} {
		if !limit.IsZero() {
			r.limit = limit
		}
	}
	switch f.Kind {
	case story.FactStepHeld:
		r.phase, r.until, r.agent, r.code, r.message = phaseHeld, f.Until, f.Agent, f.Code, f.Message
		if r.next.IsZero() {
			r.next = f.At.Add(stillAfter(0))
		}
	case story.FactWaitStarted:
		r.phase, r.until, r.awaits = phaseWaiting, f.Until, f.Awaits
		if r.begun.IsZero() {
			r.begun = f.At
		}
	case story.FactAttemptStarted:
		r.phase, r.by, r.purpose = phaseRunning, f.CompleteBy, f.Purpose
		if tried(f.Purpose) {
			r.attempt, r.of = f.Attempt, f.Of
		}
		if r.begun.IsZero() {
			r.begun = f.At
			r.next = f.At.Add(stillAfter(0))
		}
	case story.FactAttemptFinished:
		r.code, r.message = f.Code, f.Message
		r.unknown = f.Status == "unknown"
	case story.FactRetryScheduled:
		r.phase, r.until, r.purpose, r.coolDown = phaseBackoff, f.Until, f.Purpose, f.CoolDown
		if f.CoolDown {
			r.attempt = 0 // a fresh round of attempts follows
		}
		if f.Code != "" {
			r.code, r.message = f.Code, f.Message
		}
	case story.FactUndoStarted:
		if r.phase == phasePending {
			r.phase = phaseRunning
			r.begun, r.next = f.At, f.At.Add(stillAfter(0))
		}
	case story.FactStepFinished, story.FactUndoFinished:
		r.phase, r.status, r.took = phaseEnded, f.Status, f.Took
		r.attempt = max(r.attempt, f.Attempt)
		r.code, r.message = f.Code, f.Message
	}
}

// tried reports whether an attempt with this purpose counts as a try. Lookups, and calls to learn
// the output, do not count.
func tried(p story.Purpose) bool { return p != story.PurposeLookup && p != story.PurposeLearn }

// stillAfter returns the pause before the next "still running" line of a step. The parameter n is
// the number of such lines that were due before. The lines come after 10 s, after 30 s and then
// every 60 s.
func stillAfter(n int) time.Duration {
	switch n {
	case 0:
		return 10 * time.Second
	case 1:
		return 20 * time.Second
	}
	return time.Minute
}

// still returns the rows for which a "still running" line is due now. For each of these rows, it
// also sets the time of the next such line.
func (b *board) still(now time.Time) []*row {
	var out []*row
	check := func(r *row) {
		open := r.phase == phaseRunning || r.phase == phaseBackoff || r.phase == phaseHeld
		if !open || r.next.IsZero() || now.Before(r.next) {
			return
		}
		for !now.Before(r.next) {
			r.said++
			r.next = r.next.Add(stillAfter(r.said))
		}
		out = append(out, r)
	}
	leaves(b.forward, check)
	leaves(b.undos, check)
	return out
}

// progress returns a text that says how many steps and instances have ended. After the first undo
// has begun, the text says how many steps and instances are undone.
func (b *board) progress() string {
	if len(b.undos) > 0 {
		done, all := count(b.undos)
		return fmt.Sprintf("%d of %d undone", done, max(all, b.toUndo()))
	}
	done, all := count(b.forward)
	return fmt.Sprintf("%d of %d done", done, all)
}

// count is the function that counts the steps and instances in rows. It returns how many have
// ended, and how many there are. Instances that have not begun count, too, if their number is
// known.
func count(rows []*row) (done, all int) {
	for _, r := range rows {
		d, a := r.counted()
		done, all = done+d, all+a
	}
	return done, all
}

func (r *row) counted() (done, all int) {
	all = max(1, r.total, len(r.parts))
	if r.phase == phaseEnded {
		return all, all
	}
	for _, part := range r.parts {
		if part.phase == phaseEnded {
			done++
		}
	}
	return done, all
}

// toUndo returns the number of steps and instances that must be undone, because they have an
// effect or may have one.
func (b *board) toUndo() int { return b.mayUndo(b.forward) }

// undoing is the method that returns how many instances of a step must be undone. It returns 0 if
// the board does not know the step.
func (b *board) undoing(step string) int {
	if r := b.index[rowKey{step, false}]; r != nil {
		return b.mayUndo([]*row{r})
	}
	return 0
}

func (b *board) mayUndo(rows []*row) int {
	n := 0
	leaves(rows, func(r *row) {
		effect := r.status == status.StepSucceeded.String() || r.unknown || r.phase == phaseRunning ||
			b.index[rowKey{r.name, true}] != nil
		if r.undoable && effect {
			n++
		}
	})
	return n
}

// waitsFor returns the names of the steps for which a row still waits. The caller passes a row that
// has not begun.
func (b *board) waitsFor(r *row) []string {
	var out []string
	for _, name := range r.after {
		if d := b.index[rowKey{name, false}]; d == nil || d.phase != phaseEnded {
			out = append(out, name)
		}
	}
	return out
}
