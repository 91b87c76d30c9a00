package machine

import (
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// A State is everything known of one run: the fold of its records. It is
// plain data with a few indexes that Apply maintains. One goroutine at a time
// uses a State; Decide only reads it, except for caches of decoded values.
// States, records and drafts share what they do not change.
type State struct {
	run   run
	nodes []*node // never changed in place, except by Fold where they are private

	private bool // nodes, and what they point to, are in no record, draft or other state

	// Indexes, derived from nodes.
	expiry lazyHeap   // of nodes with an open attempt, when the first is over
	limits lazyHeap   // deadlines of steps and of undos
	wakes  lazyHeap   // ends of backoffs and of waits for a quiet node
	queues []lazyHeap // by hold: nodes that wait for an agent, in order
	values known

	checkpoints int64 // bytes of those that were recorded; see Ceilings

	cache *cache
}

// NewState returns the state before a run's first record.
func NewState() *State { return &State{run: run{head: &noHead, trouble: &noTrouble}, private: true} }

// Clone returns a copy that shares nothing that either of the two changes.
func (s *State) Clone() *State {
	if s.private { // else it may be read by many
		s.private = false
	}
	c := &State{run: s.run, nodes: slices.Clone(s.nodes), values: s.values.clone(), checkpoints: s.checkpoints}
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
	memo    dsl.Memo
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

// run is the part of the state that belongs to no step. What a run is told once,
// and what most runs never have, lies behind pointers: a decision copies little,
// and what did not change is shared.
type run struct {
	*head
	*trouble

	last     instant
	finished instant
	deadline instant // of the forward part

	records int32 // records applied
	steps   int32 // number of steps; nodes below it are steps
	owner   int32 // membership that took the run over last; 0 = the one that accepted it

	done       int32 // steps that ended well
	undonePast int32 // steps whose undo has finished or was passed through
	live       int32 // nodes with an open attempt, a queue place or a wake-up
	undone     int32 // effects undone
	left       int32 // effects operators left in place
	undeclared int32 // effects not undone by declaration

	state   RunState
	phase   phase
	begun   bool // something was started
	paused  bool
	parked  bool
	passed  bool // the pivot has succeeded: nothing is undone any more
	turning bool // a turn waits for the pivot's outcome
	cancel  bool // cancel was asked
	noUndo  bool // ... with --no-compensate
	overdue bool

	undoExpired bool // undoDeadline has passed and was dealt with
	stuck       bool // compensation_failed
}

// A head is what the record that accepts a run says of it. It is shared by
// states and records, and changed only in a draft.
type head struct {
	id        RunID
	name, key string
	vars      held
	trigger   string
	startedBy string
	workflow  string // name, for views
	started   instant
}

// A trouble is what the state of a smooth run does not have until it ends. It is
// shared by states and records, and changed only in a draft.
type trouble struct {
	parkedAt instant
	failure  dsl.Failure

	pausedAt           instant
	pausedBy, pauseWhy string

	lostAt  instant // engines died with it; 0 = nobody has to say how it goes on for that
	lostWhy string

	undoStarted  instant
	undoDeadline instant

	holds   []hold
	refused []instant // by hold: a call was not sent, and none is before; may be shorter
	outputs []output
}

// noHead and noTrouble stand where there is none.
var (
	noHead    = head{}
	noTrouble = trouble{}
)

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
	miss     missKind // the last failure; missNone = none
	attempt  int32    // attempts in this round
	total    int32    // attempts in all rounds, without those that only learn an output
	failures int32    // attempts that ended without result, all rounds
	rounds   int16    // rounds added by cool-downs
	lookups  int16    // lookups that brought no answer, since the last attempt
	until    instant  // backoff: when it goes on
	rest     instant  // the agent asked not to be called before
	ready    instant  // when it could start: the deadline's beginning
	deadline instant
	began    instant // first attempt
	ended    instant
	said     *saying // of the last failure; nil = nothing
}

// A saying is what was said about a failure. It is never changed.
type saying struct{ code, message string }

func said(code, message string) *saying {
	if code == "" && message == "" {
		return nil
	}
	return &saying{code, message}
}

// words returns code and message.
func (s *saying) words() (code, message string) {
	if s == nil {
		return "", ""
	}
	return s.code, s.message
}

// same reports whether the same was said.
func (s *saying) same(o *saying) bool {
	return s == o || s != nil && o != nil && *s == *o
}

// of returns the number of the node's step.
func (n *node) of() int { return int(n.step) }

func (t *track) code() string {
	code, _ := t.said.words()
	return code
}

func (t *track) message() string {
	_, message := t.said.words()
	return message
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

// A node is a step or one instance of a for_each step. What most nodes never
// have lies behind a pointer.
type node struct {
	key  string
	each held // each.value

	input    held
	output   held // of the action
	attempts []attempt

	fwd   track
	quiet instant // before it an attempt that nobody waits for may still be running
	queue instant // when it began to wait for its agent; 0 = it does not
	*more

	step  int32
	deps  int32 // dependencies that have ended well
	back  int32 // dependents whose undo has passed
	doubt int32 // attempts sent that were not answered by a definite failure
	calls int32
	gen   int32 // raised by retry --new-key
	hold  int32 // index in run.holds plus one

	state     StepState // forward
	undo      undoState
	item      bool // an instance
	expanded  bool // a for_each step whose instances are nodes
	prepared  bool // input and keys are evaluated
	known     bool // output is the action's result
	done      bool // there was a result
	timedOut  bool
	clearing  bool // its undo is called before another attempt; undo says how far that is
	undoReady bool // undo input is evaluated
}

// more is what most nodes never have. It is never nil; nodes and records share
// it, and it is changed only in a draft or by the state that alone has it.
type more struct {
	// A for_each step only: its instances are nodes first to first+count-1.
	first  int
	count  int
	next   int // instances begun
	active int // instances begun and not ended
	over   int // instances ended
	bad    int // instances failed
	past   int // instances whose undo has passed

	caught held   // substitute output of catch
	bizKey string // idempotency_key, if stated
	manual string // who settled or skipped it last, for people
	stated statement
	point  int // last checkpoint
	blob   []byte

	und       track
	undoInput held
	undoDoubt int // undo attempts with an unknown outcome
	undoPoint int // last checkpoint of the undo
	undoBlob  []byte
}

// noMore stands where there is nothing more. Nobody changes it.
var noMore = more{}

// A boxed node has room for its first attempt, so that both are one piece of
// memory.
type boxed struct {
	node
	one [1]attempt
}

// box returns a copy of a node that shares only what is never changed.
func (n *node) box() *node {
	b := &boxed{node: *n}
	b.attempts = append(b.one[:0], n.attempts...)
	return &b.node
}

// An attempt is one call. Open attempts are always kept; of closed ones only
// the last few.
type attempt struct {
	call       int32
	number     int32 // for people, from 1, in its round
	gen        int32 // of its key
	kind       callKind
	status     attemptStatus
	started    instant
	completeBy instant
	silent     instant // it must be heard of before; 0 = it need not
	ended      instant
	said       *saying // about its end; nil = nothing
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

func (a *attempt) code() string {
	code, _ := a.said.words()
	return code
}

func (a *attempt) message() string {
	_, message := a.said.words()
	return message
}

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
		if int(n.attempts[k].call) == call {
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

// newNode returns a step to which nothing has happened yet. It must not be
// changed.
func newNode(step int) *node {
	if step < len(pristine) {
		return &pristine[step]
	}
	return &node{step: int32(step), state: StepPending, more: &noMore}
}

// appendSteps appends n steps, in one piece of memory, to which nothing has
// happened yet.
func appendSteps(nodes []*node, first, n int) []*node {
	if first+n <= len(pristine) {
		for i := range n {
			nodes = append(nodes, &pristine[first+i])
		}
		return nodes
	}
	steps := make([]node, n)
	for i := range steps {
		steps[i] = node{step: int32(first + i), state: StepPending, more: &noMore}
		nodes = append(nodes, &steps[i])
	}
	return nodes
}

// pristine are the steps of a run to which nothing has happened yet: they need no
// memory of their own.
var pristine = func() (steps [64]node) {
	for i := range steps {
		steps[i] = node{step: int32(i), state: StepPending, more: &noMore}
	}
	return steps
}()

// blank is what a node is compared with when it is added by a record.
var blank = node{more: &noMore}
