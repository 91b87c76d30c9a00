package status

// A Need says how much a run needs a signal. If a run has groups, several runs may be able to take
// a signal: the run and the runs of its groups. The signal should go to the run with the greatest
// Need.
type Need uint8

// Values of Need, the smallest first.
const (
	// NeedNone: the run has enough signals of this name, or can take none.
	NeedNone Need = iota
	// NeedLater: a step that lacks a signal has to wait for the end of a group, or it is in a group
	// that has not started.
	NeedLater
	// NeedSoon: a step of the run itself lacks a signal, and this step depends on no open group
	// that awaits the name of the signal.
	NeedSoon
	// NeedNow: a step of the run itself waits for the signal at this moment.
	NeedNow
)
