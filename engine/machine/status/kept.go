package status

// Kept says what remains of the effects of a child run that has ended: a set of the constants
// below. The engine answers the calls for child runs and sends a Kept with its answer. From the
// Kept, the parent learns which effects can no longer be undone. A child run that has succeeded
// keeps its effects until its parent is undone. These effects are not in the set, because they can
// still be undone. The numbers are persisted.
type Kept uint8

// The elements of Kept.
const (
	KeptLeft     Kept = 1 << iota // effects that a person left in place
	KeptDeclared                  // effects that stay because of compensation = "none"
	KeptInDoubt                   // it is unknown whether some of the effects exist
	KeptPivot                     // the child run has passed its pivot, but it has not succeeded
	// The child run has undone some of its effects. This element does not say that an effect stays.
	KeptUndone
)

// keptEffects has the elements that say that effects stay.
const keptEffects = KeptLeft | KeptDeclared

// knownKept has all elements that this engine knows.
const knownKept = keptEffects | KeptInDoubt | KeptPivot | KeptUndone

// Has reports whether k has an element of the set `some`.
func (k Kept) Has(some Kept) bool { return k&some != 0 }

// Stay reports whether effects of the child run stay.
func (k Kept) Stay() bool { return k.Has(keptEffects) }

// Valid reports whether k has only elements that this engine knows.
func (k Kept) Valid() bool { return k&^knownKept == 0 }

// OfStep returns the elements that the step of the parent keeps after the answer.
func (k Kept) OfStep() Kept { return k & (keptEffects | KeptInDoubt) }
