package store

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine/machine"
)

// EngineID is a membership of an engine: a new positive number at every
// start of a process. 0 is nobody.
type EngineID int32

// WorkflowID numbers one workflow of one stored definition.
type WorkflowID int32

// A Store keeps everything an engine must not lose. Implementations are
// engine/store/postgres, engine/store/sqlite and engine/store/memory; engine/store/storetest holds the
// rules they all obey. Each consumer takes the smallest role it needs.
//
// Errors that callers branch on are ErrNotFound, ErrExists, ErrFenced,
// ErrLapsed and the typed *SchemaError, *LockedError; everything else is I/O.
type Store interface {
	Catalogue
	Members
	Journal
	Inbox
	Evidence
	Reader
	Close() error
}

// A Waker is a store that can tell that something may be waiting for an engine:
// a message in an inbox, a run without an owner. Implementing it is optional, and a
// hint may be lost: the listener also looks on its own from time to time.
type Waker interface {
	// Wakes returns a channel that receives hints, coalesced, until ctx ends;
	// then it is closed. A lost connection is made again.
	Wakes(ctx context.Context) <-chan struct{}
}

// An Examiner is a store that can tell what is thin or wrong about itself.
// Implementing it is optional.
type Examiner interface {
	Examine(ctx context.Context) ([]Finding, error)
}

// A Retainer is a store that can forget runs that ended long ago. Implementing
// it is optional.
type Retainer interface {
	// Retain removes runs that finished before a time, with everything that is
	// kept of them: rows, names, steps, alerts, late answers, logs. It looks at
	// up to limit runs created before that time, oldest first, and goes on from
	// there when called again, beginning anew once it is through; RetainStats.More
	// says that it is not. A run is gone at once and whole: afterwards Load, Find
	// and whatever else asks for it find nothing, and its name and its unique key
	// are free, even if the run succeeded (language.md, Uniqueness). A run that is
	// open, that finished since, or for which messages wait in the inbox stays.
	//
	// It holds no lock that a commit could wait for longer than 200 ms. Calling it
	// again is harmless, and so is stopping in the midst of it: what is left goes
	// with the next call. Space may come back later than runs go.
	Retain(ctx context.Context, before time.Time, limit int) (RetainStats, error)
}

// A RetainTeller is a Retainer that tells how far it has got, so that nobody
// takes a run that was removed for one that was lost. Implementing it is optional.
type RetainTeller interface {
	// Retained returns the highest id up to which runs may have been removed, by
	// whichever engine; 0 = none was.
	Retained(ctx context.Context) (machine.RunID, error)
}

// RetainStats is what one call of Retain did.
type RetainStats struct {
	Runs       int  // runs that are gone
	Rows       int  // other rows that were removed one by one
	Partitions int  // partitions that were dropped; 0 where a store has none
	Held       int  // runs looked at that stay
	More       bool // there may be more to do now: call again
}

// A Finding is the result of one check of a store.
type Finding struct {
	Name    string   // "sslmode", "pooler", …
	Level   Severity // how bad it is
	Message string   // what was found
	Hint    string   // what to do; "" = nothing
}

// Severity says how bad a finding is.
type Severity uint8

// The severities.
const (
	FindingOK Severity = iota
	FindingWarning
	FindingError
)

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

// The settings of a store: what it remembers for ever, once it is known.
const (
	SettingKey     = "key"     // id of the key that seals what the store holds
	SettingHistory = "history" // from which run on every row of the journal is tagged (decision 0020)
)

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

// Members keeps who is alive. A lease in the past is the only sign of death.
type Members interface {
	// Join registers a new membership with a fence row for each writer.
	Join(ctx context.Context, address string, lease time.Duration, writers int) (EngineID, error)
	// Tick renews the lease and returns what needs attention. Returns ErrLapsed
	// if the lease had run out or the engine was declared dead: it must stop
	// everything it owns and join again.
	Tick(ctx context.Context, engine EngineID, lease time.Duration, limit int) (Tick, error)
	// Fence declares a member whose lease is past dead and removes its fence
	// rows; afterwards none of its commits can land. It reports whether the
	// member is dead now. Fencing a dead member again is harmless. The runs that it
	// had in hand (Hold) count one death more, each once.
	Fence(ctx context.Context, dead EngineID) (bool, error)
	// Orphans returns up to limit open runs owned by nobody or by a member
	// declared dead (Fence), ascending by id, greater than after. Runs at rest
	// (Head.AtRest) are not among them unless a message waits for them, and are not
	// even then after MaxDeaths (Suspects).
	Orphans(ctx context.Context, after machine.RunID, limit int) ([]machine.RunID, error)
	// Abandoned is Orphans, but leaves out runs that have no owner, of which there may be very
	// many and which ticks show anyhow.
	Abandoned(ctx context.Context, after machine.RunID, limit int) ([]machine.RunID, error)
	// Addressed returns up to limit open runs of members declared dead for which
	// messages wait, those of the oldest messages first. Runs are left out after
	// MaxDeaths (Suspects) once they are at rest.
	Addressed(ctx context.Context, limit int) ([]machine.RunID, error)
	// Leave ends a membership in order: the lease ends now and the engine is
	// fenced. Runs it still owns become orphans. Nothing counts against those that
	// it had in hand.
	Leave(ctx context.Context, engine EngineID) error
	// Pass reports whether the caller may make the named pass now: at most one
	// caller in every period may, counted from the last permission (S45). One
	// statement, no lock is held afterwards.
	Pass(ctx context.Context, name string, period time.Duration) (bool, error)
	// Overdue returns up to limit open runs of other live engines whose next
	// check passed more than grace ago, most overdue first.
	Overdue(ctx context.Context, self EngineID, grace time.Duration, limit int) ([]machine.RunID, error)
	// Live returns the members whose lease has not passed, by number.
	Live(ctx context.Context) ([]Member, error)
	// Member returns a member that lives, or that is dead and still owns open
	// runs. Returns ErrNotFound.
	Member(ctx context.Context, engine EngineID) (Member, error)

	// A store keeps which runs engines have in hand: those that an engine is about to
	// read or to decide, and of which it cannot be sure that it outlives that. It is
	// written before the run is touched. Without it the next engine could not know why
	// the last one ended, and would end the same way.

	// Hold replaces the list of runs that an engine has in hand. Returns ErrFenced
	// if the engine was declared dead.
	Hold(ctx context.Context, engine EngineID, runs []machine.RunID) error
	// Suspects returns what is known against the given runs. Runs against which
	// nothing is known, and that no other engine than self has in hand, are missing.
	Suspects(ctx context.Context, self EngineID, runs []machine.RunID) (map[machine.RunID]Suspicion, error)
	// Absolve forgets what is known against runs: they got on, or a person has said
	// how they go on. It is harmless for any run.
	Absolve(ctx context.Context, runs ...machine.RunID) error
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
	Inbox []machine.RunID
	Dead  []EngineID
}

// A DueRun is a run and the bound that has passed.
type DueRun struct {
	Run       machine.RunID
	NextCheck time.Time
}

// Never is the NextCheck of a run that waits for nothing timed.
var Never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// A Journal is the truth about runs: records in order, appended only by the
// owner, or by an engine that becomes the owner in that very record.
type Journal interface {
	// OpenWriter opens the n-th writer of an engine, with its own connection.
	OpenWriter(ctx context.Context, engine EngineID, n int) (Writer, error)
	// Load returns a run's head and all its rows. Returns ErrNotFound.
	Load(ctx context.Context, run machine.RunID) (Head, []Row, error)
	// LoadMany is Load of many runs at once, ascending by run; runs that do not
	// exist are missing from the result. It reads no more than one statement
	// does at a time, so that taking over many runs costs what reading them does.
	LoadMany(ctx context.Context, runs []machine.RunID) ([]Loaded, error)
	// Rows returns up to limit journal rows of a run with seq >= from. It never
	// slows a writer.
	Rows(ctx context.Context, run machine.RunID, from int32, limit int) ([]Row, error)
}

// A Loaded is a run's head and all its rows.
type Loaded struct {
	Head    Head
	Rows    []Row
	Waiting bool // messages wait for it
}

// An Inbox takes what is said to a run from outside of its owner: verbs of
// people, answers that reached a former owner. A message is durable at once,
// never in conflict, and needs neither the definition nor a decision. It goes
// when a transition of the run consumes it (Transition.Consumed).
type Inbox interface {
	// Post puts a message into its run's inbox and wakes engines. A message
	// whose Dedup is in the run's inbox already is not put there twice: the
	// earlier one's id is returned. Returns ErrNotFound if there is no such run.
	Post(ctx context.Context, m Message) (MessageID, error)
	// Messages returns up to limit messages of a run in order of arrival.
	Messages(ctx context.Context, run machine.RunID, limit int) ([]Message, error)
	// Waits reports whether a message of a run is in its inbox still.
	Waits(ctx context.Context, run machine.RunID, id MessageID) (bool, error)
	// Discard removes messages of a run that has ended; those of an open run
	// stay. What they said must have been kept elsewhere, if it matters.
	Discard(ctx context.Context, run machine.RunID, ids []MessageID) error
}

// MessageID numbers the messages of a store, rising. 0 = none.
type MessageID int64

// A Message is one thing said to a run.
type Message struct {
	ID    MessageID // set by the store
	Run   machine.RunID
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

// Evidence keeps what came too late to count, what agents logged, and which alerts were
// pushed.
type Evidence interface {
	// KeepLate keeps a late answer and an alert of kind late_reply beside it.
	// It does not change the run (S28). Keeping the same one (run, node, call,
	// outcome) again is harmless.
	KeepLate(ctx context.Context, l LateReply) error
	// LateReplies returns the late answers of a run, oldest first.
	LateReplies(ctx context.Context, run machine.RunID) ([]LateReply, error)
	// KeepLogs keeps lines that agents logged. It keeps the last MaxLogLines of
	// each run and removes older ones. Lines of runs that do not exist are ignored.
	KeepLogs(ctx context.Context, lines []LogLine) error
	// Logs returns up to limit lines of a run with an id greater than after, in
	// order.
	Logs(ctx context.Context, run machine.RunID, after int64, limit int) ([]LogLine, error)
	// Undelivered returns up to limit alerts that were not pushed yet to where people
	// look, oldest first.
	Undelivered(ctx context.Context, limit int) ([]AlertRow, error)
	// Delivered notes that alerts were pushed. Doing so again is harmless.
	Delivered(ctx context.Context, ids []int64) error
}

// MaxLogLines is how many lines of agents' logs are kept of a run.
const MaxLogLines = 1000

// A LateReply is an answer that came too late to count.
type LateReply struct {
	Run     machine.RunID
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
	Run     machine.RunID
	At      time.Time
	Step    string
	Attempt int
	Level   string // debug, info, warn, error
	Message string // one line, scrubbed
}

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
	// An error leaves the outcome of the batch open, whatever it says: each
	// transition may have landed or not. Only an error for which NothingLanded
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
	Run       machine.RunID
	Seq       int32            // the row's number, from 0; the optimistic lock
	At        time.Time        // store time of its last record, kept to the microsecond: Data may rely on it
	Workflow  WorkflowID       // Seq 0 only
	State     machine.RunState // 0 = unchanged
	Owner     *EngineID        // nil = unchanged
	NextCheck time.Time        // zero = unchanged
	Steps     []StepRow        // what changed, for the views
	NewNodes  []NodeName       // instances added, for the views
	Alerts    []Alert          // written with the row
	Consumed  []MessageID      // messages that this row answers: they go if it lands
	// Heard guards a row that makes an engine the owner: it lands only if no more
	// messages than this wait for the run, else its outcome is ErrStale. An engine
	// that read the inbox and one that is asked something meanwhile cannot miss each
	// other. nil = however many wait.
	Heard *int32
	Data  []byte // encoded, perhaps sealed records
	Names *Names // Seq 0 only: submits a run under these names; nil = the run has none yet
}

// A StepRow is one step's or instance's state as the views show it.
type StepRow struct {
	Node       int32
	State      machine.StepState
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

// Names are the public names under which a run is submitted.
type Names struct {
	Name     string // public id, at most 100 characters; "" = RunName of the internal id
	Workflow string // workflow name: the scope of Key
	Key      string // unique key; "" = none
	// Version tells one submission of a name from another: attaching compares
	// nothing, it only reports.
}

// Submitted is what became of a submission.
type Submitted struct {
	Run    machine.RunID
	Name   string
	Exists bool // the name or the key belongs to this earlier run; nothing was written
}

// A Head is a run's row.
type Head struct {
	Run        machine.RunID
	Name       string
	Workflow   WorkflowID
	State      machine.RunState
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

// A Reader answers questions of people; it never locks or slows a writer (S86).
type Reader interface {
	// Runs lists runs, newest first.
	Runs(ctx context.Context, f RunFilter) ([]RunRow, error)
	// Find returns the run with this public name, or internal id in decimal.
	// Returns ErrNotFound.
	Find(ctx context.Context, name string) (RunRow, error)
	// StepRows returns the view of a run's steps, by node number.
	StepRows(ctx context.Context, run machine.RunID) ([]StepView, error)
	// Alerts lists up to limit alerts of a run, or of all runs if run is 0,
	// newest first.
	Alerts(ctx context.Context, run machine.RunID, limit int) ([]AlertRow, error)
}

// DefaultRunLimit is how many runs a list holds if its filter does not say.
const DefaultRunLimit = 100

// A RunFilter selects runs. Zero fields select everything; Limit 0 means
// DefaultRunLimit.
type RunFilter struct {
	States   []machine.RunState
	Workflow string
	Key      string
	Digest   string
	Since    time.Time     // created at or after
	Before   machine.RunID // with a smaller id, so that a list is read page by page; 0 = any
	Limit    int
}

// A RunRow is a run as lists show it.
type RunRow struct {
	Head
	WorkflowName string
	Digest       string
	Key          string
	OwnerAlive   bool
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
	Run      machine.RunID
	Name     string // public run id
	Workflow string
	Key      string // the run's unique key; "" = none
	At       time.Time
}
