package model

import "github.com/saga-engine/engine/dsl"

// An Image holds the state of a run, except what can be computed from the fields of the Image.
// Package machine makes an Image from a state, and a state from an Image. Package wire encodes the
// Image. A snapshot of a run is an encoded Image.
type Image struct {
	Run        Run
	Nodes      []*Node
	Signals    []Signal // early signals, the oldest first
	SignalIDs  []string // ids of all signals that the run accepted, in ascending order
	LastSignal int32    // number of the newest signal that the run accepted; 0 = none

	Checkpoints int64 // total size of all checkpoints recorded so far, in bytes

	// Shared holds the origins (where in the state) of the values to which later records of the run
	// may refer, in ascending order. Another origin may hold an equal value, but no record refers
	// to it.
	Shared []Origin
}

// A Signal holds the data of one signal that a run has accepted. It is early while no wait step
// has taken it.
type Signal struct {
	Number  int32 // a run numbers its signals from 1, in the order in which it accepted them
	Name    string
	Payload dsl.Value
	Fail    string // error code with which the wait step fails; "" = the step succeeds
	Reason  string
	By      string
}
