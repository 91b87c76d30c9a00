package wire

import (
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A codec writes and reads one field of a run, node or attempt. The number of the field is the
// index of its codec in the table runCodec, nodeCodec or attemptCodec: see package model and
// docs/journal.md.
type codec[T any] struct {
	bit uint64 // bit of the field in the mask of a patch
	put func(e *encoder, v *T)
	get func(d *decoder, v *T)
}

// numberCodec returns the codec of an integer field that is rarely negative.
func numberCodec[T any, N ~int | ~int16 | ~int32 | ~int64 | ~uint8](bit uint64, p func(*T) *N) codec[T] {
	return codec[T]{
		bit: bit,
		put: func(e *encoder, v *T) { e.int(int64(*p(v))) },
		get: func(d *decoder, v *T) {
			read := d.int()
			if *p(v) = N(read); int64(*p(v)) != read {
				d.fail()
			}
		},
	}
}

func momentCodec[T any](bit uint64, p func(*T) *model.Instant) codec[T] {
	return codec[T]{
		bit: bit,
		put: func(e *encoder, v *T) { e.instant(*p(v)) },
		get: func(d *decoder, v *T) { *p(v) = d.instant() },
	}
}

func booleanCodec[T any](bit uint64, p func(*T) *bool) codec[T] {
	return codec[T]{
		bit: bit,
		put: func(e *encoder, v *T) { e.bool(*p(v)) },
		get: func(d *decoder, v *T) { *p(v) = d.bool() },
	}
}

func textCodec[T any](bit uint64, p func(*T) *string) codec[T] {
	return codec[T]{
		bit: bit,
		put: func(e *encoder, v *T) { e.string(*p(v)) },
		get: func(d *decoder, v *T) { *p(v) = d.string() },
	}
}

func valueCodec[T any](bit uint64, p func(*T) *model.StoredValue) codec[T] {
	return codec[T]{
		bit: bit,
		put: func(e *encoder, v *T) { e.stored(*p(v)) },
		get: func(d *decoder, v *T) { *p(v) = d.stored() },
	}
}

// blameCodec returns the codec for the last failure of a track (forward or undo): its kind, code
// and message.
func blameCodec(bit uint64, p func(*model.Node) *model.Track) codec[model.Node] {
	return codec[model.Node]{
		bit: bit,
		put: func(e *encoder, n *model.Node) {
			x := p(n)
			code, message := x.Said.Words()
			e.int(int64(x.Miss))
			e.string(code)
			e.string(message)
		},
		get: func(d *decoder, n *model.Node) {
			x := p(n)
			x.Miss = model.MissKind(d.int())
			x.Said = model.NewFailureText(d.string(), d.string())
		},
	}
}

var runCodec = []codec[model.Run]{
	numberCodec(model.RunStateBit, func(r *model.Run) *status.RunState { return &r.State }),
	numberCodec(model.RunDoneBit, func(r *model.Run) *int32 { return &r.Done }),
	numberCodec(model.RunLiveBit, func(r *model.Run) *int32 { return &r.Live }),
	booleanCodec(model.RunBegunBit, func(r *model.Run) *bool { return &r.Begun }),
	momentCodec(model.RunFinishedBit, func(r *model.Run) *model.Instant { return &r.Finished }),
	{
		bit: model.RunOutputsBit,
		put: func(e *encoder, r *model.Run) { e.outputs(r.Outputs) },
		get: func(d *decoder, r *model.Run) { r.Outputs = d.outputs() },
	},
	numberCodec(model.RunIDBit, func(r *model.Run) *status.RunID { return &r.ID }),
	textCodec(model.RunNameBit, func(r *model.Run) *string { return &r.Name }),
	textCodec(model.RunKeyBit, func(r *model.Run) *string { return &r.Key }),
	valueCodec(model.RunVarsBit, func(r *model.Run) *model.StoredValue { return &r.Vars }),
	textCodec(model.RunTriggerBit, func(r *model.Run) *string { return &r.Trigger }),
	textCodec(model.RunStartedByBit, func(r *model.Run) *string { return &r.StartedBy }),
	textCodec(model.RunWorkflowBit, func(r *model.Run) *string { return &r.Workflow }),
	numberCodec(model.RunStepsBit, func(r *model.Run) *int32 { return &r.Steps }),
	numberCodec(model.RunOwnerBit, func(r *model.Run) *int32 { return &r.Owner }),
	momentCodec(model.RunStartedBit, func(r *model.Run) *model.Instant { return &r.Started }),
	momentCodec(model.RunDeadlineBit, func(r *model.Run) *model.Instant { return &r.Deadline }),
	numberCodec(model.RunPhaseBit, func(r *model.Run) *model.Phase { return &r.Phase }),
	booleanCodec(model.RunPausedBit, func(r *model.Run) *bool { return &r.Paused }),
	booleanCodec(model.RunParkedBit, func(r *model.Run) *bool { return &r.Parked }),
	momentCodec(model.RunParkedAtBit, func(r *model.Run) *model.Instant { return &r.ParkedAt }),
	booleanCodec(model.RunPassedBit, func(r *model.Run) *bool { return &r.Passed }),
	booleanCodec(model.RunTurningBit, func(r *model.Run) *bool { return &r.Turning }),
	booleanCodec(model.RunCancelBit, func(r *model.Run) *bool { return &r.Cancel }),
	booleanCodec(model.RunNoUndoBit, func(r *model.Run) *bool { return &r.NoUndo }),
	booleanCodec(model.RunOverdueBit, func(r *model.Run) *bool { return &r.Overdue }),
	{
		bit: model.RunFailureBit,
		put: func(e *encoder, r *model.Run) { e.failure(r.Failure) },
		get: func(d *decoder, r *model.Run) { r.Failure = d.failure() },
	},
	momentCodec(model.RunUndoStartedBit, func(r *model.Run) *model.Instant { return &r.UndoStarted }),
	momentCodec(model.RunUndoDeadlineBit, func(r *model.Run) *model.Instant { return &r.UndoDeadline }),
	booleanCodec(model.RunUndoExpiredBit, func(r *model.Run) *bool { return &r.UndoExpired }),
	booleanCodec(model.RunStuckBit, func(r *model.Run) *bool { return &r.Stuck }),
	numberCodec(model.RunUndonePastBit, func(r *model.Run) *int32 { return &r.UndonePast }),
	numberCodec(model.RunUndoneBit, func(r *model.Run) *int32 { return &r.Undone }),
	numberCodec(model.RunLeftBit, func(r *model.Run) *int32 { return &r.Left }),
	numberCodec(model.RunUndeclaredBit, func(r *model.Run) *int32 { return &r.Undeclared }),
	{
		bit: model.RunHoldsBit,
		put: func(e *encoder, r *model.Run) { e.holds(r.Holds) },
		get: func(d *decoder, r *model.Run) { r.Holds = d.holds() },
	},
	{ // for each entry of Run.Holds, the time before which no call may start
		bit: model.RunRefusedBit,
		put: func(e *encoder, r *model.Run) { e.instants(r.Refused) },
		get: func(d *decoder, r *model.Run) { r.Refused = d.instants() },
	},
	{ // who paused the run, when and why
		bit: model.RunPauseBit,
		put: func(e *encoder, r *model.Run) { e.instant(r.PausedAt); e.string(r.PausedBy); e.string(r.PauseWhy) },
		get: func(d *decoder, r *model.Run) {
			r.PausedAt, r.PausedBy, r.PauseWhy = d.instant(), d.string(), d.string()
		},
	},
	{ // when and why the run was parked because engines died
		bit: model.RunLostBit,
		put: func(e *encoder, r *model.Run) { e.instant(r.LostAt); e.string(r.LostWhy) },
		get: func(d *decoder, r *model.Run) { r.LostAt, r.LostWhy = d.instant(), d.string() },
	},
	numberCodec(model.RunWaitsBit, func(r *model.Run) *int32 { return &r.Waits }),
	{
		bit: model.RunParentBit,
		put: func(e *encoder, r *model.Run) { e.parent(r.Parent) },
		get: func(d *decoder, r *model.Run) { r.Parent = d.parent() },
	},
	{ // priority of the run, and the limit that it shares with other runs
		bit: model.RunLineBit,
		put: func(e *encoder, r *model.Run) { e.line(r.Line) },
		get: func(d *decoder, r *model.Run) { r.Line = d.line() },
	},
	booleanCodec(model.RunAwaitsBit, func(r *model.Run) *bool { return &r.Awaits }),
	{ // the definitions to which the run was moved
		bit: model.RunMovesBit,
		put: func(e *encoder, r *model.Run) { putMoves(e, r.Moves) },
		get: func(d *decoder, r *model.Run) { r.Moves = getMoves(d) },
	},
	momentCodec(model.RunStartByBit, func(r *model.Run) *model.Instant { return &r.StartBy }),
	{ // the runs whose results this run has taken over
		bit: model.RunAncestorsBit,
		put: func(e *encoder, r *model.Run) { putAncestors(e, r.Ancestors) },
		get: func(d *decoder, r *model.Run) { r.Ancestors = getAncestors(d) },
	},
	{ // where the replies of the run go
		bit: model.RunReplyBit,
		put: func(e *encoder, r *model.Run) { putReply(e, r.Reply) },
		get: func(d *decoder, r *model.Run) { r.Reply = getReply(d) },
	},
	{ // only for a child run: its own deadline, and the time until which its parent waits
		bit: model.RunBoundBit,
		put: func(e *encoder, r *model.Run) { e.instant(r.Bound.Own); e.instant(r.Bound.Until) },
		get: func(d *decoder, r *model.Run) { r.Bound = model.Bound{Own: d.instant(), Until: d.instant()} },
	},
}

var nodeCodec = []codec[model.Node]{
	numberCodec(model.NodeStateBit, func(n *model.Node) *status.StepState { return &n.State }),
	numberCodec(model.NodeFwdActBit, func(n *model.Node) *model.Activity { return &n.Fwd.Act }),
	numberCodec(model.NodeDoubtBit, func(n *model.Node) *int32 { return &n.Doubt }),
	booleanCodec(model.NodeDoneBit, func(n *model.Node) *bool { return &n.Done }),
	numberCodec(model.NodeCallsBit, func(n *model.Node) *int32 { return &n.Calls }),
	numberCodec(model.NodeFwdAttemptBit, func(n *model.Node) *int32 { return &n.Fwd.Attempt }),
	numberCodec(model.NodeFwdTotalBit, func(n *model.Node) *int32 { return &n.Fwd.Total }),
	numberCodec(model.NodeDepsBit, func(n *model.Node) *int32 { return &n.Deps }),
	numberCodec(model.NodeFwdKindBit, func(n *model.Node) *model.CallKind { return &n.Fwd.Kind }),
	momentCodec(model.NodeFwdReadyBit, func(n *model.Node) *model.Instant { return &n.Fwd.Ready }),
	momentCodec(model.NodeFwdBeganBit, func(n *model.Node) *model.Instant { return &n.Fwd.Began }),
	momentCodec(model.NodeFwdEndedBit, func(n *model.Node) *model.Instant { return &n.Fwd.Ended }),
	valueCodec(model.NodeInputBit, func(n *model.Node) *model.StoredValue { return &n.Input }),
	booleanCodec(model.NodePreparedBit, func(n *model.Node) *bool { return &n.Prepared }),
	valueCodec(model.NodeOutputBit, func(n *model.Node) *model.StoredValue { return &n.Output }),
	booleanCodec(model.NodeKnownBit, func(n *model.Node) *bool { return &n.Known }),
	momentCodec(model.NodeFwdDeadlineBit, func(n *model.Node) *model.Instant { return &n.Fwd.Deadline }),
	momentCodec(model.NodeFwdUntilBit, func(n *model.Node) *model.Instant { return &n.Fwd.Until }),
	numberCodec(model.NodeFwdFailuresBit, func(n *model.Node) *int32 { return &n.Fwd.Failures }),
	blameCodec(model.NodeFwdFailureBit, func(n *model.Node) *model.Track { return &n.Fwd }),
	{ // whether the node is an instance of a for_each step; step, key and value of the instance
		bit: model.NodeInstanceBit,
		put: func(e *encoder, n *model.Node) {
			e.bool(n.Item)
			e.int(int64(n.Step))
			e.string(n.Key)
			e.stored(n.Each)
		},
		get: func(d *decoder, n *model.Node) {
			n.Item, n.Step, n.Key, n.Each = d.bool(), int32(d.index()), d.string(), d.stored()
		},
	},
	numberCodec(model.NodeNextBit, func(n *model.Node) *int { return &n.Next }),
	numberCodec(model.NodeActiveBit, func(n *model.Node) *int { return &n.Active }),
	numberCodec(model.NodeOverBit, func(n *model.Node) *int { return &n.Over }),
	numberCodec(model.NodeBadBit, func(n *model.Node) *int { return &n.Bad }),
	numberCodec(model.NodePastBit, func(n *model.Node) *int { return &n.Past }),
	numberCodec(model.NodeUndoBit, func(n *model.Node) *model.UndoState { return &n.Undo }),
	numberCodec(model.NodeUndActBit, func(n *model.Node) *model.Activity { return &n.Und.Act }),
	numberCodec(model.NodeBackBit, func(n *model.Node) *int32 { return &n.Back }),
	numberCodec(model.NodeUndKindBit, func(n *model.Node) *model.CallKind { return &n.Und.Kind }),
	numberCodec(model.NodeUndAttemptBit, func(n *model.Node) *int32 { return &n.Und.Attempt }),
	numberCodec(model.NodeUndTotalBit, func(n *model.Node) *int32 { return &n.Und.Total }),
	valueCodec(model.NodeUndoInputBit, func(n *model.Node) *model.StoredValue { return &n.UndoInput }),
	booleanCodec(model.NodeUndoReadyBit, func(n *model.Node) *bool { return &n.UndoReady }),
	momentCodec(model.NodeUndBeganBit, func(n *model.Node) *model.Instant { return &n.Und.Began }),
	momentCodec(model.NodeUndEndedBit, func(n *model.Node) *model.Instant { return &n.Und.Ended }),
	momentCodec(model.NodeUndReadyBit, func(n *model.Node) *model.Instant { return &n.Und.Ready }),
	momentCodec(model.NodeUndDeadlineBit, func(n *model.Node) *model.Instant { return &n.Und.Deadline }),
	momentCodec(model.NodeMayWorkUntilBit, func(n *model.Node) *model.Instant { return &n.MayWorkUntil }),
	{ // position of the node in the queue for an agent, as a time; index + 1 of the agent in Run.Holds
		bit: model.NodeQueueBit,
		put: func(e *encoder, n *model.Node) { e.instant(n.Queue); e.int(int64(n.Hold)) },
		get: func(d *decoder, n *model.Node) { n.Queue = d.instant(); n.Hold = int32(d.index()) },
	},
	momentCodec(model.NodeUndUntilBit, func(n *model.Node) *model.Instant { return &n.Und.Until }),
	numberCodec(model.NodeUndFailuresBit, func(n *model.Node) *int32 { return &n.Und.Failures }),
	blameCodec(model.NodeUndFailureBit, func(n *model.Node) *model.Track { return &n.Und }),
	numberCodec(model.NodeUndoDoubtBit, func(n *model.Node) *int { return &n.UndoDoubt }),
	{ // only for a for_each step: whether its instances exist, index of the first instance, number of instances
		bit: model.NodeExpansionBit,
		put: func(e *encoder, n *model.Node) { e.bool(n.Expanded); e.int(int64(n.First)); e.int(int64(n.Count)) },
		get: func(d *decoder, n *model.Node) { n.Expanded, n.First, n.Count = d.bool(), d.index(), d.index() },
	},
	numberCodec(model.NodeFwdRoundsBit, func(n *model.Node) *int16 { return &n.Fwd.Rounds }),
	numberCodec(model.NodeFwdLookupsBit, func(n *model.Node) *int16 { return &n.Fwd.Lookups }),
	numberCodec(model.NodeUndLookupsBit, func(n *model.Node) *int16 { return &n.Und.Lookups }),
	valueCodec(model.NodeCaughtBit, func(n *model.Node) *model.StoredValue { return &n.Caught }),
	booleanCodec(model.NodeTimedOutBit, func(n *model.Node) *bool { return &n.TimedOut }),
	textCodec(model.NodeBizKeyBit, func(n *model.Node) *string { return &n.BizKey }),
	numberCodec(model.NodeGenBit, func(n *model.Node) *int32 { return &n.Gen }),
	{
		bit: model.NodeCheckpointBit,
		put: func(e *encoder, n *model.Node) { e.int(int64(n.Point)); e.bytes(n.Blob) },
		get: func(d *decoder, n *model.Node) { n.Point = int(d.int()); n.Blob = d.bytes() },
	},
	textCodec(model.NodeManualBit, func(n *model.Node) *string { return &n.Manual }),
	momentCodec(model.NodeFwdRestBit, func(n *model.Node) *model.Instant { return &n.Fwd.Rest }),
	momentCodec(model.NodeUndRestBit, func(n *model.Node) *model.Instant { return &n.Und.Rest }),
	booleanCodec(model.NodeClearingBit, func(n *model.Node) *bool { return &n.Clearing }),
	{
		bit: model.NodeUndoCheckpointBit,
		put: func(e *encoder, n *model.Node) { e.int(int64(n.UndoPoint)); e.bytes(n.UndoBlob) },
		get: func(d *decoder, n *model.Node) { n.UndoPoint = int(d.int()); n.UndoBlob = d.bytes() },
	},
	numberCodec(model.NodeStatedBit, func(n *model.Node) *model.Statement { return &n.Stated }),
	{ // signals for which a step waits, and the signal that ended the wait
		bit: model.NodeSignalBit,
		put: func(e *encoder, n *model.Node) {
			e.string(n.Signal.Awaits)
			e.string(n.Signal.Name)
			e.int(int64(n.Signal.Number))
		},
		get: func(d *decoder, n *model.Node) {
			n.Signal = model.Reception{Awaits: d.string(), Name: d.string(), Number: int32(d.index())}
		},
	},
	valueCodec(model.NodeDataBit, func(n *model.Node) *model.StoredValue { return &n.Data }),
	{ // how far a repeat step has come, and the arguments that it gave to a declared action
		bit: model.NodeLoopBit,
		put: func(e *encoder, n *model.Node) {
			// A reference has no value before the record is applied to a state.
			if !n.Given.V.IsNull() || n.Given.From.Kind != model.OriginInline {
				e.int(loopGiven)
				e.stored(n.Given)
			}
			e.int(int64(n.Loop.Iteration))
			e.int(int64(n.Loop.Calls))
			e.bool(n.Loop.Past)
			e.bool(n.Loop.Between)
		},
		get: func(d *decoder, n *model.Node) {
			n.Given = model.StoredValue{}
			iteration := d.int()
			if iteration == loopGiven {
				n.Given = d.stored()
				iteration = d.int()
			}
			n.Loop = model.Loop{Iteration: int32(d.small(iteration)), Calls: int32(d.index()), Past: d.bool(), Between: d.bool()}
		},
	},
	{ // output of the previous iteration, and the collected values that this record adds
		bit: model.NodeGatheredBit,
		put: func(e *encoder, n *model.Node) { e.stored(n.Last); putCollected(e, n.Collected) },
		get: func(d *decoder, n *model.Node) { n.Last = d.stored(); n.Collected = n.Collected.Join(getCollected(d)) },
	},
	{ // what remains of the effects of child runs, and early signals for the run of a group
		bit: model.NodeChildBit,
		put: func(e *encoder, n *model.Node) {
			e.uint(uint64(n.Kept))
			putHandover(e, n.Handed)
		},
		get: func(d *decoder, n *model.Node) { n.Kept, n.Handed = getKept(d), getHandover(d) },
	},
}

var attemptCodec = []codec[model.Attempt]{
	numberCodec(model.AttemptStatusBit, func(a *model.Attempt) *model.AttemptStatus { return &a.Status }),
	momentCodec(model.AttemptEndedBit, func(a *model.Attempt) *model.Instant { return &a.Ended }),
	numberCodec(model.AttemptKindBit, func(a *model.Attempt) *model.CallKind { return &a.Kind }),
	numberCodec(model.AttemptNumberBit, func(a *model.Attempt) *int32 { return &a.Number }),
	momentCodec(model.AttemptStartedBit, func(a *model.Attempt) *model.Instant { return &a.Started }),
	momentCodec(model.AttemptCompleteByBit, func(a *model.Attempt) *model.Instant { return &a.CompleteBy }),
	{
		bit: model.AttemptCodeBit,
		put: func(e *encoder, a *model.Attempt) { e.string(a.Code()) },
		get: func(d *decoder, a *model.Attempt) { a.Said = model.NewFailureText(d.string(), a.Message()) },
	},
	{
		bit: model.AttemptMessageBit,
		put: func(e *encoder, a *model.Attempt) { e.string(a.Message()) },
		get: func(d *decoder, a *model.Attempt) { a.Said = model.NewFailureText(a.Code(), d.string()) },
	},
	momentCodec(model.AttemptSilentBit, func(a *model.Attempt) *model.Instant { return &a.Silent }),
	numberCodec(model.AttemptGenBit, func(a *model.Attempt) *int32 { return &a.Gen }),
}

// loopGiven is written at the start of the field Loop if this field also holds the arguments that
// the step gave to a declared action. After loopGiven come these arguments, and then the number of
// the iteration. An older engine, which does not know the arguments, reads loopGiven as the number
// of an iteration. This number is never valid, so the older engine refuses the record.
const loopGiven = -1

// putCollected writes the length of the list c, and then only the values that the record added at
// the end of the list. A reader has the other values already. So the journal of a loop grows by
// one value in each iteration, and not by the whole list.
func putCollected(e *encoder, c *model.Collected) {
	if e.full {
		putAllCollected(e, c)
		return
	}
	e.int(int64(c.Len()))
	if c == nil {
		return
	}
	e.int(int64(c.Fresh))
	for _, v := range c.Tail(c.Fresh) {
		e.value(v)
	}
}

// getCollected reads what putCollected has written. If putCollected wrote only the added values,
// the result holds only these, but its method Len returns the length of the whole list. The result
// is nil if the length is 0, or if the data is damaged.
func getCollected(d *decoder) *model.Collected {
	if d.full {
		return getAllCollected(d)
	}
	count := d.index()
	if count == 0 {
		return nil
	}
	fresh := d.index()
	if count > model.MaxCollected+1 || fresh > count {
		d.fail()
		return nil
	}
	var c *model.Collected
	known := int32(count - fresh)
	for k := range fresh {
		v := d.value()
		if d.err != nil {
			return nil
		}
		c = c.Append(v, 0)
		c.Count, c.Fresh = known+int32(k)+1, int32(k)+1
	}
	return c
}

// putAllCollected writes all values of a list, each with its field Fresh. Without Fresh, an engine
// that has read the run from an image would write later records with other bytes.
func putAllCollected(e *encoder, c *model.Collected) {
	e.uint(uint64(c.Len()))
	fresh := make([]int32, c.Len())
	for x := c; x != nil; x = x.Before {
		fresh[x.Count-1] = x.Fresh
	}
	for k, v := range c.Tail(c.Len()) {
		e.int(int64(fresh[k]))
		e.value(v)
	}
}

// getAllCollected reads what putAllCollected has written.
func getAllCollected(d *decoder) *model.Collected {
	var c *model.Collected
	n := d.count()
	if n > model.MaxCollected+1 {
		d.fail()
		return nil
	}
	for range n {
		fresh := d.index()
		c = c.Append(d.value(), 0)
		c.Fresh = int32(fresh)
	}
	return c
}
