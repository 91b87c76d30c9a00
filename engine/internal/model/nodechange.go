package model

// The type boxed is a node together with memory for its first attempt, so that one allocation is
// enough for both.
type boxed struct {
	Node
	one [1]Attempt
}

// Box returns a copy of a node with its own list of attempts. The copy and the node still
// point to the same More, so the caller must replace More before it changes a field in it.
func (n *Node) Box() *Node {
	b := &boxed{Node: *n}
	b.Attempts = append(b.one[:0], n.Attempts...)
	return &b.Node
}

// Share prepares a node that a decision has changed, so that the node can become part of the run's
// state. The parameter `old` is the node before the decision, and `mask` has the bits of the
// changed fields. Share makes the values that have not changed use the memory of the old node.
// Share also removes old closed attempts (Forget).
func (n *Node) Share(old *Node, mask uint64) {
	if mask&MoreBits == 0 {
		n.More = old.More
	} else {
		own := *n.More
		n.More = &own
	}
	was := NodeValues(old)
	for k, h := range NodeValues(n) {
		if mask&ValueBits[k] == 0 && *h != *was[k] {
			*h = *was[k] // the values are equal: use the memory of the old value
		}
	}
	n.Attempts = Forget(n.Attempts)
}

// Own copies m into the More of the node. If the node points to NoMore, Own allocates a new More.
// If the node points to another More, Own overwrites this More. In this case, the caller must make
// sure that no other node points to the same More.
func (n *Node) Own(m *More) {
	if n.More == &NoMore {
		n.More = new(More)
	}
	*n.More = *m
}

// Tally counts a call of the given kind that ended without a result (S63). It does not count
// lookups.
func (n *Node) Tally(kind CallKind) {
	switch kind {
	case CallDo:
		n.Fwd.Failures++
	case CallUndo, CallLearn:
		n.Und.Failures++
	}
}

// Wipe removes the effect, the output and the checkpoints from a node, as if the node had done
// nothing. For a repeat step, Wipe removes only the effect, the output and the checkpoints of the
// present iteration. If the parameter `newKey` is true, the node also gets a new idempotency key.
// The node needs a new key after an undo was called with the present key.
func (n *Node) Wipe(newKey bool) {
	n.Doubt, n.Done, n.Known, n.Output = 0, false, false, StoredValue{}
	n.Point, n.Blob = 0, nil
	n.Fwd.Lookups = 0
	if newKey {
		n.Gen++
	}
	n.UndoReady, n.UndoInput, n.UndoDoubt = false, StoredValue{}, 0
	n.UndoPoint, n.UndoBlob = 0, nil
	n.Und.Total = 0
	n.Und.Blame(Miss{})
}

// Attempt returns the attempt with this call number. If there is none, Attempt adds one. The
// caller may change the result.
func (n *Node) Attempt(call int32) *Attempt {
	i, found := indexOfCall(n.Attempts, call)
	if !found {
		n.Attempts = insert(n.Attempts, i, Attempt{Call: call})
	}
	return &n.Attempts[i]
}
