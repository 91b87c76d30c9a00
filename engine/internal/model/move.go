package model

import "slices"

// A Move says that a run was moved to another definition.
type Move struct {
	Workflow int32 // id of the workflow in the store
	// StepOf[i] is the index, in the new workflow, of the step of node i; -1 = the new workflow
	// does not have the step, or node i is an instance.
	StepOf []int32
}

func sameMove(a, b Move) bool { return a.Workflow == b.Workflow && slices.Equal(a.StepOf, b.StepOf) }
