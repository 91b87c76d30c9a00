package cron

// A Schedule says when runs start. It also says what happens if the run of the previous tick is
// still open, and what happens to ticks that the engines have missed.
type Schedule struct {
	Name      string
	Cron      string // cron expression, as it is in the source
	Zone      string // name of the time zone; "" = UTC
	Timetable *Timetable
	Overlap   Overlap
	CatchUp   CatchUp
}

// Text returns the cron expression and the time zone. When a schedule is published again, the store
// replaces its next tick only if this text has changed.
func (s *Schedule) Text() string { return s.Cron + " " + s.Zone }

// Overlap says what a schedule does at a tick if the run of the previous tick has not ended.
type Overlap uint8

// The values of Overlap.
const (
	OverlapSkip   Overlap = iota // the tick starts no run
	OverlapQueue                 // the tick waits until the previous run has ended
	OverlapAllow                 // the tick starts its run at once
	OverlapCancel                // the tick cancels the previous run, and starts its own run at once
)

// OverlapNames maps each Overlap to its word in the argument `overlap`.
var OverlapNames = []string{"skip", "queue", "allow", "cancel"}

// String returns the word that means o in the argument `overlap`.
func (o Overlap) String() string { return OverlapNames[o] }

// CatchUp says what a schedule does about missed ticks. A missed tick is a tick that no engine has
// handled in time.
type CatchUp uint8

// The values of CatchUp.
const (
	CatchUpLatest CatchUp = iota // only the newest missed tick starts a run
	CatchUpNone                  // no missed tick starts a run
	CatchUpAll                   // each missed tick starts a run, oldest first
)

// CatchUpNames maps each CatchUp to its word in the argument `catch_up`.
var CatchUpNames = []string{"latest", "none", "all"}

// String returns the word that means c in the argument `catch_up`.
func (c CatchUp) String() string { return CatchUpNames[c] }
