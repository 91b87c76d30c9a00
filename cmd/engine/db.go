package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/engine/store/postgres"
)

func dbCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "db",
		Short: "Look after the database: its schema, and the history in it",
		RunE:  a.group,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "migrate",
			Short: "Bring the schema up to this binary's version",
			Long: `Brings the schema of the Postgres database of --dsn up to this binary's version,
one transaction for each migration, under a lock. The embedded state file needs
no migration: it is brought up when it is opened.`,
			Args: wants(),
			RunE: func(cmd *cobra.Command, _ []string) error { return a.keeper().dbMigrate(cmd.Context()) },
		},
		&cobra.Command{
			Use:   "status",
			Short: "Show the schema's version",
			Args:  wants(),
			RunE:  func(cmd *cobra.Command, _ []string) error { return a.keeper().dbStatus(cmd.Context()) },
		},
		dbVerifyCommand(a),
	)
	return cmd
}

func (a keeper) dbMigrate(ctx context.Context) error {
	t, err := a.speaker().target(a.path("."), ".")
	if err != nil {
		return err
	}
	if t.postgres == "" {
		return failed("Nothing to migrate", "The embedded state file is brought up when it is opened. Name a Postgres database with --dsn or ENGINE_DSN.")
	}
	s := &session{target: t}
	from, to, err := postgres.Migrate(ctx, t.postgres)
	if err != nil {
		return s.wrap("migrate the database", err)
	}
	if a.json {
		return a.printJSON(map[string]any{"from": from, "to": to})
	}
	if from == to {
		return a.print("The schema is up to date (version %d).\n", to)
	}
	return a.print("Migrated the schema from version %d to %d.\n", from, to)
}

func (a keeper) dbStatus(ctx context.Context) error {
	t, err := a.speaker().target(a.path("."), ".")
	if err != nil {
		return err
	}
	if t.postgres == "" {
		s, err := a.opener().openReader(ctx, ".", ".")
		if err != nil {
			return err
		}
		s.close()
		if a.json {
			return a.printJSON(map[string]any{"store": "sqlite", "state": "current"})
		}
		return a.print("%s fits this binary.\n", t.shown)
	}
	s := &session{target: t}
	status, err := postgres.Status(ctx, t.postgres)
	if err != nil {
		return s.wrap("look at the database", err)
	}
	state, text := "current", "It fits this binary."
	switch {
	case status.Have == 0:
		state, text = "missing", "Run `engine db migrate` to make the schema."
	case status.Have < status.Want:
		state, text = "older", "Run `engine db migrate` to bring it up."
	case status.Have > status.Want:
		state, text = "newer", "Use a newer engine binary."
	}
	if a.json {
		return a.printJSON(map[string]any{"store": "postgres", "version": status.Have, "wanted": status.Want, "state": state})
	}
	return a.print("Schema version %d, this binary needs %d. %s\n", status.Have, status.Want, text)
}
