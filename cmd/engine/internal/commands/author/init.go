package author

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl/lock"
	"github.com/saga-engine/engine/engine/agents"
)

type initOptions struct {
	upgrade  bool
	lockfile string
	example  string
	agents   module.AgentFlags
}

// Init returns the command `engine init`, which finds the agents of a module and writes the
// lock file.
func Init(a *cli.App) *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Find the agents of a module and lock them",
		Long: `Finds the agents that the module in DIR (default: this directory) uses, checks
their protocol and their checksums, and records both in ` + lock.File + `, which
belongs under version control. Where there is a lock file, other commands use
exactly the agents it names.`,
		Args: cli.Wants("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return initModule(cmd.Context(), a, cli.Argument(args, "."), o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.upgrade, "upgrade", false, "choose the newest versions that fit, even if other versions are locked")
	f.StringVar(&o.lockfile, "lockfile", "", "readonly: fail if the lock file would change")
	f.StringVar(&o.example, "example", "", "write an example into DIR first: "+strings.Join(exampleNames(), ", "))
	o.agents.Add(cmd)
	return cmd
}

func initModule(ctx context.Context, a *cli.App, dir string, o initOptions) error {
	if o.lockfile != "" && o.lockfile != "readonly" {
		return cli.Failed("Invalid flag", "--lockfile can only be readonly, not %q.", o.lockfile)
	}
	written := []string{}
	if o.example != "" {
		var err error
		if written, err = writeExample(a, o.example, dir); err != nil {
			return err
		}
		a.Note("Wrote %s.", strings.Join(written, ", "))
	}
	m, err := module.Parse(a, dir)
	if err != nil {
		return err
	}
	if m.Diags.HasErrors() {
		return cli.Problems(m.Diags)
	}
	l := &module.Linked{Module: m}
	old, err := m.ReadLock()
	if err != nil {
		return err
	}
	if l.Catalog, err = module.Catalog(a, m.Dir, old, o.agents); err != nil {
		return err
	}
	if old == nil {
		old = &lock.Lock{}
	}
	lock, err := l.Lock(ctx, *old, o.upgrade)
	if err != nil {
		return err
	}
	// Compare with the lock file before Install. Otherwise the command could install an agent that
	// does not fit the lock file.
	if o.lockfile == "readonly" {
		if err := l.WriteLock(*old, lock, true); err != nil {
			return err
		}
	}
	if err := l.Install(ctx); err != nil {
		return err
	}
	if err := l.WriteLock(*old, lock, o.lockfile == "readonly"); err != nil {
		return err
	}
	return initDone(a, l, written)
}

func initDone(a *cli.App, l *module.Linked, written []string) error {
	if a.JSON {
		out := make([]map[string]any, len(l.Used))
		for i, u := range l.Used {
			out[i] = map[string]any{
				"name": u.Plugin, "version": u.Binary.Version, "constraint": u.Constraint, "path": u.Binary.Path,
				"source": string(u.Binary.Source), "taken_from": u.Source, "checksum": u.Binary.Checksum, "locked": u.Binary.Source != agents.SourceDev,
			}
		}
		return a.PrintJSON(map[string]any{"agents": out, "lock_file": filepath.ToSlash(filepath.Join(l.Shown, lock.File)), "written": written})
	}
	table := render.Table{Head: []string{"AGENT", "VERSION", "SOURCE", "SHA-256"}}
	for _, u := range l.Used {
		hash := u.Binary.Checksum[:min(len(u.Binary.Checksum), 12)]
		if u.Binary.Source == agents.SourceDev {
			hash = "not locked"
		}
		from := string(u.Binary.Source)
		if u.Source != "" && u.Binary.Source == agents.SourceProject {
			from = u.Source
		}
		table.Add(u.Plugin, u.Binary.Version, from, hash)
	}
	if table.Len() == 0 {
		return a.Print("The module uses no agents.\n")
	}
	if err := table.Write(a.Stdout); err != nil {
		return err
	}
	return a.Print("Locked in %s. Keep it under version control.\n", filepath.ToSlash(filepath.Join(l.Shown, lock.File)))
}
