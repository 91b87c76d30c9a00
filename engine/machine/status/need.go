package status

// A Need says how much a run needs a signal. If several runs can take a signal, because a run has groups, it
// should go to the run with the greatest Need.
type Need uint8

// Values of Need, the smallest first.
const (
	// NeedNone: the run has enough signals of this name, or can take none.
	NeedNone Need = iota
	// NeedLater: a step that lacks a signal has to wait for the end of a group, or it is in a group that has
	// not started.
	NeedLater
	// NeedSoon: a step of the run itself lacks a signal, and it depends on no open group that awaits the name.
	NeedSoon
	// NeedNow: a step of the run itself waits for the signal at this moment.
	NeedNow
)
