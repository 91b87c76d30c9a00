package story

import "slices"

// FactKinds is a set of kinds of facts. The zero value is empty.
type FactKinds struct {
	bits uint32
}

// allFacts lists every kind of fact. The kind with the index i has the bit 1<<i in
// FactKinds.bits.
var allFacts = []FactKind{
	FactRunCreated, FactStepHeld, FactAttemptStarted, FactAttemptProgress, FactAttemptFinished, FactRetryScheduled, FactStepFinished,
	FactUndoStarted, FactUndoFinished, FactRunTurned, FactRunParked, FactRunTakenOver, FactVerb, FactRunFinished,
	FactWaitStarted, FactSignalReceived, FactRunAdmitted,
}

// AllFactKinds returns the set of every kind.
func AllFactKinds() FactKinds { return FactKinds{1<<len(allFacts) - 1} }

// NewFactKinds returns the set of the given kinds. It panics if a kind does not exist.
func NewFactKinds(kinds ...FactKind) FactKinds {
	var s FactKinds
	for _, k := range kinds {
		bit := slices.Index(allFacts, k)
		if bit < 0 {
			panic("story: no kind of facts: " + string(k))
		}
		s.bits |= 1 << bit
	}
	return s
}

// With returns the union of two sets.
func (s FactKinds) With(o FactKinds) FactKinds { return FactKinds{s.bits | o.bits} }

// Empty reports whether the set contains no kind.
func (s FactKinds) Empty() bool { return s.bits == 0 }

// has reports whether the set contains the kind, which must be one of allFacts.
func (s FactKinds) has(k FactKind) bool {
	switch s.bits {
	case 0:
		return false
	case 1<<len(allFacts) - 1:
		return true
	}
	return s.bits&(1<<slices.Index(allFacts, k)) != 0
}
