package model

import "github.com/saga-engine/engine/engine/machine/status"

// NoMore is the More of every node that uses no field of More. No code may change it.
var NoMore = More{}

// NewNode returns the node of the step with this index in its first state, pending. Runs may
// share the node, so the caller must not change it.
func NewNode(step int) *Node {
	if step < len(Pristine) {
		return &Pristine[step]
	}
	return &Node{Step: int32(step), State: status.StepPending, More: &NoMore}
}

// AppendSteps appends the nodes of n steps in their first state, pending, and returns the list. The
// parameter `first` is the index of the first of these steps. AppendSteps allocates the nodes
// together, or takes them from Pristine.
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

// Pristine holds the nodes of the first 64 steps in their first state, pending. All runs share
// them. So a step that has not begun needs no memory.
var Pristine = func() (steps [64]Node) {
	for i := range steps {
		steps[i] = Node{Step: int32(i), State: status.StepPending, More: &NoMore}
	}
	return steps
}()

// Blank is an empty node. A record that adds an instance holds those fields of the instance
// that differ from Blank.
var Blank = Node{More: &NoMore}

// A damaged record may contain a number that is much too large. These limits prevent that such a
// record makes a state allocate too much memory.
const (
	// Maximum number of steps; a definition of the largest allowed size has fewer.
	MaxSteps = 1 << 16
	MaxNodes = 1 << 22 // maximum number of nodes of a run
)
