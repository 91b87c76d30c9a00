package machine

import (
	"maps"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// A State is everything known of one run: the fold of its records. It is
// plain data with a few indexes that Apply maintains. One goroutine at a time
// uses a State; Decide only reads it, except for caches of decoded values.
type State struct {
	run   run
	nodes []*node // nodes are never changed in place: Apply replaces them

	// Indexes, derived from nodes.
	expiry lazyHeap   // of nodes with an open attempt, when the first is over
	limits lazyHeap   // deadlines of steps and of undos
	wakes  lazyHeap   // ends of backoffs and of waits for a quiet node
	queues []lazyHeap // by hold: nodes that wait for an agent, in order
	values map[uint64]origin

	cache *cache
}

// NewState returns the state before a run's first record.
func NewState() *State { return &State{values: map[uint64]origin{}} }

// Clone returns a copy that shares nothing that either of the two changes.
func (s *State) Clone() *State {
	c := &State{run: s.run, nodes: slices.Clone(s.nodes), values: maps.Clone(s.values)}
	c.run.holds, c.run.refused = slices.Clone(s.run.holds), slices.Clone(s.run.refused)
	c.expiry, c.limits, c.wakes = s.expiry.clone(), s.limits.clone(), s.wakes.clone()
	for _, q := range s.queues {
		c.queues = append(c.queues, q.clone())
	}
	return c
}

// A cache holds what can be recomputed: decoded values for expressions.
// Entries made while a record was being decided are only valid once that
// record is applied, hence pending.
type cache struct {
	memo    *dsl.Memo
	results map[int]dsl.StepResult // results of finished for_each steps
	pending bool                   // holds results of a record that is not applied yet
}

// An instant is a time of the store's clock in microseconds since 1970, which
// is what Postgres keeps; 0 is no time.
type instant int64

func toInstant(t time.Time) instant {
	if t.IsZero() {
		return 0
	}
	return instant(t.UnixMicro())
}

func (i instant) time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(i)).UTC()
}

// add never passes the year 10000 and never falls below one microsecond after
// i for a positive d, so that what is scheduled is always later.
func (i instant) add(d time.Duration) instant {
	const end = instant(253402300799000000)
	if d <= 0 {
		return i
	}
	if sum := i + max(1, instant(d.Microseconds())); sum < end {
		return sum
	}
	return end
}

// earliest returns the smaller of the two that is set.
func earliest(a, b instant) instant {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// A phase is the direction a run goes.
type phase uint8

const (
	phaseForward phase = 0
	phaseUndo    phase = 1
)

// run is the part of the state that belongs to no step.
type run struct {
	id        RunID
	name, key string
	vars      held
	trigger   string
	startedBy string
	workflow  string // name, for views
	steps     int    // number of steps; nodes below it are steps
	owner     int32  // incarnation that took the run over last; 0 = the one that accepted it

	records  int // records applied
	last     instant
	started  instant
	finished instant
	deadline instant // of the forward part

	state    RunState
	phase    phase
	begun    bool // something was started
	paused   bool
	parked   bool
	parkedAt instant
	passed   bool // the pivot has succeeded: nothing is undone any more
	turning  bool // a turn waits for the pivot's outcome
	cancel   bool // cancel was asked
	noUndo   bool // ... with --no-compensate
	overdue  bool
	failure  dsl.Failure

	pausedAt           instant
	pausedBy, pauseWhy string

	undoStarted  instant
	undoDeadline instant
	undoExpired  bool // undoDeadline has passed and was dealt with
	stuck        bool // compensation_failed

	done       int // steps that ended well
	undonePast int // steps whose undo has finished or was passed through
	live       int // nodes with an open attempt, a queue place or a wake-up
	undone     int // effects undone
	left       int // effects operators left in place
	undeclared int // effects not undone by declaration

	holds   []hold
	refused []instant // by hold: a call was not sent, and none is before; may be shorter
	outputs []output
}

// A hold is an agent that this run has waited for.
type hold struct {
	agent string
	until instant // nothing can start before; 0 = until a slot frees
	why   string
}

// An output is one evaluated output of the workflow.
type output struct {
	name      string
	value     held
	sensitive bool
	problem   string // why the value is null
}

// An activity says what a track does right now.
type activity uint8

const (
	idle    activity = 0
	running activity = 1 // an attempt is open
	queued  activity = 2 // waits for its agent
	backoff activity = 3 // waits for until
)

// A callKind says why an agent is called. Numbers are persisted; kinds for
// waits, timers, loops and child runs follow when they exist.
type callKind uint8

const (
	callNone       callKind = 0
	callDo         callKind = 1
	callLookup     callKind = 2 // what became of the forward key?
	callUndo       callKind = 3
	callUndoLookup callKind = 4 // what became of the undo key?
	callLearn      callKind = 5 // the forward call once more, to learn its output before the undo
)

// A track is one of the two things a node may do: its work, or its undo.
type track struct {
	act      activity
	kind     callKind // what is called, or will be
	until    instant  // backoff: when it goes on
	attempt  int      // attempts in this round
	total    int      // attempts in all rounds, without those that only learn an output
	failures int      // attempts that ended without result, all rounds
	rounds   int      // rounds added by cool-downs
	lookups  int      // lookups that brought no answer, since the last attempt
	rest     instant  // the agent asked not to be called before
	ready    instant  // when it could start: the deadline's beginning
	deadline instant
	began    instant // first attempt
	ended    instant

	miss          missKind // the last failure; missNone = none
	code, message string
}

// undoState says how far the undo of a node has come.
type undoState uint8

const (
	undoNone     undoState = 0 // the run goes forward
	undoPending  undoState = 1 // waits for its dependents, or for its own attempts to end
	undoActive   undoState = 2
	undoDone     undoState = 3
	undoFailed   undoState = 4
	undoLeft     undoState = 5 // an operator left the effect in place
	undoDeclared undoState = 6 // compensation = "none"
	undoNothing  undoState = 7 // no effect
)

// A node is a step or one instance of a for_each step.
type node struct {
	step int
	item bool // an instance
	key  string
	each held // each.value

	// A for_each step only: its instances are nodes first to first+count-1.
	expanded bool
	first    int
	count    int
	next     int // instances begun
	active   int // instances begun and not ended
	over     int // instances ended
	bad      int // instances failed
	past     int // instances whose undo has passed

	deps int // dependencies that have ended well
	back int // dependents whose undo has passed

	state    StepState // forward
	fwd      track
	prepared bool // input and keys are evaluated
	input    held
	output   held // of the action
	known    bool // output is the action's result
	done     bool // there was a result
	doubt    int  // attempts sent that were not answered by a definite failure
	caught   held // substitute output of catch
	timedOut bool
	bizKey   string // idempotency_key, if stated
	gen      int    // raised by retry --new-key

	calls    int
	quiet    instant // before it an attempt that nobody waits for may still be running
	attempts []attempt

	undo      undoState
	und       track
	undoReady bool // undo input is evaluated
	undoInput held
	undoDoubt int // undo attempts with an unknown outcome

	queue  instant // when it began to wait for its agent; 0 = it does not
	hold   int     // index in run.holds plus one
	point  int     // last checkpoint
	blob   []byte
	manual string // who settled or skipped it last, for people

	clearing  bool // its undo is called before another attempt; undo says how far that is
	undoPoint int  // last checkpoint of the undo
	undoBlob  []byte
}

// An attempt is one call. Open attempts are always kept; of closed ones only
// the last few.
type attempt struct {
	call       int
	kind       callKind
	number     int // for people, from 1, in its round
	status     attemptStatus
	started    instant
	completeBy instant
	silent     instant // it must be heard of before; 0 = it need not
	gen        int     // of its key
	ended      instant
	code       string
	message    string
}

// keptAttempts is how many closed attempts of a node the state remembers; the
// journal has them all.
const keptAttempts = 16

type attemptStatus uint8

const (
	attemptOpen     attemptStatus = 0
	attemptOK       attemptStatus = 1
	attemptFailed   attemptStatus = 2 // definite failure
	attemptUnknown  attemptStatus = 3
	attemptNotSent  attemptStatus = 4
	attemptNotDone  attemptStatus = 5 // lookup: the key never had an effect
	attemptNeedless attemptStatus = 6 // another attempt settled the step
)

var attemptStatuses = map[attemptStatus]string{
	attemptOpen: "open", attemptOK: "ok", attemptFailed: "failed", attemptUnknown: "unknown",
	attemptNotSent: "not_sent", attemptNotDone: "not_done", attemptNeedless: "needless",
}

// ended reports whether the forward part has ended.
func (n *node) ended() bool { return forwardEnded(n.state) }

func forwardEnded(s StepState) bool { return s >= StepSucceeded && s <= StepCancelled }

// marked reports whether an attempt has recorded a checkpoint: then something
// was done, whatever the attempt says of itself later.
func (n *node) marked() bool { return n.point != 0 || len(n.blob) > 0 }

// expires returns when the attempt is over if nothing is heard of it.
func (a *attempt) expires() instant { return earliest(a.completeBy, a.silent) }

// well reports whether dependents may run.
func (n *node) well() bool {
	return n.state == StepSucceeded || n.state == StepSkipped || n.state == StepCaught
}

// open reports whether a call is in flight.
func (n *node) open() bool {
	for k := range n.attempts {
		if n.attempts[k].status == attemptOpen {
			return true
		}
	}
	return false
}

// find returns the attempt with this call number, or nil.
func (n *node) find(call int) *attempt {
	for k := len(n.attempts) - 1; k >= 0; k-- {
		if n.attempts[k].call == call {
			return &n.attempts[k]
		}
	}
	return nil
}

// effect says what the node may have left behind (S20).
func (n *node) effect() Effect {
	switch {
	case n.done:
		return EffectDone
	case n.doubt > 0:
		return EffectMaybe
	}
	return EffectNone
}

// track returns the track that is at work.
func (n *node) track() *track {
	if n.undo == undoNone {
		return &n.fwd
	}
	return &n.und
}

// lives reports whether the node will move by itself.
func (n *node) lives() bool {
	return n.fwd.act != idle || n.und.act != idle || n.queue != 0 || n.open()
}

// expires returns when the first of the open attempts is over.
func (n *node) expires() instant {
	var at instant
	for k := range n.attempts {
		if n.attempts[k].status == attemptOpen {
			at = earliest(at, n.attempts[k].expires())
		}
	}
	return at
}

// limit returns the deadline that is running.
func (n *node) limit() instant {
	switch {
	case n.clearing:
		return earliest(n.und.deadline, n.fwd.deadline)
	case n.undo == undoActive, n.undo == undoPending && n.und.ready != 0:
		return n.und.deadline
	case n.undo == undoNone && !n.ended() && n.fwd.ready != 0:
		return n.fwd.deadline
	}
	return 0
}

// wake returns when a pause ends.
func (n *node) wake() instant {
	switch {
	case n.und.act == backoff:
		return n.und.until
	case n.fwd.act == backoff:
		return n.fwd.until
	}
	return 0
}

// shown returns the state that people see.
func (n *node) shown() StepState {
	switch n.undo {
	case undoActive:
		return StepUndoing
	case undoDone:
		return StepUndone
	case undoFailed:
		return StepUndoFailed
	}
	return n.state
}

func newNode(step int) *node { return &node{step: step, state: StepPending} }

// blank is what a node is compared with when it is added by a record.
var blank = node{}
