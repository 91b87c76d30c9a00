package model

import "slices"

// A Move says that a run was moved to another definition.
type Move struct {
	Workflow int32 // id of the workflow in the store
	// Places[i] is the index in that workflow of the step that node i is from then on. It is -1 if
	// node i is no step of the workflow: the step was removed, or the node is an instance.
	Places []int32
}

func sameMove(a, b Move) bool { return a.Workflow == b.Workflow && slices.Equal(a.Places, b.Places) }
