package model

import "slices"

// A Delta is what a record changes: fields of the run, and of nodes in ascending order.
type Delta struct {
	At    Instant
	Run   *RunPatch // nil = the run itself does not change
	Nodes []NodePatch
}

// A RunPatch holds the fields of the run that a record changes. Only the fields in Mask are
// valid.
type RunPatch struct {
	Mask uint64
	To   Run
}

// A NodePatch holds the fields of one node that a record changes. Only the fields in Mask
// are valid, except in a record that this process decided: there To is the complete node.
// Attempts have patches of their own.
type NodePatch struct {
	Node     int
	Mask     uint64
	To       *Node
	Attempts []AttemptPatch
}

// An AttemptPatch holds the fields of one attempt that a record changes. To.Call is the
// number of the attempt.
type AttemptPatch struct {
	Mask uint16
	To   Attempt
}

// WithPatches applies the patches to the attempts in old and returns the result. It does not
// change old.
func WithPatches(old []Attempt, patches []AttemptPatch) []Attempt {
	if len(patches) == 0 {
		return old
	}
	now := slices.Clone(old)
	for k := range patches {
		p := &patches[k]
		i, found := place(now, p.To.Call)
		if !found {
			now = insert(now, i, Attempt{Call: p.To.Call})
		}
		mask := uint64(p.Mask)
		if mask&SaidBits == SaidBits {
			now[i].Said = p.To.Said
			mask &^= SaidBits
		}
		Overwrite(AttemptFields, mask, &now[i], &p.To)
	}
	return Forget(now)
}
