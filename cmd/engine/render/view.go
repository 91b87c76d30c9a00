package render

import (
	"time"

	"github.com/saga-engine/engine/engine/story"
)

// A View shows the progress of one run. A view that writes to a screen may be
// written to by several goroutines (log lines); its other methods are called
// by one goroutine at a time.
type View interface {
	// Begin says which run is shown. It is called once, before any fact.
	Begin(s Story)
	// Facts shows new facts; first is the number of facts[0] in the run's
	// story, counted from 1.
	Facts(first int, facts []story.Fact)
	// Circuit shows that an agent's circuit breaker changed its state.
	Circuit(c Circuit)
	// Note shows a remark that is no fact of the run, on one line.
	Note(text string)
	// Tick lets the view say what the passing of time calls for. It is to be
	// called a few times a second.
	Tick(now time.Time)
	// End leaves the screen in order. No other method is called after it.
	End()
}

// A Story is what is known of a run before its facts.
type Story struct {
	Run      string // public run id
	Workflow string
	Key      string     // unique key, or ""
	Steps    []StepInfo // in order of the workflow
	Attached bool       // the run existed already
	Status   string     // of an attached run
	Ended    time.Time  // when an attached run ended; zero = it is open
	Past     bool       // of an attached run: everything that has happened in it is told first
}

// attached says what an attached run is, so that nobody takes what is told of it
// for what happens now; "" for a new run.
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

// told reports whether a fact is shown as a line: of a run that has ended only
// the end is, unless its past was asked for.
func (s Story) told(f story.Fact) bool {
	return s.Ended.IsZero() || s.Past || f.Kind == story.FactRunFinished
}

// Name is what people call the run: its unique key if it has one.
func (s Story) Name() string {
	if s.Key != "" {
		return s.Key
	}
	return s.Run
}

// A StepInfo is what is known of a step before it runs.
type StepInfo struct {
	Name   string
	Action string   // AGENT.ACTION
	After  []string // steps it waits for directly
	Undo   bool     // its effect can be undone
}

// A Circuit is the state of one agent's circuit breaker.
type Circuit struct {
	Agent     string
	State     string // closed, open or half-open
	Failures  int    // counted now
	Threshold int    // consecutive failures that open it; 0 = by ratio
	Until     time.Time
	At        time.Time
}
