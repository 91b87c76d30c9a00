package model

import "slices"

// A Move says that a run was moved to another definition.
type Move struct {
	Workflow int32 // id of the workflow in the store
	// Places[i] is the index of the step of node i in the new workflow. It is -1 if node i is not a
	// step of the new workflow: the move removed the step, or the node is an instance.
	Places []int32
}

func sameMove(a, b Move) bool { return a.Workflow == b.Workflow && slices.Equal(a.Places, b.Places) }
