package store

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
)

// EngineID is a membership of an engine: a new positive number at every
// start of a process. 0 is nobody.
type EngineID int32

// WorkflowID numbers one workflow of one stored definition.
type WorkflowID int32

// A Store keeps everything that an engine must not lose. It has 15 methods, in four
// roles. Implementations are engine/store/postgres, engine/store/sqlite and
// engine/store/memory; engine/store/storetest holds the rules that they all obey.
// A consumer asks for the smallest role that it needs.
//
// A store may have more roles, which are optional: Passes, Hands, Evidence, Views,
// Waker, Examiner and Retainer. Complete adds a fallback for each of the first four
// that is missing.
//
// The engine never closes a store: the program that opens one closes it.
//
// Errors that callers branch on are ErrNotFound, ErrExists, ErrFenced,
// ErrLapsed and the typed *SchemaError, *LockedError; everything else is I/O.
// NothingLanded says what an error of a commit means.
type Store interface {
	Catalogue
	Members
	Journal
	Inbox
}

// A Catalogue keeps definitions by digest, and which key seals them.
type Catalogue interface {
	// PutDefinition stores a definition and returns the id of each of its
	// workflows by name. It is idempotent.
	PutDefinition(ctx context.Context, d Definition) (map[string]WorkflowID, error)
	// Definition returns the definition that holds the workflow, and the
	// workflow's name. Returns ErrNotFound.
	Definition(ctx context.Context, id WorkflowID) (Definition, string, error)
	// Pin remembers the value of a setting, unless one is remembered, and returns the one
	// that is. Of two callers at once one is first, and both learn of it. With value "" it
	// only asks; "" = none.
	Pin(ctx context.Context, setting, value string) (string, error)
}

// A Definition is a stored definition.
type Definition struct {
	Digest    string // hex sha256 of its canonical manifest
	Data      []byte // dsl.Definition.Encode, sealed if there is a key
	Workflows []DefinedWorkflow
}

// A DefinedWorkflow is one workflow of a definition, for views.
type DefinedWorkflow struct {
	Name  string
	Steps []string // step names by index
}

// Members keeps which engines are alive. A lease in the past is the only sign that an
// engine is dead.
type Members interface {
	// Join registers a new membership with a fence row for each writer.
	Join(ctx context.Context, address string, lease time.Duration, writers int) (EngineID, error)
	// Tick renews the lease and returns what needs attention. Returns ErrLapsed
	// if the lease had run out or the engine was declared dead: it must stop
	// everything it owns and join again.
	Tick(ctx context.Context, engine EngineID, lease time.Duration, limit int) (Tick, error)
	// Fence declares a member whose lease is past dead and removes its fence
	// rows; afterwards none of its commits can land. It reports whether the
	// member is dead now. Fencing a dead member again is harmless. Each run that the
	// member had in hand (Hands) counts one death more, once.
	Fence(ctx context.Context, dead EngineID) (bool, error)
	// Leave ends a membership in order: the lease ends now and the engine is
	// fenced. Runs it still owns become orphans. No death counts against the runs
	// that it had in hand.
	Leave(ctx context.Context, engine EngineID) error
	// Members returns the live members, and the dead ones that still own open runs,
	// by number. A member is live while Member.Left is positive.
	Members(ctx context.Context) ([]Member, error)
}

// A Member is an engine as people see it.
type Member struct {
	Engine     EngineID
	Address    string
	JoinedAt   time.Time
	LeaseUntil time.Time     // of a dead member: when its lease ended
	Left       time.Duration // of the lease when it was asked for, by the store's clock; at most 0 = it is dead
}

// A Tick is what the store found when an engine renewed its lease.
type Tick struct {
	Now     time.Time // store time
	Due     []DueRun  // own runs whose next check has passed
	Unowned []DueRun  // runs without an owner whose next check has passed
	// Inbox are runs of this engine, or of nobody, for which messages wait,
	// ended ones included, ascending. Ended runs whose owner is gone are nobody's.
	// Runs at rest are left out after MaxDeaths (Suspects).
	// After a full page the engine's next tick goes on behind it (Rotation).
	Inbox []status.RunID
	Dead  []EngineID
}

// A DueRun is a run and the bound that has passed.
type DueRun struct {
	Run       status.RunID
	NextCheck time.Time
}

// Never is the NextCheck of a run that waits for nothing timed.
var Never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// A Journal is the truth about runs: records in order, appended only by the
// owner, or by an engine that becomes the owner in that very record.
type Journal interface {
	// OpenWriter opens the n-th writer of an engine, with its own connection.
	OpenWriter(ctx context.Context, engine EngineID, n int) (Writer, error)
	// Load returns heads and all rows of runs, ascending by run; a run that does
	// not exist is missing from the result. Many runs are read with few statements, so
	// that a takeover costs what reading its runs costs. LoadRun asks for one run.
	Load(ctx context.Context, runs ...status.RunID) ([]Loaded, error)
	// Rows returns up to limit journal rows of a run with seq >= from. It never
	// slows a writer.
	Rows(ctx context.Context, run status.RunID, from int32, limit int) ([]Row, error)
	// Runs returns the runs that a filter selects, in the order that RunFilter
	// describes. It refuses a filter that no index serves. What it asks for people never
	// locks or slows a writer (S86).
	Runs(ctx context.Context, f RunFilter) ([]RunRow, error)
}

// A Loaded is a run's head and all its rows.
type Loaded struct {
	Head    Head
	Rows    []Row
	Waiting bool // messages wait for it
}

// An Inbox keeps messages for a run that do not come from its owner: verbs of people, and
// answers that reached a former owner. A message is durable at once. It conflicts with
// nothing, because storing it needs no decision. It is removed when a transition of the run
// consumes it (Transition.Consumed).
type Inbox interface {
	// Post puts a message into its run's inbox and wakes engines. A message
	// whose Dedup is in the run's inbox already is not put there twice: the
	// earlier one's id is returned. Returns ErrNotFound if there is no such run.
	Post(ctx context.Context, m Message) (MessageID, error)
	// Messages returns up to limit messages of a run with an id greater than after,
	// in order of arrival, which is that of their ids.
	Messages(ctx context.Context, run status.RunID, after MessageID, limit int) ([]Message, error)
	// Discard removes messages of a run that has ended; those of an open run
	// stay. What they said must have been kept elsewhere, if it matters.
	Discard(ctx context.Context, run status.RunID, ids []MessageID) error
}

// MessageID numbers the messages of a store, rising. 0 = none.
type MessageID int64

// A Message is a verb or an answer for a run.
type Message struct {
	ID    MessageID // set by the store
	Run   status.RunID
	At    time.Time // store time it reached an engine; zero = now, by the store's clock
	Kind  MessageKind
	By    string // who says it, for people
	Dedup string // at most 100 characters; "" = none
	Data  []byte // an encoded event, perhaps sealed
}

// MessageKind says what a message holds. Numbers are persisted.
type MessageKind int16

// The kinds of messages.
const (
	MessageVerb  MessageKind = 1 // an operator's verb
	MessageReply MessageKind = 2 // an agent's answer or checkpoint that reached an engine which does not own the run
)

// A Writer commits transitions. One goroutine at a time may use it.
type Writer interface {
	// Commit lands a batch and returns an outcome for each transition, in
	// order. The batch holds at most one transition of a run, sorted by run.
	// A transition with Names submits a run: it lands together with its public
	// name and its unique key, or not at all, and never twice: an existing name or
	// a key that is held is reported in its outcome instead (Submitted.Exists).
	// That costs no commit of its own unless a name or key is in dispute.
	// Each transition is all or nothing. Where an answer is lost Commit sends the
	// same batch under the same token again until it knows, or until it cannot go on.
	//
	// Every error leaves the outcome of the batch open: each transition may have landed
	// or not. Only an error for which NothingLanded
	// reports true promises more. After an open outcome the caller sends the very
	// same transitions again: one that had landed is then answered with ErrStale,
	// or ErrExists at Seq 0, and the journal holds the row that was sent. Returns
	// ErrFenced if the engine was fenced off and nothing of the batch has landed.
	Commit(ctx context.Context, batch []Transition) ([]Outcome, error)
	Close() error
}

// NothingLanded reports whether an error of Commit as a whole promises that nothing
// of its batch has landed, and that nothing of it will: the engine's fence row was
// gone before. After every other error the outcome is open (decision 0018).
func NothingLanded(err error) bool { return errors.Is(err, ErrFenced) }

// A Transition is what one commit writes for one run: one journal row and what
// the run's row becomes.
type Transition struct {
	Run       status.RunID
	Seq       int32           // the row's number, from 0; the optimistic lock
	At        time.Time       // store time of its last record, kept to the microsecond: Data may rely on it
	Workflow  WorkflowID      // Seq 0 only
	State     status.RunState // 0 = unchanged
	Owner     *EngineID       // nil = unchanged
	NextCheck time.Time       // zero = unchanged
	Steps     []StepRow       // what changed, for the views
	NewNodes  []NodeName      // instances added, for the views
	Alerts    []Alert         // written with the row
	Consumed  []MessageID     // messages that this row answers: they go if it lands
	// Heard guards a row that makes an engine the owner: it lands only if no more
	// messages than this wait for the run, else its outcome is ErrStale. An engine
	// that read the inbox and one that is asked something meanwhile cannot miss each
	// other. nil = however many wait.
	Heard *int32
	Data  []byte        // encoded, perhaps sealed records
	Names *naming.Names // Seq 0 only: submits a run under these names; nil = the run has none yet
}

// A StepRow is one step's or instance's state as the views show it.
type StepRow struct {
	Node       int32
	State      status.StepState
	Failures   int
	Attempt    int
	CompleteBy time.Time // zero = none; never zero while running (S10)
}

// A NodeName names an instance of a for_each.
type NodeName struct {
	Node int32
	Step int32
	Name string
}

// An Alert is something an operator should see.
type Alert struct {
	Kind    string
	Step    string
	Code    string
	Message string
}

// An Outcome says what became of one transition of a batch.
type Outcome struct {
	Landed bool
	// Submitted is what became of a transition with Names, if Err is nil: Landed
	// and the run itself, or not Landed and the earlier run that Exists.
	Submitted Submitted
	// Err is nil if Landed; ErrStale if another token holds the seq: load and
	// decide again; ErrExists if a create collided with another run's id; any
	// other error: the store refuses this transition for what it contains.
	Err error
}

// Submitted is what became of a submission.
type Submitted struct {
	Run    status.RunID
	Name   string
	Exists bool // the name or the key belongs to this earlier run; nothing was written
}

// A Head is a run's row.
type Head struct {
	Run        status.RunID
	Name       string
	Workflow   WorkflowID
	State      status.RunState
	Owner      EngineID
	Fence      int32 // seq of the record that made Owner the owner
	NextCheck  time.Time
	CreatedAt  time.Time
	FinishedAt time.Time // zero = not finished
}

// AtRest reports whether the run waits for a person and for nothing else: no
// engine has anything to do about it.
func (h Head) AtRest() bool { return h.State.NeedsHuman() && !h.NextCheck.Before(Never) }

// A Row is one journal row: a Transition's number, time, to the microsecond, and
// data, which cannot be read without that time.
type Row struct {
	Seq  int32
	At   time.Time
	Data []byte
}

// Wrote reports whether a journal row is the one that this transition writes.
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
