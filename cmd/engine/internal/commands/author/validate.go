package author

import (
	"context"
	"maps"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/plan"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/rung"
)

type validateOptions struct {
	strict bool
	agents module.AgentFlags
}

// Validate returns the command `engine validate`, which checks workflows without running them.
func Validate(a *cli.App) *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{
		Use:   "validate [PATH…]",
		Short: "Check workflows without running them",
		Long: `Checks the workflows of each PATH (default: this directory) against the language
and against their agents' schemas, and reports everything that is wrong.`,
		Args: cli.Wants("[PATH…]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"."}
			}
			return validate(cmd.Context(), a, args, o)
		},
	}
	cmd.Flags().BoolVar(&o.strict, "strict", false, "a warning counts as an error")
	o.agents.Add(cmd)
	return cmd
}

func validate(ctx context.Context, a *cli.App, paths []string, o validateOptions) error {
	all := diag.Diagnostics{}
	var defs []*dsl.Definition
	for _, p := range paths {
		l, err := module.Check(ctx, a, p, o.agents)
		if err != nil {
			all = append(all, cli.Diagnose(err)...)
			continue
		}
		all = append(all, l.All...)
		if l.Def != nil {
			defs = append(defs, l.Def)
		}
	}
	errors, warnings := len(all.Errors()), len(all.Warnings())
	valid := errors == 0 && (!o.strict || warnings == 0)
	if a.JSON {
		if err := a.PrintJSON(map[string]any{
			"valid": valid, "error_count": errors, "warning_count": warnings, "diagnostics": all, "unknown_outcomes": mergedOutcomes(defs),
		}); err != nil {
			return err
		}
	} else {
		a.Show(all)
	}
	switch {
	case !valid:
		return exit.Code(exit.Failed)
	case a.JSON:
		return nil
	}
	verdict := "Valid.\n"
	if warnings > 0 {
		verdict = "Valid, with warnings.\n"
	}
	if err := a.Print("%s", verdict); err != nil {
		return err
	}
	for _, def := range defs {
		if err := plan.PrintUnknown(a, def); err != nil {
			return err
		}
	}
	return nil
}

// mergedOutcomes returns what the engine does if the outcome of a step is unknown, for all
// definitions. The outer key of the map is the name of a workflow, and the inner key is the name of
// a step.
func mergedOutcomes(defs []*dsl.Definition) map[string]map[string][]rung.Rung {
	out := map[string]map[string][]rung.Rung{}
	for _, def := range defs {
		maps.Copy(out, plan.UnknownOutcomes(def))
	}
	return out
}
