package main

import (
	"context"
	"maps"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/rung"
)

type validateOptions struct {
	strict bool
	agents agentFlags
}

func validateCommand(a *app) *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{
		Use:   "validate [PATH…]",
		Short: "Check workflows without running them",
		Long: `Checks the workflows of each PATH (default: this directory) against the language
and against their agents' schemas, and reports everything that is wrong.`,
		Args: wants("[PATH…]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"."}
			}
			return a.author().validate(cmd.Context(), args, o)
		},
	}
	cmd.Flags().BoolVar(&o.strict, "strict", false, "warnings fail")
	o.agents.add(cmd)
	return cmd
}

func (a author) validate(ctx context.Context, paths []string, o validateOptions) error {
	all := diag.Diagnostics{}
	var defs []*dsl.Definition
	for _, p := range paths {
		l, err := a.opener().check(ctx, p, o.agents)
		if err != nil {
			all = append(all, diagnose(err)...)
			continue
		}
		all = append(all, l.all...)
		if l.def != nil {
			defs = append(defs, l.def)
		}
	}
	errors, warnings := len(all.Errors()), len(all.Warnings())
	valid := errors == 0 && (!o.strict || warnings == 0)
	if a.json {
		if err := a.printJSON(map[string]any{
			"valid": valid, "error_count": errors, "warning_count": warnings, "diagnostics": all, "unknown_outcomes": mergedOutcomes(defs),
		}); err != nil {
			return err
		}
	} else {
		a.show(all)
	}
	switch {
	case !valid:
		return exitError(exitFailed)
	case a.json:
		return nil
	}
	verdict := "Valid.\n"
	if warnings > 0 {
		verdict = "Valid, with warnings.\n"
	}
	if err := a.print("%s", verdict); err != nil {
		return err
	}
	for _, def := range defs {
		if err := a.viewer().showUnknown(def); err != nil {
			return err
		}
	}
	return nil
}

// mergedOutcomes is unknownOutcomes of all modules.
func mergedOutcomes(defs []*dsl.Definition) map[string]map[string][]rung.Rung {
	out := map[string]map[string][]rung.Rung{}
	for _, def := range defs {
		maps.Copy(out, unknownOutcomes(def))
	}
	return out
}
