package model

import "github.com/saga-engine/engine/dsl"

// An Image is the content of a snapshot: the state of a run, without data that can be computed
// from the rest. Package machine makes an Image from a state, and a state from an Image. Package
// wire encodes the Image.
type Image struct {
	Run   Run
	Nodes []*Node
	// All early signals, the oldest first. Signals that were handed over to groups are in this
	// list, too.
	Signals    []Signal
	SignalIDs  []string // ids of accepted signals that the run remembers, the oldest first
	LastSignal int32    // number of the newest signal that the run accepted; 0 = none

	Checkpoints int64 // total size of all checkpoints recorded so far, in bytes

	// Shared says to which values in the state the later records of the run may refer. If several
	// values are equal, the list has the Origin of only one of them. The Origins are in ascending
	// order.
	Shared []Origin
}

// A Signal holds the data of one signal that a run has accepted.
type Signal struct {
	Number  int32 // a run numbers its signals from 1, in the order in which it accepted them
	Name    string
	ID      string // id that the sender gave; "" = none
	Payload dsl.Value
	Fail    string // error code with which the wait step fails; "" = the step succeeds
	Reason  string
	By      string
}

// Fits returns nil if the wait block can take the signal. The caller must know that the block waits
// for the name of the signal. A signal with an error code needs no payload, and always fits.
func (s *Signal) Fits(w *dsl.Wait) error {
	if s.Fail != "" {
		return nil
	}
	_, err := w.Payload(s.Payload.JSON())
	return err
}
