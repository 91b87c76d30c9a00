package verbs

import (
	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
)

// SignalOptions holds the arguments and the flags of `engine signal`, without the name of the run.
type SignalOptions struct {
	Name, Data, ID, Fail, Reason string
}

// maxSignalID is the largest length of a signal's id, in bytes.
const maxSignalID = 200

// Check returns an error if the value of a flag is invalid, or if two flags exclude each other.
// The parameter `data` is true if the command line has --data.
func (o SignalOptions) Check(data bool) error {
	switch {
	case data && o.Fail != "":
		return cli.Failed("Invalid flag", "A signal with --fail carries no --data.")
	case len(o.ID) > maxSignalID:
		return cli.Failed("Invalid flag", "--id must have at most %d bytes.", maxSignalID)
	}
	return CheckReason(o.Reason, "")
}

// SignalEvent returns the event that the arguments and flags of `engine signal` describe. The
// parameter `by` is the name of the person who sends the signal.
func SignalEvent(a *cli.App, o SignalOptions, by string) (machine.Event, error) {
	e := machine.SignalReceived{Name: o.Name, ID: o.ID, Fail: o.Fail, By: by, Reason: o.Reason}
	if o.Data == "" {
		return e, nil
	}
	raw, err := jsonFlag(a, "--data", o.Data)
	if err != nil {
		return nil, err
	}
	if e.Payload, err = dsl.Document(raw.JSON()); err != nil {
		return nil, cli.Failed("Invalid flag", "--data: %s.", err)
	}
	return e, nil
}
