package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine/machine"
)

// phase is what a row of the board is doing.
type phase uint8

const (
	phasePending phase = iota
	phaseHeld
	phaseRunning
	phaseBackoff
	phaseEnded
)

// A row is one step, instance or undo on the board.
type row struct {
	name, action string
	undo         bool
	heading      bool // no step: the line that stands above the undos
	after        []string
	undoable     bool

	phase   phase
	status  string // once ended
	attempt int
	of      int
	begun   time.Time // first attempt
	until   time.Time // next try, or probe
	by      time.Time // complete-by of the attempt
	limit   time.Time // deadline of the step or undo
	code    string
	message string
	took    time.Duration
	unknown bool // the last attempt's outcome is not known

	purpose  machine.Purpose // of the attempt, or of the one that is waited for
	coolDown bool            // the pause is a cool-down
	agent    string          // held: the agent that is waited for

	parts []*row    // instances seen; a step with any is not shown itself
	said  int       // "still running" lines so far
	next  time.Time // when the next one is due
}

// A board is a run as its facts tell it.
type board struct {
	story    Story
	forward  []*row
	undos    []*row
	index    map[rowKey]*row
	ended    []*row // leaves in order of their end, and the heading
	turned   bool
	deadline time.Time
	status   string // of the run, once it has ended or needs a human
	outputs  []machine.NamedValue
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

// base is the step's name without the key of an instance.
func base(name string) string {
	if i := strings.Index(name, "["); i > 0 {
		return name[:i]
	}
	return name
}

// at returns the row a fact is about and makes it if need be.
func (b *board) at(name string, undo bool) *row {
	k := rowKey{name, undo}
	if r := b.index[k]; r != nil {
		return r
	}
	r := &row{name: name, undo: undo}
	b.index[k] = r
	if undo {
		b.undos = append(b.undos, r)
		return r
	}
	if step := b.index[rowKey{base(name), false}]; step != nil && step.name != name {
		r.action, r.undoable = step.action, step.undoable
		step.parts = append(step.parts, r)
		return r
	}
	b.forward = append(b.forward, r)
	return r
}

// leaves calls fn for every row of the list that stands for itself: steps, and
// instances in place of the step they belong to.
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

// apply folds one fact in.
func (b *board) apply(f machine.Fact) {
	switch f.Kind {
	case machine.FactRunCreated:
		b.deadline = f.RunDeadline
		return
	case machine.FactRunTurned:
		b.turned = true
		return
	case machine.FactRunParked:
		b.status = orText(f.Status, "parked")
		return
	case machine.FactRunFinished:
		b.status, b.outputs = f.Status, f.Outputs
		return
	case machine.FactVerb, machine.FactRunTakenOver:
		b.status = ""
		return
	}
	if f.Step == "" {
		return
	}
	undo := f.Undo || f.Kind == machine.FactUndoStarted || f.Kind == machine.FactUndoFinished
	if undo && len(b.undos) == 0 {
		b.ended = append(b.ended, &row{heading: true})
	}
	r := b.at(f.Step, undo)
	again := r.phase == phaseEnded // an operator gave it another round
	r.apply(f)
	if r.phase == phaseEnded && !again && len(r.parts) == 0 {
		b.ended = append(b.ended, r)
	}
}

func (r *row) apply(f machine.Fact) {
	if f.Action != "" {
		r.action = f.Action
	}
	for _, limit := range []time.Time{f.StepDeadline, f.UndoDeadline} {
		if !limit.IsZero() {
			r.limit = limit
		}
	}
	switch f.Kind {
	case machine.FactStepHeld:
		r.phase, r.until, r.agent, r.code, r.message = phaseHeld, f.Until, f.Agent, f.Code, f.Message
		if r.next.IsZero() {
			r.next = f.At.Add(stillAfter(0))
		}
	case machine.FactAttemptStarted:
		r.phase, r.by, r.purpose = phaseRunning, f.CompleteBy, f.Purpose
		if tried(f.Purpose) {
			r.attempt, r.of = f.Attempt, f.Of
		}
		if r.begun.IsZero() {
			r.begun = f.At
			r.next = f.At.Add(stillAfter(0))
		}
	case machine.FactAttemptFinished:
		r.code, r.message = f.Code, f.Message
		r.unknown = f.Status == "unknown"
	case machine.FactRetryScheduled:
		r.phase, r.until, r.purpose, r.coolDown = phaseBackoff, f.Until, f.Purpose, f.CoolDown
		if f.CoolDown {
			r.attempt = 0 // a fresh round follows
		}
		if f.Code != "" {
			r.code, r.message = f.Code, f.Message
		}
	case machine.FactUndoStarted:
		if r.phase == phasePending {
			r.phase = phaseRunning
			r.begun, r.next = f.At, f.At.Add(stillAfter(0))
		}
	case machine.FactStepFinished, machine.FactUndoFinished:
		r.phase, r.status, r.took = phaseEnded, f.Status, f.Took
		r.attempt = max(r.attempt, f.Attempt)
		r.code, r.message = f.Code, f.Message
	}
}

// tried reports whether an attempt counts as a try of the step or its undo.
func tried(p machine.Purpose) bool { return p != machine.PurposeLookup && p != machine.PurposeLearn }

// stillAfter is the pause before the n-th "still running" line of a step: at
// 10 s, 30 s and then every 60 s.
func stillAfter(n int) time.Duration {
	switch n {
	case 0:
		return 10 * time.Second
	case 1:
		return 20 * time.Second
	}
	return time.Minute
}

// still returns the rows of which it is time to say that they still run.
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

// progress counts the leaves of the forward part, or of the undo.
func (b *board) progress() string {
	done, all := 0, 0
	count := func(r *row) {
		all++
		if r.phase == phaseEnded {
			done++
		}
	}
	if len(b.undos) > 0 {
		leaves(b.undos, count)
		return fmt.Sprintf("%d of %d undone", done, max(all, b.toUndo()))
	}
	leaves(b.forward, count)
	return fmt.Sprintf("%d of %d done", done, all)
}

// toUndo counts what has or may have left something behind that is undone.
func (b *board) toUndo() int {
	n := 0
	leaves(b.forward, func(r *row) {
		effect := r.status == machine.StepSucceeded.String() || r.unknown || r.phase == phaseRunning ||
			b.index[rowKey{r.name, true}] != nil
		if r.undoable && effect {
			n++
		}
	})
	return n
}

// waitsFor lists the steps that a pending row still waits for.
func (b *board) waitsFor(r *row) []string {
	var out []string
	for _, name := range r.after {
		if d := b.index[rowKey{name, false}]; d == nil || d.phase != phaseEnded {
			out = append(out, name)
		}
	}
	return out
}
