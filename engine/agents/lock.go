package agents

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/saga-engine/engine/dsl/lock"
)

// A Use names an agent that a module uses, and the versions that the module accepts.
type Use struct {
	Name       string // plugin name
	Constraint string // versions that the module accepts, such as "~> 1.2"; "" = any version
	// Source is the path of the binary, or of its directory, as the argument `source` of the agent
	// block names it. If it is "", the binary is in one of the usual directories (SearchOptions). A
	// relative path is relative to the directory of the module.
	Source string
}

// A LockError says that a lock file does not fit the module or this platform.
type LockError struct {
	Name string
	Err  error
	hint string
}

// Error says why the lock file does not fit.
func (e *LockError) Error() string { return fmt.Sprintf("agent %q: %v", e.Name, e.Err) }

// Unwrap returns the cause.
func (e *LockError) Unwrap() error { return e.Err }

// Hint says what a person can do.
func (e *LockError) Hint() string { return e.hint }

// Resolve returns the binary that a module uses for an agent. This is the binary with the version
// and the checksum in the lock file of the module. If the module has no lock file (nil), Resolve
// calls Find. For an override, Resolve ignores the lock file. If the agent has a source, the module
// must have a lock file with the same source, because only `engine init` takes a binary from a
// source. The errors are those of Find and Exact, or a *LockError.
func (c *Catalog) Resolve(ctx context.Context, use Use, of *lock.Lock) (Binary, error) {
	if c.overridden(use.Name) {
		return c.Find(ctx, use.Name, use.Constraint)
	}
	if err := sourceLocked(use, of); err != nil {
		return Binary{}, err
	}
	if of == nil {
		return c.Find(ctx, use.Name, use.Constraint)
	}
	locked, ok := of.Agent(use.Name)
	if !ok {
		return Binary{}, &LockError{Name: use.Name, Err: fmt.Errorf("is not in %s", lock.File), hint: "run `engine init`"}
	}
	fit, err := meets(use.Constraint, locked.Version)
	if err != nil {
		return Binary{}, &LockError{Name: use.Name, Err: err, hint: "correct the version argument of the agent block"}
	}
	if !fit {
		return Binary{}, &LockError{
			Name: use.Name, hint: "run `engine init --upgrade`",
			Err: fmt.Errorf("%s holds version %s, which %q does not allow", lock.File, locked.Version, use.Constraint),
		}
	}
	sum, ok := locked.Hashes[Platform()]
	if !ok {
		return Binary{}, &LockError{
			Name: use.Name, hint: "run `engine init` on this platform",
			Err: fmt.Errorf("%s holds no hash for %s", lock.File, Platform()),
		}
	}
	return c.Exact(ctx, use.Name, locked.Version, sum)
}

// overridden reports whether the agent's first binary in the search order comes from
// dev_overrides.
func (c *Catalog) overridden(name string) bool {
	found := c.named(name)
	return len(found) > 0 && found[0].Source == SourceDev
}

// Lock returns a new lock file for a module, made from the installed binaries and the old lock
// file. It keeps the version of an agent in the old lock file if this version still meets the
// constraint, the agent has no source or still has the old source, and the parameter `upgrade` is
// false. For a version that it keeps, a binary with the old checksum must be installed or in the
// source. If the old lock file has no checksum for this platform, any binary of this version fits.
// In all other cases, Lock takes the binary that Find would choose, or for an agent with a source,
// the newest binary in the source that meets the constraint. Unlike Find, it also takes a binary
// that no lock file names.
//
// Lock keeps the hashes for other platforms, unless the version or the hash for this platform has
// changed. For an agent with an override, it keeps the old entry. It drops the entries of agents
// that the module does not use any more.
func (c *Catalog) Lock(ctx context.Context, uses []Use, old lock.Lock, upgrade bool) (lock.Lock, error) {
	var out lock.Lock
	for _, use := range merge(uses) {
		before, had := old.Agent(use.Name)
		if c.overridden(use.Name) {
			if had {
				out.Agents = append(out.Agents, before)
			}
			continue
		}
		b, err := c.choose(ctx, use, before, upgrade)
		if err != nil {
			return lock.Lock{}, err
		}
		next := lock.Agent{
			Name: use.Name, Version: b.Version, Constraint: use.Constraint, Source: use.Source,
			Hashes: map[string]string{Platform(): b.Checksum},
		}
		// Keep the hashes of other platforms only for the same build. Another build of this version
		// has other hashes on all platforms.
		same := had && sameVersion(before.Version, b.Version)
		if sum, ok := before.Hashes[Platform()]; same && (!ok || sum == b.Checksum) {
			maps.Copy(next.Hashes, before.Hashes)
			next.Hashes[Platform()] = b.Checksum
		}
		out.Agents = append(out.Agents, next)
	}
	return out, nil
}

// choose returns the binary of one agent for the new lock file. The parameter `before` is the
// agent's entry in the old lock file; zero = there is no entry.
func (c *Catalog) choose(ctx context.Context, use Use, before lock.Agent, upgrade bool) (Binary, error) {
	fit, err := meets(use.Constraint, before.Version)
	if err != nil {
		return Binary{}, &LockError{Name: use.Name, Err: err, hint: "correct the version argument of the agent block"}
	}
	keep := !upgrade && before.Version != "" && fit
	if use.Source != "" {
		return c.fromSource(ctx, use, before, keep && before.Source == use.Source)
	}
	if !keep {
		return c.find(ctx, use.Name, use.Constraint, func(Found) bool { return true })
	}
	return c.Exact(ctx, use.Name, before.Version, before.Hashes[Platform()])
}

// merge joins all uses of the same agent to one Use. It returns them sorted by the agent's name.
// The new constraint contains all constraints of the agent. The new source is the agent's first
// source: the language refuses a module with different sources of one agent.
func merge(uses []Use) []Use {
	constraints, sources := map[string][]string{}, map[string]string{}
	for _, u := range uses {
		list := constraints[u.Name]
		if text := strings.TrimSpace(u.Constraint); text != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
		constraints[u.Name] = list
		sources[u.Name] = cmp.Or(sources[u.Name], u.Source)
	}
	var out []Use
	for _, name := range sortedKeys(constraints) {
		slices.Sort(constraints[name])
		out = append(out, Use{Name: name, Constraint: strings.Join(constraints[name], ", "), Source: sources[name]})
	}
	return out
}

// sourceLocked checks an agent whose block names a source: a lock file must exist and name the same
// source for the agent.
func sourceLocked(use Use, of *lock.Lock) error {
	if use.Source == "" {
		return nil
	}
	fails := func(format string, args ...any) error {
		return &LockError{
			Name: use.Name, Err: fmt.Errorf(format, args...),
			hint: fmt.Sprintf("run `engine init`: it takes the agent from %s and locks it", use.Source),
		}
	}
	if of == nil {
		return fails("its block names a source, and there is no %s", lock.File)
	}
	locked, ok := of.Agent(use.Name)
	switch {
	case !ok:
		return fails("is not in %s", lock.File)
	case locked.Source == "":
		return fails("its block names the source %s, and %s names none", use.Source, lock.File)
	case locked.Source != use.Source:
		return fails("its block names the source %s, and %s names %s", use.Source, lock.File, locked.Source)
	}
	return nil
}

// fromSource returns the binary of an agent whose block names a source. If the parameter `keep` is
// true, fromSource returns the binary that the old lock entry `before` names. If the entry has a
// checksum for this platform, fromSource looks first among the installed files, and then in the
// source. Otherwise it looks only in the source. If `keep` is false, it returns the newest file in
// the source that meets the constraint.
func (c *Catalog) fromSource(ctx context.Context, use Use, before lock.Agent, keep bool) (Binary, error) {
	sum := before.Hashes[Platform()]
	if keep && sum != "" {
		// If Exact returns an error, no installed file can be used: look in the source.
		if b, err := c.Exact(ctx, use.Name, before.Version, sum); err == nil {
			return b, nil
		}
	}
	path := use.Source
	if !filepath.IsAbs(filepath.FromSlash(path)) && len(c.search.Modules) > 0 {
		path = filepath.Join(c.search.Modules[0], path)
	}
	path = filepath.FromSlash(path)
	there := &Catalog{
		search: SearchOptions{block: map[string]string{use.Name: path}}, cache: c.cache, tempDir: c.tempDir, logger: c.logger,
		described: map[string]*description{},
	}
	b, err := Binary{}, error(nil)
	if keep {
		b, err = there.Exact(ctx, use.Name, before.Version, sum)
	} else {
		b, err = there.Find(ctx, use.Name, use.Constraint)
	}
	if err != nil && ctx.Err() == nil {
		err = &SourceError{Name: use.Name, Path: path, Err: err}
	}
	return b, err
}
