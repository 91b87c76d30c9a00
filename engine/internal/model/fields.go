package model

import (
	"math/bits"
	"slices"

	"github.com/saga-engine/engine/engine/machine/line"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A Field describes one persisted field of a run, a node or an attempt. Its functions compare
// and copy the field. Package wire has a table of functions that encode and decode the field.
// Add a new Field at the end of a table: the position in the table gives the bit, and the journal
// stores bits. If a record does not contain a field, the field did not change.
type Field[T any] struct {
	Bit  uint64 // bit of the field in the mask of a patch
	Same func(a, b *T) bool
	Copy func(dst, src *T)
}

// Diff compares a and b in the given fields, and returns the bits of the fields that differ.
func Diff[T any](fields []Field[T], a, b *T) uint64 {
	var mask uint64
	for i := range fields {
		if !fields[i].Same(a, b) {
			mask |= 1 << i
		}
	}
	return mask
}

// Overwrite copies fields from src to dst, but only the fields whose bits are in mask.
func Overwrite[T any](fields []Field[T], mask uint64, dst, src *T) {
	for ; mask != 0; mask &= mask - 1 {
		fields[bits.TrailingZeros64(mask)].Copy(dst, src)
	}
}

// plainly returns a Field that is compared with == and copied with =. The function `p` returns a
// pointer to the field.
func plainly[T any, V comparable](bit uint64, p func(*T) *V) Field[T] {
	return Field[T]{
		Bit:  bit,
		Same: func(a, b *T) bool { return *p(a) == *p(b) },
		Copy: func(dst, src *T) { *p(dst) = *p(src) },
	}
}

// value returns a Field for a value of the type StoredValue, which is compared with SameStored. The
// function `p` returns a pointer to the value.
func value[T any](bit uint64, p func(*T) *StoredValue) Field[T] {
	return Field[T]{
		Bit:  bit,
		Same: func(a, b *T) bool { return SameStored(*p(a), *p(b)) },
		Copy: func(dst, src *T) { *p(dst) = *p(src) },
	}
}

// blame returns the Field for the last failure of a track: the kind, the code and the message. The
// function `p` returns the track.
func blame(bit uint64, p func(*Node) *Track) Field[Node] {
	return Field[Node]{
		Bit: bit,
		Same: func(a, b *Node) bool {
			x, y := p(a), p(b)
			return x.Miss == y.Miss && x.Said.Same(y.Said)
		},
		Copy: func(dst, src *Node) {
			x, y := p(dst), p(src)
			x.Miss, x.Said = y.Miss, y.Said
		},
	}
}

// RunFields are the fields of a run, in the order of their bits.
var RunFields = []Field[Run]{
	plainly(RunStateBit, func(r *Run) *status.RunState { return &r.State }),
	plainly(RunDoneBit, func(r *Run) *int32 { return &r.Done }),
	plainly(RunLiveBit, func(r *Run) *int32 { return &r.Live }),
	plainly(RunBegunBit, func(r *Run) *bool { return &r.Begun }),
	plainly(RunFinishedBit, func(r *Run) *Instant { return &r.Finished }),
	{
		Bit:  RunOutputsBit,
		Same: func(a, b *Run) bool { return slices.EqualFunc(a.Outputs, b.Outputs, sameOutput) },
		Copy: func(dst, src *Run) { dst.Outputs = src.Outputs },
	},
	plainly(RunIDBit, func(r *Run) *status.RunID { return &r.ID }),
	plainly(RunNameBit, func(r *Run) *string { return &r.Name }),
	plainly(RunKeyBit, func(r *Run) *string { return &r.Key }),
	value(RunVarsBit, func(r *Run) *StoredValue { return &r.Vars }),
	plainly(RunTriggerBit, func(r *Run) *string { return &r.Trigger }),
	plainly(RunStartedByBit, func(r *Run) *string { return &r.StartedBy }),
	plainly(RunWorkflowBit, func(r *Run) *string { return &r.Workflow }),
	plainly(RunStepsBit, func(r *Run) *int32 { return &r.Steps }),
	plainly(RunOwnerBit, func(r *Run) *int32 { return &r.Owner }),
	plainly(RunStartedBit, func(r *Run) *Instant { return &r.Started }),
	plainly(RunDeadlineBit, func(r *Run) *Instant { return &r.Deadline }),
	plainly(RunPhaseBit, func(r *Run) *Phase { return &r.Phase }),
	plainly(RunPausedBit, func(r *Run) *bool { return &r.Paused }),
	plainly(RunParkedBit, func(r *Run) *bool { return &r.Parked }),
	plainly(RunParkedAtBit, func(r *Run) *Instant { return &r.ParkedAt }),
	plainly(RunPassedBit, func(r *Run) *bool { return &r.Passed }),
	plainly(RunTurningBit, func(r *Run) *bool { return &r.Turning }),
	plainly(RunCancelBit, func(r *Run) *bool { return &r.Cancel }),
	plainly(RunNoUndoBit, func(r *Run) *bool { return &r.NoUndo }),
	plainly(RunOverdueBit, func(r *Run) *bool { return &r.Overdue }),
	{
		Bit:  RunFailureBit,
		Same: func(a, b *Run) bool { return a.Failure == b.Failure },
		Copy: func(dst, src *Run) { dst.Failure = src.Failure },
	},
	plainly(RunUndoStartedBit, func(r *Run) *Instant { return &r.UndoStarted }),
	plainly(RunUndoDeadlineBit, func(r *Run) *Instant { return &r.UndoDeadline }),
	plainly(RunUndoExpiredBit, func(r *Run) *bool { return &r.UndoExpired }),
	plainly(RunStuckBit, func(r *Run) *bool { return &r.Stuck }),
	plainly(RunUndonePastBit, func(r *Run) *int32 { return &r.UndonePast }),
	plainly(RunUndoneBit, func(r *Run) *int32 { return &r.Undone }),
	plainly(RunLeftBit, func(r *Run) *int32 { return &r.Left }),
	plainly(RunUndeclaredBit, func(r *Run) *int32 { return &r.Undeclared }),
	{
		Bit:  RunHoldsBit,
		Same: func(a, b *Run) bool { return slices.Equal(a.Holds, b.Holds) },
		Copy: func(dst, src *Run) { dst.Holds = src.Holds },
	},
	{ // for each entry of Run.Holds: the time before which no call may start
		Bit:  RunRefusedBit,
		Same: func(a, b *Run) bool { return slices.Equal(a.Refused, b.Refused) },
		Copy: func(dst, src *Run) { dst.Refused = src.Refused },
	},
	{ // time of the pause, the person who asked for it, and the reason
		Bit: RunPauseBit,
		Same: func(a, b *Run) bool {
			return a.PausedAt == b.PausedAt && a.PausedBy == b.PausedBy && a.PauseWhy == b.PauseWhy
		},
		Copy: func(dst, src *Run) {
			dst.PausedAt, dst.PausedBy, dst.PauseWhy = src.PausedAt, src.PausedBy, src.PauseWhy
		},
	},
	{ // time and reason, if the run is parked because engines died
		Bit:  RunLostBit,
		Same: func(a, b *Run) bool { return a.LostAt == b.LostAt && a.LostWhy == b.LostWhy },
		Copy: func(dst, src *Run) { dst.LostAt, dst.LostWhy = src.LostAt, src.LostWhy },
	},
	plainly(RunWaitsBit, func(r *Run) *int32 { return &r.Waits }),
	plainly(RunParentBit, func(r *Run) *Parent { return &r.Parent }), // only for a child run
	plainly(RunLineBit, func(r *Run) *line.Line { return &r.Line }),
	plainly(RunAwaitsBit, func(r *Run) *bool { return &r.Awaits }),
	{ // the definitions to which the run was moved
		Bit:  RunMovesBit,
		Same: func(a, b *Run) bool { return slices.EqualFunc(a.Moves, b.Moves, sameMove) },
		Copy: func(dst, src *Run) { dst.Moves = src.Moves },
	},
	plainly(RunStartByBit, func(r *Run) *Instant { return &r.StartBy }),
	{ // the runs whose results this run has taken over
		Bit:  RunAncestorsBit,
		Same: func(a, b *Run) bool { return slices.EqualFunc(a.Ancestors, b.Ancestors, sameAncestor) },
		Copy: func(dst, src *Run) { dst.Ancestors = src.Ancestors },
	},
	{ // where the replies of the run go
		Bit:  RunReplyBit,
		Same: func(a, b *Run) bool { return a.Reply.target() == b.Reply.target() },
		Copy: func(dst, src *Run) { dst.Reply = src.Reply },
	},
	plainly(RunBoundBit, func(r *Run) *Bound { return &r.Bound }), // only for a child run
}

// HeadBits are the bits of the fields in Run.Head. RareBits are the bits of the fields in
// Run.Rare.
const (
	HeadBits = RunIDBit | RunNameBit | RunKeyBit | RunVarsBit | RunTriggerBit | RunStartedByBit | RunWorkflowBit | RunStartedBit | RunParentBit | RunLineBit | RunReplyBit
	RareBits = RunOutputsBit | RunParkedAtBit | RunFailureBit | RunUndoStartedBit | RunUndoDeadlineBit | RunHoldsBit | RunRefusedBit | RunPauseBit | RunLostBit | RunMovesBit | RunAncestorsBit | RunBoundBit
)

func sameOutput(a, b Output) bool {
	return a.Name == b.Name && a.Sensitive == b.Sensitive && a.Problem == b.Problem && SameStored(a.Value, b.Value)
}

// NodeFields are the fields of a node, in the order of their bits. The fields that change most
// often come first, because the journal needs fewer bytes for a mask that has only low bits.
var NodeFields = []Field[Node]{
	plainly(NodeStateBit, func(n *Node) *status.StepState { return &n.State }),
	plainly(NodeFwdActBit, func(n *Node) *Activity { return &n.Fwd.Act }),
	plainly(NodeDoubtBit, func(n *Node) *int32 { return &n.Doubt }),
	plainly(NodeDoneBit, func(n *Node) *bool { return &n.Done }),
	plainly(NodeCallsBit, func(n *Node) *int32 { return &n.Calls }),
	plainly(NodeFwdAttemptBit, func(n *Node) *int32 { return &n.Fwd.Attempt }),
	plainly(NodeFwdTotalBit, func(n *Node) *int32 { return &n.Fwd.Total }),
	plainly(NodeDepsBit, func(n *Node) *int32 { return &n.Deps }),
	plainly(NodeFwdKindBit, func(n *Node) *CallKind { return &n.Fwd.Kind }),
	plainly(NodeFwdReadyBit, func(n *Node) *Instant { return &n.Fwd.Ready }),
	plainly(NodeFwdBeganBit, func(n *Node) *Instant { return &n.Fwd.Began }),
	plainly(NodeFwdEndedBit, func(n *Node) *Instant { return &n.Fwd.Ended }),
	value(NodeInputBit, func(n *Node) *StoredValue { return &n.Input }),
	plainly(NodePreparedBit, func(n *Node) *bool { return &n.Prepared }),
	value(NodeOutputBit, func(n *Node) *StoredValue { return &n.Output }),
	plainly(NodeKnownBit, func(n *Node) *bool { return &n.Known }),
	plainly(NodeFwdDeadlineBit, func(n *Node) *Instant { return &n.Fwd.Deadline }),
	plainly(NodeFwdUntilBit, func(n *Node) *Instant { return &n.Fwd.Until }),
	plainly(NodeFwdFailuresBit, func(n *Node) *int32 { return &n.Fwd.Failures }),
	blame(NodeFwdFailureBit, func(n *Node) *Track { return &n.Fwd }),
	{ // only for an instance: its step, each.key and each.value
		Bit: NodeInstanceBit,
		Same: func(a, b *Node) bool {
			return a.Item == b.Item && a.Step == b.Step && a.Key == b.Key && SameStored(a.Each, b.Each)
		},
		Copy: func(dst, src *Node) { dst.Item, dst.Step, dst.Key, dst.Each = src.Item, src.Step, src.Key, src.Each },
	},
	plainly(NodeNextBit, func(n *Node) *int { return &n.Next }),
	plainly(NodeActiveBit, func(n *Node) *int { return &n.Active }),
	plainly(NodeOverBit, func(n *Node) *int { return &n.Over }),
	plainly(NodeBadBit, func(n *Node) *int { return &n.Bad }),
	plainly(NodePastBit, func(n *Node) *int { return &n.Past }),
	plainly(NodeUndoBit, func(n *Node) *UndoState { return &n.Undo }),
	plainly(NodeUndActBit, func(n *Node) *Activity { return &n.Und.Act }),
	plainly(NodeBackBit, func(n *Node) *int32 { return &n.Back }),
	plainly(NodeUndKindBit, func(n *Node) *CallKind { return &n.Und.Kind }),
	plainly(NodeUndAttemptBit, func(n *Node) *int32 { return &n.Und.Attempt }),
	plainly(NodeUndTotalBit, func(n *Node) *int32 { return &n.Und.Total }),
	value(NodeUndoInputBit, func(n *Node) *StoredValue { return &n.UndoInput }),
	plainly(NodeUndoReadyBit, func(n *Node) *bool { return &n.UndoReady }),
	plainly(NodeUndBeganBit, func(n *Node) *Instant { return &n.Und.Began }),
	plainly(NodeUndEndedBit, func(n *Node) *Instant { return &n.Und.Ended }),
	plainly(NodeUndReadyBit, func(n *Node) *Instant { return &n.Und.Ready }),
	plainly(NodeUndDeadlineBit, func(n *Node) *Instant { return &n.Und.Deadline }),
	plainly(NodeMayWorkUntilBit, func(n *Node) *Instant { return &n.MayWorkUntil }),
	{ // position of the node in the queue for an agent, and the index of this agent
		Bit:  NodeQueueBit,
		Same: func(a, b *Node) bool { return a.Queue == b.Queue && a.Hold == b.Hold },
		Copy: func(dst, src *Node) { dst.Queue, dst.Hold = src.Queue, src.Hold },
	},
	plainly(NodeUndUntilBit, func(n *Node) *Instant { return &n.Und.Until }),
	plainly(NodeUndFailuresBit, func(n *Node) *int32 { return &n.Und.Failures }),
	blame(NodeUndFailureBit, func(n *Node) *Track { return &n.Und }),
	plainly(NodeUndoDoubtBit, func(n *Node) *int { return &n.UndoDoubt }),
	// Only for a for_each step: whether its instances exist, index of the first instance, number of
	// instances.
	{
		Bit:  NodeExpansionBit,
		Same: func(a, b *Node) bool { return a.Expanded == b.Expanded && a.First == b.First && a.Count == b.Count },
		Copy: func(dst, src *Node) { dst.Expanded, dst.First, dst.Count = src.Expanded, src.First, src.Count },
	},
	plainly(NodeFwdRoundsBit, func(n *Node) *int16 { return &n.Fwd.Rounds }),
	plainly(NodeFwdLookupsBit, func(n *Node) *int16 { return &n.Fwd.Lookups }),
	plainly(NodeUndLookupsBit, func(n *Node) *int16 { return &n.Und.Lookups }),
	value(NodeCaughtBit, func(n *Node) *StoredValue { return &n.Caught }),
	plainly(NodeTimedOutBit, func(n *Node) *bool { return &n.TimedOut }),
	plainly(NodeBizKeyBit, func(n *Node) *string { return &n.BizKey }),
	plainly(NodeGenBit, func(n *Node) *int32 { return &n.Gen }),
	{
		Bit:  NodeCheckpointBit,
		Same: func(a, b *Node) bool { return a.Point == b.Point && string(a.Blob) == string(b.Blob) },
		Copy: func(dst, src *Node) { dst.Point, dst.Blob = src.Point, src.Blob },
	},
	plainly(NodeManualBit, func(n *Node) *string { return &n.Manual }),
	plainly(NodeFwdRestBit, func(n *Node) *Instant { return &n.Fwd.Rest }),
	plainly(NodeUndRestBit, func(n *Node) *Instant { return &n.Und.Rest }),
	plainly(NodeClearingBit, func(n *Node) *bool { return &n.Clearing }),
	{
		Bit:  NodeUndoCheckpointBit,
		Same: func(a, b *Node) bool { return a.UndoPoint == b.UndoPoint && string(a.UndoBlob) == string(b.UndoBlob) },
		Copy: func(dst, src *Node) { dst.UndoPoint, dst.UndoBlob = src.UndoPoint, src.UndoBlob },
	},
	plainly(NodeStatedBit, func(n *Node) *Statement { return &n.Stated }),
	plainly(NodeSignalBit, func(n *Node) *Reception { return &n.Signal }),
	value(NodeDataBit, func(n *Node) *StoredValue { return &n.Data }),
	{ // how far a repeat step has come, and the arguments that it gave to a declared action
		Bit:  NodeLoopBit,
		Same: func(a, b *Node) bool { return a.Loop == b.Loop && SameStored(a.Given, b.Given) },
		Copy: func(dst, src *Node) { dst.Loop, dst.Given = src.Loop, src.Given },
	},
	{ // output of the previous iteration, and the values that the loop has collected
		Bit:  NodeGatheredBit,
		Same: func(a, b *Node) bool { return SameStored(a.Last, b.Last) && a.Collected.Same(b.Collected) },
		Copy: func(dst, src *Node) { dst.Last, dst.Collected = src.Last, dst.Collected.Join(src.Collected) },
	},
	{ // what remains of the effects of child runs, and early signals for the run of a group
		Bit:  NodeChildBit,
		Same: func(a, b *Node) bool { return a.Kept == b.Kept && a.Handed.same(&b.Handed) },
		Copy: func(dst, src *Node) { dst.Kept, dst.Handed = src.Kept, src.Handed },
	},
}

// MoreBits are the bits of the fields in Node.More.
const MoreBits = NodeNextBit | NodeActiveBit | NodeOverBit | NodeBadBit | NodePastBit | NodeUndActBit | NodeUndKindBit |

	NodeUndAttemptBit | NodeUndTotalBit | NodeUndoInputBit | NodeUndBeganBit | NodeUndEndedBit |
	NodeUndReadyBit | NodeUndDeadlineBit | NodeUndUntilBit | NodeUndFailuresBit | NodeUndFailureBit |
	NodeUndoDoubtBit | NodeExpansionBit | NodeUndLookupsBit | NodeCaughtBit | NodeBizKeyBit | NodeCheckpointBit |
	NodeManualBit | NodeUndRestBit | NodeUndoCheckpointBit | NodeStatedBit | NodeSignalBit | NodeDataBit |
	NodeLoopBit | NodeGatheredBit | NodeChildBit

// ValueBits[k] is the bit of the field that contains the value k of NodeValues.
var ValueBits = [8]uint64{NodeInstanceBit, NodeInputBit, NodeOutputBit, NodeCaughtBit, NodeUndoInputBit, NodeDataBit, NodeGatheredBit, NodeLoopBit}

// NodeValues returns pointers to the values of a node. It leaves out the values in the field
// Collected, because no code changes them.
func NodeValues(n *Node) [8]*StoredValue {
	return [8]*StoredValue{&n.Each, &n.Input, &n.Output, &n.Caught, &n.UndoInput, &n.Data, &n.Last, &n.Given}
}

// SaidBits are the bits of an attempt's code and message.
const SaidBits = AttemptCodeBit | AttemptMessageBit

// AttemptFields are the fields of an attempt, in the order of their bits.
var AttemptFields = []Field[Attempt]{
	plainly(AttemptStatusBit, func(a *Attempt) *AttemptStatus { return &a.Status }),
	plainly(AttemptEndedBit, func(a *Attempt) *Instant { return &a.Ended }),
	plainly(AttemptKindBit, func(a *Attempt) *CallKind { return &a.Kind }),
	plainly(AttemptNumberBit, func(a *Attempt) *int32 { return &a.Number }),
	plainly(AttemptStartedBit, func(a *Attempt) *Instant { return &a.Started }),
	plainly(AttemptCompleteByBit, func(a *Attempt) *Instant { return &a.CompleteBy }),
	{
		Bit:  AttemptCodeBit,
		Same: func(a, b *Attempt) bool { return a.Said == b.Said || a.Code() == b.Code() },
		Copy: func(dst, src *Attempt) { dst.Said = NewFailureText(src.Code(), dst.Message()) },
	},
	{
		Bit:  AttemptMessageBit,
		Same: func(a, b *Attempt) bool { return a.Said == b.Said || a.Message() == b.Message() },
		Copy: func(dst, src *Attempt) { dst.Said = NewFailureText(dst.Code(), src.Message()) },
	},
	plainly(AttemptSilentBit, func(a *Attempt) *Instant { return &a.Silent }),
	plainly(AttemptGenBit, func(a *Attempt) *int32 { return &a.Gen }),
}
