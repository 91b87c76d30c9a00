package model

import "math/bits"

// DiffNode compares two nodes and returns the bits of the fields that differ. The table
// NodeFields describes the bits. DiffNode does not loop over this table, because every
// decision calls DiffNode for each node that it edits, and a loop would be slower.
func DiffNode(a, b *Node) uint64 {
	var m uint64
	if a.State != b.State {
		m |= NodeStateBit
	}
	if a.Doubt != b.Doubt {
		m |= NodeDoubtBit
	}
	if a.Done != b.Done {
		m |= NodeDoneBit
	}
	if a.Calls != b.Calls {
		m |= NodeCallsBit
	}
	if a.Deps != b.Deps {
		m |= NodeDepsBit
	}
	if a.Input != b.Input && !SameStored(a.Input, b.Input) {
		m |= NodeInputBit
	}
	if a.Prepared != b.Prepared {
		m |= NodePreparedBit
	}
	if a.Output != b.Output && !SameStored(a.Output, b.Output) {
		m |= NodeOutputBit
	}
	if a.Known != b.Known {
		m |= NodeKnownBit
	}
	if a.Item != b.Item || a.Step != b.Step || a.Key != b.Key || !SameStored(a.Each, b.Each) {
		m |= NodeInstanceBit
	}
	m |= diffRest(a, b)
	if a.Fwd != b.Fwd {
		m |= diffWork(&a.Fwd, &b.Fwd)
	}
	if a.More != b.More {
		m |= diffMore(a.More, b.More)
	}
	return m
}

// diffRest compares those fields of two nodes that DiffNode, diffWork and diffMore do not
// compare. It returns the bits of the fields that differ.
func diffRest(a, b *Node) (m uint64) {
	if a.Undo != b.Undo {
		m |= NodeUndoBit
	}
	if a.Back != b.Back {
		m |= NodeBackBit
	}
	if a.UndoReady != b.UndoReady {
		m |= NodeUndoReadyBit
	}
	if a.MayWorkUntil != b.MayWorkUntil {
		m |= NodeMayWorkUntilBit
	}
	if a.Queue != b.Queue || a.Hold != b.Hold {
		m |= NodeQueueBit
	}
	if a.Expanded != b.Expanded {
		m |= NodeExpansionBit
	}
	if a.TimedOut != b.TimedOut {
		m |= NodeTimedOutBit
	}
	if a.Gen != b.Gen {
		m |= NodeGenBit
	}
	if a.Clearing != b.Clearing {
		m |= NodeClearingBit
	}
	return m
}

// diffWork compares the forward tracks (Node.Fwd) of two nodes. It returns the bits of the
// fields that differ.
func diffWork(a, b *Track) uint64 {
	var m uint64
	if a.Act != b.Act {
		m |= NodeFwdActBit
	}
	if a.Attempt != b.Attempt {
		m |= NodeFwdAttemptBit
	}
	if a.Total != b.Total {
		m |= NodeFwdTotalBit
	}
	if a.Kind != b.Kind {
		m |= NodeFwdKindBit
	}
	if a.Ready != b.Ready {
		m |= NodeFwdReadyBit
	}
	if a.Began != b.Began {
		m |= NodeFwdBeganBit
	}
	if a.Ended != b.Ended {
		m |= NodeFwdEndedBit
	}
	if a.Deadline != b.Deadline {
		m |= NodeFwdDeadlineBit
	}
	if a.Until != b.Until {
		m |= NodeFwdUntilBit
	}
	if a.Failures != b.Failures {
		m |= NodeFwdFailuresBit
	}
	if a.Miss != b.Miss || !a.Said.Same(b.Said) {
		m |= NodeFwdFailureBit
	}
	if a.Rounds != b.Rounds {
		m |= NodeFwdRoundsBit
	}
	if a.Lookups != b.Lookups {
		m |= NodeFwdLookupsBit
	}
	if a.Rest != b.Rest {
		m |= NodeFwdRestBit
	}
	return m
}

// diffMore compares the fields of Node.More of two nodes. It returns the bits of the fields
// that differ.
func diffMore(a, b *More) uint64 {
	var m uint64
	if a.Next != b.Next {
		m |= NodeNextBit
	}
	if a.Active != b.Active {
		m |= NodeActiveBit
	}
	if a.Over != b.Over {
		m |= NodeOverBit
	}
	if a.Bad != b.Bad {
		m |= NodeBadBit
	}
	if a.Past != b.Past {
		m |= NodePastBit
	}
	if a.UndoInput != b.UndoInput && !SameStored(a.UndoInput, b.UndoInput) {
		m |= NodeUndoInputBit
	}
	if a.UndoDoubt != b.UndoDoubt {
		m |= NodeUndoDoubtBit
	}
	if a.First != b.First || a.Count != b.Count {
		m |= NodeExpansionBit
	}
	if a.Caught != b.Caught && !SameStored(a.Caught, b.Caught) {
		m |= NodeCaughtBit
	}
	if a.BizKey != b.BizKey {
		m |= NodeBizKeyBit
	}
	if a.Point != b.Point || string(a.Blob) != string(b.Blob) {
		m |= NodeCheckpointBit
	}
	if a.Manual != b.Manual {
		m |= NodeManualBit
	}
	if a.Stated != b.Stated {
		m |= NodeStatedBit
	}
	if a.Data != b.Data && !SameStored(a.Data, b.Data) {
		m |= NodeDataBit
	}
	if a.Signal != b.Signal {
		m |= NodeSignalBit
	}
	if a.UndoPoint != b.UndoPoint || string(a.UndoBlob) != string(b.UndoBlob) {
		m |= NodeUndoCheckpointBit
	}
	if a.Und != b.Und {
		m |= diffUndo(&a.Und, &b.Und)
	}
	return m | diffLoop(a, b) | diffChild(a, b)
}

// diffChild compares two nodes, but only the fields about child runs. It returns the bits of the
// fields that differ.
func diffChild(a, b *More) (m uint64) {
	if a.Kept != b.Kept || !a.Handed.same(&b.Handed) {
		m |= NodeChildBit
	}
	return m
}

// diffLoop compares two nodes, but only the fields that belong to repeat steps. It returns the
// bits of the fields that differ.
func diffLoop(a, b *More) (m uint64) {
	if a.Loop != b.Loop || a.Given != b.Given && !SameStored(a.Given, b.Given) {
		m |= NodeLoopBit
	}
	if a.Last != b.Last && !SameStored(a.Last, b.Last) || !a.Collected.Same(b.Collected) {
		m |= NodeGatheredBit
	}
	return m
}

// diffUndo compares the undo tracks (More.Und) of two nodes. It returns the bits of the fields
// that differ.
func diffUndo(a, b *Track) uint64 {
	var m uint64
	if a.Act != b.Act {
		m |= NodeUndActBit
	}
	if a.Kind != b.Kind {
		m |= NodeUndKindBit
	}
	if a.Attempt != b.Attempt {
		m |= NodeUndAttemptBit
	}
	if a.Total != b.Total {
		m |= NodeUndTotalBit
	}
	if a.Began != b.Began {
		m |= NodeUndBeganBit
	}
	if a.Ended != b.Ended {
		m |= NodeUndEndedBit
	}
	if a.Ready != b.Ready {
		m |= NodeUndReadyBit
	}
	if a.Deadline != b.Deadline {
		m |= NodeUndDeadlineBit
	}
	if a.Until != b.Until {
		m |= NodeUndUntilBit
	}
	if a.Failures != b.Failures {
		m |= NodeUndFailuresBit
	}
	if a.Miss != b.Miss || !a.Said.Same(b.Said) {
		m |= NodeUndFailureBit
	}
	if a.Lookups != b.Lookups {
		m |= NodeUndLookupsBit
	}
	if a.Rest != b.Rest {
		m |= NodeUndRestBit
	}
	return m
}

// A difference is the result of comparing one field: whether two values differ, and the bit of
// the field.
type difference struct {
	Differs bool
	Bit     uint64
}

// DiffRun compares two runs and returns the bits of the fields that differ. The table
// RunFields describes the bits.
func DiffRun(a, b *Run) uint64 {
	var m uint64
	for _, f := range [...]difference{
		{a.State != b.State, RunStateBit},
		{a.Done != b.Done, RunDoneBit},
		{a.Live != b.Live, RunLiveBit},
		{a.Begun != b.Begun, RunBegunBit},
		{a.Finished != b.Finished, RunFinishedBit},
		{a.Steps != b.Steps, RunStepsBit},
		{a.Owner != b.Owner, RunOwnerBit},
		{a.Deadline != b.Deadline, RunDeadlineBit},
		{a.Phase != b.Phase, RunPhaseBit},
		{a.Paused != b.Paused, RunPausedBit},
		{a.Parked != b.Parked, RunParkedBit},
		{a.Passed != b.Passed, RunPassedBit},
		{a.Turning != b.Turning, RunTurningBit},
		{a.Cancel != b.Cancel, RunCancelBit},
		{a.NoUndo != b.NoUndo, RunNoUndoBit},
		{a.Overdue != b.Overdue, RunOverdueBit},
		{a.UndoExpired != b.UndoExpired, RunUndoExpiredBit},
		{a.Stuck != b.Stuck, RunStuckBit},
		{a.UndonePast != b.UndonePast, RunUndonePastBit},
		{a.Undone != b.Undone, RunUndoneBit},
		{a.Left != b.Left, RunLeftBit},
		{a.Undeclared != b.Undeclared, RunUndeclaredBit},
		{a.Waits != b.Waits, RunWaitsBit},
		{a.Awaits != b.Awaits, RunAwaitsBit},
		{a.StartBy != b.StartBy, RunStartByBit},
	} {
		if f.Differs {
			m |= f.Bit
		}
	}
	if a.Head != b.Head && *a.Head != *b.Head {
		m |= diffSome(HeadBits, a, b)
	}
	if a.Rare != b.Rare {
		m |= diffSome(RareBits, a, b)
	}
	return m
}

// diffSome compares two runs, but only in the fields whose bits are in mask. It returns the
// bits of the fields that differ.
func diffSome(mask uint64, a, b *Run) uint64 {
	var m uint64
	for ; mask != 0; mask &= mask - 1 {
		if i := bits.TrailingZeros64(mask); !RunFields[i].Same(a, b) {
			m |= 1 << i
		}
	}
	return m
}

// DiffAttempts compares the attempts of a node before and after a change: the parameters `old` and
// `now`. For each attempt that differs, it appends one patch to the parameter `out`. It returns the
// longer list.
func DiffAttempts(out []AttemptPatch, old, now []Attempt) []AttemptPatch {
	k := 0
	for i := range now {
		for k < len(old) && old[k].Call < now[i].Call {
			k++
		}
		was := Attempt{Call: now[i].Call}
		if k < len(old) && old[k].Call == now[i].Call {
			was = old[k]
		}
		if mask := DiffAttempt(was, now[i]); mask != 0 {
			out = append(out, AttemptPatch{Mask: mask, To: now[i]})
		}
	}
	return out
}

// DiffAttempt compares two attempts and returns the bits of the fields that differ. The table
// AttemptFields describes the bits.
func DiffAttempt(a, b Attempt) uint16 {
	if a == b {
		return 0
	}
	var m uint64
	for _, f := range [...]difference{
		{a.Status != b.Status, AttemptStatusBit},
		{a.Ended != b.Ended, AttemptEndedBit},
		{a.Kind != b.Kind, AttemptKindBit},
		{a.Number != b.Number, AttemptNumberBit},
		{a.Started != b.Started, AttemptStartedBit},
		{a.CompleteBy != b.CompleteBy, AttemptCompleteByBit},
		{a.Code() != b.Code(), AttemptCodeBit},
		{a.Message() != b.Message(), AttemptMessageBit},
		{a.Silent != b.Silent, AttemptSilentBit},
		{a.Gen != b.Gen, AttemptGenBit},
	} {
		if f.Differs {
			m |= f.Bit
		}
	}
	return uint16(m)
}
