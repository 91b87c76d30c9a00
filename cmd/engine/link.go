package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/lock"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/sdk/plugin"
)

// agentFlags say where agents are looked for.
type agentFlags struct {
	pluginDirs []string
	modules    []string // directories of further modules whose own agents are searched
}

func (f *agentFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.pluginDirs, "plugin-dir", nil, "directory of agents, searched first; may be repeated")
}

// catalog returns the catalogue of agents for a module's directory and its lock
// file. dir may be "": then no project is searched. locked may be nil.
func (a opener) catalog(dir string, locked *lock.Lock, f agentFlags) (*agents.Catalog, error) {
	search, diags := agents.DefaultSearch(a.env)
	if diags.HasErrors() {
		return nil, &problem{diags}
	}
	search.Modules = f.modules
	if dir != "" {
		search.Modules = append([]string{dir}, f.modules...)
	}
	for _, d := range f.pluginDirs {
		search.PluginDirs = append(search.PluginDirs, a.path(d))
	}
	return agents.NewCatalog(agents.CatalogOptions{Search: search, Lock: locked, CacheDir: agents.CacheDir(a.env), Logger: a.logger()}), nil
}

// A linked module is ready to run.
type linked struct {
	*module
	def     *dsl.Definition
	used    []usedAgent
	catalog *agents.Catalog
	locked  bool // a lock file chose the agents
	all     diag.Diagnostics
}

// A usedAgent is an agent of the module and the binary chosen for it.
type usedAgent struct {
	dsl.AgentUse
	binary agents.Binary
	err    error
}

// link parses and links the module at PATH. Its warnings are reported, its
// errors returned.
func (a opener) link(ctx context.Context, given string, f agentFlags) (*linked, error) {
	l, err := a.check(ctx, given, f)
	if err != nil {
		return nil, err
	}
	if l.def == nil || l.all.HasErrors() {
		return nil, &problem{l.all}
	}
	if warnings := l.all.Warnings(); !a.json {
		a.show(warnings)
	} else if a.stream != nil {
		a.stream.Diagnostics(warnings)
	}
	return l, nil
}

// check parses and links the module at PATH and gathers everything that is
// wrong with it.
func (a opener) check(ctx context.Context, given string, f agentFlags) (*linked, error) {
	m, err := a.parse(given)
	if err != nil {
		return nil, err
	}
	l := &linked{module: m}
	lock, err := m.readLock()
	if err != nil {
		return nil, err
	}
	if l.catalog, err = a.catalog(m.dir, lock, f); err != nil {
		return nil, err
	}
	l.locked = lock != nil
	bins := map[string]dsl.AgentBinary{}
	for _, use := range m.parsed.Agents() {
		u := usedAgent{AgentUse: use}
		u.binary, u.err = l.catalog.Resolve(ctx, agents.Use{Name: use.Plugin, Constraint: use.Constraint}, lock)
		if u.err == nil {
			bins[use.Name] = u.binary.Pin()
		}
		l.used = append(l.used, u)
	}
	def, diags := dsl.Link(m.parsed, bins)
	l.def = def
	l.all = append(l.all, m.diags...)
	l.all = append(l.all, m.show(l.explain(diags))...)
	l.all = append(l.all, m.show(l.origins())...)
	l.all = l.all.Sorted()
	return l, ctx.Err()
}

// origins warns of agents that came with the module: those that are used in place
// of an installed one, and those that are not used because no lock file names
// them.
func (l *linked) origins() diag.Diagnostics {
	var out diag.Diagnostics
	warn := func(u usedAgent, summary, format string, args ...any) {
		out = append(out, diag.Diagnostic{Severity: diag.SeverityWarning, Summary: summary, Detail: fmt.Sprintf(format, args...), Range: u.Where})
	}
	for _, u := range l.used {
		if u.err != nil {
			continue
		}
		if over := l.catalog.Displaced(u.binary); len(over) > 0 {
			warn(u, fmt.Sprintf("Agent %q comes from the module", u.Name), "%s is used in place of the installed %s. The lock file names it.", u.binary.Path, over[0].Path)
		}
		for _, f := range u.binary.Unlocked {
			warn(u, fmt.Sprintf("Agent %q of the module is not used", u.Name),
				"%s came with the module, and no lock file names it; %s is used. If you trust the file of the module, run `engine init`: it locks it.", f.Path, u.binary.Path)
		}
	}
	return out
}

// explain says of each agent that is missing why.
func (l *linked) explain(diags diag.Diagnostics) diag.Diagnostics {
	out := slices.Clone(diags)
	for _, u := range l.used {
		if u.err == nil {
			continue
		}
		summary, detail := explainAgent(u)
		said := false
		for i, d := range out {
			if d.Severity == diag.SeverityError && d.Range == u.Where && d.Summary == fmt.Sprintf("Agent %q not found", u.Name) {
				out[i].Summary, out[i].Detail, said = summary, detail, true
			}
		}
		if !said {
			out = append(out, diag.Diagnostic{Severity: diag.SeverityError, Summary: summary, Detail: detail, Range: u.Where})
		}
	}
	return out
}

// explainAgent says why there is no usable binary for an agent, and what to do.
func explainAgent(u usedAgent) (summary, detail string) {
	var missing *agents.NotFoundError
	var version *agents.VersionError
	var changed *agents.ChecksumError
	var lock *agents.LockError
	var unlocked *agents.UnlockedError
	switch {
	case errors.As(u.err, &unlocked):
		summary = fmt.Sprintf("Agent %q is not locked", u.Name)
	case errors.As(u.err, &missing) && u.Similar != "" && len(missing.Misplaced) == 0:
		return fmt.Sprintf("Agent %q not found", u.Name), fmt.Sprintf("%s. Did you mean %q?", upperFirst(u.err.Error()), u.Similar)
	case errors.As(u.err, &missing):
		summary = fmt.Sprintf("Agent %q not found", u.Name)
	case errors.As(u.err, &version):
		summary = fmt.Sprintf("No fitting version of agent %q", u.Name)
	case errors.As(u.err, &changed):
		summary = fmt.Sprintf("Agent %q has changed since it was locked", u.Name)
	case errors.As(u.err, &lock):
		summary = fmt.Sprintf("Lock file does not fit agent %q", u.Name)
	default:
		summary = fmt.Sprintf("Agent %q cannot be used", u.Name)
	}
	return summary, upperFirst(u.err.Error()) + "." + hintText(u.err)
}

// hintText is the remedy that an error knows of as a sentence, with a blank in
// front; "" if it knows none.
func hintText(err error) string {
	hint := hintOf(err)
	switch {
	case hint == "":
		return ""
	case strings.HasPrefix(hint, "chmod "):
		return " Run `" + hint + "`."
	case strings.HasSuffix(hint, "?") || strings.HasSuffix(hint, "."):
		return " " + upperFirst(hint)
	}
	return " " + upperFirst(hint) + "."
}

// hintOf returns the remedy that an error knows of, or "".
func hintOf(err error) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	var start *plugin.StartError
	if errors.As(err, &start) {
		return start.Hint
	}
	return ""
}

// readLock reads the lock file next to the module; nil = there is none.
func (m *module) readLock() (*lock.Lock, error) { return readLock(m.dir, m.shown) }

// readLock reads the lock file in dir, which messages call shown; nil = there is
// none.
func readLock(dir, shown string) (*lock.Lock, error) {
	src, err := readRegular(filepath.Join(dir, lock.File), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the lock file: %w", err)
	}
	read, diags := lock.Read(src, path.Join(shown, lock.File))
	if diags.HasErrors() {
		return nil, &problem{diags}
	}
	return &read, nil
}
