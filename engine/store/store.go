package store

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
)

// EngineID is the number of a membership of an engine. It is positive, and each membership
// gets a new one. 0 means no engine.
type EngineID int32

// WorkflowID is the number of one workflow of one stored definition.
type WorkflowID int32

// A Store keeps everything that an engine must not lose. It has 15 methods in four roles.
// Implementations are engine/store/postgres, engine/store/sqlite and engine/store/memory.
// Package engine/store/storetest holds the rules that all of them obey. Code that uses a
// store asks for the smallest role that it needs.
//
// A store may have more roles, which are optional: Passes, Hands, Evidence, Views, Waker,
// Examiner and Retainer. Complete adds a fallback for each of the first four that is
// missing.
//
// The engine never closes a store: the program that opens a store closes it.
//
// Callers may test for the errors ErrNotFound, ErrExists, ErrFenced, ErrLapsed,
// *SchemaError and *LockedError. Every other error is an I/O error. NothingLanded says what
// an error of a commit means.
type Store interface {
	Catalogue
	Members
	Journal
	Inbox
}

// A Catalogue keeps definitions by digest, and settings of the store.
type Catalogue interface {
	// PutDefinition stores a definition and returns the id of each of its
	// workflows by name. It is idempotent.
	PutDefinition(ctx context.Context, d Definition) (map[string]WorkflowID, error)
	// Definition returns the definition that contains the workflow, and the name of the
	// workflow. It returns ErrNotFound if there is none.
	Definition(ctx context.Context, id WorkflowID) (Definition, string, error)
	// Pin sets a setting, unless it is set already, and returns its value. If two callers
	// set it at the same time, the first value is stored, and both callers get it. With
	// value "" Pin only reads; the result "" means that the setting is not set.
	Pin(ctx context.Context, setting, value string) (string, error)
}

// A Definition is a stored definition.
type Definition struct {
	Digest    string // SHA-256 of the canonical manifest, in hexadecimal
	Data      []byte // result of dsl.Definition.Encode, sealed if there is a key
	Workflows []DefinedWorkflow
}

// A DefinedWorkflow names one workflow of a definition and its steps. The views show these
// names.
type DefinedWorkflow struct {
	Name  string
	Steps []string // names of the steps; the index is the node number of the step
}

// Members records which engines are alive. An expired lease is the only sign that an engine
// is dead.
type Members interface {
	// Join registers a new membership. It creates a fence row for each writer. A writer can
	// commit only while its fence row exists.
	Join(ctx context.Context, address string, lease time.Duration, writers int) (EngineID, error)
	// Tick renews the lease and returns the work for the engine. It returns ErrLapsed if
	// the lease had expired or the engine was declared dead: then the engine must stop all
	// its work and join again.
	Tick(ctx context.Context, engine EngineID, lease time.Duration, limit int) (Tick, error)
	// Fence declares a member dead if its lease has expired, and removes its fence rows.
	// Afterwards none of its rows can be committed. It reports whether the member is dead
	// now. Fencing a dead member again does no harm. For each open run that the member had
	// in hand (Hands), Fence counts one more death, once.
	Fence(ctx context.Context, dead EngineID) (bool, error)
	// Leave ends a membership in order: the lease ends now, and the engine is fenced. Runs
	// that it still owns can be taken over. No death is counted for the runs that it had in
	// hand.
	Leave(ctx context.Context, engine EngineID) error
	// Members returns the live members, and the dead ones that still own open runs, in the
	// order of their numbers. A member is alive while Member.Left is positive.
	Members(ctx context.Context) ([]Member, error)
}

// A Member is a membership as people see it.
type Member struct {
	Engine     EngineID
	Address    string
	JoinedAt   time.Time
	LeaseUntil time.Time // time at which the lease ends, or has ended if the member is dead
	// Rest of the lease at the time of the call, by the store's clock; 0 or less = the
	// member is dead.
	Left time.Duration
}

// A Tick holds the work that the store found when an engine renewed its lease.
type Tick struct {
	Now     time.Time // store time
	Due     []DueRun  // runs of this engine whose next_check has passed
	Unowned []DueRun  // runs without an owner whose next_check has passed
	// Inbox holds the runs with waiting messages, ascending by id: runs of this engine and
	// runs without an owner. It also holds runs that have ended if their owner is gone. It
	// leaves out runs at rest (Head.AtRest) with which MaxDeaths engines died (Hands). If
	// the list has limit runs, the engine's next tick continues after the last of them.
	Inbox []status.RunID
	Dead  []EngineID
}

// A DueRun is a run whose next_check has passed.
type DueRun struct {
	Run       status.RunID
	NextCheck time.Time
}

// Never is the NextCheck of a run that waits for no time.
var Never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// A Journal keeps the records of runs, in order. A run is defined by its records. Only the
// owner of a run appends records, or an engine that becomes the owner with the record.
type Journal interface {
	// OpenWriter opens the n-th writer of an engine. Each writer has its own connection.
	OpenWriter(ctx context.Context, engine EngineID, n int) (Writer, error)
	// Load returns the heads and all rows of runs, ascending by run. A run that does not
	// exist is missing from the result. It reads many runs with few statements, because a
	// takeover may load thousands. LoadRun reads one run.
	Load(ctx context.Context, runs ...status.RunID) ([]Loaded, error)
	// Rows returns up to limit journal rows of a run with seq >= from. It never slows a
	// writer.
	Rows(ctx context.Context, run status.RunID, from int32, limit int) ([]Row, error)
	// Runs returns the runs that a filter selects, in the order that RunFilter describes.
	// It refuses a filter that no index serves. A list for people never locks or slows a
	// writer (S86).
	Runs(ctx context.Context, f RunFilter) ([]RunRow, error)
}

// A Loaded holds a run's head and all its rows.
type Loaded struct {
	Head    Head
	Rows    []Row
	Waiting bool // there are waiting messages for the run
}

// An Inbox keeps messages for a run that do not come from its owner: verbs of people, and
// answers that reached a former owner. A message is durable at once. Storing it never
// conflicts with a commit, because it needs no decision about the run. A message is removed
// when a transition of the run consumes it (Transition.Consumed).
type Inbox interface {
	// Post puts a message into its run's inbox and sends a hint to engines. If the inbox
	// already has a message with the same Dedup, Post adds nothing and returns the id of
	// the earlier message. It returns ErrNotFound if there is no such run.
	Post(ctx context.Context, m Message) (MessageID, error)
	// Messages returns up to limit messages of a run, in order of arrival, which is the
	// order of their ids. It returns only messages with an id greater than after.
	Messages(ctx context.Context, run status.RunID, after MessageID, limit int) ([]Message, error)
	// Discard removes messages of a run that has ended. Messages of an open run stay. If a
	// message is evidence, such as a late answer, the caller must have kept it before
	// (Evidence).
	Discard(ctx context.Context, run status.RunID, ids []MessageID) error
}

// MessageID is the number of a message in a store. Numbers rise. 0 = none.
type MessageID int64

// A Message is a verb or an answer for a run.
type Message struct {
	ID    MessageID // the store sets it
	Run   status.RunID
	At    time.Time // store time at which the message reached an engine; zero = now, by the store's clock
	Kind  MessageKind
	By    string // person who sent it; only for display
	Dedup string // the same text in all duplicates of a message, at most 100 characters; "" = none
	Data  []byte // an encoded event; it may be sealed
}

// MessageKind says what a message contains. The numbers are persisted.
type MessageKind int16

// The kinds of messages.
const (
	MessageVerb MessageKind = 1 // a verb of a person
	// An agent's answer or checkpoint that reached an engine which does not own the run.
	MessageReply MessageKind = 2
)

// A Writer commits transitions. Only one goroutine at a time may use it.
type Writer interface {
	// Commit commits a batch and returns an outcome for each transition, in order. The
	// batch must be sorted by run and must have at most one transition of each run.
	//
	// A transition with Names submits a run: it is committed together with the run's public
	// name and unique key, or not at all, and never twice. If the name exists or the key is
	// in use, the outcome says so (Submitted.Exists). An additional commit is needed only
	// if another run may have the name or the key.
	//
	// Each transition is committed completely or not at all. If an answer is lost, Commit
	// sends the same batch again, until it knows the outcome or cannot continue. Each row
	// stores a token of its batch, so it is not committed twice.
	//
	// After an error the outcome of the batch is open: each transition may be committed or
	// not. Only an error for which NothingLanded reports true promises more. After an open
	// outcome the caller sends exactly the same transitions again. If the first call has
	// committed one of them, its outcome is then ErrStale, or ErrExists at Seq 0, and the
	// journal has the row that was sent. Commit returns ErrFenced if the engine was
	// declared dead and nothing of the batch is committed.
	Commit(ctx context.Context, batch []Transition) ([]Outcome, error)
	Close() error
}

// NothingLanded reports whether an error of Commit promises that nothing of the batch is
// committed and nothing will be. Only ErrFenced promises this: the engine's fence row was
// removed before. After every other error the outcome is open (decision 0018).
func NothingLanded(err error) bool { return errors.Is(err, ErrFenced) }

// A Transition is one commit of one run: one journal row, and the new values of the run's
// row.
type Transition struct {
	Run       status.RunID
	Seq       int32           // number of the row, from 0; refused if another row has this number
	At        time.Time       // store time of the last record, in whole microseconds; Data may depend on At
	Workflow  WorkflowID      // workflow of a new run; only at Seq 0
	State     status.RunState // new state of the run; 0 = unchanged
	Owner     *EngineID       // new owner of the run; nil = unchanged; a pointer to 0 = no owner
	NextCheck time.Time       // new next_check of the run; zero = unchanged
	Steps     []StepRow       // the changed steps, for the views
	NewNodes  []NodeName      // the added instances, for the views
	Alerts    []Alert         // alerts that are written together with the row
	Consumed  []MessageID     // messages that this row answers; they are removed if the row is committed
	// Heard protects a row that makes an engine the owner. The row is committed only if at
	// most this many messages wait for the run; otherwise its outcome is ErrStale. So a
	// message that arrives after the engine has read the inbox is never missed. nil = any
	// number may wait.
	Heard *int32
	Data  []byte        // encoded records; they may be sealed
	Names *naming.Names // only at Seq 0: the names of a submitted run; nil = the transition submits no run
}

// A StepRow is the state of one step or instance as the views show it.
type StepRow struct {
	Node       int32
	State      status.StepState
	Failures   int
	Attempt    int
	CompleteBy time.Time // complete-by of the call; zero = none; never zero while the step is running (S10)
}

// A NodeName names an instance of a for_each step.
type NodeName struct {
	Node int32
	Step int32
	Name string
}

// An Alert is a message to operators.
type Alert struct {
	Kind    string
	Step    string
	Code    string
	Message string
}

// An Outcome says whether one transition of a batch was committed.
type Outcome struct {
	Landed bool
	// Submitted is the result of a transition with Names, if Err is nil. If Landed is true
	// it is the new run itself. Otherwise it is the earlier run, with Exists set.
	Submitted Submitted
	// Err is nil if Landed is true. ErrStale means that the run has changed: load it and
	// decide again. The journal has another row with this seq, more messages wait than
	// Heard allows, or the run was removed. ErrExists means that a new run has the id of
	// another run. Any other error means that the store refuses this transition because of
	// its contents.
	Err error
}

// Submitted is the result of a submission.
type Submitted struct {
	Run    status.RunID
	Name   string
	Exists bool // Run is an earlier run that has the name or the key; nothing was written
}

// A Head holds the present data of a run. A store keeps it in one row for each run, in
// addition to the journal.
type Head struct {
	Run        status.RunID
	Name       string
	Workflow   WorkflowID
	State      status.RunState
	Owner      EngineID
	Fence      int32 // seq of the journal row that made Owner the owner
	NextCheck  time.Time
	CreatedAt  time.Time
	FinishedAt time.Time // time at which the run ended; zero = it has not ended
}

// AtRest reports whether the run waits only for a person. Then engines have no work with
// it.
func (h Head) AtRest() bool { return h.State.NeedsHuman() && !h.NextCheck.Before(Never) }

// A Row is one journal row: the number, the time and the data of a Transition. The time has
// whole microseconds. The data cannot be read without the time.
type Row struct {
	Seq  int32
	At   time.Time
	Data []byte
}

// Wrote reports whether r is the journal row that this transition writes.
func (t *Transition) Wrote(r Row) bool {
	return r.Seq == t.Seq && r.At.UnixMicro() == t.At.UnixMicro() && bytes.Equal(r.Data, t.Data)
}

// A RunRow is a run as lists show it.
type RunRow struct {
	Head
	WorkflowName string
	Digest       string
	Key          string
	OwnerAlive   bool
}
