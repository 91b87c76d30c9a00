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
func number[T any, N ~int | ~int16 | ~int32 | ~int64 | ~uint8](p func(*T) *N) field[T] {
	return field[T]{
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

func moment[T any](p func(*T) *instant) field[T] {
	return field[T]{
		same: func(a, b *T) bool { return *p(a) == *p(b) },
		copy: func(dst, src *T) { *p(dst) = *p(src) },
		put:  func(e *encoder, v *T) { e.instant(*p(v)) },
		get:  func(d *decoder, v *T) { *p(v) = d.instant() },
	}
}

func boolean[T any](p func(*T) *bool) field[T] {
	return field[T]{
		same: func(a, b *T) bool { return *p(a) == *p(b) },
		copy: func(dst, src *T) { *p(dst) = *p(src) },
		put:  func(e *encoder, v *T) { e.bool(*p(v)) },
		get:  func(d *decoder, v *T) { *p(v) = d.bool() },
	}
}

func text[T any](p func(*T) *string) field[T] {
	return field[T]{
		same: func(a, b *T) bool { return *p(a) == *p(b) },
		copy: func(dst, src *T) { *p(dst) = *p(src) },
		put:  func(e *encoder, v *T) { e.string(*p(v)) },
		get:  func(d *decoder, v *T) { *p(v) = d.string() },
	}
}

func value[T any](p func(*T) *held) field[T] {
	return field[T]{
		same: func(a, b *T) bool { return sameHeld(*p(a), *p(b)) },
		copy: func(dst, src *T) { *p(dst) = *p(src) },
		put:  func(e *encoder, v *T) { e.held(*p(v)) },
		get:  func(d *decoder, v *T) { *p(v) = d.held() },
	}
}

// blame is the last failure of a track.
func blame(p func(*node) *track) field[node] {
	return field[node]{
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
	number(func(r *run) *RunState { return &r.state }), // runStateBit
	number(func(r *run) *int32 { return &r.done }),
	number(func(r *run) *int32 { return &r.live }),
	boolean(func(r *run) *bool { return &r.begun }),
	moment(func(r *run) *instant { return &r.finished }),
	{
		same: func(a, b *run) bool { return slices.EqualFunc(a.outputs, b.outputs, sameOutput) },
		copy: func(dst, src *run) { dst.outputs = src.outputs },
		put:  func(e *encoder, r *run) { e.outputs(r.outputs) },
		get:  func(d *decoder, r *run) { r.outputs = d.outputs() },
	},
	number(func(r *run) *RunID { return &r.id }),
	text(func(r *run) *string { return &r.name }),
	text(func(r *run) *string { return &r.key }),
	value(func(r *run) *held { return &r.vars }),
	text(func(r *run) *string { return &r.trigger }),
	text(func(r *run) *string { return &r.startedBy }),
	text(func(r *run) *string { return &r.workflow }),
	number(func(r *run) *int32 { return &r.steps }),
	number(func(r *run) *int32 { return &r.owner }),
	moment(func(r *run) *instant { return &r.started }),
	moment(func(r *run) *instant { return &r.deadline }),
	number(func(r *run) *phase { return &r.phase }),
	boolean(func(r *run) *bool { return &r.paused }),
	boolean(func(r *run) *bool { return &r.parked }),
	moment(func(r *run) *instant { return &r.parkedAt }),
	boolean(func(r *run) *bool { return &r.passed }),
	boolean(func(r *run) *bool { return &r.turning }),
	boolean(func(r *run) *bool { return &r.cancel }),
	boolean(func(r *run) *bool { return &r.noUndo }),
	boolean(func(r *run) *bool { return &r.overdue }),
	{
		same: func(a, b *run) bool { return a.failure == b.failure },
		copy: func(dst, src *run) { dst.failure = src.failure },
		put:  func(e *encoder, r *run) { e.failure(r.failure) },
		get:  func(d *decoder, r *run) { r.failure = d.failure() },
	},
	moment(func(r *run) *instant { return &r.undoStarted }),
	moment(func(r *run) *instant { return &r.undoDeadline }),
	boolean(func(r *run) *bool { return &r.undoExpired }),
	boolean(func(r *run) *bool { return &r.stuck }),
	number(func(r *run) *int32 { return &r.undonePast }),
	number(func(r *run) *int32 { return &r.undone }),
	number(func(r *run) *int32 { return &r.left }),
	number(func(r *run) *int32 { return &r.undeclared }),
	{
		same: func(a, b *run) bool { return slices.Equal(a.holds, b.holds) },
		copy: func(dst, src *run) { dst.holds = src.holds },
		put:  func(e *encoder, r *run) { e.holds(r.holds) },
		get:  func(d *decoder, r *run) { r.holds = d.holds() },
	},
	{ // of run.holds, by place
		same: func(a, b *run) bool { return slices.Equal(a.refused, b.refused) },
		copy: func(dst, src *run) { dst.refused = src.refused },
		put:  func(e *encoder, r *run) { e.instants(r.refused) },
		get:  func(d *decoder, r *run) { r.refused = d.instants() },
	},
	{ // who paused it, when and why
		same: func(a, b *run) bool {
			return a.pausedAt == b.pausedAt && a.pausedBy == b.pausedBy && a.pauseWhy == b.pauseWhy
		},
		copy: func(dst, src *run) {
			dst.pausedAt, dst.pausedBy, dst.pauseWhy = src.pausedAt, src.pausedBy, src.pauseWhy
		},
		put: func(e *encoder, r *run) { e.instant(r.pausedAt); e.string(r.pausedBy); e.string(r.pauseWhy) },
		get: func(d *decoder, r *run) { r.pausedAt, r.pausedBy, r.pauseWhy = d.instant(), d.string(), d.string() },
	},
	{ // that engines died with it; runLostBit
		same: func(a, b *run) bool { return a.lostAt == b.lostAt && a.lostWhy == b.lostWhy },
		copy: func(dst, src *run) { dst.lostAt, dst.lostWhy = src.lostAt, src.lostWhy },
		put:  func(e *encoder, r *run) { e.instant(r.lostAt); e.string(r.lostWhy) },
		get:  func(d *decoder, r *run) { r.lostAt, r.lostWhy = d.instant(), d.string() },
	},
}

// Bits of the run's fields that are looked at one by one, and of those behind a
// pointer.
const (
	runStateBit   = 1 << 0
	runOutputsBit = 1 << 5
	runVarsBit    = 1 << 9
	runLostBit    = 1 << 38
	headBits      = 1<<6 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12 | 1<<15
	troubleBits   = 1<<5 | 1<<20 | 1<<26 | 1<<27 | 1<<28 | 1<<35 | 1<<36 | 1<<37 | runLostBit
)

func sameOutput(a, b output) bool {
	return a.name == b.name && a.sensitive == b.sensitive && a.problem == b.problem && sameHeld(a.value, b.value)
}

// The most frequent fields come first: their bits make the shortest masks.
var nodeFields = []field[node]{
	number(func(n *node) *StepState { return &n.state }),
	number(func(n *node) *activity { return &n.fwd.act }),
	number(func(n *node) *int32 { return &n.doubt }),
	boolean(func(n *node) *bool { return &n.done }),
	number(func(n *node) *int32 { return &n.calls }),
	number(func(n *node) *int32 { return &n.fwd.attempt }),
	number(func(n *node) *int32 { return &n.fwd.total }),
	number(func(n *node) *int32 { return &n.deps }),
	number(func(n *node) *callKind { return &n.fwd.kind }),
	moment(func(n *node) *instant { return &n.fwd.ready }),
	moment(func(n *node) *instant { return &n.fwd.began }),
	moment(func(n *node) *instant { return &n.fwd.ended }),
	value(func(n *node) *held { return &n.input }),
	boolean(func(n *node) *bool { return &n.prepared }),
	value(func(n *node) *held { return &n.output }),
	boolean(func(n *node) *bool { return &n.known }),
	moment(func(n *node) *instant { return &n.fwd.deadline }),
	moment(func(n *node) *instant { return &n.fwd.until }),
	number(func(n *node) *int32 { return &n.fwd.failures }),
	blame(func(n *node) *track { return &n.fwd }),
	{ // who an instance is
		same: func(a, b *node) bool {
			return a.item == b.item && a.step == b.step && a.key == b.key && sameHeld(a.each, b.each)
		},
		copy: func(dst, src *node) { dst.item, dst.step, dst.key, dst.each = src.item, src.step, src.key, src.each },
		put:  func(e *encoder, n *node) { e.bool(n.item); e.int(int64(n.step)); e.string(n.key); e.held(n.each) },
		get: func(d *decoder, n *node) {
			n.item, n.step, n.key, n.each = d.bool(), int32(d.index()), d.string(), d.held()
		},
	},
	number(func(n *node) *int { return &n.next }),
	number(func(n *node) *int { return &n.active }),
	number(func(n *node) *int { return &n.over }),
	number(func(n *node) *int { return &n.bad }),
	number(func(n *node) *int { return &n.past }),
	number(func(n *node) *undoState { return &n.undo }),
	number(func(n *node) *activity { return &n.und.act }),
	number(func(n *node) *int32 { return &n.back }),
	number(func(n *node) *callKind { return &n.und.kind }),
	number(func(n *node) *int32 { return &n.und.attempt }),
	number(func(n *node) *int32 { return &n.und.total }),
	value(func(n *node) *held { return &n.undoInput }),
	boolean(func(n *node) *bool { return &n.undoReady }),
	moment(func(n *node) *instant { return &n.und.began }),
	moment(func(n *node) *instant { return &n.und.ended }),
	moment(func(n *node) *instant { return &n.und.ready }),
	moment(func(n *node) *instant { return &n.und.deadline }),
	moment(func(n *node) *instant { return &n.quiet }),
	{ // its place in the queue for an agent
		same: func(a, b *node) bool { return a.queue == b.queue && a.hold == b.hold },
		copy: func(dst, src *node) { dst.queue, dst.hold = src.queue, src.hold },
		put:  func(e *encoder, n *node) { e.instant(n.queue); e.int(int64(n.hold)) },
		get:  func(d *decoder, n *node) { n.queue = d.instant(); n.hold = int32(d.index()) },
	},
	moment(func(n *node) *instant { return &n.und.until }),
	number(func(n *node) *int32 { return &n.und.failures }),
	blame(func(n *node) *track { return &n.und }),
	number(func(n *node) *int { return &n.undoDoubt }),
	{ // the instances of a for_each step
		same: func(a, b *node) bool { return a.expanded == b.expanded && a.first == b.first && a.count == b.count },
		copy: func(dst, src *node) { dst.expanded, dst.first, dst.count = src.expanded, src.first, src.count },
		put:  func(e *encoder, n *node) { e.bool(n.expanded); e.int(int64(n.first)); e.int(int64(n.count)) },
		get:  func(d *decoder, n *node) { n.expanded, n.first, n.count = d.bool(), d.index(), d.index() },
	},
	number(func(n *node) *int16 { return &n.fwd.rounds }),
	number(func(n *node) *int16 { return &n.fwd.lookups }),
	number(func(n *node) *int16 { return &n.und.lookups }),
	value(func(n *node) *held { return &n.caught }),
	boolean(func(n *node) *bool { return &n.timedOut }),
	text(func(n *node) *string { return &n.bizKey }),
	number(func(n *node) *int32 { return &n.gen }),
	{
		same: func(a, b *node) bool { return a.point == b.point && string(a.blob) == string(b.blob) },
		copy: func(dst, src *node) { dst.point, dst.blob = src.point, src.blob },
		put:  func(e *encoder, n *node) { e.int(int64(n.point)); e.bytes(n.blob) },
		get:  func(d *decoder, n *node) { n.point = int(d.int()); n.blob = d.bytes() },
	},
	text(func(n *node) *string { return &n.manual }),
	moment(func(n *node) *instant { return &n.fwd.rest }),
	moment(func(n *node) *instant { return &n.und.rest }),
	boolean(func(n *node) *bool { return &n.clearing }),
	{
		same: func(a, b *node) bool { return a.undoPoint == b.undoPoint && string(a.undoBlob) == string(b.undoBlob) },
		copy: func(dst, src *node) { dst.undoPoint, dst.undoBlob = src.undoPoint, src.undoBlob },
		put:  func(e *encoder, n *node) { e.int(int64(n.undoPoint)); e.bytes(n.undoBlob) },
		get:  func(d *decoder, n *node) { n.undoPoint = int(d.int()); n.undoBlob = d.bytes() },
	},
	number(func(n *node) *statement { return &n.stated }),
}

// Bits of a node's values, and of what lies behind a pointer.
const (
	inputBit     = 1 << 12
	outputBit    = 1 << 14
	eachBit      = 1 << 20
	undoInputBit = 1 << 32
	caughtBit    = 1 << 48
	moreBits     = 0x1f<<21 | 1<<27 | 0xf<<29 | 0xf<<34 | 0x1f<<40 | 3<<47 | 1<<50 | 3<<52 | 1<<55 | 3<<57
)

// valueBits are the bits of nodeValues.
var valueBits = [5]uint64{eachBit, inputBit, outputBit, caughtBit, undoInputBit}

// nodeValues are the values of a node that a record may hold.
func nodeValues(n *node) [5]*held {
	return [5]*held{&n.each, &n.input, &n.output, &n.caught, &n.undoInput}
}

// saidBits are the bits of an attempt's code and message.
const saidBits = 3 << 6

var attemptFields = []field[attempt]{
	number(func(a *attempt) *attemptStatus { return &a.status }),
	moment(func(a *attempt) *instant { return &a.ended }),
	number(func(a *attempt) *callKind { return &a.kind }),
	number(func(a *attempt) *int32 { return &a.number }),
	moment(func(a *attempt) *instant { return &a.started }),
	moment(func(a *attempt) *instant { return &a.completeBy }),
	{
		same: func(a, b *attempt) bool { return a.said == b.said || a.code() == b.code() },
		copy: func(dst, src *attempt) { dst.said = said(src.code(), dst.message()) },
		put:  func(e *encoder, a *attempt) { e.string(a.code()) },
		get:  func(d *decoder, a *attempt) { a.said = said(d.string(), a.message()) },
	},
	{
		same: func(a, b *attempt) bool { return a.said == b.said || a.message() == b.message() },
		copy: func(dst, src *attempt) { dst.said = said(dst.code(), src.message()) },
		put:  func(e *encoder, a *attempt) { e.string(a.message()) },
		get:  func(d *decoder, a *attempt) { a.said = said(a.code(), d.string()) },
	},
	moment(func(a *attempt) *instant { return &a.silent }),
	number(func(a *attempt) *int32 { return &a.gen }),
}
