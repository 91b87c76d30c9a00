package machine

import "github.com/saga-engine/engine/dsl"

// Most records say one of two things of a node: an attempt starts, or the
// attempt the event is about has ended well and the step with it. What such a
// usual change writes is nearly always the same or follows from the record's
// time and event, so the journal holds its number and what does not follow.
//
// Numbers, masks and what follows never change once released: journals hold
// them.
type usualKind uint8

const (
	usualNot      usualKind = 0 // all is written
	usualStart    usualKind = 1 // an attempt to do the step starts
	usualEnd      usualKind = 2 // the event's attempt ended OK; the output is the event's
	usualEndKnown usualKind = 3 // ... but the output is a value that the run had already
)

// A usual says which fields of the node and of one attempt a usual change changes
// and which of those follow. Without the fields in must, too little would follow.
type usual struct {
	node, follow, must     uint64
	attempt, attemptFollow uint64
}

var usuals = [4]usual{
	usualStart: {
		node: startFollow | depsBit | inputBit, follow: startFollow, must: 1<<1 | 1<<4 | 1<<5,
		attempt: 1<<2 | 1<<3 | 1<<4 | 1<<5, attemptFollow: 1<<2 | 1<<3 | 1<<4,
	},
	usualEnd: {
		node: endFollow, follow: endFollow, must: 1<<0 | 1<<1 | 1<<11,
		attempt: 1<<0 | 1<<1, attemptFollow: 1<<0 | 1<<1,
	},
	usualEndKnown: {
		node: endFollow, follow: endFollow &^ outputBit, must: 1<<0 | 1<<1 | 1<<11,
		attempt: 1<<0 | 1<<1, attemptFollow: 1<<0 | 1<<1,
	},
}

const (
	depsBit     = 1 << 7
	startFollow = 1<<0 | 1<<1 | 1<<2 | 1<<4 | 1<<5 | 1<<6 | 1<<8 | 1<<9 | 1<<10 | 1<<13
	endFollow   = 1<<0 | 1<<1 | 1<<3 | 1<<11 | outputBit | 1<<15
)

// fields returns the fields that a usual change changes if the event is this
// one: a run's first steps depend on nothing, and an answer may have no output.
func (k usualKind) fields(event Event) uint64 {
	mask := usuals[k].node
	switch ev := event.(type) {
	case Started:
		if k == usualStart {
			mask &^= depsBit
		}
	case AttemptOK:
		if k == usualEnd && ev.Output.IsNull() {
			mask &^= outputBit
		}
	}
	return mask
}

// usually returns which usual change a node's patch is, in a record of this time
// and event.
func usually(p *nodePatch, at instant, event Event) usualKind {
	if len(p.attempts) != 1 {
		return usualNot
	}
	a := &p.attempts[0]
	if u := &usuals[usualStart]; p.mask&u.must == u.must {
		differs := startDiffers(p.to, at, a.to.call) & u.follow & p.mask
		if differs == 0 && attemptStartDiffers(&a.to, at)&u.attemptFollow&uint64(a.mask) == 0 {
			return usualStart
		}
		return usualNot
	}
	u := &usuals[usualEnd]
	if p.mask&u.must != u.must {
		return usualNot
	}
	ok, is := event.(AttemptOK)
	if !is || ok.Attempt.Node != p.node || ok.Attempt.Call != int(a.to.call) {
		return usualNot
	}
	if attemptEndDiffers(&a.to, at)&u.attemptFollow&uint64(a.mask) != 0 {
		return usualNot
	}
	switch endDiffers(p.to, at, ok.Output) & u.follow & p.mask {
	case 0:
		return usualEnd
	case outputBit:
		return usualEndKnown
	}
	return usualNot
}

// set makes the fields in mask, all of which follow, what they then are.
func (k usualKind) set(n *node, mask uint64, at instant, call int32, output dsl.Value) {
	switch k {
	case usualStart:
		setStart(n, mask, at, call)
	case usualEnd, usualEndKnown:
		setEnd(n, mask, at, output)
	}
}

// startDiffers returns the fields in which a node is not as a usual start leaves
// it. Bits that do not follow mean nothing.
func startDiffers(n *node, at instant, call int32) uint64 {
	var m uint64
	if n.state != StepRunning {
		m |= 1 << 0
	}
	if n.fwd.act != running {
		m |= 1 << 1
	}
	if n.doubt != 1 {
		m |= 1 << 2
	}
	if n.calls != call {
		m |= 1 << 4
	}
	if n.fwd.attempt != call {
		m |= 1 << 5
	}
	if n.fwd.total != call {
		m |= 1 << 6
	}
	if n.fwd.kind != callDo {
		m |= 1 << 8
	}
	if n.fwd.ready != at {
		m |= 1 << 9
	}
	if n.fwd.began != at {
		m |= 1 << 10
	}
	if !n.prepared {
		m |= 1 << 13
	}
	return m
}

// setStart makes the fields in mask what startDiffers compares them with.
func setStart(n *node, mask uint64, at instant, call int32) {
	if mask&(1<<0) != 0 {
		n.state = StepRunning
	}
	if mask&(1<<1) != 0 {
		n.fwd.act = running
	}
	if mask&(1<<2) != 0 {
		n.doubt = 1
	}
	if mask&(1<<4) != 0 {
		n.calls = call
	}
	if mask&(1<<5) != 0 {
		n.fwd.attempt = call
	}
	if mask&(1<<6) != 0 {
		n.fwd.total = call
	}
	if mask&(1<<8) != 0 {
		n.fwd.kind = callDo
	}
	if mask&(1<<9) != 0 {
		n.fwd.ready = at
	}
	if mask&(1<<10) != 0 {
		n.fwd.began = at
	}
	if mask&(1<<13) != 0 {
		n.prepared = true
	}
}

// endDiffers returns the fields in which a node is not as a usual end leaves it.
func endDiffers(n *node, at instant, output dsl.Value) uint64 {
	var m uint64
	if n.state != StepSucceeded {
		m |= 1 << 0
	}
	if n.fwd.act != idle {
		m |= 1 << 1
	}
	if !n.done {
		m |= 1 << 3
	}
	if n.fwd.ended != at {
		m |= 1 << 11
	}
	if !sameHeld(n.output, held{v: output}) {
		m |= outputBit
	}
	if !n.known {
		m |= 1 << 15
	}
	return m
}

// setEnd makes the fields in mask what endDiffers compares them with.
func setEnd(n *node, mask uint64, at instant, output dsl.Value) {
	if mask&(1<<0) != 0 {
		n.state = StepSucceeded
	}
	if mask&(1<<1) != 0 {
		n.fwd.act = idle
	}
	if mask&(1<<3) != 0 {
		n.done = true
	}
	if mask&(1<<11) != 0 {
		n.fwd.ended = at
	}
	if mask&outputBit != 0 {
		n.output = held{v: output}
	}
	if mask&(1<<15) != 0 {
		n.known = true
	}
}

// attemptStartDiffers returns the fields in which an attempt is not as a usual
// start leaves it.
func attemptStartDiffers(a *attempt, at instant) uint64 {
	var m uint64
	if a.kind != callDo {
		m |= 1 << 2
	}
	if a.number != a.call {
		m |= 1 << 3
	}
	if a.started != at {
		m |= 1 << 4
	}
	return m
}

// attemptEndDiffers is attemptStartDiffers for a usual end.
func attemptEndDiffers(a *attempt, at instant) uint64 {
	var m uint64
	if a.status != attemptOK {
		m |= 1 << 0
	}
	if a.ended != at {
		m |= 1 << 1
	}
	return m
}

// setAttempt makes the fields in mask what attemptStartDiffers and
// attemptEndDiffers compare them with.
func setAttempt(a *attempt, mask uint64, at instant) {
	if mask&(1<<0) != 0 {
		a.status = attemptOK
	}
	if mask&(1<<1) != 0 {
		a.ended = at
	}
	if mask&(1<<2) != 0 {
		a.kind = callDo
	}
	if mask&(1<<3) != 0 {
		a.number = a.call
	}
	if mask&(1<<4) != 0 {
		a.started = at
	}
}
