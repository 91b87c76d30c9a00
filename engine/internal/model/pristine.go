package model

import "github.com/saga-engine/engine/engine/machine/status"

// NoMore is the More of a node that uses none of the fields in More. It must never be
// changed.
var NoMore = More{}

// NewNode returns a step in its first state. The caller must not change it.
func NewNode(step int) *Node {
	if step < len(Pristine) {
		return &Pristine[step]
	}
	return &Node{Step: int32(step), State: status.StepPending, More: &NoMore}
}

// AppendSteps appends n steps in their first state, with at most one allocation for them.
// first is the index of the first of these steps.
func AppendSteps(nodes []*Node, first, n int) []*Node {
	if first+n <= len(Pristine) {
		for i := range n {
			nodes = append(nodes, &Pristine[first+i])
		}
		return nodes
	}
	steps := make([]Node, n)
	for i := range steps {
		steps[i] = Node{Step: int32(first + i), State: status.StepPending, More: &NoMore}
		nodes = append(nodes, &steps[i])
	}
	return nodes
}

// Pristine holds steps in their first state. Runs share them, so that a step that has not
// begun needs no memory.
var Pristine = func() (steps [64]Node) {
	for i := range steps {
		steps[i] = Node{Step: int32(i), State: status.StepPending, More: &NoMore}
	}
	return steps
}()

// Blank is an empty node. The fields in which a new instance differs from it are the fields
// that the record changes.
var Blank = Node{More: &NoMore}

// Limits for the memory that a damaged record can make a state allocate.
const (
	MaxSteps = 1 << 16 // maximum number of steps; a definition of the largest allowed size has fewer
	MaxNodes = 1 << 22 // maximum number of nodes of a run
)
