package render

import (
	"time"

	"github.com/saga-engine/engine/engine/story"
)

// A View shows the progress of one run. Only one goroutine at a time calls the methods below. If a
// view is an io.Writer, too, other goroutines may write log lines to it at the same time.
type View interface {
	// Begin sets the run that the view shows. The command calls Begin once, before Facts.
	Begin(s Story)
	// Facts shows new facts. The parameter `first` is the number of facts[0] among all facts of
	// the run, counted from 1.
	Facts(first int, facts []story.Fact)
	// Circuit shows the changed state of an agent's circuit.
	Circuit(c Circuit)
	// Note shows a remark on one line. A remark is not a fact of the run.
	Note(text string)
	// Tick updates the times that the view shows, and writes "still running" lines. The command
	// must call Tick a few times a second.
	Tick(now time.Time)
	// End completes the output. The command calls no other method after End.
	End()
}

// A Story holds what a view must know about a run before it shows the facts.
type Story struct {
	Run      string // public name of the run
	Workflow string
	Key      string     // unique key of the run; "" = it has none
	Steps    []StepInfo // steps in the order of the workflow
	Attached bool       // true = the run existed before this command
	Status   string     // status of an attached run
	Ended    time.Time  // time at which an attached run ended; zero = it has not ended
	Past     bool       // true = the view first shows the past facts of an attached run
}

// attached returns a line about a run that existed already, so that users do not take its past
// facts for new ones; "" = the run is new.
func (s Story) attached() string {
	run := "run " + Clean(s.Run) + " of workflow " + Clean(s.Workflow) + prefixed(", key ", Clean(s.Key))
	ended := run + " has ended already: "
	if s.Key != "" {
		ended = run + ", has ended already: "
	}
	switch {
	case !s.Attached:
		return ""
	case s.Ended.IsZero() && s.Past:
		return "attached to " + run + prefixed(", ", Clean(s.Status)) + "; what has happened so far comes first"
	case s.Ended.IsZero():
		return "attached to " + run + prefixed(", ", Clean(s.Status))
	case s.Past:
		return ended + Clean(s.Status) + " at " + s.Ended.UTC().Format(time.RFC3339) + "; this is what happened in it"
	}
	return ended + Clean(s.Status) + " at " + s.Ended.UTC().Format(time.RFC3339)
}

// told reports whether the view shows the fact f as a line. If the run had ended before this
// command started, the view shows only the end of the run. But if the field Past is true, it shows
// all facts.
func (s Story) told(f story.Fact) bool {
	return s.Ended.IsZero() || s.Past || f.Kind == story.FactRunFinished
}

// Name returns the name of the run for people: its unique key, or its public name if it has no
// key.
func (s Story) Name() string {
	if s.Key != "" {
		return s.Key
	}
	return s.Run
}

// A StepInfo holds what a view knows about a step before the step runs.
type StepInfo struct {
	Name   string
	Action string   // name of the action: AGENT.ACTION, or a word such as timer
	After  []string // names of the steps for which this step waits directly
	Undo   bool     // true = the effect of the step can be undone
}

// A Circuit holds the state of an agent's circuit.
type Circuit struct {
	Agent    string
	State    string // closed, open or half-open
	Failures int    // number of failures that the circuit counts now
	// Number of failures in a row that open the circuit; 0 = a ratio of failures opens it.
	Threshold int
	Until     time.Time
	At        time.Time
}
