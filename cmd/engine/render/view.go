package render

import (
	"time"

	"github.com/saga-engine/engine/engine/story"
)

// A View shows the progress of one run. Several goroutines may write log lines through a view
// that writes to a screen. Its other methods are called by one goroutine at a time.
type View interface {
	// Begin sets the run that the view shows. It is called once, before any fact.
	Begin(s Story)
	// Facts shows new facts. first is the number of facts[0] among all facts of the run,
	// counted from 1.
	Facts(first int, facts []story.Fact)
	// Circuit shows that an agent's circuit breaker changed its state.
	Circuit(c Circuit)
	// Note shows a remark that is no fact of the run, on one line.
	Note(text string)
	// Tick lets the view update the times that it shows, and write "still running" lines. It
	// must be called a few times a second.
	Tick(now time.Time)
	// End completes the output. No other method is called after it.
	End()
}

// A Story holds what a view must know about a run before it shows the facts.
type Story struct {
	Run      string // public run id
	Workflow string
	Key      string     // unique key, or ""
	Steps    []StepInfo // steps in the order of the workflow
	Attached bool       // the run existed already
	Status   string     // status of an attached run
	Ended    time.Time  // when an attached run ended; zero = it is open
	Past     bool       // the past facts of an attached run are shown first
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

// told reports whether a fact is shown as a line. If the run has ended, only its end is
// shown, unless Past is set.
func (s Story) told(f story.Fact) bool {
	return s.Ended.IsZero() || s.Past || f.Kind == story.FactRunFinished
}

// Name returns the name of the run for people: its unique key, or else its id.
func (s Story) Name() string {
	if s.Key != "" {
		return s.Key
	}
	return s.Run
}

// A StepInfo holds what is known about a step before it runs.
type StepInfo struct {
	Name   string
	Action string   // AGENT.ACTION
	After  []string // steps that it waits for directly
	Undo   bool     // its effect can be undone
}

// A Circuit is the state of one agent's circuit breaker.
type Circuit struct {
	Agent     string
	State     string // closed, open or half-open
	Failures  int    // number of failures that the breaker counts now
	Threshold int    // number of failures in a row that open it; 0 = a ratio of failures opens it
	Until     time.Time
	At        time.Time
}
