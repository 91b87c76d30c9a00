package verbs

import (
	"context"
	"errors"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine/machine"
)

// SettleOptions are the flags of settle.
type SettleOptions struct {
	Step, Output, Reason                 string
	Succeeded, NotDone, Undone, FromLate bool
}

// Check returns an error if a flag is missing, if flags exclude each other, or if the reason is too
// long. The parameter `output` is true if the command line has --output.
func (o SettleOptions) Check(output bool) error {
	said := 0
	for _, b := range []bool{o.Succeeded, o.NotDone, o.Undone, o.FromLate} {
		if b {
			said++
		}
	}
	switch {
	case o.Step == "":
		return cli.Failed("Missing flag", "engine settle needs --step STEP.")
	case said != 1:
		return cli.Failed("Invalid flag", "Say one of --succeeded, --not-done, --undone, --from-late-reply.")
	case output && !o.Succeeded:
		return cli.Failed("Invalid flag", "--output goes with --succeeded.")
	}
	return CheckReason(o.Reason, "settle")
}

// SettleEvent returns the event that the flags of `engine settle` describe. The parameter `by` is
// the name of the person who settles the step.
func SettleEvent(ctx context.Context, a *cli.App, s *session.Session, r *history.Run, o SettleOptions, by string) (machine.Event, error) {
	e := machine.SettleRequested{Step: o.Step, By: by, Reason: o.Reason}
	switch {
	case o.NotDone:
		e.As = machine.SettleNotDone
	case o.Undone:
		e.As = machine.SettleUndone
	case o.FromLate:
		found, err := LateSettlement(ctx, s, r, o.Step)
		if err != nil {
			return nil, err
		}
		e.As, e.Output = found.As, found.Output
	default:
		out, err := jsonFlag(a, "--output", o.Output)
		var wrong *cli.Problem
		if errors.As(err, &wrong) {
			wrong.Diags[0].Detail += outputWanted(r, o.Step)
		}
		if err != nil {
			return nil, err
		}
		e.As, e.Output = machine.SettleSucceeded, out
	}
	return e, nil
}
