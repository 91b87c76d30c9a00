package operate

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine/store/postgres"
)

// DB returns the command `engine db`, which shows, migrates and verifies the state.
func DB(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "db",
		Short: "Show and migrate the schema of the database, and verify its history",
		RunE:  a.Group,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "migrate",
			Short: "Migrate the schema to this binary's version",
			Long: `Migrates the schema of the Postgres database of --dsn to this binary's version.
Each migration is one transaction, and a lock allows only one migration at a time.
The schema of an embedded state file needs no command: it is migrated when the file
is opened.`,
			Args: cli.Wants(),
			RunE: func(cmd *cobra.Command, _ []string) error { return dbMigrate(cmd.Context(), a) },
		},
		&cobra.Command{
			Use:   "status",
			Short: "Show the schema's version",
			Args:  cli.Wants(),
			RunE:  func(cmd *cobra.Command, _ []string) error { return dbStatus(cmd.Context(), a) },
		},
		verify(a),
	)
	return cmd
}

func dbMigrate(ctx context.Context, a *cli.App) error {
	t, err := session.Resolve(a, a.Path("."), ".")
	if err != nil {
		return err
	}
	if t.Postgres == "" {
		return cli.Failed("Nothing to migrate", "The schema of an embedded state file is migrated when the file is opened. Name a Postgres database with --dsn or ENGINE_DSN.")
	}
	s := &session.Session{Target: t}
	from, to, err := postgres.Migrate(ctx, t.Postgres)
	if err != nil {
		return s.Wrap("migrate the database", err)
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"from": from, "to": to})
	}
	if from == to {
		return a.Print("The schema is up to date (version %d).\n", to)
	}
	return a.Print("Migrated the schema from version %d to %d.\n", from, to)
}

func dbStatus(ctx context.Context, a *cli.App) error {
	t, err := session.Resolve(a, a.Path("."), ".")
	if err != nil {
		return err
	}
	if t.Postgres == "" {
		s, err := session.OpenReader(ctx, a, ".", ".")
		if err != nil {
			return err
		}
		s.Close()
		if a.JSON {
			return a.PrintJSON(map[string]any{"store": "sqlite", "state": "current"})
		}
		return a.Print("%s fits this binary.\n", t.Shown)
	}
	s := &session.Session{Target: t}
	status, err := postgres.Status(ctx, t.Postgres)
	if err != nil {
		return s.Wrap("look at the database", err)
	}
	state, text := "current", "It fits this binary."
	switch {
	case status.Have == 0:
		state, text = "missing", "Run `engine db migrate` to make the schema."
	case status.Have < status.Want:
		state, text = "older", "Run `engine db migrate` to migrate it."
	case status.Have > status.Want:
		state, text = "newer", "Use a newer engine binary."
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"store": "postgres", "version": status.Have, "wanted": status.Want, "state": state})
	}
	return a.Print("Schema version %d, this binary needs %d. %s\n", status.Have, status.Want, text)
}
