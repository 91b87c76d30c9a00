package store

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// A Full store has all methods that engines and commands use: those of a Store, those of
// the roles Passes, Hands, Evidence and Views, and some that follow from them. Complete
// makes one.
type Full struct {
	Store
	Passes
	Hands
	Evidence
	Views
}

// Complete returns a store with a fallback for each of the roles Passes, Hands,
// Evidence and Views that it does not have. Each role says what its fallback does. A Full
// store is returned as it is.
func Complete(s Store) Full {
	if full, ok := s.(Full); ok {
		return full
	}
	full := Full{s, fallback{}, fallback{}, fallback{}, fallback{}}
	if role, ok := s.(Passes); ok {
		full.Passes = role
	}
	if role, ok := s.(Hands); ok {
		full.Hands = role
	}
	if role, ok := s.(Evidence); ok {
		full.Evidence = role
	}
	if role, ok := s.(Views); ok {
		full.Views = role
	}
	return full
}

// Passes lets engines share their scans: of all engines one makes a pass in a period.
// The role is optional: without it each engine makes every pass, which costs more and
// changes nothing else.
type Passes interface {
	// Pass reports whether the caller may make the named pass now: at most one
	// caller in every period may, counted from the last permission (S45). It is one
	// statement, and no lock is held afterwards.
	Pass(ctx context.Context, name string, period time.Duration) (bool, error)
}

// Hands keeps which runs each engine has in hand: those that the engine is about to
// read or to decide, and of which it cannot be sure that it survives that. The list is
// written before the run is touched. Otherwise the next engine could not know why the
// last one ended, and would end the same way.
//
// The role is optional: without it no run is suspected, and a run that ends the process
// of its engine does so again in the next one.
type Hands interface {
	// Hold replaces the list of runs that an engine has in hand. Returns ErrFenced
	// if the engine was declared dead.
	Hold(ctx context.Context, engine EngineID, runs []status.RunID) error
	// Suspects returns what is known against the given runs. Runs against which
	// nothing is known, and that no other engine than self has in hand, are missing.
	Suspects(ctx context.Context, self EngineID, runs []status.RunID) (map[status.RunID]Suspicion, error)
	// Absolve forgets what is known against runs: they got on, or a person has said
	// how they go on. It is harmless for any run.
	Absolve(ctx context.Context, runs ...status.RunID) error
}

// MaxDeaths is how many engines may end with a run in hand. Then no engine touches
// the run until a person says how it goes on.
const MaxDeaths = 3

// A Suspicion is what is known against a run.
type Suspicion struct {
	Deaths int // engines that had it in hand when they were declared dead (Fence)
	// Held: another engine that was not declared dead has it in hand. It may be
	// about to take the run over, or have died of it a moment ago.
	Held bool
}

// Evidence keeps what came too late to count, what agents logged, and which alerts were
// pushed. The role is optional: without it late replies and log lines are dropped, and no
// alert is pushed.
type Evidence interface {
	// KeepLate keeps a late answer, and with it an alert of kind late_reply.
	// It does not change the run (S28). Keeping the same one (run, node, call,
	// outcome) again is harmless.
	KeepLate(ctx context.Context, l LateReply) error
	// LateReplies returns the late answers of a run, oldest first.
	LateReplies(ctx context.Context, run status.RunID) ([]LateReply, error)
	// KeepLogs keeps lines that agents logged. It keeps the last MaxLogLines of
	// each run and removes older ones. Lines of runs that do not exist are ignored.
	KeepLogs(ctx context.Context, lines []LogLine) error
	// Logs returns up to limit lines of a run with an id greater than after, in
	// order.
	Logs(ctx context.Context, run status.RunID, after int64, limit int) ([]LogLine, error)
	// Undelivered returns up to limit alerts that were not pushed yet to where people
	// look, oldest first.
	Undelivered(ctx context.Context, limit int) ([]AlertRow, error)
	// Delivered notes that alerts were pushed. Doing so again is harmless.
	Delivered(ctx context.Context, ids []int64) error
}

// A LateReply is an answer that came too late to count.
type LateReply struct {
	Run     status.RunID
	Node    int32
	Call    int32
	Step    string // step name as people see it
	At      time.Time
	Outcome string // ok, failed, unknown, not_done
	Code    string
	Data    []byte // the encoded event, perhaps sealed
}

// A LogLine is one line that an agent logged or printed while it worked on a call.
// Step is empty for a printed line that may be about several calls of the run.
type LogLine struct {
	ID      int64 // set by the store, rising
	Run     status.RunID
	At      time.Time
	Step    string
	Attempt int
	Level   string // debug, info, warn, error
	Message string // one line, scrubbed
}

// Views shows steps and alerts to people without reading journals; it never locks or
// slows a writer (S86). The role is optional: without it the lists are empty, and an
// engine that cannot work on a run raises its alert again after each restart.
type Views interface {
	// StepRows returns the view of a run's steps, by node number.
	StepRows(ctx context.Context, run status.RunID) ([]StepView, error)
	// Alerts lists up to limit alerts of a run, or of all runs if run is 0,
	// newest first.
	Alerts(ctx context.Context, run status.RunID, limit int) ([]AlertRow, error)
}

// A StepView is a step or instance as lists show it.
type StepView struct {
	StepRow
	Name     string
	LockedBy EngineID // while running
}

// An AlertRow is a recorded alert.
type AlertRow struct {
	Alert
	ID       int64 // rising
	Run      status.RunID
	Name     string // public run id
	Workflow string
	Key      string // the run's unique key; "" = none
	At       time.Time
}

// A Waker is a store that can hint that something may be waiting for an engine:
// a message in an inbox, a run without an owner. The role is optional, and a hint may be
// lost: without hints an engine finds the work at its next tick.
type Waker interface {
	// Wakes returns a channel that receives hints, coalesced, until ctx ends;
	// then it is closed. A lost connection is made again.
	Wakes(ctx context.Context) <-chan struct{}
}

// A Retainer is a store that can forget runs that ended long ago. The role is optional:
// without it runs are kept for ever.
type Retainer interface {
	// Retain removes runs that finished before a time, with everything that is
	// kept of them: rows, names, steps, alerts, late answers, logs. It looks at
	// up to limit runs created before that time, oldest first, and goes on from
	// there when called again, beginning anew once it is through; RetainStats.More
	// says that it is not. A run is gone at once and whole: afterwards Load, Runs
	// and all other methods find nothing of it, and its name and its unique key
	// are free, even if the run succeeded (language.md, Uniqueness). A run that is
	// open, that finished since, or for which messages wait in the inbox stays.
	//
	// It holds no lock that a commit could wait for longer than 200 ms. Calling it
	// again is harmless, and so is stopping in the midst of it: what is left goes
	// with the next call. Space may come back later than runs go.
	Retain(ctx context.Context, before time.Time, limit int) (RetainStats, error)
	// Retained returns the highest id up to which runs may have been removed, by any
	// engine; 0 = no run was removed. It lets an engine tell a run that was removed from
	// one that was lost.
	Retained(ctx context.Context) (status.RunID, error)
}

// RetainStats is what one call of Retain did.
type RetainStats struct {
	Runs       int  // runs that are gone
	Rows       int  // other rows that were removed one by one
	Partitions int  // partitions that were dropped; 0 where a store has none
	Held       int  // runs looked at that stay
	More       bool // there may be more to do now: call again
}

// A fallback stands in for the optional roles that a store does not have.
type fallback struct{}

func (fallback) Pass(context.Context, string, time.Duration) (bool, error) { return true, nil }

func (fallback) Hold(context.Context, EngineID, []status.RunID) error { return nil }

func (fallback) Suspects(context.Context, EngineID, []status.RunID) (map[status.RunID]Suspicion, error) {
	return nil, nil
}

func (fallback) Absolve(context.Context, ...status.RunID) error { return nil }

func (fallback) KeepLate(context.Context, LateReply) error { return nil }

func (fallback) LateReplies(context.Context, status.RunID) ([]LateReply, error) { return nil, nil }

func (fallback) KeepLogs(context.Context, []LogLine) error { return nil }

func (fallback) Logs(context.Context, status.RunID, int64, int) ([]LogLine, error) { return nil, nil }

func (fallback) Undelivered(context.Context, int) ([]AlertRow, error) { return nil, nil }

func (fallback) Delivered(context.Context, []int64) error { return nil }

func (fallback) StepRows(context.Context, status.RunID) ([]StepView, error) { return nil, nil }

func (fallback) Alerts(context.Context, status.RunID, int) ([]AlertRow, error) { return nil, nil }
