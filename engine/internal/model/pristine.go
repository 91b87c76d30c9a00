package model

import "github.com/saga-engine/engine/engine/machine/status"

// NoMore is used where a node has nothing more. It is never changed.
var NoMore = More{}

// NewNode returns a step to which nothing has happened yet. It must not be
// changed.
func NewNode(step int) *Node {
	if step < len(Pristine) {
		return &Pristine[step]
	}
	return &Node{Step: int32(step), State: status.StepPending, More: &NoMore}
}

// AppendSteps appends n steps, in one piece of memory, to which nothing has
// happened yet.
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

// Pristine are the steps of a run to which nothing has happened yet: they need no
// memory of their own.
var Pristine = func() (steps [64]Node) {
	for i := range steps {
		steps[i] = Node{Step: int32(i), State: status.StepPending, More: &NoMore}
	}
	return steps
}()

// Blank is what a node is compared with when it is added by a record.
var Blank = Node{More: &NoMore}

// What a damaged record can make a state allocate is bounded.
const (
	MaxSteps = 1 << 16 // more than a definition of the permitted size can hold
	MaxNodes = 1 << 22 // of a run
)
