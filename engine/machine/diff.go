package machine

import (
	"math/bits"
	"slices"
)

// diffNode returns the bits of nodeFields in which two nodes differ. It is
// written out because every decision asks it of every node it touches.
func diffNode(a, b *node) uint64 {
	var m uint64
	if a.state != b.state {
		m |= nodeStateBit
	}
	if a.doubt != b.doubt {
		m |= nodeDoubtBit
	}
	if a.done != b.done {
		m |= nodeDoneBit
	}
	if a.calls != b.calls {
		m |= nodeCallsBit
	}
	if a.deps != b.deps {
		m |= nodeDepsBit
	}
	if a.input != b.input && !sameHeld(a.input, b.input) {
		m |= nodeInputBit
	}
	if a.prepared != b.prepared {
		m |= nodePreparedBit
	}
	if a.output != b.output && !sameHeld(a.output, b.output) {
		m |= nodeOutputBit
	}
	if a.known != b.known {
		m |= nodeKnownBit
	}
	if a.item != b.item || a.step != b.step || a.key != b.key || !sameHeld(a.each, b.each) {
		m |= nodeInstanceBit
	}
	m |= diffRest(a, b)
	if a.fwd != b.fwd {
		m |= diffWork(&a.fwd, &b.fwd)
	}
	if a.more != b.more {
		m |= diffMore(a.more, b.more)
	}
	return m
}

// diffRest is diffNode for what comes after the output.
func diffRest(a, b *node) (m uint64) {
	if a.undo != b.undo {
		m |= nodeUndoBit
	}
	if a.back != b.back {
		m |= nodeBackBit
	}
	if a.undoReady != b.undoReady {
		m |= nodeUndoReadyBit
	}
	if a.quiet != b.quiet {
		m |= nodeQuietBit
	}
	if a.queue != b.queue || a.hold != b.hold {
		m |= nodeQueueBit
	}
	if a.expanded != b.expanded {
		m |= nodeExpansionBit
	}
	if a.timedOut != b.timedOut {
		m |= nodeTimedOutBit
	}
	if a.gen != b.gen {
		m |= nodeGenBit
	}
	if a.clearing != b.clearing {
		m |= nodeClearingBit
	}
	return m
}

// diffWork compares the forward track.
func diffWork(a, b *track) uint64 {
	var m uint64
	if a.act != b.act {
		m |= nodeFwdActBit
	}
	if a.attempt != b.attempt {
		m |= nodeFwdAttemptBit
	}
	if a.total != b.total {
		m |= nodeFwdTotalBit
	}
	if a.kind != b.kind {
		m |= nodeFwdKindBit
	}
	if a.ready != b.ready {
		m |= nodeFwdReadyBit
	}
	if a.began != b.began {
		m |= nodeFwdBeganBit
	}
	if a.ended != b.ended {
		m |= nodeFwdEndedBit
	}
	if a.deadline != b.deadline {
		m |= nodeFwdDeadlineBit
	}
	if a.until != b.until {
		m |= nodeFwdUntilBit
	}
	if a.failures != b.failures {
		m |= nodeFwdFailuresBit
	}
	if a.miss != b.miss || !a.said.same(b.said) {
		m |= nodeFwdFailureBit
	}
	if a.rounds != b.rounds {
		m |= nodeFwdRoundsBit
	}
	if a.lookups != b.lookups {
		m |= nodeFwdLookupsBit
	}
	if a.rest != b.rest {
		m |= nodeFwdRestBit
	}
	return m
}

// diffMore compares what most nodes never have.
func diffMore(a, b *more) uint64 {
	var m uint64
	if a.next != b.next {
		m |= nodeNextBit
	}
	if a.active != b.active {
		m |= nodeActiveBit
	}
	if a.over != b.over {
		m |= nodeOverBit
	}
	if a.bad != b.bad {
		m |= nodeBadBit
	}
	if a.past != b.past {
		m |= nodePastBit
	}
	if a.undoInput != b.undoInput && !sameHeld(a.undoInput, b.undoInput) {
		m |= nodeUndoInputBit
	}
	if a.undoDoubt != b.undoDoubt {
		m |= nodeUndoDoubtBit
	}
	if a.first != b.first || a.count != b.count {
		m |= nodeExpansionBit
	}
	if a.caught != b.caught && !sameHeld(a.caught, b.caught) {
		m |= nodeCaughtBit
	}
	if a.bizKey != b.bizKey {
		m |= nodeBizKeyBit
	}
	if a.point != b.point || string(a.blob) != string(b.blob) {
		m |= nodeCheckpointBit
	}
	if a.manual != b.manual {
		m |= nodeManualBit
	}
	if a.stated != b.stated {
		m |= nodeStatedBit
	}
	if a.undoPoint != b.undoPoint || string(a.undoBlob) != string(b.undoBlob) {
		m |= nodeUndoCheckpointBit
	}
	if a.und != b.und {
		m |= diffUndo(&a.und, &b.und)
	}
	return m
}

// diffUndo compares the undo track.
func diffUndo(a, b *track) uint64 {
	var m uint64
	if a.act != b.act {
		m |= nodeUndActBit
	}
	if a.kind != b.kind {
		m |= nodeUndKindBit
	}
	if a.attempt != b.attempt {
		m |= nodeUndAttemptBit
	}
	if a.total != b.total {
		m |= nodeUndTotalBit
	}
	if a.began != b.began {
		m |= nodeUndBeganBit
	}
	if a.ended != b.ended {
		m |= nodeUndEndedBit
	}
	if a.ready != b.ready {
		m |= nodeUndReadyBit
	}
	if a.deadline != b.deadline {
		m |= nodeUndDeadlineBit
	}
	if a.until != b.until {
		m |= nodeUndUntilBit
	}
	if a.failures != b.failures {
		m |= nodeUndFailuresBit
	}
	if a.miss != b.miss || !a.said.same(b.said) {
		m |= nodeUndFailureBit
	}
	if a.lookups != b.lookups {
		m |= nodeUndLookupsBit
	}
	if a.rest != b.rest {
		m |= nodeUndRestBit
	}
	return m
}

// A difference says whether two values differ in the field of a bit.
type difference struct {
	differs bool
	bit     uint64
}

// diffRun returns the bits of runFields in which two runs differ.
func diffRun(a, b *run) uint64 {
	var m uint64
	for _, f := range [...]difference{
		{a.state != b.state, runStateBit},
		{a.done != b.done, runDoneBit},
		{a.live != b.live, runLiveBit},
		{a.begun != b.begun, runBegunBit},
		{a.finished != b.finished, runFinishedBit},
		{a.steps != b.steps, runStepsBit},
		{a.owner != b.owner, runOwnerBit},
		{a.deadline != b.deadline, runDeadlineBit},
		{a.phase != b.phase, runPhaseBit},
		{a.paused != b.paused, runPausedBit},
		{a.parked != b.parked, runParkedBit},
		{a.passed != b.passed, runPassedBit},
		{a.turning != b.turning, runTurningBit},
		{a.cancel != b.cancel, runCancelBit},
		{a.noUndo != b.noUndo, runNoUndoBit},
		{a.overdue != b.overdue, runOverdueBit},
		{a.undoExpired != b.undoExpired, runUndoExpiredBit},
		{a.stuck != b.stuck, runStuckBit},
		{a.undonePast != b.undonePast, runUndonePastBit},
		{a.undone != b.undone, runUndoneBit},
		{a.left != b.left, runLeftBit},
		{a.undeclared != b.undeclared, runUndeclaredBit},
	} {
		if f.differs {
			m |= f.bit
		}
	}
	if a.head != b.head && *a.head != *b.head {
		m |= diffSome(headBits, a, b)
	}
	if a.trouble != b.trouble {
		m |= diffSome(troubleBits, a, b)
	}
	return m
}

// diffSome compares only the fields of the run in mask.
func diffSome(mask uint64, a, b *run) uint64 {
	var m uint64
	for ; mask != 0; mask &= mask - 1 {
		if i := bits.TrailingZeros64(mask); !runFields[i].same(a, b) {
			m |= 1 << i
		}
	}
	return m
}

// diffAttempts appends the patches that turn old into now.
func diffAttempts(out []attemptPatch, old, now []attempt) []attemptPatch {
	k := 0
	for i := range now {
		for k < len(old) && old[k].call < now[i].call {
			k++
		}
		was := attempt{call: now[i].call}
		if k < len(old) && old[k].call == now[i].call {
			was = old[k]
		}
		if mask := diffAttempt(was, now[i]); mask != 0 {
			out = append(out, attemptPatch{mask: mask, to: now[i]})
		}
	}
	return out
}

// diffAttempt returns the bits of attemptFields in which two attempts differ.
func diffAttempt(a, b attempt) uint16 {
	if a == b {
		return 0
	}
	var m uint64
	for _, f := range [...]difference{
		{a.status != b.status, attemptStatusBit},
		{a.ended != b.ended, attemptEndedBit},
		{a.kind != b.kind, attemptKindBit},
		{a.number != b.number, attemptNumberBit},
		{a.started != b.started, attemptStartedBit},
		{a.completeBy != b.completeBy, attemptCompleteByBit},
		{a.code() != b.code(), attemptCodeBit},
		{a.message() != b.message(), attemptMessageBit},
		{a.silent != b.silent, attemptSilentBit},
		{a.gen != b.gen, attemptGenBit},
	} {
		if f.differs {
			m |= f.bit
		}
	}
	return uint16(m)
}

// withPatches returns the attempts after patches; it does not change old.
func withPatches(old []attempt, patches []attemptPatch) []attempt {
	if len(patches) == 0 {
		return old
	}
	now := slices.Clone(old)
	for k := range patches {
		p := &patches[k]
		i, found := place(now, p.to.call)
		if !found {
			now = insert(now, i, attempt{call: p.to.call})
		}
		mask := uint64(p.mask)
		if mask&saidBits == saidBits {
			now[i].said = p.to.said
			mask &^= saidBits
		}
		overwrite(attemptFields, mask, &now[i], &p.to)
	}
	return forget(now)
}

// place returns where in a list of attempts the call with this number is, or
// belongs.
func place(list []attempt, call int32) (i int, found bool) {
	for i = len(list); i > 0 && list[i-1].call >= call; i-- {
		if list[i-1].call == call {
			return i - 1, true
		}
	}
	return i, false
}

// insert puts an attempt into its place.
func insert(list []attempt, i int, a attempt) []attempt {
	list = append(list, a)
	copy(list[i+1:], list[i:])
	list[i] = a
	return list
}

// forget drops closed attempts that are too old to be kept, in place.
func forget(now []attempt) []attempt {
	if len(now) <= keptAttempts {
		return now
	}
	closed := 0
	for i := len(now) - 1; i >= 0; i-- {
		if now[i].status == attemptOpen {
			continue
		}
		if closed++; closed > keptAttempts {
			now = slices.Delete(now, i, i+1)
		}
	}
	return now
}
