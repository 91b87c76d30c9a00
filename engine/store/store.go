package store

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/admission"
	"github.com/saga-engine/engine/engine/store/naming"
)

// EngineID is the number of an engine's membership. Each membership gets a new positive
// number. 0 means no engine.
type EngineID int32

// WorkflowID is the number of one workflow of one stored definition. The numbers are
// positive.
type WorkflowID int32

// A Store keeps everything that an engine must not lose. It has 15 methods in four roles.
// Implementations are engine/store/postgres, engine/store/sqlite and engine/store/memory.
// Package engine/store/storetest holds the rules that all of them obey. A function that
// uses a store should take only the role that it needs as its parameter, such as Journal.
//
// A store may have more roles, which are optional: Passes, Hands, Evidence, Views, Waker, Retainer,
// and the roles in the packages below this package, such as health.Examiner and rekey.Resealer. If
// one of the first four is missing, the function Complete adds a fallback for this role.
//
// The engine never closes a store: the program that opens a store closes it.
//
// Callers may test for the errors in this package, such as ErrNotFound, ErrFenced and
// *SchemaError, and for *sqlite.LockedError. Every other error means that the operation
// failed, for example because the database did not answer. After an error of Commit, call
// NothingLanded.
type Store interface {
	Catalogue
	Members
	Journal
	Inbox
}

// A Catalogue stores definitions, each under its digest. It also stores the settings of the
// store, which are named texts.
type Catalogue interface {
	// PutDefinition stores a definition and returns the ids of its workflows, by the name
	// of the workflow. If the digest is stored already, PutDefinition changes nothing and
	// returns the same ids.
	PutDefinition(ctx context.Context, d Definition) (map[string]WorkflowID, error)
	// Definition returns the definition that contains the workflow, and the name of the
	// workflow. It returns ErrNotFound if there is no workflow with this id.
	Definition(ctx context.Context, id WorkflowID) (Definition, string, error)
	// Pin stores the value of a setting if the setting has no value yet. It returns the
	// stored value. If two callers call Pin at the same time, the store keeps the first
	// value, and both callers get this value. If `value` is "", Pin only reads the setting.
	// The result "" means that the setting has no value.
	Pin(ctx context.Context, setting, value string) (string, error)
}

// A Definition is a stored definition.
type Definition struct {
	Digest    string // SHA-256 of the canonical manifest, in hexadecimal
	Data      []byte // result of dsl.Definition.Encode; sealed if the state is encrypted
	Workflows []DefinedWorkflow
}

// A DefinedWorkflow has the name of one workflow of a definition, and the names of the workflow's
// steps. The views show these names.
type DefinedWorkflow struct {
	Name  string
	Steps []string // names of the steps; the index is the node number of the step
	// How long a Retainer keeps the runs of this workflow after their end, in whole microseconds.
	// 0 = the time given to Retainer.Retain decides.
	Retention time.Duration
}

// Members records which engines are alive. An expired lease is the only sign that an engine
// is dead.
type Members interface {
	// Join registers a new membership. It creates a fence row for each writer. A writer can
	// commit only while its fence row exists.
	Join(ctx context.Context, address string, lease time.Duration, writers int) (EngineID, error)
	// Tick renews the lease of an engine and returns the work for the engine. A list of runs in the
	// result has at most as many runs as the parameter `limit` says. Only Tick.Next may have twice
	// as many. If the lease had expired or the engine was declared dead, Tick returns ErrLapsed.
	// Then the engine must stop all its work and join again.
	Tick(ctx context.Context, engine EngineID, lease time.Duration, limit int) (Tick, error)
	// Fence checks the lease of a member. If the lease has expired, Fence declares the
	// member dead and removes the member's fence rows. Then the member cannot commit any
	// more. When Fence declares a member dead, it counts one more death for each open run
	// that the member had in hand (Hands). Fence reports whether the member is dead now: it
	// also returns true if the member was declared dead before, or if the store does not know
	// it. The store keeps a dead member while the member owns an open run. If it owns none
	// any more, Fence removes the member from the store. So an engine that has taken over
	// the runs of a dead member calls Fence again.
	Fence(ctx context.Context, dead EngineID) (bool, error)
	// Leave ends the membership of an engine that stops normally. The lease ends now, and
	// the engine is fenced. Other engines can take over the runs that the engine still
	// owns. Leave counts no death for the runs that the engine had in hand.
	Leave(ctx context.Context, engine EngineID) error
	// Members returns the live members, and the dead members that the store has not removed
	// yet, in the order of their numbers. A member is alive while Member.Left is positive.
	Members(ctx context.Context) ([]Member, error)
}

// A Member is a membership as lists for people show it.
type Member struct {
	Engine     EngineID
	Address    string
	JoinedAt   time.Time
	LeaseUntil time.Time // time at which the lease ends, or has ended if the member is dead
	// Time until the lease ends, measured by the store's clock when Members was called. 0 or
	// less = the lease has ended, so the member is dead.
	Left time.Duration
}

// A Tick holds the work that the store found when an engine renewed its lease.
type Tick struct {
	Now     time.Time // store time
	Due     []DueRun  // runs of this engine whose next_check has passed
	Unowned []DueRun  // runs without an owner whose next_check has passed
	// Inbox holds the runs with waiting messages, ascending by id: runs of this engine and runs
	// without an owner. It also holds ended runs whose owner is gone. It leaves out a run at rest
	// (Head.AtRest) if MaxDeaths engines died with the run in hand (Hands). If there are more such
	// runs than the parameter `limit` of Members.Tick allows, Inbox holds only the first of them.
	// The engine's next tick then continues after the last run in Inbox.
	Inbox []status.RunID
	Dead  []EngineID
	// Next holds the runs of this engine that are the next in line and can get a place now
	// (naming.Room). It also holds the runs of this engine that wait for their unique key
	// (Transition.Replaces), if the key is free. The engine should admit them (Transition.Admit).
	// The outcome may still be naming.ErrFull, because another run may be admitted first. Of each of
	// the two kinds, Next has at most as many runs as the parameter `limit` of Members.Tick allows.
	// The kinds do not share this limit. Otherwise many runs of one kind that cannot be admitted now
	// would hide the runs of the other kind.
	Next []status.RunID
	// Searched is true if the store has also looked for two kinds of work: work that starts runs
	// (submissions of other programs, events, open firings, due schedules), and replies for
	// webhooks and agents. In this case Starts says whether there is such work, and engines need no
	// queries of their own if there is none. If Searched is false, engines must look for such work
	// themselves.
	Searched, Starts bool
	// Notices is true if a state of a run waits to be announced (notice.Keeper). If Searched is
	// false, Notices has no meaning.
	Notices bool
	// Beaten holds the runs of this engine that wait for a unique key which they cannot get:
	// another run has ended and still holds the key, for example because it has reached the goal.
	// The engine should cancel the runs in Beaten.
	Beaten []naming.Beaten
}

// A DueRun is a run whose next_check has passed.
type DueRun struct {
	Run       status.RunID
	NextCheck time.Time
}

// Never is the NextCheck of a run that does not wait for a time. An engine looks at such a
// run only if something else happens, for example if a message arrives.
var Never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// A Journal keeps the records of runs, in order. The state of a run can be computed from
// its records. Only two engines may append a record to a run: the owner of the run, and an
// engine that becomes the owner with this record.
type Journal interface {
	// OpenWriter opens the n-th writer of an engine. Each writer has its own connection.
	OpenWriter(ctx context.Context, engine EngineID, n int) (Writer, error)
	// Load returns the heads and all rows of runs, ascending by run. A run that does not
	// exist is missing from the result. Load reads many runs with few statements, because a
	// takeover may load thousands of runs. The function LoadRun reads one run.
	Load(ctx context.Context, runs ...status.RunID) ([]Loaded, error)
	// Rows returns the journal rows of a run whose seq is at least the parameter `from`. It
	// returns no more rows than the parameter `limit` says. Rows never makes a commit slower.
	Rows(ctx context.Context, run status.RunID, from int32, limit int) ([]Row, error)
	// Runs returns the runs that a filter selects, in the order that RunFilter describes.
	// If there is no index for a filter, Runs returns an error, because it must never read
	// all runs. A list for people never blocks a writer and never makes a commit slower (S86).
	Runs(ctx context.Context, f RunFilter) ([]RunRow, error)
}

// A Loaded holds a run's head and all its rows.
type Loaded struct {
	Head    Head
	Rows    []Row
	Waiting bool // messages wait in the inbox of the run
}

// An Inbox keeps the messages of each run: verbs of people, and answers that reached an
// engine which does not own the run any more. When Post has returned, the message is
// durable. Post never conflicts with a commit of the run, because Post does not change the
// run. A message stays in the inbox until a transition of the run consumes it
// (Transition.Consumed).
type Inbox interface {
	// Post puts a message into its run's inbox and sends a hint to engines. If the inbox already
	// has a message with the same Dedup, Post adds nothing and returns the id of the earlier
	// message. It returns ErrNotFound if there is no such run. It returns naming.ErrInboxFull if
	// the inbox has Message.Most messages or more. It returns naming.ErrInboxBytes if the data of
	// the messages, with the new one, would have more than Message.MostBytes bytes. If one of these
	// two bounds is 0, Post does not check this bound. If several callers post at the same time,
	// each of them may exceed the bounds by one message.
	Post(ctx context.Context, m Message) (MessageID, error)
	// Messages returns the messages of a run whose ids are greater than the parameter `after`,
	// in order of arrival, which is the order of their ids. It returns no more messages than
	// the parameter `limit` says.
	Messages(ctx context.Context, run status.RunID, after MessageID, limit int) ([]Message, error)
	// Discard removes messages of a run that has ended. Messages of an open run stay. If a
	// message contains a late reply, the caller must store the reply with Evidence.KeepLate
	// first.
	Discard(ctx context.Context, run status.RunID, ids []MessageID) error
}

// MessageID is the number of a message in a store. Later messages have greater numbers. 0
// means no message.
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
	// Most limits the number of messages in the inbox. If the inbox has Most messages or more
	// before this message is added, Post adds nothing and returns naming.ErrInboxFull. 0 = no
	// limit. Post uses Most only for this check and does not store it.
	Most int
	// MostBytes limits the size of the inbox. If the Data of all messages, with this message, would
	// have more bytes than MostBytes, Post adds nothing and returns naming.ErrInboxBytes. 0 = no
	// limit. Post uses MostBytes only for this check and does not store it.
	MostBytes int64
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
	// Commit commits a batch and returns an outcome for each transition, in order. The batch must
	// be sorted by run and must have at most one transition of each run.
	//
	// A transition with Names submits a run: it is committed together with the run's public name
	// and unique key, or not at all, and never twice. If another run has the name or holds the key,
	// the outcome says so (Submitted.Exists). A transition with Replaces is different: it may
	// replace an open run that holds the key.
	//
	// Each transition is committed completely or not at all. If the database's answer is lost,
	// Commit sends the same batch again, until Commit knows the outcome or ctx ends. Each journal
	// row stores a token of its batch, so the store does not commit a row twice.
	//
	// If Commit returns an error for which NothingLanded returns true, nothing is committed. After
	// any other error, each transition may be committed or not, and the caller must call Commit
	// with exactly the same transitions again. If the first call has committed a transition, the
	// second call may return the outcome ErrStale for this transition, or ErrExists at Seq 0. So
	// the caller then compares the row in the journal with the transition (Transition.Wrote).
	// Commit returns ErrFenced if the engine was declared dead and nothing of the batch is
	// committed.
	Commit(ctx context.Context, batch []Transition) ([]Outcome, error)
	Close() error
}

// NothingLanded reports whether an error of Commit promises that nothing of the batch is
// committed and nothing will be. Only ErrFenced promises this: the engine's fence row was
// removed before. After every other error the outcome is not known (decision 0018).
func NothingLanded(err error) bool { return errors.Is(err, ErrFenced) }

// A Transition is one commit of one run: one journal row, and the new values of the run's
// row.
type Transition struct {
	Run       status.RunID
	Seq       int32           // number of the journal row, from 0; each row of a run has its own number
	At        time.Time       // store time of the last record, in whole microseconds; At may be needed to decrypt Data
	Workflow  WorkflowID      // workflow of a new run; only at Seq 0
	State     status.RunState // new state of the run; 0 = unchanged
	Owner     *EngineID       // new owner of the run; nil = unchanged; a pointer to 0 = no owner
	NextCheck time.Time       // new next_check of the run; zero = unchanged
	Steps     []StepRow       // the changed steps, for the views
	// NewNodes holds the instances that the row adds, for the views. If a run was moved to another
	// definition, NewNodes also holds the steps whose names are new, and their instances. If the
	// store already has a name for one of these nodes, the name in NewNodes replaces it. NewNodes
	// has each node at most once.
	NewNodes []NodeName
	// Moved is the workflow that the run has from this row on, if a record of the row moves the run
	// to another definition (engine migrate). 0 = the row does not move the run. Lists show this
	// workflow (RunRow.Moved). Only a transition with Seq > 0 may have Moved.
	Moved    WorkflowID
	Alerts   []Alert  // alerts that are written together with the row
	Announce []string // states that notify blocks announce; written together with the row (notice.Keeper)
	// Post holds the replies that the row causes; written together with the row (replies.Keeper).
	// nil = none, as in most rows.
	Post     *naming.Post
	Consumed []MessageID // messages that this row answers; the store removes them when it commits the row
	// Heard is set if the row makes an engine the owner of the run. It is the number of messages
	// that the engine has read from the run's inbox. If more messages than this wait for the run,
	// the outcome is ErrStale. So the engine cannot miss a message that arrives after the engine
	// has read the inbox. nil = the store does not check the number of messages.
	Heard *int32
	Data  []byte        // encoded records; they may be sealed
	Names *naming.Names // names of a submitted run, only at Seq 0; nil = the transition submits no run
	Room  *naming.Room  // limit of a submitted run, only together with Names; nil = the run has no limit
	// Admit is true if the transition gives the run a place in its limit, or the unique key for
	// which the run waits (Replaces). The run may wait for both. The store commits the transition
	// only if both are free; if one is not free, the outcome is naming.ErrFull. If the run itself
	// has the place or the key already, it counts as free. A new run (Seq 0) also gets ErrFull if
	// another run waits in line. The run holds the place until the run has ended.
	Admit bool
	// Checks are checks of business rows. The store runs them in the transaction that accepts the
	// run. If one of them refuses the run, nothing is committed, and the outcome is an
	// *admission.Error. Only a submission may have Checks. A store that cannot run checks refuses
	// the submission with admission.Unable. If the run exists already, the store runs no check.
	Checks []admission.Check
	// Replaces is set if the submitted run must replace the open runs that hold its unique key or
	// wait for this key. nil = the run replaces no run, as most runs. The store puts the message in
	// Replaces into the inboxes of the replaced runs, except compensating runs. In each copy of the
	// message, it sets the field Run. After that, only the submitted run waits for the key. It
	// takes the key later, with Admit. If the run that holds the key has ended, nothing is
	// replaced, and Outcome.Submitted names the run that holds the key. If no run holds the key or
	// waits for it, Outcome.Err is naming.ErrFree.
	Replaces *Message
	// Frees is true if this transition ends the run, and the run gives up a place or a key for
	// which other runs may wait. Then the store sends a hint to the engines.
	Frees bool
}

// A StepRow is the state of one step or instance as the views show it.
type StepRow struct {
	Node       int32
	State      status.StepState
	Failures   int
	Attempt    int
	CompleteBy time.Time // complete-by of the call; zero = none; never zero while the step is running (S10)
}

// A NodeName names an instance of a for_each step, or a step of a moved run.
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
	// Submitted is the result of a transition with Names, if Err is nil. If Landed is true,
	// Submitted names the new run. If Landed is false, Submitted names the earlier run, and Exists
	// is set.
	Submitted Submitted
	// Err is nil if Landed is true. ErrStale means that the run has changed: load the run and
	// decide again. ErrStale has one of three reasons: the journal has another row with this seq,
	// more messages wait than Heard allows, or retention has removed the run. ErrExists means that
	// a new run has the id of another run. naming.ErrFull means that no place or no key is free for
	// the run (Transition.Admit). naming.ErrFree means that the run cannot wait for its key,
	// because the key is free. An *admission.Error means that a check has refused the run
	// (Transition.Checks). naming.ErrNoOrigin or a *naming.HeirError means that the run cannot take
	// over the results of the run in Names.From. Any other error means that the store refuses this
	// transition because of its contents.
	Err error
}

// Submitted is the result of a submission.
type Submitted struct {
	Run    status.RunID
	Name   string
	Exists bool // Run is an earlier run that has the name or the key; nothing was written
	// Gone is true if retention has removed the earlier run, but the removed run still holds the
	// key (naming.KeyScope). Then Exists is true, too.
	Gone bool
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

// DueSince returns the time from which an engine should work on the run: NextCheck or CreatedAt,
// whichever is later. NextCheck may be earlier than CreatedAt: a new run with a high priority has
// an early NextCheck, so that engines claim it first.
func (h Head) DueSince() time.Time {
	if h.NextCheck.Before(h.CreatedAt) {
		return h.CreatedAt
	}
	return h.NextCheck
}

// AtRest reports whether the run waits for a person and for nothing else. Engines have no
// work for a run at rest.
func (h Head) AtRest() bool { return h.State.NeedsHuman() && !h.NextCheck.Before(Never) }

// A Row is one journal row: the number, the time and the data of a Transition. The time has
// whole microseconds. It may be needed to decrypt the data.
type Row struct {
	Seq  int32
	At   time.Time
	Data []byte
}

// Wrote reports whether the journal row r is equal to the row that this transition writes.
func (t *Transition) Wrote(r Row) bool {
	return r.Seq == t.Seq && r.At.UnixMicro() == t.At.UnixMicro() && bytes.Equal(r.Data, t.Data)
}

// A RunRow is a run as lists show it.
type RunRow struct {
	Head
	WorkflowName string
	Digest       string // digest of the definition that the run has now
	// workflow that the run has now, if the run was moved; 0 = it has Head.Workflow
	Moved      WorkflowID
	Key        string
	OwnerAlive bool
	InLine     bool         // true = the run waits in line for a place in its limit (naming.Room)
	Parent     status.RunID // run that started this run as its child; 0 = the run is no child run
	Trigger    naming.Trigger
}
