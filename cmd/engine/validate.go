package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/dsl"
)

type validateOptions struct {
	strict bool
	agents agentFlags
}

func (a *app) validateCommand() *cobra.Command {
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
			return a.validate(cmd.Context(), args, o)
		},
	}
	cmd.Flags().BoolVar(&o.strict, "strict", false, "warnings fail")
	o.agents.add(cmd)
	return cmd
}

func (a *app) validate(ctx context.Context, paths []string, o validateOptions) error {
	all := dsl.Diagnostics{}
	for _, p := range paths {
		l, err := a.check(ctx, p, o.agents)
		if err != nil {
			all = append(all, diagnose(err)...)
			continue
		}
		all = append(all, l.all...)
	}
	errors, warnings := len(all.Errors()), len(all.Warnings())
	valid := errors == 0 && (!o.strict || warnings == 0)
	if a.json {
		if err := a.printJSON(map[string]any{
			"valid": valid, "error_count": errors, "warning_count": warnings, "diagnostics": all,
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
	case warnings > 0:
		return a.print("Valid, with warnings.\n")
	}
	return a.print("Valid.\n")
}
