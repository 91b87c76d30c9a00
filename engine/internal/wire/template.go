package wire

import (
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"

	"github.com/saga-engine/engine/engine/internal/model"
)

// A template is a short form for a frequent change of a node. There are two kinds of such changes:
// an attempt starts, or an answer ends an attempt and its step with success. Such a change nearly
// always changes the same fields, and most of the new values can be computed from the record's time
// and event. The journal holds the number of the template and only the values that cannot be
// computed. Without the output, a change then takes 23 bytes instead of about 60.
//
// The numbers, the masks and the computed values are persisted: they must never change.
type template uint8

const (
	noTemplate template = 0 // no template: all changed fields are written
	stepStarts template = 1 // a forward attempt of the step starts
	// The event is AttemptOK: the attempt succeeded, and the event has the output.
	stepEnds template = 2
	// Like stepEnds, but the output is written as a reference, because the run's state already
	// contains an equal value.
	stepEndsKnown template = 3
)

// A templateFields describes a template with sets of fields, as bits. The sets `node` and `attempt`
// contain the fields that usually change. The sets `follow` and `attemptFollow` contain the fields
// whose values a reader computes. If a patch does not change all fields in the set `must`, the
// template is not used, because it would save too little.
type templateFields struct {
	node, follow, must     uint64
	attempt, attemptFollow uint64
}

var templates = [4]templateFields{
	stepStarts: {
		node: startFollow | model.NodeDepsBit | model.NodeInputBit, follow: startFollow, must: model.NodeFwdActBit | model.NodeCallsBit | model.NodeFwdAttemptBit,
		attempt: model.AttemptKindBit | model.AttemptNumberBit | model.AttemptStartedBit | model.AttemptCompleteByBit, attemptFollow: model.AttemptKindBit | model.AttemptNumberBit | model.AttemptStartedBit,
	},
	stepEnds: {
		node: endFollow, follow: endFollow, must: model.NodeStateBit | model.NodeFwdActBit | model.NodeFwdEndedBit,
		attempt: model.AttemptStatusBit | model.AttemptEndedBit, attemptFollow: model.AttemptStatusBit | model.AttemptEndedBit,
	},
	stepEndsKnown: {
		node: endFollow, follow: endFollow &^ model.NodeOutputBit, must: model.NodeStateBit | model.NodeFwdActBit | model.NodeFwdEndedBit,
		attempt: model.AttemptStatusBit | model.AttemptEndedBit, attemptFollow: model.AttemptStatusBit | model.AttemptEndedBit,
	},
}

const (
	startFollow = model.NodeStateBit | model.NodeFwdActBit | model.NodeDoubtBit | model.NodeCallsBit | model.NodeFwdAttemptBit | model.NodeFwdTotalBit | model.NodeFwdKindBit | model.NodeFwdReadyBit | model.NodeFwdBeganBit | model.NodePreparedBit
	endFollow   = model.NodeStateBit | model.NodeFwdActBit | model.NodeDoneBit | model.NodeFwdEndedBit | model.NodeOutputBit | model.NodeKnownBit
)

// fields returns the set of fields of a node that usually change with this template and this
// event. In a record with the event Started, the starting steps have no dependencies, so the
// field Deps does not change. If the answer has no output, the field Output does not change.
func (k template) fields(event machine.Event) uint64 {
	mask := templates[k].node
	switch ev := event.(type) {
	case machine.Started:
		if k == stepStarts {
			mask &^= model.NodeDepsBit
		}
	case machine.AttemptOK:
		if k == stepEnds && ev.Output.IsNull() {
			mask &^= model.NodeOutputBit
		}
	}
	return mask
}

// templateOf returns the template that fits a node's patch in a record with the given time and
// event; noTemplate = none fits.
func templateOf(p *model.NodePatch, at model.Instant, event machine.Event) template {
	if len(p.Attempts) != 1 {
		return noTemplate
	}
	a := &p.Attempts[0]
	if u := &templates[stepStarts]; p.Mask&u.must == u.must {
		differs := startDiffers(p.To, at, a.To.Call) & u.follow & p.Mask
		if differs == 0 && attemptStartDiffers(&a.To, at)&u.attemptFollow&uint64(a.Mask) == 0 {
			return stepStarts
		}
		return noTemplate
	}
	u := &templates[stepEnds]
	if p.Mask&u.must != u.must {
		return noTemplate
	}
	ok, is := event.(machine.AttemptOK)
	if !is || ok.Attempt.Node != p.Node || ok.Attempt.Call != int(a.To.Call) {
		return noTemplate
	}
	if attemptEndDiffers(&a.To, at)&u.attemptFollow&uint64(a.Mask) != 0 {
		return noTemplate
	}
	switch endDiffers(p.To, at, ok.Output) & u.follow & p.Mask {
	case 0:
		return stepEnds
	case model.NodeOutputBit:
		return stepEndsKnown
	}
	return noTemplate
}

// set computes the fields in `mask` from the template, and sets them in n. Each of these fields
// must also be in the set `templates[k].follow`.
func (k template) set(n *model.Node, mask uint64, at model.Instant, call int32, output dsl.Value) {
	switch k {
	case stepStarts:
		setStart(n, mask, at, call)
	case stepEnds, stepEndsKnown:
		setEnd(n, mask, at, output)
	}
}

// startDiffers returns the set of fields in which a node differs from a node whose attempt has
// just started. A bit has a meaning only for the fields in templateFields.follow.
func startDiffers(n *model.Node, at model.Instant, call int32) uint64 {
	var m uint64
	if n.State != status.StepRunning {
		m |= model.NodeStateBit
	}
	if n.Fwd.Act != model.Running {
		m |= model.NodeFwdActBit
	}
	if n.Doubt != 1 {
		m |= model.NodeDoubtBit
	}
	if n.Calls != call {
		m |= model.NodeCallsBit
	}
	if n.Fwd.Attempt != call {
		m |= model.NodeFwdAttemptBit
	}
	if n.Fwd.Total != call {
		m |= model.NodeFwdTotalBit
	}
	if n.Fwd.Kind != model.CallDo {
		m |= model.NodeFwdKindBit
	}
	if n.Fwd.Ready != at {
		m |= model.NodeFwdReadyBit
	}
	if n.Fwd.Began != at {
		m |= model.NodeFwdBeganBit
	}
	if !n.Prepared {
		m |= model.NodePreparedBit
	}
	return m
}

// setStart sets the fields in `mask` to the values of a node whose attempt has just started.
// startDiffers compares a node with the same values.
func setStart(n *model.Node, mask uint64, at model.Instant, call int32) {
	if mask&model.NodeStateBit != 0 {
		n.State = status.StepRunning
	}
	if mask&model.NodeFwdActBit != 0 {
		n.Fwd.Act = model.Running
	}
	if mask&model.NodeDoubtBit != 0 {
		n.Doubt = 1
	}
	if mask&model.NodeCallsBit != 0 {
		n.Calls = call
	}
	if mask&model.NodeFwdAttemptBit != 0 {
		n.Fwd.Attempt = call
	}
	if mask&model.NodeFwdTotalBit != 0 {
		n.Fwd.Total = call
	}
	if mask&model.NodeFwdKindBit != 0 {
		n.Fwd.Kind = model.CallDo
	}
	if mask&model.NodeFwdReadyBit != 0 {
		n.Fwd.Ready = at
	}
	if mask&model.NodeFwdBeganBit != 0 {
		n.Fwd.Began = at
	}
	if mask&model.NodePreparedBit != 0 {
		n.Prepared = true
	}
}

// endDiffers returns the set of fields in which a node differs from a node that has just
// succeeded.
func endDiffers(n *model.Node, at model.Instant, output dsl.Value) uint64 {
	var m uint64
	if n.State != status.StepSucceeded {
		m |= model.NodeStateBit
	}
	if n.Fwd.Act != model.Idle {
		m |= model.NodeFwdActBit
	}
	if !n.Done {
		m |= model.NodeDoneBit
	}
	if n.Fwd.Ended != at {
		m |= model.NodeFwdEndedBit
	}
	if !model.SameStored(n.Output, model.StoredValue{V: output}) {
		m |= model.NodeOutputBit
	}
	if !n.Known {
		m |= model.NodeKnownBit
	}
	return m
}

// setEnd sets the fields in `mask` to the values of a node that has just succeeded. endDiffers
// compares a node with the same values.
func setEnd(n *model.Node, mask uint64, at model.Instant, output dsl.Value) {
	if mask&model.NodeStateBit != 0 {
		n.State = status.StepSucceeded
	}
	if mask&model.NodeFwdActBit != 0 {
		n.Fwd.Act = model.Idle
	}
	if mask&model.NodeDoneBit != 0 {
		n.Done = true
	}
	if mask&model.NodeFwdEndedBit != 0 {
		n.Fwd.Ended = at
	}
	if mask&model.NodeOutputBit != 0 {
		n.Output = model.StoredValue{V: output}
	}
	if mask&model.NodeKnownBit != 0 {
		n.Known = true
	}
}

// attemptStartDiffers returns the set of fields in which an attempt differs from an attempt
// that has just started.
func attemptStartDiffers(a *model.Attempt, at model.Instant) uint64 {
	var m uint64
	if a.Kind != model.CallDo {
		m |= model.AttemptKindBit
	}
	if a.Number != a.Call {
		m |= model.AttemptNumberBit
	}
	if a.Started != at {
		m |= model.AttemptStartedBit
	}
	return m
}

// attemptEndDiffers returns the set of fields in which an attempt differs from an attempt that
// has just succeeded.
func attemptEndDiffers(a *model.Attempt, at model.Instant) uint64 {
	var m uint64
	if a.Status != model.AttemptOK {
		m |= model.AttemptStatusBit
	}
	if a.Ended != at {
		m |= model.AttemptEndedBit
	}
	return m
}

// setAttempt sets the fields in `mask` to the values that a template gives them.
// attemptStartDiffers and attemptEndDiffers compare an attempt with the same values.
func setAttempt(a *model.Attempt, mask uint64, at model.Instant) {
	if mask&model.AttemptStatusBit != 0 {
		a.Status = model.AttemptOK
	}
	if mask&model.AttemptEndedBit != 0 {
		a.Ended = at
	}
	if mask&model.AttemptKindBit != 0 {
		a.Kind = model.CallDo
	}
	if mask&model.AttemptNumberBit != 0 {
		a.Number = a.Call
	}
	if mask&model.AttemptStartedBit != 0 {
		a.Started = at
	}
}
