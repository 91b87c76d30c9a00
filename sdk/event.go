package sdk

// An Event is a message from an agent to the engine during a call: a Heartbeat or a
// Checkpoint.
type Event interface{ event() }

// A Heartbeat reports that the work continues.
type Heartbeat struct {
	Progress float64 // how much of the work is done, from 0 to 1
	Note     string  // a text for people; at most 1 KiB
}

// A Checkpoint reports how much of the work is done. The author of the agent divides the work
// into pieces and numbers them. Blob is the data that the next attempt needs to continue.
type Checkpoint struct {
	Number int64  // all pieces of the work up to this number are done
	Blob   []byte // data for the next attempt, at most MaxCheckpoint bytes; the receiver owns the slice
}

func (Heartbeat) event()  {}
func (Checkpoint) event() {}

// MaxCheckpoint is the largest size of the data of a checkpoint (Blob), in bytes.
const MaxCheckpoint = 256 << 10
