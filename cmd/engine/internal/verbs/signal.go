package verbs

import (
	"context"
	"errors"
	"fmt"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
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

// mostReceivers is how often the command sends a signal at most, if groups of the run may wait for
// it. It first sends the signal to the run that should take it. This run may refuse the signal,
// because a group has started or ended in the meantime, or because another signal has come first.
// Then the command sends the signal to the next run that takes it.
const mostReceivers = 10

// signal sends a signal to the run in the parameter `row`, or to the run of one of its groups, and
// waits for the answer.
func (v Verb) signal(ctx context.Context, a *cli.App, s *session.Session, row store.RunRow, ev machine.SignalReceived) error {
	op := &operator.Operator{Store: s.Store, Sealer: s.Sealer, Defs: s.Defs}
	for sent := 1; ; sent++ {
		to, err := op.Receiver(ctx, row.Run, ev)
		if err != nil {
			return v.problem(ctx, a, s, row, withChildren(ctx, s, row, ev.Name, err))
		}
		verb := sentVerb{Verb: v, row: row}
		if to.Run != row.Run {
			if verb.row, err = s.Store.Find(ctx, to.Name); err != nil {
				return s.Wrap("find the run of a group", err)
			}
			if to.Known {
				return verb.printKnown(a)
			}
		}
		if verb.message, err = op.Ask(ctx, to.Run, ev, Person()); err == nil {
			err = verb.answered(ctx, s, op)
		}
		var refused *operator.RefusedError
		switch {
		case err == nil && to.Known:
			return verb.printKnown(a)
		case err == nil:
			return verb.print(a)
		case !to.Again, sent == mostReceivers, !errors.As(err, &refused), refused.Err != nil:
			return v.problem(ctx, a, s, verb.row, withChildren(ctx, s, row, ev.Name, err))
		}
	}
}

// printKnown prints that the run has accepted a signal with the same id before.
func (y *sentVerb) printKnown(a *cli.App) error {
	if a.JSON {
		return a.PrintJSON(map[string]any{"run": y.row.Name, "verb": y.Name, "known": true, "recorded": y.message != 0, "status": y.row.State.String()})
	}
	return a.Print("%s\n", fmt.Sprintf("Run %s knows this id: it has accepted a signal with it before. Nothing was changed.", render.Clean(y.row.Name)))
}
