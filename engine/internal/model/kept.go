package model

// Kept says what remains of the effects of a child run that has ended: a set of the constants below.
// A child run that has succeeded keeps its effects until its parent is undone. They are not in this
// set, because they can still be undone. The numbers are persisted.
type Kept uint8

// The elements of Kept.
const (
	KeptLeft     Kept = 1 << iota // effects that a person left in place
	KeptDeclared                  // effects that stay because of compensation = "none"
	KeptInDoubt                   // nobody knows whether some of the effects exist
	KeptPivot                     // the child run has passed its pivot, but it has not succeeded
	KeptUndone                    // the child run has undone some of its effects; no effect stays because of that
)

// keptEffects are the elements that say that effects stay.
const keptEffects = KeptLeft | KeptDeclared

// knownKept are all elements.
const knownKept = keptEffects | KeptInDoubt | KeptPivot | KeptUndone

// Has reports whether k has an element of the set `some`.
func (k Kept) Has(some Kept) bool { return k&some != 0 }

// Stay reports whether effects of the child run stay.
func (k Kept) Stay() bool { return k.Has(keptEffects) }

// Valid reports whether k has only elements that this engine knows.
func (k Kept) Valid() bool { return k&^knownKept == 0 }

// OfNode returns the elements that the node of the parent keeps (Node.Kept).
func (k Kept) OfNode() Kept { return k & (keptEffects | KeptInDoubt) }

// Undo returns the state of a node's undo after its child run has ended with k: UndoLeft or
// UndoDeclared if effects of the child run stay and none was undone. Otherwise it returns the parameter
// `or`.
func (k Kept) Undo(or UndoState) UndoState {
	switch {
	case k.Has(KeptUndone):
		return or
	case k.Has(KeptLeft):
		return UndoLeft
	case k.Has(KeptDeclared):
		return UndoDeclared
	}
	return or
}

// LeavesEffect reports whether effects of the node stay because a person decided that.
func (n *Node) LeavesEffect() bool { return n.Undo == UndoLeft || n.Kept.Has(KeptLeft) }

// DeclaresEffect reports whether effects of the node stay because of compensation = "none".
func (n *Node) DeclaresEffect() bool { return n.Undo == UndoDeclared || n.Kept.Has(KeptDeclared) }
