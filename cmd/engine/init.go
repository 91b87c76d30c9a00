package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/agents"
)

type initOptions struct {
	upgrade  bool
	lockfile string
	example  string
	agents   agentFlags
}

func (a *app) initCommand() *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Find the agents of a module and lock them",
		Long: `Finds the agents that the module in DIR (default: this directory) uses, checks
their protocol and their checksums, and records both in ` + dsl.LockFile + `, which
belongs under version control. Where there is a lock file, other commands use
exactly the agents it names.`,
		Args: wants("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.initModule(cmd.Context(), argument(args, "."), o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.upgrade, "upgrade", false, "choose the newest versions that fit, whatever is locked")
	f.StringVar(&o.lockfile, "lockfile", "", "readonly: fail if the lock file would change")
	f.StringVar(&o.example, "example", "", "write an example into DIR first: "+strings.Join(exampleNames(), ", "))
	o.agents.add(cmd)
	return cmd
}

func (a *app) initModule(ctx context.Context, dir string, o initOptions) error {
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
	m, err := a.parse(dir)
	if err != nil {
		return err
	}
	if m.diags.HasErrors() {
		return &problem{m.diags}
	}
	l := &linked{module: m}
	if l.catalog, err = a.catalog(m.dir, o.agents); err != nil {
		return err
	}
	old, _, err := m.readLock()
	if err != nil {
		return err
	}
	lock, err := l.lock(ctx, old, o.upgrade)
	if err != nil {
		return err
	}
	if err := l.writeLock(old, lock, o.lockfile == "readonly"); err != nil {
		return err
	}
	return a.initDone(l, written)
}

// lock chooses the binary of every plugin the module uses.
func (l *linked) lock(ctx context.Context, old dsl.Lock, upgrade bool) (dsl.Lock, error) {
	var lock dsl.Lock
	var problems dsl.Diagnostics
	for _, use := range byPlugin(l.parsed.Agents()) {
		entry, locked := old.Agent(use.Plugin)
		u := usedAgent{AgentUse: use}
		if locked && !upgrade {
			u.binary, u.err = l.keep(ctx, entry, use)
		} else {
			u.binary, u.err = l.catalog.Find(ctx, use.Plugin, use.Constraint)
		}
		l.used = append(l.used, u)
		switch {
		case u.err != nil:
			summary, detail := explainAgent(u)
			d := dsl.Diagnostic{Severity: dsl.SeverityError, Summary: summary, Detail: detail, Range: use.Where}
			problems = append(problems, l.show(dsl.Diagnostics{d})...)
			continue
		case u.binary.Source == agents.SourceDev:
			continue // never locked: it may change at any time
		}
		next := dsl.LockedAgent{
			Name: use.Plugin, Version: u.binary.Version, Constraint: use.Constraint,
			Hashes: map[string]string{agents.Platform(): u.binary.Checksum},
		}
		if entry.Version == next.Version {
			for platform, hash := range entry.Hashes {
				if platform != agents.Platform() {
					next.Hashes[platform] = hash
				}
			}
		}
		lock.Agents = append(lock.Agents, next)
	}
	if problems.HasErrors() {
		return dsl.Lock{}, &problem{problems}
	}
	return lock, ctx.Err()
}

// keep returns the binary that the lock names.
func (l *linked) keep(ctx context.Context, entry dsl.LockedAgent, use dsl.AgentUse) (agents.Binary, error) {
	fits, err := agents.Fits(use.Constraint, entry.Version)
	if err != nil {
		return agents.Binary{}, err
	}
	if !fits {
		return agents.Binary{}, &staleLock{plugin: use.Plugin, version: entry.Version, constraint: use.Constraint}
	}
	return l.catalog.Exact(ctx, use.Plugin, entry.Version, entry.Hashes[agents.Platform()])
}

// A staleLock says that the module asks for another version than is locked.
type staleLock struct{ plugin, version, constraint string }

// Error names both.
func (e *staleLock) Error() string {
	return fmt.Sprintf("%s holds engine-agent-%s to version %s, and the module asks for %q", dsl.LockFile, e.plugin, e.version, e.constraint)
}

// Hint says what to do.
func (e *staleLock) Hint() string { return "run `engine init --upgrade` to choose anew" }

// byPlugin merges the uses of one plugin by several agent blocks: one version
// must fit them all.
func byPlugin(uses []dsl.AgentUse) []dsl.AgentUse {
	var out []dsl.AgentUse
	index := map[string]int{}
	for _, u := range uses {
		i, seen := index[u.Plugin]
		switch {
		case !seen:
			index[u.Plugin] = len(out)
			out = append(out, u)
		case u.Constraint != "" && out[i].Constraint == "":
			out[i].Constraint = u.Constraint
		case u.Constraint != "" && u.Constraint != out[i].Constraint:
			out[i].Constraint += ", " + u.Constraint
		}
	}
	return out
}

// writeLock writes the lock file if it changes.
func (l *linked) writeLock(old, lock dsl.Lock, readonly bool) error {
	before, after := dsl.FormatLock(old), dsl.FormatLock(lock)
	if bytes.Equal(before, after) && (len(lock.Agents) > 0 || len(old.Agents) == 0) {
		return nil
	}
	if readonly {
		return failed("Lock file would change", "%s does not fit the module and its agents. "+
			"Run `engine init` without --lockfile=readonly and commit the result.", dsl.LockFile)
	}
	if err := replaceFile(filepath.Join(l.dir, dsl.LockFile), after); err != nil {
		return fmt.Errorf("write the lock file: %w", err)
	}
	return nil
}

func (a *app) initDone(l *linked, written []string) error {
	if a.json {
		out := make([]map[string]any, len(l.used))
		for i, u := range l.used {
			out[i] = map[string]any{
				"name": u.Plugin, "version": u.binary.Version, "constraint": u.Constraint, "path": u.binary.Path,
				"source": string(u.binary.Source), "checksum": u.binary.Checksum, "locked": u.binary.Source != agents.SourceDev,
			}
		}
		return a.printJSON(map[string]any{"agents": out, "lock_file": filepath.ToSlash(filepath.Join(l.shown, dsl.LockFile)), "written": written})
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
	return a.print("Locked in %s. Keep it under version control.\n", filepath.ToSlash(filepath.Join(l.shown, dsl.LockFile)))
}
