package verbs

import (
	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/sdk"
)

// SignalOptions are the arguments and flags of signal.
type SignalOptions struct {
	Name, Data, ID, Fail, Reason string
}

// maxSignalID is how many bytes the id of a signal may have.
const maxSignalID = 200

// Check refuses flags that cannot be combined. data reports whether --data is given.
func (o SignalOptions) Check(data bool) error {
	switch {
	case data && o.Fail != "":
		return cli.Failed("Invalid flag", "A signal with --fail carries no --data.")
	case o.Fail != "" && !sdk.ValidCode(o.Fail):
		return cli.Failed("Invalid flag", "--fail takes an error code: lower case letters, digits and _, such as plan_refused.")
	case len(o.ID) > maxSignalID:
		return cli.Failed("Invalid flag", "--id must have at most %d bytes.", maxSignalID)
	}
	return CheckReason(o.Reason, "")
}

// SignalEvent makes the event that signal asks for.
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
