package model

// A boxed node has room for its first attempt, so that both are one piece of
// memory.
type boxed struct {
	Node
	one [1]Attempt
}

// Box returns a copy of a node that shares only what is never changed.
func (n *Node) Box() *Node {
	b := &boxed{Node: *n}
	b.Attempts = append(b.one[:0], n.Attempts...)
	return &b.Node
}

// Share makes a node of a draft a node of a state: what the draft did not change, by mask,
// it shares with old.
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
			*h = *was[k] // an equal one: keep the memory that is there
		}
	}
	n.Attempts = Forget(n.Attempts)
}

// Own makes the node's more, which nobody else has, like another.
func (n *Node) Own(m *More) {
	if n.More == &NoMore {
		n.More = new(More)
	}
	*n.More = *m
}

// Tally counts an attempt that ended without result (S63).
func (n *Node) Tally(kind CallKind) {
	switch kind {
	case CallDo:
		n.Fwd.Failures++
	case CallUndo, CallLearn:
		n.Und.Failures++
	}
}

// Wipe makes a node one that has done nothing yet, with a new key if its undo
// was called under the present one.
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

// Attempt returns the attempt with this call number for changing; a new one if there is
// none.
func (n *Node) Attempt(call int32) *Attempt {
	i, found := place(n.Attempts, call)
	if !found {
		n.Attempts = insert(n.Attempts, i, Attempt{Call: call})
	}
	return &n.Attempts[i]
}
