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
		m |= 1 << 0
	}
	if a.doubt != b.doubt {
		m |= 1 << 2
	}
	if a.done != b.done {
		m |= 1 << 3
	}
	if a.calls != b.calls {
		m |= 1 << 4
	}
	if a.deps != b.deps {
		m |= 1 << 7
	}
	if a.input != b.input && !sameHeld(a.input, b.input) {
		m |= inputBit
	}
	if a.prepared != b.prepared {
		m |= 1 << 13
	}
	if a.output != b.output && !sameHeld(a.output, b.output) {
		m |= outputBit
	}
	if a.known != b.known {
		m |= 1 << 15
	}
	if a.item != b.item || a.step != b.step || a.key != b.key || !sameHeld(a.each, b.each) {
		m |= eachBit
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
		m |= 1 << 26
	}
	if a.back != b.back {
		m |= 1 << 28
	}
	if a.undoReady != b.undoReady {
		m |= 1 << 33
	}
	if a.quiet != b.quiet {
		m |= 1 << 38
	}
	if a.queue != b.queue || a.hold != b.hold {
		m |= 1 << 39
	}
	if a.expanded != b.expanded {
		m |= 1 << 44
	}
	if a.timedOut != b.timedOut {
		m |= 1 << 49
	}
	if a.gen != b.gen {
		m |= 1 << 51
	}
	if a.clearing != b.clearing {
		m |= 1 << 56
	}
	return m
}

// diffWork compares the forward track.
func diffWork(a, b *track) uint64 {
	var m uint64
	if a.act != b.act {
		m |= 1 << 1
	}
	if a.attempt != b.attempt {
		m |= 1 << 5
	}
	if a.total != b.total {
		m |= 1 << 6
	}
	if a.kind != b.kind {
		m |= 1 << 8
	}
	if a.ready != b.ready {
		m |= 1 << 9
	}
	if a.began != b.began {
		m |= 1 << 10
	}
	if a.ended != b.ended {
		m |= 1 << 11
	}
	if a.deadline != b.deadline {
		m |= 1 << 16
	}
	if a.until != b.until {
		m |= 1 << 17
	}
	if a.failures != b.failures {
		m |= 1 << 18
	}
	if a.miss != b.miss || !a.said.same(b.said) {
		m |= 1 << 19
	}
	if a.rounds != b.rounds {
		m |= 1 << 45
	}
	if a.lookups != b.lookups {
		m |= 1 << 46
	}
	if a.rest != b.rest {
		m |= 1 << 54
	}
	return m
}

// diffMore compares what most nodes never have.
func diffMore(a, b *more) uint64 {
	var m uint64
	if a.next != b.next {
		m |= 1 << 21
	}
	if a.active != b.active {
		m |= 1 << 22
	}
	if a.over != b.over {
		m |= 1 << 23
	}
	if a.bad != b.bad {
		m |= 1 << 24
	}
	if a.past != b.past {
		m |= 1 << 25
	}
	if a.undoInput != b.undoInput && !sameHeld(a.undoInput, b.undoInput) {
		m |= undoInputBit
	}
	if a.undoDoubt != b.undoDoubt {
		m |= 1 << 43
	}
	if a.first != b.first || a.count != b.count {
		m |= 1 << 44
	}
	if a.caught != b.caught && !sameHeld(a.caught, b.caught) {
		m |= caughtBit
	}
	if a.bizKey != b.bizKey {
		m |= 1 << 50
	}
	if a.point != b.point || string(a.blob) != string(b.blob) {
		m |= 1 << 52
	}
	if a.manual != b.manual {
		m |= 1 << 53
	}
	if a.stated != b.stated {
		m |= 1 << 58
	}
	if a.undoPoint != b.undoPoint || string(a.undoBlob) != string(b.undoBlob) {
		m |= 1 << 57
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
		m |= 1 << 27
	}
	if a.kind != b.kind {
		m |= 1 << 29
	}
	if a.attempt != b.attempt {
		m |= 1 << 30
	}
	if a.total != b.total {
		m |= 1 << 31
	}
	if a.began != b.began {
		m |= 1 << 34
	}
	if a.ended != b.ended {
		m |= 1 << 35
	}
	if a.ready != b.ready {
		m |= 1 << 36
	}
	if a.deadline != b.deadline {
		m |= 1 << 37
	}
	if a.until != b.until {
		m |= 1 << 40
	}
	if a.failures != b.failures {
		m |= 1 << 41
	}
	if a.miss != b.miss || !a.said.same(b.said) {
		m |= 1 << 42
	}
	if a.lookups != b.lookups {
		m |= 1 << 47
	}
	if a.rest != b.rest {
		m |= 1 << 55
	}
	return m
}

// diffRun returns the bits of runFields in which two runs differ.
func diffRun(a, b *run) uint64 {
	var m uint64
	for i, differs := range [...]bool{
		0: a.state != b.state, 1: a.done != b.done, 2: a.live != b.live, 3: a.begun != b.begun, 4: a.finished != b.finished,
		13: a.steps != b.steps, 14: a.owner != b.owner, 16: a.deadline != b.deadline, 17: a.phase != b.phase,
		18: a.paused != b.paused, 19: a.parked != b.parked, 21: a.passed != b.passed, 22: a.turning != b.turning,
		23: a.cancel != b.cancel, 24: a.noUndo != b.noUndo, 25: a.overdue != b.overdue, 29: a.undoExpired != b.undoExpired,
		30: a.stuck != b.stuck, 31: a.undonePast != b.undonePast, 32: a.undone != b.undone, 33: a.left != b.left,
		34: a.undeclared != b.undeclared,
	} {
		if differs {
			m |= 1 << i
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
	var m uint16
	for i, differs := range [...]bool{
		a.status != b.status, a.ended != b.ended, a.kind != b.kind, a.number != b.number, a.started != b.started,
		a.completeBy != b.completeBy, a.code() != b.code(), a.message() != b.message(), a.silent != b.silent, a.gen != b.gen,
	} {
		if differs {
			m |= 1 << i
		}
	}
	return m
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
