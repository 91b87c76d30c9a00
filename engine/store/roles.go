package store

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A Full store has all methods that engines and the command line use: the methods of Store,
// and of the roles Passes, Hands, Evidence and Views. The methods of Full itself, such as
// Find and Live, call these methods. The function Complete makes a Full store.
type Full struct {
	Store
	Passes
	Hands
	Evidence
	Views
}

// Complete adds the optional roles Passes, Hands, Evidence and Views to a store. If s does
// not have one of these roles, the result uses a fallback for the role. The comment of each
// role says what its fallback does. If s is a Full store already, Complete returns s
// unchanged.
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
// scan. The role is optional. In a store without this role each engine makes every scan.
// That costs more queries, but has no other effect.
type Passes interface {
	// Pass reports whether the caller may make the named scan now. After Pass has returned
	// true, it returns false to all callers until the period is over (S45). Pass holds no
	// lock after it has returned.
	Pass(ctx context.Context, name string, period time.Duration) (bool, error)
}

// Hands records which runs each engine has in hand: the runs that the engine is about to read or
// decide. A run might crash the process of the engine, so the engine first stores the list of the
// runs that it has in hand. Without this list, the next engine would not know which run caused the
// crash, and the run would crash the next engine, too.
//
// The role is optional. In a store without this role, a run that crashes its engine also crashes
// each engine that takes the run over.
type Hands interface {
	// PutInHand stores the list of runs that an engine has in hand, in place of the engine's
	// former list. It returns ErrFenced if the engine was declared dead.
	PutInHand(ctx context.Context, engine EngineID, runs []status.RunID) error
	// Suspects returns, for each of the given runs, how many engines died with the run in
	// hand, and whether an engine other than `self` has the run in hand now. If neither is
	// the case for a run, the result has no entry for the run.
	Suspects(ctx context.Context, self EngineID, runs []status.RunID) (map[status.RunID]Suspicion, error)
	// Absolve resets the number of deaths that was counted for each of the runs to 0. An
	// engine calls Absolve when a run has continued, or when a person has decided about the
	// run.
	Absolve(ctx context.Context, runs ...status.RunID) error
}

// MaxDeaths is how many engines may die with the same run in hand. When so many have died,
// no engine works on the run until a person decides about the run.
const MaxDeaths = 3

// A Suspicion says why a run might crash the engine that works on it.
type Suspicion struct {
	Deaths int // number of engines that had the run in hand when they were declared dead (Fence)
	// InHand is true if another engine has the run in hand and was not declared dead. Either the
	// other engine is working on the run, or the run has just crashed the other engine.
	InHand bool
}

// Evidence keeps late replies and the log lines of agents. It also records which alerts
// were pushed to people. The role is optional. A store without this role does not keep late
// replies and log lines, and engines push no alerts.
type Evidence interface {
	// KeepLate stores a late reply and an alert of kind late_reply. It does not change the
	// run (S28). If the store already has a late reply with the same run, node, call and
	// outcome, KeepLate stores nothing. It returns ErrNotFound if there is no such run.
	KeepLate(ctx context.Context, l LateReply) error
	// LateReplies returns the late replies of a run, oldest first.
	LateReplies(ctx context.Context, run status.RunID) ([]LateReply, error)
	// KeepLogs stores lines that agents logged. For each run it keeps only the last
	// storekit.MaxLogLines lines and removes older lines. It ignores lines of runs that do
	// not exist.
	KeepLogs(ctx context.Context, lines []LogLine) error
	// Logs returns the log lines of a run whose ids are greater than the parameter `after`,
	// in the order of their ids. It returns no more lines than the parameter `limit` says.
	Logs(ctx context.Context, run status.RunID, after int64, limit int) ([]LogLine, error)
	// Undelivered returns the alerts that were not pushed to people yet, oldest first. It
	// returns no more alerts than the parameter `limit` says.
	Undelivered(ctx context.Context, limit int) ([]AlertRow, error)
	// Delivered records that the alerts with these ids were pushed to people. For an alert
	// that was recorded already, Delivered changes nothing.
	Delivered(ctx context.Context, ids []int64) error
}

// A LateReply is an agent's answer that came after the complete-by of its call.
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

// A LogLine is one line that an agent logged or printed during a call. Step is empty if the
// agent printed the line while several of its calls for the run were in flight.
type LogLine struct {
	ID      int64 // the store sets it; later lines have greater ids
	Run     status.RunID
	At      time.Time
	Step    string
	Attempt int
	Level   string // severity: debug, info, warn or error
	Message string // one line of text without sensitive values
}

// Views gives people lists of the steps of runs, of alerts, and of the runs that hold places in
// limits. It reads these lists without loading runs. Its methods never block a writer and never
// make a commit slower (S86). The role is optional. In a store without this role the lists are
// empty. Then an engine that cannot work on a run repeats its alert after each restart, because it
// cannot find the earlier alert.
type Views interface {
	// StepRows returns the steps of a run, in the order of their node numbers.
	StepRows(ctx context.Context, run status.RunID) ([]StepView, error)
	// Alerts returns the alerts of a run, or of all runs if `run` is 0, newest first. It
	// returns no more alerts than the parameter `limit` says.
	Alerts(ctx context.Context, run status.RunID, limit int) ([]AlertRow, error)
	// Places returns which open runs hold a place in the limit of this workflow and key
	// (naming.Room). It also counts the open runs that wait in line. Places.Open has no more names
	// than the parameter `limit` says.
	Places(ctx context.Context, workflow, key string, limit int) (naming.Places, error)
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

// A Waker is a store that can send hints to engines. A hint means that there may be new
// work, such as a message in an inbox or a run without an owner. The role is optional, and
// a hint may be lost. An engine that receives no hint finds the work at its next tick.
type Waker interface {
	// Wakes returns a channel on which the store sends hints. When ctx ends, the store
	// closes the channel. The store may merge several hints into one. If its connection to
	// the database is lost, the store connects again.
	Wakes(ctx context.Context) <-chan struct{}
}

// A Retainer is a store that can remove runs that ended long ago. The role is optional. A
// store without this role keeps all runs for ever.
type Retainer interface {
	// Retain removes runs that finished before the given time, and everything that the store has
	// about these runs: rows, names, steps, alerts, notices, late replies, logs, snapshots and
	// places. If the given time is zero, no run is old enough. The workflow of a run may have its
	// own retention (DefinedWorkflow.Retention). Then the given time does not count for the run:
	// Retain removes the run if it finished longer ago than this retention, by the clock of the
	// store. If the run was moved to another definition (Transition.Moved), the retention of the
	// last definition counts.
	//
	// Retain examines runs that were created early enough to be removed, oldest first. One call
	// examines no more runs than the parameter `limit` says. If there may be more such runs, it
	// sets RetainStats.More, and the next call continues after the last examined run. If there are
	// no more, the next call begins with the oldest run again.
	//
	// A run is removed completely and at once: afterwards Load, Runs and all other methods find
	// nothing of the run. Another run can use its name. Another run can use its unique key, too,
	// unless the removed run still holds the key (naming.KeyScope). A run stays if it is open, if
	// it finished later, if messages wait for it, or if it is a child of a run that exists. It also
	// stays while one of its replies waits for a sink (replies.KeepFor).
	//
	// A commit may have to wait for a lock of Retain, but for at most 200 ms. If Retain is
	// interrupted, the next call removes the rest. The store may free the disk space of
	// removed runs later.
	Retain(ctx context.Context, before time.Time, limit int) (RetainStats, error)
	// Retained returns an upper limit for the ids of removed runs: retention has removed no run
	// with a greater id. It returns 0 if no run was removed. If an engine does not find a run, this
	// limit shows whether retention may have removed the run or the database must have lost it.
	Retained(ctx context.Context) (status.RunID, error)
}

// RetainStats holds the results of one call of Retain.
type RetainStats struct {
	Runs       int  // number of runs removed
	Rows       int  // number of other rows removed, without the rows of dropped partitions
	Partitions int  // number of partitions dropped; 0 if the store has no partitions
	Kept       int  // number of runs that were examined, but not removed
	More       bool // another call of Retain may find more runs to remove now
}

// A fallback implements the optional roles for a store that does not have them. It stores
// nothing, its lists are empty, and its method Pass always returns true.
type fallback struct{}

func (fallback) Pass(context.Context, string, time.Duration) (bool, error) { return true, nil }

func (fallback) PutInHand(context.Context, EngineID, []status.RunID) error { return nil }

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

func (fallback) Places(context.Context, string, string, int) (naming.Places, error) {
	return naming.Places{}, nil
}
