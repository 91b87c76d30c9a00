package sdk

// An Event is a message of an agent during a call: a Heartbeat or a Checkpoint.
type Event interface{ event() }

// A Heartbeat says that the work goes on.
type Heartbeat struct {
	Progress float64 // share done, 0 to 1
	Note     string  // for people; at most 1 KiB
}

// A Checkpoint says that the work up to a step of the author's own counting is
// done, with what is needed to continue from there.
type Checkpoint struct {
	Number int64
	Blob   []byte // at most MaxCheckpoint; owned by the receiver
}

func (Heartbeat) event()  {}
func (Checkpoint) event() {}

// MaxCheckpoint is the most bytes a checkpoint may hold.
const MaxCheckpoint = 256 << 10
