package model

import "github.com/saga-engine/engine/engine/machine/status"

// UndoAfter returns the state of a node's undo after the child run of the node has ended. The
// parameter `kept` says what remains of the effects of the child. If effects stay and none was
// undone, the result is UndoLeft or UndoDeclared. In all other cases the result is the parameter
// `or`.
func UndoAfter(kept status.Kept, or UndoState) UndoState {
	switch {
	case kept.Has(status.KeptUndone):
		return or
	case kept.Has(status.KeptLeft):
		return UndoLeft
	case kept.Has(status.KeptDeclared):
		return UndoDeclared
	}
	return or
}

// CountKept counts the effects that the child runs of one node keep. All effects that a person left
// count as one effect in Left. All effects that stay by declaration count as one effect in
// Undeclared.
func (r *Run) CountKept(kept status.Kept) {
	if kept.Has(status.KeptLeft) {
		r.Left++
	}
	if kept.Has(status.KeptDeclared) {
		r.Undeclared++
	}
}

// LeavesEffect reports whether effects of the node stay because a person decided that.
func (n *Node) LeavesEffect() bool { return n.Undo == UndoLeft || n.Kept.Has(status.KeptLeft) }

// DeclaresEffect reports whether effects of the node stay because of compensation = "none".
func (n *Node) DeclaresEffect() bool {
	return n.Undo == UndoDeclared || n.Kept.Has(status.KeptDeclared)
}
