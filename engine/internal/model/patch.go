package model

import "slices"

// A Delta holds all changes that a record makes: to fields of the run, and to fields of nodes.
// Nodes is sorted by node number.
type Delta struct {
	At    Instant
	Run   *RunPatch // nil = the run itself does not change
	Nodes []NodePatch
}

// A RunPatch holds the fields of the run that a record changes. In the field To, only the fields
// whose bits are in Mask are valid.
type RunPatch struct {
	Mask uint64
	To   Run
}

// A NodePatch holds the fields of one node that a record changes. If this process decided the
// record, the field To holds the complete node. Otherwise only the fields in Mask are valid.
// The field Attempts holds the changes of the node's attempts.
type NodePatch struct {
	Node     int
	Mask     uint64
	To       *Node
	Attempts []AttemptPatch
}

// An AttemptPatch holds the fields of one attempt that a record changes. To.Call says which
// attempt this is. Of the other fields of To, only those in Mask are valid.
type AttemptPatch struct {
	Mask uint16
	To   Attempt
}

// WithPatches applies patches to a copy of the attempts in the parameter `old`, and returns the
// copy. It leaves out closed attempts that are too old to keep (Forget). If there are no patches,
// it returns `old`.
func WithPatches(old []Attempt, patches []AttemptPatch) []Attempt {
	if len(patches) == 0 {
		return old
	}
	now := slices.Clone(old)
	for k := range patches {
		p := &patches[k]
		i, found := indexOfCall(now, p.To.Call)
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
