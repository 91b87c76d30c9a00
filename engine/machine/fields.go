package machine

import (
	"math/bits"
	"slices"
)

// A field is one persisted field of a run or node: how to compare, copy, write
// and read it. A field's place in its table is its bit in a patch and is never
// reused; new fields go to the end, and a record without them means "as
// before".
type field[T any] struct {
	bit  uint64 // in a patch; 1 << its place in its table
	same func(a, b *T) bool
	copy func(dst, src *T)
	put  func(e *encoder, v *T)
	get  func(d *decoder, v *T)
}

// diff returns the bits of the fields in which a and b differ.
func diff[T any](fields []field[T], a, b *T) uint64 {
	var mask uint64
	for i := range fields {
		if !fields[i].same(a, b) {
			mask |= 1 << i
		}
	}
	return mask
}

// overwrite copies the fields in mask.
func overwrite[T any](fields []field[T], mask uint64, dst, src *T) {
	for ; mask != 0; mask &= mask - 1 {
		fields[bits.TrailingZeros64(mask)].copy(dst, src)
	}
}

// number is a field of an integer type that is rarely negative.
func number[T any, N ~int | ~int16 | ~int32 | ~int64 | ~uint8](bit uint64, p func(*T) *N) field[T] {
	return field[T]{
		bit:  bit,
		same: func(a, b *T) bool { return *p(a) == *p(b) },
		copy: func(dst, src *T) { *p(dst) = *p(src) },
		put:  func(e *encoder, v *T) { e.int(int64(*p(v))) },
		get: func(d *decoder, v *T) {
			read := d.int()
			if *p(v) = N(read); int64(*p(v)) != read {
				d.fail()
			}
		},
	}
}

func moment[T any](bit uint64, p func(*T) *instant) field[T] {
	return field[T]{
		bit:  bit,
		same: func(a, b *T) bool { return *p(a) == *p(b) },
		copy: func(dst, src *T) { *p(dst) = *p(src) },
		put:  func(e *encoder, v *T) { e.instant(*p(v)) },
		get:  func(d *decoder, v *T) { *p(v) = d.instant() },
	}
}

func boolean[T any](bit uint64, p func(*T) *bool) field[T] {
	return field[T]{
		bit:  bit,
		same: func(a, b *T) bool { return *p(a) == *p(b) },
		copy: func(dst, src *T) { *p(dst) = *p(src) },
		put:  func(e *encoder, v *T) { e.bool(*p(v)) },
		get:  func(d *decoder, v *T) { *p(v) = d.bool() },
	}
}

func text[T any](bit uint64, p func(*T) *string) field[T] {
	return field[T]{
		bit:  bit,
		same: func(a, b *T) bool { return *p(a) == *p(b) },
		copy: func(dst, src *T) { *p(dst) = *p(src) },
		put:  func(e *encoder, v *T) { e.string(*p(v)) },
		get:  func(d *decoder, v *T) { *p(v) = d.string() },
	}
}

func value[T any](bit uint64, p func(*T) *held) field[T] {
	return field[T]{
		bit:  bit,
		same: func(a, b *T) bool { return sameHeld(*p(a), *p(b)) },
		copy: func(dst, src *T) { *p(dst) = *p(src) },
		put:  func(e *encoder, v *T) { e.held(*p(v)) },
		get:  func(d *decoder, v *T) { *p(v) = d.held() },
	}
}

// blame is the last failure of a track.
func blame(bit uint64, p func(*node) *track) field[node] {
	return field[node]{
		bit: bit,
		same: func(a, b *node) bool {
			x, y := p(a), p(b)
			return x.miss == y.miss && x.said.same(y.said)
		},
		copy: func(dst, src *node) {
			x, y := p(dst), p(src)
			x.miss, x.said = y.miss, y.said
		},
		put: func(e *encoder, n *node) {
			x := p(n)
			code, message := x.said.words()
			e.int(int64(x.miss))
			e.string(code)
			e.string(message)
		},
		get: func(d *decoder, n *node) {
			x := p(n)
			x.miss = missKind(d.int())
			x.said = said(d.string(), d.string())
		},
	}
}

// sameHeld compares by identity first: most values are not touched at all.
func sameHeld(a, b held) bool { return a == b || (a.from == b.from && sameValue(a.v, b.v)) }

var runFields = []field[run]{
	number(runStateBit, func(r *run) *RunState { return &r.state }),
	number(runDoneBit, func(r *run) *int32 { return &r.done }),
	number(runLiveBit, func(r *run) *int32 { return &r.live }),
	boolean(runBegunBit, func(r *run) *bool { return &r.begun }),
	moment(runFinishedBit, func(r *run) *instant { return &r.finished }),
	{
		bit:  runOutputsBit,
		same: func(a, b *run) bool { return slices.EqualFunc(a.outputs, b.outputs, sameOutput) },
		copy: func(dst, src *run) { dst.outputs = src.outputs },
		put:  func(e *encoder, r *run) { e.outputs(r.outputs) },
		get:  func(d *decoder, r *run) { r.outputs = d.outputs() },
	},
	number(runIDBit, func(r *run) *RunID { return &r.id }),
	text(runNameBit, func(r *run) *string { return &r.name }),
	text(runKeyBit, func(r *run) *string { return &r.key }),
	value(runVarsBit, func(r *run) *held { return &r.vars }),
	text(runTriggerBit, func(r *run) *string { return &r.trigger }),
	text(runStartedByBit, func(r *run) *string { return &r.startedBy }),
	text(runWorkflowBit, func(r *run) *string { return &r.workflow }),
	number(runStepsBit, func(r *run) *int32 { return &r.steps }),
	number(runOwnerBit, func(r *run) *int32 { return &r.owner }),
	moment(runStartedBit, func(r *run) *instant { return &r.started }),
	moment(runDeadlineBit, func(r *run) *instant { return &r.deadline }),
	number(runPhaseBit, func(r *run) *phase { return &r.phase }),
	boolean(runPausedBit, func(r *run) *bool { return &r.paused }),
	boolean(runParkedBit, func(r *run) *bool { return &r.parked }),
	moment(runParkedAtBit, func(r *run) *instant { return &r.parkedAt }),
	boolean(runPassedBit, func(r *run) *bool { return &r.passed }),
	boolean(runTurningBit, func(r *run) *bool { return &r.turning }),
	boolean(runCancelBit, func(r *run) *bool { return &r.cancel }),
	boolean(runNoUndoBit, func(r *run) *bool { return &r.noUndo }),
	boolean(runOverdueBit, func(r *run) *bool { return &r.overdue }),
	{
		bit:  runFailureBit,
		same: func(a, b *run) bool { return a.failure == b.failure },
		copy: func(dst, src *run) { dst.failure = src.failure },
		put:  func(e *encoder, r *run) { e.failure(r.failure) },
		get:  func(d *decoder, r *run) { r.failure = d.failure() },
	},
	moment(runUndoStartedBit, func(r *run) *instant { return &r.undoStarted }),
	moment(runUndoDeadlineBit, func(r *run) *instant { return &r.undoDeadline }),
	boolean(runUndoExpiredBit, func(r *run) *bool { return &r.undoExpired }),
	boolean(runStuckBit, func(r *run) *bool { return &r.stuck }),
	number(runUndonePastBit, func(r *run) *int32 { return &r.undonePast }),
	number(runUndoneBit, func(r *run) *int32 { return &r.undone }),
	number(runLeftBit, func(r *run) *int32 { return &r.left }),
	number(runUndeclaredBit, func(r *run) *int32 { return &r.undeclared }),
	{
		bit:  runHoldsBit,
		same: func(a, b *run) bool { return slices.Equal(a.holds, b.holds) },
		copy: func(dst, src *run) { dst.holds = src.holds },
		put:  func(e *encoder, r *run) { e.holds(r.holds) },
		get:  func(d *decoder, r *run) { r.holds = d.holds() },
	},
	{ // of run.holds, by place
		bit:  runRefusedBit,
		same: func(a, b *run) bool { return slices.Equal(a.refused, b.refused) },
		copy: func(dst, src *run) { dst.refused = src.refused },
		put:  func(e *encoder, r *run) { e.instants(r.refused) },
		get:  func(d *decoder, r *run) { r.refused = d.instants() },
	},
	{ // who paused it, when and why
		bit: runPauseBit,
		same: func(a, b *run) bool {
			return a.pausedAt == b.pausedAt && a.pausedBy == b.pausedBy && a.pauseWhy == b.pauseWhy
		},
		copy: func(dst, src *run) {
			dst.pausedAt, dst.pausedBy, dst.pauseWhy = src.pausedAt, src.pausedBy, src.pauseWhy
		},
		put: func(e *encoder, r *run) { e.instant(r.pausedAt); e.string(r.pausedBy); e.string(r.pauseWhy) },
		get: func(d *decoder, r *run) { r.pausedAt, r.pausedBy, r.pauseWhy = d.instant(), d.string(), d.string() },
	},
	{ // that engines died with it
		bit:  runLostBit,
		same: func(a, b *run) bool { return a.lostAt == b.lostAt && a.lostWhy == b.lostWhy },
		copy: func(dst, src *run) { dst.lostAt, dst.lostWhy = src.lostAt, src.lostWhy },
		put:  func(e *encoder, r *run) { e.instant(r.lostAt); e.string(r.lostWhy) },
		get:  func(d *decoder, r *run) { r.lostAt, r.lostWhy = d.instant(), d.string() },
	},
}

// Bits of the run's fields that lie behind a pointer.
const (
	headBits    = runIDBit | runNameBit | runKeyBit | runVarsBit | runTriggerBit | runStartedByBit | runWorkflowBit | runStartedBit
	troubleBits = runOutputsBit | runParkedAtBit | runFailureBit | runUndoStartedBit | runUndoDeadlineBit | runHoldsBit | runRefusedBit | runPauseBit | runLostBit
)

func sameOutput(a, b output) bool {
	return a.name == b.name && a.sensitive == b.sensitive && a.problem == b.problem && sameHeld(a.value, b.value)
}

// The most frequent fields come first: their bits make the shortest masks.
var nodeFields = []field[node]{
	number(nodeStateBit, func(n *node) *StepState { return &n.state }),
	number(nodeFwdActBit, func(n *node) *activity { return &n.fwd.act }),
	number(nodeDoubtBit, func(n *node) *int32 { return &n.doubt }),
	boolean(nodeDoneBit, func(n *node) *bool { return &n.done }),
	number(nodeCallsBit, func(n *node) *int32 { return &n.calls }),
	number(nodeFwdAttemptBit, func(n *node) *int32 { return &n.fwd.attempt }),
	number(nodeFwdTotalBit, func(n *node) *int32 { return &n.fwd.total }),
	number(nodeDepsBit, func(n *node) *int32 { return &n.deps }),
	number(nodeFwdKindBit, func(n *node) *callKind { return &n.fwd.kind }),
	moment(nodeFwdReadyBit, func(n *node) *instant { return &n.fwd.ready }),
	moment(nodeFwdBeganBit, func(n *node) *instant { return &n.fwd.began }),
	moment(nodeFwdEndedBit, func(n *node) *instant { return &n.fwd.ended }),
	value(nodeInputBit, func(n *node) *held { return &n.input }),
	boolean(nodePreparedBit, func(n *node) *bool { return &n.prepared }),
	value(nodeOutputBit, func(n *node) *held { return &n.output }),
	boolean(nodeKnownBit, func(n *node) *bool { return &n.known }),
	moment(nodeFwdDeadlineBit, func(n *node) *instant { return &n.fwd.deadline }),
	moment(nodeFwdUntilBit, func(n *node) *instant { return &n.fwd.until }),
	number(nodeFwdFailuresBit, func(n *node) *int32 { return &n.fwd.failures }),
	blame(nodeFwdFailureBit, func(n *node) *track { return &n.fwd }),
	{ // who an instance is
		bit: nodeInstanceBit,
		same: func(a, b *node) bool {
			return a.item == b.item && a.step == b.step && a.key == b.key && sameHeld(a.each, b.each)
		},
		copy: func(dst, src *node) { dst.item, dst.step, dst.key, dst.each = src.item, src.step, src.key, src.each },
		put:  func(e *encoder, n *node) { e.bool(n.item); e.int(int64(n.step)); e.string(n.key); e.held(n.each) },
		get: func(d *decoder, n *node) {
			n.item, n.step, n.key, n.each = d.bool(), int32(d.index()), d.string(), d.held()
		},
	},
	number(nodeNextBit, func(n *node) *int { return &n.next }),
	number(nodeActiveBit, func(n *node) *int { return &n.active }),
	number(nodeOverBit, func(n *node) *int { return &n.over }),
	number(nodeBadBit, func(n *node) *int { return &n.bad }),
	number(nodePastBit, func(n *node) *int { return &n.past }),
	number(nodeUndoBit, func(n *node) *undoState { return &n.undo }),
	number(nodeUndActBit, func(n *node) *activity { return &n.und.act }),
	number(nodeBackBit, func(n *node) *int32 { return &n.back }),
	number(nodeUndKindBit, func(n *node) *callKind { return &n.und.kind }),
	number(nodeUndAttemptBit, func(n *node) *int32 { return &n.und.attempt }),
	number(nodeUndTotalBit, func(n *node) *int32 { return &n.und.total }),
	value(nodeUndoInputBit, func(n *node) *held { return &n.undoInput }),
	boolean(nodeUndoReadyBit, func(n *node) *bool { return &n.undoReady }),
	moment(nodeUndBeganBit, func(n *node) *instant { return &n.und.began }),
	moment(nodeUndEndedBit, func(n *node) *instant { return &n.und.ended }),
	moment(nodeUndReadyBit, func(n *node) *instant { return &n.und.ready }),
	moment(nodeUndDeadlineBit, func(n *node) *instant { return &n.und.deadline }),
	moment(nodeQuietBit, func(n *node) *instant { return &n.quiet }),
	{ // its place in the queue for an agent
		bit:  nodeQueueBit,
		same: func(a, b *node) bool { return a.queue == b.queue && a.hold == b.hold },
		copy: func(dst, src *node) { dst.queue, dst.hold = src.queue, src.hold },
		put:  func(e *encoder, n *node) { e.instant(n.queue); e.int(int64(n.hold)) },
		get:  func(d *decoder, n *node) { n.queue = d.instant(); n.hold = int32(d.index()) },
	},
	moment(nodeUndUntilBit, func(n *node) *instant { return &n.und.until }),
	number(nodeUndFailuresBit, func(n *node) *int32 { return &n.und.failures }),
	blame(nodeUndFailureBit, func(n *node) *track { return &n.und }),
	number(nodeUndoDoubtBit, func(n *node) *int { return &n.undoDoubt }),
	{ // the instances of a for_each step
		bit:  nodeExpansionBit,
		same: func(a, b *node) bool { return a.expanded == b.expanded && a.first == b.first && a.count == b.count },
		copy: func(dst, src *node) { dst.expanded, dst.first, dst.count = src.expanded, src.first, src.count },
		put:  func(e *encoder, n *node) { e.bool(n.expanded); e.int(int64(n.first)); e.int(int64(n.count)) },
		get:  func(d *decoder, n *node) { n.expanded, n.first, n.count = d.bool(), d.index(), d.index() },
	},
	number(nodeFwdRoundsBit, func(n *node) *int16 { return &n.fwd.rounds }),
	number(nodeFwdLookupsBit, func(n *node) *int16 { return &n.fwd.lookups }),
	number(nodeUndLookupsBit, func(n *node) *int16 { return &n.und.lookups }),
	value(nodeCaughtBit, func(n *node) *held { return &n.caught }),
	boolean(nodeTimedOutBit, func(n *node) *bool { return &n.timedOut }),
	text(nodeBizKeyBit, func(n *node) *string { return &n.bizKey }),
	number(nodeGenBit, func(n *node) *int32 { return &n.gen }),
	{
		bit:  nodeCheckpointBit,
		same: func(a, b *node) bool { return a.point == b.point && string(a.blob) == string(b.blob) },
		copy: func(dst, src *node) { dst.point, dst.blob = src.point, src.blob },
		put:  func(e *encoder, n *node) { e.int(int64(n.point)); e.bytes(n.blob) },
		get:  func(d *decoder, n *node) { n.point = int(d.int()); n.blob = d.bytes() },
	},
	text(nodeManualBit, func(n *node) *string { return &n.manual }),
	moment(nodeFwdRestBit, func(n *node) *instant { return &n.fwd.rest }),
	moment(nodeUndRestBit, func(n *node) *instant { return &n.und.rest }),
	boolean(nodeClearingBit, func(n *node) *bool { return &n.clearing }),
	{
		bit:  nodeUndoCheckpointBit,
		same: func(a, b *node) bool { return a.undoPoint == b.undoPoint && string(a.undoBlob) == string(b.undoBlob) },
		copy: func(dst, src *node) { dst.undoPoint, dst.undoBlob = src.undoPoint, src.undoBlob },
		put:  func(e *encoder, n *node) { e.int(int64(n.undoPoint)); e.bytes(n.undoBlob) },
		get:  func(d *decoder, n *node) { n.undoPoint = int(d.int()); n.undoBlob = d.bytes() },
	},
	number(nodeStatedBit, func(n *node) *statement { return &n.stated }),
}

// moreBits are those of the fields of a node that lie behind a pointer.
const moreBits = nodeNextBit | nodeActiveBit | nodeOverBit | nodeBadBit | nodePastBit | nodeUndActBit | nodeUndKindBit |
	nodeUndAttemptBit | nodeUndTotalBit | nodeUndoInputBit | nodeUndBeganBit | nodeUndEndedBit |
	nodeUndReadyBit | nodeUndDeadlineBit | nodeUndUntilBit | nodeUndFailuresBit | nodeUndFailureBit |
	nodeUndoDoubtBit | nodeExpansionBit | nodeUndLookupsBit | nodeCaughtBit | nodeBizKeyBit | nodeCheckpointBit |
	nodeManualBit | nodeUndRestBit | nodeUndoCheckpointBit | nodeStatedBit

// valueBits are the bits of nodeValues.
var valueBits = [5]uint64{nodeInstanceBit, nodeInputBit, nodeOutputBit, nodeCaughtBit, nodeUndoInputBit}

// nodeValues are the values of a node that a record may hold.
func nodeValues(n *node) [5]*held {
	return [5]*held{&n.each, &n.input, &n.output, &n.caught, &n.undoInput}
}

// saidBits are the bits of an attempt's code and message.
const saidBits = attemptCodeBit | attemptMessageBit

var attemptFields = []field[attempt]{
	number(attemptStatusBit, func(a *attempt) *attemptStatus { return &a.status }),
	moment(attemptEndedBit, func(a *attempt) *instant { return &a.ended }),
	number(attemptKindBit, func(a *attempt) *callKind { return &a.kind }),
	number(attemptNumberBit, func(a *attempt) *int32 { return &a.number }),
	moment(attemptStartedBit, func(a *attempt) *instant { return &a.started }),
	moment(attemptCompleteByBit, func(a *attempt) *instant { return &a.completeBy }),
	{
		bit:  attemptCodeBit,
		same: func(a, b *attempt) bool { return a.said == b.said || a.code() == b.code() },
		copy: func(dst, src *attempt) { dst.said = said(src.code(), dst.message()) },
		put:  func(e *encoder, a *attempt) { e.string(a.code()) },
		get:  func(d *decoder, a *attempt) { a.said = said(d.string(), a.message()) },
	},
	{
		bit:  attemptMessageBit,
		same: func(a, b *attempt) bool { return a.said == b.said || a.message() == b.message() },
		copy: func(dst, src *attempt) { dst.said = said(dst.code(), src.message()) },
		put:  func(e *encoder, a *attempt) { e.string(a.message()) },
		get:  func(d *decoder, a *attempt) { a.said = said(a.code(), d.string()) },
	},
	moment(attemptSilentBit, func(a *attempt) *instant { return &a.silent }),
	number(attemptGenBit, func(a *attempt) *int32 { return &a.gen }),
}
