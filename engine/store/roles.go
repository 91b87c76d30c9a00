package store

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// A Full store has all methods that engines and commands use: those of a Store, and those
// of the roles Passes, Hands, Evidence and Views. A few more, such as Find and Live, are
// built from these. Complete makes a Full store.
type Full struct {
	Store
	Passes
	Hands
	Evidence
	Views
}

// Complete returns a store that has a fallback for each of the roles Passes, Hands,
// Evidence and Views that s does not have. Each role says what its fallback does. If s is a
// Full store, Complete returns it unchanged.
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

// Passes lets engines share their scans: in each period only one of all engines makes a
// scan. The role is optional. Without it each engine makes every scan, which costs more but
// changes nothing else.
type Passes interface {
	// Pass reports whether the caller may make the named scan now. It permits this once in
	// each period. A period begins with a permission (S45). Pass is one statement and holds
	// no lock afterwards.
	Pass(ctx context.Context, name string, period time.Duration) (bool, error)
}

// Hands records which runs each engine has in hand: the runs that it is going to read or
// decide. Such work might end the process, so the engine stores the list before it begins.
// Otherwise the next engine would not know why the last one ended, and might end in the
// same way.
//
// The role is optional. Without it no run is suspected: a run that ends the process of its
// engine will do so again in the next engine.
type Hands interface {
	// Hold replaces the list of runs that an engine has in hand. It returns ErrFenced if
	// the engine was declared dead.
	Hold(ctx context.Context, engine EngineID, runs []status.RunID) error
	// Suspects returns why each of the given runs may be dangerous. It leaves out a run if
	// no engine died with it and no engine other than self has it in hand.
	Suspects(ctx context.Context, self EngineID, runs []status.RunID) (map[status.RunID]Suspicion, error)
	// Absolve sets the number of deaths of each run to 0. An engine calls it when a run has
	// continued or a person has decided about it. Runs without deaths stay unchanged.
	Absolve(ctx context.Context, runs ...status.RunID) error
}

// MaxDeaths is how many engines may die with a run in hand. After that no engine works on
// the run until a person decides about it.
const MaxDeaths = 3

// A Suspicion says why a run may be dangerous for an engine.
type Suspicion struct {
	Deaths int // number of engines that had the run in hand when they were declared dead (Fence)
	// Held says that another engine, which was not declared dead, has the run in hand. That
	// engine may be taking the run over, or the run may just have ended it.
	Held bool
}

// Evidence keeps answers that were too late to count, and the log lines of agents. It also
// records which alerts were pushed. The role is optional. Without it late replies and log
// lines are dropped, and no alert is pushed.
type Evidence interface {
	// KeepLate keeps a late answer, together with an alert of kind late_reply. It does not
	// change the run (S28). Keeping the same answer (run, node, call, outcome) again does
	// no harm.
	KeepLate(ctx context.Context, l LateReply) error
	// LateReplies returns the late answers of a run, oldest first.
	LateReplies(ctx context.Context, run status.RunID) ([]LateReply, error)
	// KeepLogs keeps lines that agents logged. It keeps the last storekit.MaxLogLines lines
	// of each run and removes older ones. It ignores lines of runs that do not exist.
	KeepLogs(ctx context.Context, lines []LogLine) error
	// Logs returns up to limit lines of a run, in order. It returns only lines with an id
	// greater than after.
	Logs(ctx context.Context, run status.RunID, after int64, limit int) ([]LogLine, error)
	// Undelivered returns up to limit alerts that were not pushed to people yet, oldest
	// first.
	Undelivered(ctx context.Context, limit int) ([]AlertRow, error)
	// Delivered records that alerts were pushed. Recording it again does no harm.
	Delivered(ctx context.Context, ids []int64) error
}

// A LateReply is an answer that was too late to count.
type LateReply struct {
	Run     status.RunID
	Node    int32
	Call    int32
	Step    string // name of the step as people see it
	At      time.Time
	Outcome string // how the call ended: ok, failed, unknown or not_done
	Code    string
	Data    []byte // an encoded event; it may be sealed
}

// A LogLine is one line that an agent logged or printed during a call. Step is empty for a
// printed line that may belong to several calls of the run.
type LogLine struct {
	ID      int64 // the store sets it; later lines have greater ids
	Run     status.RunID
	At      time.Time
	Step    string
	Attempt int
	Level   string // severity: debug, info, warn or error
	Message string // one line of text without sensitive values
}

// Views lists steps and alerts for people, without loading runs. It never locks or slows a
// writer (S86). The role is optional. Without it the lists are empty, and an engine that
// cannot work on a run raises the same alert again after each restart.
type Views interface {
	// StepRows returns the steps of a run, in the order of their node numbers.
	StepRows(ctx context.Context, run status.RunID) ([]StepView, error)
	// Alerts lists up to limit alerts of a run, or of all runs if run is 0,
	// newest first.
	Alerts(ctx context.Context, run status.RunID, limit int) ([]AlertRow, error)
}

// A StepView is a step or instance as lists show it.
type StepView struct {
	StepRow
	Name     string
	LockedBy EngineID // owner of the run while the step is running; 0 = the step is not running
}

// An AlertRow is an alert as it is stored.
type AlertRow struct {
	Alert
	ID       int64 // later alerts have greater ids
	Run      status.RunID
	Name     string // public id of the run
	Workflow string
	Key      string // the run's unique key; "" = none
	At       time.Time
}

// A Waker is a store that can hint that work may wait for an engine, such as a message in
// an inbox or a run without an owner. The role is optional, and a hint may be lost: an
// engine without hints finds the work at its next tick.
type Waker interface {
	// Wakes returns a channel that receives hints until ctx ends; then it is closed.
	// Several hints may be merged into one. If the connection is lost, the store connects
	// again.
	Wakes(ctx context.Context) <-chan struct{}
}

// A Retainer is a store that can remove runs that ended long ago. The role is optional.
// Without it runs are kept for ever.
type Retainer interface {
	// Retain removes runs that finished before the time before, with everything about them:
	// rows, names, steps, alerts, late answers, logs.
	//
	// It examines up to limit runs that were created before that time, oldest first. If
	// more such runs remain, RetainStats.More is set, and the next call continues after the
	// last examined run. Otherwise the next call begins with the oldest run again.
	//
	// A run is removed completely and at once: afterwards Load, Runs and all other methods
	// find nothing of it. Its name and its unique key are free, even if the run succeeded
	// (language.md, Uniqueness). A run stays if it is open, finished later, or has waiting
	// messages.
	//
	// A commit may have to wait for a lock of Retain, but for at most 200 ms. Retain may be
	// called again, and it may be interrupted: the next call removes the rest. Disk space
	// may become free later than the runs are removed.
	Retain(ctx context.Context, before time.Time, limit int) (RetainStats, error)
	// Retained returns an upper limit for the ids of removed runs: no engine has removed a
	// run with a greater id. 0 = no run was removed. With this limit an engine
	// distinguishes a removed run from a lost one.
	Retained(ctx context.Context) (status.RunID, error)
}

// RetainStats holds the results of one call of Retain.
type RetainStats struct {
	Runs       int  // number of runs removed
	Rows       int  // number of other rows removed, without the rows of dropped partitions
	Partitions int  // number of partitions dropped; 0 if the store has no partitions
	Held       int  // number of runs that were examined and stay
	More       bool // another call of Retain may find more runs to remove now
}

// A fallback implements the optional roles that a store does not have.
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
