package model

// A boxed node contains the memory for its first attempt, to save one allocation.
type boxed struct {
	Node
	one [1]Attempt
}

// Box returns a copy of a node. The copy and the node share only data that never changes.
func (n *Node) Box() *Node {
	b := &boxed{Node: *n}
	b.Attempts = append(b.one[:0], n.Attempts...)
	return &b.Node
}

// Share prepares a node of a draft for use in a state. old is the node before the draft, and
// mask has the fields that the draft changed. The node shares the other data with old.
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
			*h = *was[k] // the values are equal: keep the memory of the old one
		}
	}
	n.Attempts = Forget(n.Attempts)
}

// Own copies m into the node's own More, which no other node shares.
func (n *Node) Own(m *More) {
	if n.More == &NoMore {
		n.More = new(More)
	}
	*n.More = *m
}

// Tally counts an attempt that ended without a result (S63).
func (n *Node) Tally(kind CallKind) {
	switch kind {
	case CallDo:
		n.Fwd.Failures++
	case CallUndo, CallLearn:
		n.Und.Failures++
	}
}

// Wipe resets a node as if it had done nothing. With newKey it also gets a new idempotency
// key, because its undo was called under the present one.
func (n *Node) Wipe(newKey bool) {
	n.Doubt, n.Done, n.Known, n.Output = 0, false, false, Held{}
	n.Point, n.Blob = 0, nil
	n.Fwd.Lookups = 0
	if newKey {
		n.Gen++
	}
	n.UndoReady, n.UndoInput, n.UndoDoubt = false, Held{}, 0
	n.UndoPoint, n.UndoBlob = 0, nil
	n.Und.Total = 0
	n.Und.Blame(Miss{})
}

// Attempt returns the attempt with this call number; the caller may change it. If there is
// none, Attempt adds one.
func (n *Node) Attempt(call int32) *Attempt {
	i, found := place(n.Attempts, call)
	if !found {
		n.Attempts = insert(n.Attempts, i, Attempt{Call: call})
	}
	return &n.Attempts[i]
}
