package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

type settleOptions struct {
	step, output, reason                 string
	succeeded, notDone, undone, fromLate bool
}

func settleCommand(a *app) *cobra.Command {
	var o settleOptions
	cmd := &cobra.Command{
		Use:   "settle RUN --step STEP",
		Short: "State what really happened with a step whose outcome is unknown",
		Long: `States what became of a step, or of an undo, of which nobody knows whether it took
effect. One of:

  --succeeded --output JSON  it took effect and gave this result, which is checked
                             against the action's schema; @FILE reads it from a file
  --not-done                 it never took effect
  --undone                   its effect has been undone
  --from-late-reply          what the agent's late answer says; ` + "`engine show`" + ` lists it

The run goes on from there. --reason says how you know.`,
		Args: wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd.Flags().Changed("output")); err != nil {
				return err
			}
			return a.speaker().say(cmd.Context(), verb{name: "settle", run: args[0], step: o.step,
				event: func(ctx context.Context, s *session, r *shownRun, by string) (machine.Event, error) {
					return a.speaker().settlement(ctx, s, r, o, by)
				}})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.step, "step", "", "the step, or the instance of one: charge, 'seat[\"B7\"]'")
	f.BoolVar(&o.succeeded, "succeeded", false, "it took effect")
	f.StringVar(&o.output, "output", "", "with --succeeded: its result, as JSON or @FILE")
	f.BoolVar(&o.notDone, "not-done", false, "it never took effect")
	f.BoolVar(&o.undone, "undone", false, "its effect has been undone")
	f.BoolVar(&o.fromLate, "from-late-reply", false, "what the agent's late answer says")
	reasonFlag(cmd, &o.reason)
	return cmd
}

func (o settleOptions) check(output bool) error {
	said := 0
	for _, b := range []bool{o.succeeded, o.notDone, o.undone, o.fromLate} {
		if b {
			said++
		}
	}
	switch {
	case o.step == "":
		return failed("Missing flag", "engine settle needs --step STEP.")
	case said != 1:
		return failed("Invalid flag", "Say one of --succeeded, --not-done, --undone, --from-late-reply.")
	case output && !o.succeeded:
		return failed("Invalid flag", "--output goes with --succeeded.")
	}
	return checkReason(o.reason, "settle")
}

// settlement makes the event.
func (a speaker) settlement(ctx context.Context, s *session, r *shownRun, o settleOptions, by string) (machine.Event, error) {
	e := machine.SettleRequested{Step: o.step, By: by, Reason: o.reason}
	switch {
	case o.notDone:
		e.As = machine.SettleNotDone
	case o.undone:
		e.As = machine.SettleUndone
	case o.fromLate:
		found, err := a.lateSettlement(ctx, s, r, o.step)
		if err != nil {
			return nil, err
		}
		e.As, e.Output = found.As, found.Output
	default:
		out, err := a.jsonFlag("--output", o.output)
		var wrong *problem
		if errors.As(err, &wrong) {
			wrong.diags[0].Detail += r.outputWanted(o.step)
		}
		if err != nil {
			return nil, err
		}
		e.As, e.Output = machine.SettleSucceeded, out
	}
	return e, nil
}

// outputWanted tells what to give as --output for a step, as a sentence with a
// blank in front; "" = nothing is known of it.
func (r *shownRun) outputWanted(step string) string {
	for n := range story.Nodes(r.state, r.wf) {
		if n.Step >= len(r.wf.Steps) {
			continue
		}
		noun := r.wf.Steps[n.Step]
		if (n.Name == step || noun.Name == step) && noun.Do.Skeleton != nil {
			return fmt.Sprintf(" Give --succeeded --output '%s' with values in place of the words in capitals.", render.Clean(noun.Do.Skeleton()))
		}
	}
	return ""
}

// maxJSONFlag is the largest value that a flag may give.
const maxJSONFlag = 1 << 20

// jsonFlag reads a flag's value: JSON, or @FILE. "" is an empty object, the
// result of an action that has no outputs.
func (a speaker) jsonFlag(flag, text string) (dsl.Value, error) {
	data := []byte(text)
	if len(text) > 1 && text[0] == '@' {
		f, err := openRegular(a.path(text[1:]))
		if err != nil {
			return dsl.Value{}, err
		}
		defer f.Close()
		if data, err = io.ReadAll(io.LimitReader(f, maxJSONFlag+1)); err != nil {
			return dsl.Value{}, err
		}
	}
	if len(data) > maxJSONFlag {
		return dsl.Value{}, failed("Invalid flag", "%s is larger than 1 MiB.", flag)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	}
	var doc json.RawMessage
	if err := json.Unmarshal(data, &doc); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return dsl.Value{}, failed("Invalid flag", "%s is not JSON: at byte %d: %s.", flag, syntax.Offset, syntax)
		}
		return dsl.Value{}, failed("Invalid flag", "%s is not JSON: %s.", flag, err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, doc); err != nil {
		return dsl.Value{}, failed("Invalid flag", "%s is not JSON: %s.", flag, err)
	}
	return dsl.NewValue(out.Bytes(), nil, nil), nil
}
