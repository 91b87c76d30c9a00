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
		node: startFollow | nodeDepsBit | nodeInputBit, follow: startFollow, must: nodeFwdActBit | nodeCallsBit | nodeFwdAttemptBit,
		attempt: attemptKindBit | attemptNumberBit | attemptStartedBit | attemptCompleteByBit, attemptFollow: attemptKindBit | attemptNumberBit | attemptStartedBit,
	},
	usualEnd: {
		node: endFollow, follow: endFollow, must: nodeStateBit | nodeFwdActBit | nodeFwdEndedBit,
		attempt: attemptStatusBit | attemptEndedBit, attemptFollow: attemptStatusBit | attemptEndedBit,
	},
	usualEndKnown: {
		node: endFollow, follow: endFollow &^ nodeOutputBit, must: nodeStateBit | nodeFwdActBit | nodeFwdEndedBit,
		attempt: attemptStatusBit | attemptEndedBit, attemptFollow: attemptStatusBit | attemptEndedBit,
	},
}

const (
	startFollow = nodeStateBit | nodeFwdActBit | nodeDoubtBit | nodeCallsBit | nodeFwdAttemptBit | nodeFwdTotalBit | nodeFwdKindBit | nodeFwdReadyBit | nodeFwdBeganBit | nodePreparedBit
	endFollow   = nodeStateBit | nodeFwdActBit | nodeDoneBit | nodeFwdEndedBit | nodeOutputBit | nodeKnownBit
)

// fields returns the fields that a usual change changes if the event is this
// one: a run's first steps depend on nothing, and an answer may have no output.
func (k usualKind) fields(event Event) uint64 {
	mask := usuals[k].node
	switch ev := event.(type) {
	case Started:
		if k == usualStart {
			mask &^= nodeDepsBit
		}
	case AttemptOK:
		if k == usualEnd && ev.Output.IsNull() {
			mask &^= nodeOutputBit
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
	case nodeOutputBit:
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
		m |= nodeStateBit
	}
	if n.fwd.act != running {
		m |= nodeFwdActBit
	}
	if n.doubt != 1 {
		m |= nodeDoubtBit
	}
	if n.calls != call {
		m |= nodeCallsBit
	}
	if n.fwd.attempt != call {
		m |= nodeFwdAttemptBit
	}
	if n.fwd.total != call {
		m |= nodeFwdTotalBit
	}
	if n.fwd.kind != callDo {
		m |= nodeFwdKindBit
	}
	if n.fwd.ready != at {
		m |= nodeFwdReadyBit
	}
	if n.fwd.began != at {
		m |= nodeFwdBeganBit
	}
	if !n.prepared {
		m |= nodePreparedBit
	}
	return m
}

// setStart makes the fields in mask what startDiffers compares them with.
func setStart(n *node, mask uint64, at instant, call int32) {
	if mask&nodeStateBit != 0 {
		n.state = StepRunning
	}
	if mask&nodeFwdActBit != 0 {
		n.fwd.act = running
	}
	if mask&nodeDoubtBit != 0 {
		n.doubt = 1
	}
	if mask&nodeCallsBit != 0 {
		n.calls = call
	}
	if mask&nodeFwdAttemptBit != 0 {
		n.fwd.attempt = call
	}
	if mask&nodeFwdTotalBit != 0 {
		n.fwd.total = call
	}
	if mask&nodeFwdKindBit != 0 {
		n.fwd.kind = callDo
	}
	if mask&nodeFwdReadyBit != 0 {
		n.fwd.ready = at
	}
	if mask&nodeFwdBeganBit != 0 {
		n.fwd.began = at
	}
	if mask&nodePreparedBit != 0 {
		n.prepared = true
	}
}

// endDiffers returns the fields in which a node is not as a usual end leaves it.
func endDiffers(n *node, at instant, output dsl.Value) uint64 {
	var m uint64
	if n.state != StepSucceeded {
		m |= nodeStateBit
	}
	if n.fwd.act != idle {
		m |= nodeFwdActBit
	}
	if !n.done {
		m |= nodeDoneBit
	}
	if n.fwd.ended != at {
		m |= nodeFwdEndedBit
	}
	if !sameHeld(n.output, held{v: output}) {
		m |= nodeOutputBit
	}
	if !n.known {
		m |= nodeKnownBit
	}
	return m
}

// setEnd makes the fields in mask what endDiffers compares them with.
func setEnd(n *node, mask uint64, at instant, output dsl.Value) {
	if mask&nodeStateBit != 0 {
		n.state = StepSucceeded
	}
	if mask&nodeFwdActBit != 0 {
		n.fwd.act = idle
	}
	if mask&nodeDoneBit != 0 {
		n.done = true
	}
	if mask&nodeFwdEndedBit != 0 {
		n.fwd.ended = at
	}
	if mask&nodeOutputBit != 0 {
		n.output = held{v: output}
	}
	if mask&nodeKnownBit != 0 {
		n.known = true
	}
}

// attemptStartDiffers returns the fields in which an attempt is not as a usual
// start leaves it.
func attemptStartDiffers(a *attempt, at instant) uint64 {
	var m uint64
	if a.kind != callDo {
		m |= attemptKindBit
	}
	if a.number != a.call {
		m |= attemptNumberBit
	}
	if a.started != at {
		m |= attemptStartedBit
	}
	return m
}

// attemptEndDiffers is attemptStartDiffers for a usual end.
func attemptEndDiffers(a *attempt, at instant) uint64 {
	var m uint64
	if a.status != attemptOK {
		m |= attemptStatusBit
	}
	if a.ended != at {
		m |= attemptEndedBit
	}
	return m
}

// setAttempt makes the fields in mask what attemptStartDiffers and
// attemptEndDiffers compare them with.
func setAttempt(a *attempt, mask uint64, at instant) {
	if mask&attemptStatusBit != 0 {
		a.status = attemptOK
	}
	if mask&attemptEndedBit != 0 {
		a.ended = at
	}
	if mask&attemptKindBit != 0 {
		a.kind = callDo
	}
	if mask&attemptNumberBit != 0 {
		a.number = a.call
	}
	if mask&attemptStartedBit != 0 {
		a.started = at
	}
}
