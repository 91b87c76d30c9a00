package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/lock"
	"github.com/saga-engine/engine/engine/agents"
)

type initOptions struct {
	upgrade  bool
	lockfile string
	example  string
	agents   agentFlags
}

func initCommand(a *app) *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Find the agents of a module and lock them",
		Long: `Finds the agents that the module in DIR (default: this directory) uses, checks
their protocol and their checksums, and records both in ` + lock.File + `, which
belongs under version control. Where there is a lock file, other commands use
exactly the agents it names.`,
		Args: wants("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.author().initModule(cmd.Context(), argument(args, "."), o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.upgrade, "upgrade", false, "choose the newest versions that fit, whatever is locked")
	f.StringVar(&o.lockfile, "lockfile", "", "readonly: fail if the lock file would change")
	f.StringVar(&o.example, "example", "", "write an example into DIR first: "+strings.Join(exampleNames(), ", "))
	o.agents.add(cmd)
	return cmd
}

func (a author) initModule(ctx context.Context, dir string, o initOptions) error {
	if o.lockfile != "" && o.lockfile != "readonly" {
		return failed("Invalid flag", "--lockfile can only be readonly, not %q.", o.lockfile)
	}
	written := []string{}
	if o.example != "" {
		var err error
		if written, err = a.writeExample(o.example, dir); err != nil {
			return err
		}
		a.note("Wrote %s.", strings.Join(written, ", "))
	}
	m, err := a.opener().parse(dir)
	if err != nil {
		return err
	}
	if m.diags.HasErrors() {
		return &problem{m.diags}
	}
	l := &linked{module: m}
	old, err := m.readLock()
	if err != nil {
		return err
	}
	if l.catalog, err = a.opener().catalog(m.dir, old, o.agents); err != nil {
		return err
	}
	if old == nil {
		old = &lock.Lock{}
	}
	next, err := l.lock(ctx, *old, o.upgrade)
	if err != nil {
		return err
	}
	if err := l.writeLock(*old, next, o.lockfile == "readonly"); err != nil {
		return err
	}
	return a.initDone(l, written)
}

// lock chooses the binary of every plugin the module uses, and reports every
// plugin that has none.
func (l *linked) lock(ctx context.Context, old lock.Lock, upgrade bool) (lock.Lock, error) {
	var next lock.Lock
	var problems diag.Diagnostics
	uses := map[string][]agents.Use{}
	for _, use := range l.parsed.Agents() {
		if len(uses[use.Plugin]) == 0 {
			l.used = append(l.used, usedAgent{AgentUse: use})
		}
		uses[use.Plugin] = append(uses[use.Plugin], agents.Use{Name: use.Plugin, Constraint: use.Constraint})
	}
	for i := range l.used {
		u := &l.used[i]
		part, err := l.catalog.Lock(ctx, uses[u.Plugin], old, upgrade)
		if err == nil {
			next.Agents = append(next.Agents, part.Agents...)
			u.binary, err = l.catalog.Resolve(ctx, agents.Use{Name: u.Plugin}, &part)
		}
		if u.err = err; err != nil {
			summary, detail := explainAgent(*u)
			d := diag.Diagnostic{Severity: diag.SeverityError, Summary: summary, Detail: detail, Range: u.Where}
			problems = append(problems, l.show(diag.Diagnostics{d})...)
		}
	}
	if problems.HasErrors() {
		return lock.Lock{}, &problem{problems}
	}
	return next, ctx.Err()
}

// writeLock writes the lock file if it changes.
func (l *linked) writeLock(old, next lock.Lock, readonly bool) error {
	before, after := lock.Format(old), lock.Format(next)
	if bytes.Equal(before, after) && (len(next.Agents) > 0 || len(old.Agents) == 0) {
		return nil
	}
	if readonly {
		return failed("Lock file would change", "%s does not fit the module and its agents. "+
			"Run `engine init` without --lockfile=readonly and commit the result.", lock.File)
	}
	if err := replaceFile(filepath.Join(l.dir, lock.File), after); err != nil {
		return fmt.Errorf("write the lock file: %w", err)
	}
	return nil
}

func (a author) initDone(l *linked, written []string) error {
	if a.json {
		out := make([]map[string]any, len(l.used))
		for i, u := range l.used {
			out[i] = map[string]any{
				"name": u.Plugin, "version": u.binary.Version, "constraint": u.Constraint, "path": u.binary.Path,
				"source": string(u.binary.Source), "checksum": u.binary.Checksum, "locked": u.binary.Source != agents.SourceDev,
			}
		}
		return a.printJSON(map[string]any{"agents": out, "lock_file": filepath.ToSlash(filepath.Join(l.shown, lock.File)), "written": written})
	}
	table := render.Table{Head: []string{"AGENT", "VERSION", "SOURCE", "SHA-256"}}
	for _, u := range l.used {
		hash := u.binary.Checksum[:min(len(u.binary.Checksum), 12)]
		if u.binary.Source == agents.SourceDev {
			hash = "not locked"
		}
		table.Add(u.Plugin, u.binary.Version, string(u.binary.Source), hash)
	}
	if table.Len() == 0 {
		return a.print("The module uses no agents.\n")
	}
	if err := table.Write(a.stdout); err != nil {
		return err
	}
	return a.print("Locked in %s. Keep it under version control.\n", filepath.ToSlash(filepath.Join(l.shown, lock.File)))
}
