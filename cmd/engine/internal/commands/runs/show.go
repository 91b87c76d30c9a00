package runs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/show"
)

type showOptions struct{ events, definition bool }

// Show returns the command `engine show`, which shows everything about a run.
func Show(a *cli.App) *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show a run: steps, attempts, keys, limits and undo",
		Long: `Shows a run by its name, or the newest run of a unique key. It reads the run's
journal, and delays no engine that works on the run. The steps of a group stand below
the group, moved to the right.`,
		Args: cli.Wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error { return showRun(cmd.Context(), a, args[0], o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.events, "events", false, "everything that happened, in order")
	f.BoolVar(&o.definition, "definition", false, "the source of the definition that the run uses")
	return takesRun(a, cmd)
}

func showRun(ctx context.Context, a *cli.App, name string, o showOptions) error {
	if o.events && o.definition {
		return cli.Failed("Invalid flag", "--events and --definition cannot be combined.")
	}
	s, err := session.OpenReader(ctx, a, ".", ".")
	if err != nil {
		return err
	}
	defer s.Close()
	row, err := history.Find(ctx, a, s, name)
	if err != nil {
		if x, e := history.Submission(ctx, s, name); e == nil && x != nil {
			return show.PrintSubmission(a, x)
		}
		return err
	}
	r, err := history.Load(ctx, s, row)
	if err != nil {
		return err
	}
	if o.definition {
		def, err := s.Defs.Definition(ctx, r.Workflow())
		if err != nil {
			return s.Wrap("read the definition", err)
		}
		r.Source = def.Sources()
		return show.PrintSource(a, r)
	}
	if o.events && !a.JSON {
		return show.PrintEvents(a, r)
	}
	if err := history.ReadGroups(ctx, s, r); err != nil {
		return err
	}
	if err := history.NoticesOfGroups(ctx, s, r); err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(show.JSON(r, o.events, a.Now))
	}
	return show.PrintRun(a, r)
}
