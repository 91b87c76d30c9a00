package runs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/verbs"
	"github.com/saga-engine/engine/engine/machine"
)

// Settle returns the command `engine settle`, with which a person states the outcome of a
// step.
func Settle(a *cli.App) *cobra.Command {
	var o verbs.SettleOptions
	cmd := &cobra.Command{
		Use:   "settle RUN --step STEP",
		Short: "State what really happened with a step whose outcome is unknown",
		Long: `States the outcome of a step, or of an undo, if no engine can know whether it took
effect. Give one of these flags:

  --succeeded --output JSON  it took effect and gave this result, which is checked
                             against the action's schema; @FILE reads it from a file
  --not-done                 it never took effect
  --undone                   its effect has been undone
  --from-late-reply          the agent's late answer gives the outcome;
                             ` + "`engine show`" + ` lists it

Then the run continues. --reason says how you know the outcome.`,
		Args: cli.Wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Check(cmd.Flags().Changed("output")); err != nil {
				return err
			}
			return verbs.Send(cmd.Context(), a, verbs.Verb{Name: "settle", Run: args[0], Step: o.Step, Flags: verbs.Given(cmd),
				Event: func(ctx context.Context, s *session.Session, r *history.Run, by string) (machine.Event, error) {
					return verbs.SettleEvent(ctx, a, s, r, o, by)
				}})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Step, "step", "", "the step or instance: charge, 'seat[\"B7\"]'")
	f.BoolVar(&o.Succeeded, "succeeded", false, "it took effect")
	f.StringVar(&o.Output, "output", "", "with --succeeded: its result, as JSON or @FILE")
	f.BoolVar(&o.NotDone, "not-done", false, "it never took effect")
	f.BoolVar(&o.Undone, "undone", false, "its effect has been undone")
	f.BoolVar(&o.FromLate, "from-late-reply", false, "take the outcome from the agent's late answer")
	verbs.ReasonFlag(cmd, &o.Reason)
	return takesRun(a, cmd)
}
