package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/health"
)

// keeper looks after the store and the agents: doctor, db, agents.
type keeper struct{ *app }

func doctorCommand(a *app) *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong or thin here",
		Long: `Looks at the state, at the engines that work on it and at what its open runs need,
and says what is wrong (error) or would not survive the next failure (warning): a
single engine or a single instance of an agent behind a workflow, no engine at
all, agents that are missing here or have changed, alerts that nobody was told,
runs that need attention, and the settings of the database.

Agents are looked for on this machine only. Exit code: 0 no errors, 1 errors.`,
		Args: wants(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.keeper().doctor(cmd.Context(), f) },
	}
	f.add(cmd)
	return cmd
}

// A checkup gathers what is found.
type checkup struct {
	a     *app
	s     *session
	found []health.Finding

	live []store.Member
	open []store.RunRow // runs that have not ended, the newest
	flow map[store.WorkflowID]*flowUse
}

// A flowUse is a workflow with open runs.
type flowUse struct {
	flow *dsl.Workflow
	runs int
}

func (c *checkup) say(name string, level health.Severity, hint, format string, args ...any) {
	c.found = append(c.found, health.Finding{Name: name, Level: level, Message: fmt.Sprintf(format, args...), Hint: hint})
}

func (a keeper) doctor(ctx context.Context, f agentFlags) error {
	c := &checkup{a: a.app, flow: map[store.WorkflowID]*flowUse{}}
	s, err := a.opener().openReader(ctx, ".", ".")
	if err != nil {
		for _, d := range diagnose(err) {
			c.say("state", health.Error, "", "%s. %s", d.Summary, d.Detail)
		}
		return c.report()
	}
	defer s.close()
	c.s = s
	c.say("state", health.OK, "", "%s answers.", s.shown)
	for _, check := range []func(context.Context) error{
		c.settings, c.key, c.engines, c.leases, c.runs, c.histories, c.definitions, c.redundancy,
		func(ctx context.Context) error { return c.plugins(ctx, f) }, c.alerts,
	} {
		if err := check(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			for _, d := range diagnose(err) {
				c.say("state", health.Error, "", "%s. %s", d.Summary, d.Detail)
			}
		}
	}
	return c.report()
}

// settings asks the store about itself.
func (c *checkup) settings(ctx context.Context) error {
	e, ok := c.s.store.Store.(health.Examiner)
	if !ok {
		return nil
	}
	found, err := e.Examine(ctx)
	if err != nil {
		return c.s.wrap("examine the state", err)
	}
	c.found = append(c.found, found...)
	return nil
}

// key looks whether what is sealed can be opened here.
func (c *checkup) key(ctx context.Context) error {
	err := c.s.people().rightKey(ctx)
	var p *problem
	if errors.As(err, &p) {
		c.say("key", health.Error, "", "%s", p.diags[0].Detail)
		return nil
	}
	if err == nil && c.s.sealer != nil {
		c.say("key", health.OK, "", "The encryption key is the one of the state.")
	}
	return err
}

// report prints what was found; errors among it make the exit code.
func (c *checkup) report() error {
	errs, warnings := 0, 0
	var diags diag.Diagnostics
	list := []map[string]any{}
	table := render.Table{Head: []string{"LEVEL", "WHAT", "FOUND"}}
	for _, f := range c.found {
		list = append(list, map[string]any{"name": f.Name, "level": levelName(f.Level), "message": f.Message, "hint": f.Hint})
		table.Add(levelName(f.Level), f.Name, join(" ", f.Message, f.Hint))
		switch f.Level {
		case health.Error:
			errs++
			diags = append(diags, diag.Diagnostic{Severity: diag.SeverityError, Summary: f.Name + ": " + f.Message, Detail: f.Hint})
		case health.Warning:
			warnings++
		}
	}
	if c.a.json {
		m := map[string]any{"findings": list, "error_count": errs, "warning_count": warnings}
		if errs > 0 {
			m["diagnostics"] = diags
		}
		if err := c.a.printJSON(m); err != nil {
			return err
		}
	} else {
		if err := table.Write(c.a.stdout); err != nil {
			return fmt.Errorf("write to stdout: %w", err)
		}
		if err := c.a.print("%s, %s.\n", render.Count(errs, "error"), render.Count(warnings, "warning")); err != nil {
			return err
		}
	}
	if errs > 0 {
		return exitError(exitFailed)
	}
	return nil
}

func levelName(s health.Severity) string {
	switch s {
	case health.OK:
		return "ok"
	case health.Warning:
		return "warning"
	}
	return "error"
}
