package model

import "github.com/saga-engine/engine/engine/machine/status"

// Of returns the index of the node's step in the workflow.
func (n *Node) Of() int { return int(n.Step) }

// Ended reports whether the forward work of the node has ended.
func (n *Node) Ended() bool { return forwardEnded(n.State) }

// Well reports whether the node ended as succeeded, skipped or caught. After such an end, the
// dependents of the node may start.
func (n *Node) Well() bool {
	return n.State == status.StepSucceeded || n.State == status.StepSkipped || n.State == status.StepCaught
}

// Open reports whether a call of the node is in flight.
func (n *Node) Open() bool {
	for k := range n.Attempts {
		if n.Attempts[k].Status == AttemptOpen {
			return true
		}
	}
	return false
}

// Find returns the attempt with the given call number; nil if the node does not keep this attempt.
func (n *Node) Find(call int) *Attempt {
	for k := len(n.Attempts) - 1; k >= 0; k-- {
		if int(n.Attempts[k].Call) == call {
			return &n.Attempts[k]
		}
	}
	return nil
}

// Newest returns the number of the latest call of this kind; 0 if there is none.
func (n *Node) Newest(kind CallKind) int32 {
	for k := len(n.Attempts) - 1; k >= 0; k-- {
		if n.Attempts[k].Kind == kind {
			return n.Attempts[k].Call
		}
	}
	return 0
}

// LastUnknown returns the latest forward attempt whose outcome is unknown; nil if there is
// none.
func (n *Node) LastUnknown() *Attempt {
	for k := len(n.Attempts) - 1; k >= 0; k-- {
		if a := &n.Attempts[k]; a.Kind == CallDo && a.Status == AttemptUnknown {
			return a
		}
	}
	return nil
}

// Effect returns whether the node has changed something in the remote service: no, maybe or yes
// (S20). Effects that the node's child runs have kept at their end count, too.
func (n *Node) Effect() status.Effect {
	if n.Kept.Stay() {
		return status.EffectDone
	}
	return n.OwnEffect()
}

// OwnEffect returns the same as Effect, but does not count the effects that the node's child runs
// have kept at their end. Only an effect that OwnEffect reports can be undone.
func (n *Node) OwnEffect() status.Effect {
	switch {
	case n.Done || n.Loop.Past:
		return status.EffectDone
	case n.Doubt > 0:
		return status.EffectMaybe
	}
	return status.EffectNone
}

// Marked reports whether a checkpoint of the node is recorded. A checkpoint shows that the
// node may have an effect, even if its attempt fails later.
func (n *Node) Marked() bool { return n.Point != 0 || len(n.Blob) > 0 }

// Correctable reports whether a person has decided about the node with the verb settle, and may
// still correct this decision. The verb settle checks further conditions.
func (n *Node) Correctable() bool {
	return n.Stated != StatedNothing && !n.Expanded && !n.Clearing && !n.Open() &&
		(n.Undo == UndoNone || n.Undo == UndoPending || n.Undo == UndoActive || n.Undo == UndoFailed)
}

// Undoes reports whether the attempt `a` belongs to the undo of the node. A lookup of the forward
// call belongs to the undo, too, if the undo had begun when the lookup started.
func (n *Node) Undoes(a *Attempt) bool {
	switch a.Kind {
	case CallUndo, CallUndoLookup, CallLearn:
		return true
	case CallLookup:
		return n.Und.Began != 0 && a.Started >= n.Und.Began
	}
	return false
}

// Track returns the track on which the node works now. This is the track Fwd if the field Undo is
// UndoNone, and the track Und for all other values of Undo.
func (n *Node) Track() *Track {
	if n.Undo == UndoNone {
		return &n.Fwd
	}
	return &n.Und
}

// Lives reports whether the node will continue without a person.
func (n *Node) Lives() bool {
	return n.Fwd.Act != Idle || n.Und.Act != Idle || n.Queue != 0 || n.Open()
}

// Waits reports whether the node waits for a signal, or for the end of a timer. No agent works
// for such a node.
func (n *Node) Waits() bool { return n.Fwd.Act == Waiting }

// Expires returns the earliest time at which an open attempt of the node expires; 0 if no
// attempt is open.
func (n *Node) Expires() Instant {
	var at Instant
	for k := range n.Attempts {
		if n.Attempts[k].Status == AttemptOpen {
			at = Earliest(at, n.Attempts[k].Expires())
		}
	}
	return at
}

// Limit returns the deadline that applies to the node now; 0 if there is none.
func (n *Node) Limit() Instant {
	switch {
	case n.Clearing:
		return Earliest(n.Und.Deadline, n.Fwd.Deadline)
	case n.Undo == UndoActive, n.Undo == UndoPending && n.Und.Ready != 0:
		return n.Und.Deadline
	case n.Undo == UndoNone && !n.Ended() && n.Fwd.Ready != 0:
		return n.Fwd.Deadline
	}
	return 0
}

// Wake returns the time at which the node's pause or timer ends. It returns 0 if the node is
// not in a pause and does not wait for the end of a timer.
func (n *Node) Wake() Instant {
	switch {
	case n.Und.Act == Backoff:
		return n.Und.Until
	case n.Fwd.Act == Backoff, n.Fwd.Act == Waiting && n.Fwd.Until != 0:
		return n.Fwd.Until
	}
	return 0
}

// QueuedFor returns the field Queue if the node waits for the agent Run.Holds[h], and 0 otherwise.
func (n *Node) QueuedFor(h int) Instant {
	if int(n.Hold) == h+1 {
		return n.Queue
	}
	return 0
}

// Shown returns the state of the node that people see. If the undo is active, has succeeded or has
// failed, this is the state of the undo. If not, it is the state of the forward work.
func (n *Node) Shown() status.StepState {
	switch n.Undo {
	case UndoActive:
		return status.StepUndoing
	case UndoDone:
		return status.StepUndone
	case UndoFailed:
		return status.StepUndoFailed
	}
	return n.State
}

// Weight returns the size of the node's values and checkpoints, in bytes.
func (n *Node) Weight() int64 {
	sum := len(n.Input.V.JSON()) + len(n.Output.V.JSON()) + len(n.Each.V.JSON())
	if n.More != &NoMore {
		sum += len(n.Blob) + len(n.UndoBlob)
		for _, h := range [...]*StoredValue{&n.Caught, &n.UndoInput, &n.Data, &n.Last, &n.Given} {
			// Leave out null values, so that a node with an empty More has the same weight as a
			// node with NoMore.
			if !h.V.IsNull() {
				sum += len(h.V.JSON())
			}
		}
	}
	return int64(sum) + n.Collected.Size()
}
