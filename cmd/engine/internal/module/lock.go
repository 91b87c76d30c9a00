package module

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/regular"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/lock"
	"github.com/saga-engine/engine/engine/agents"
)

// Lock chooses a binary for every agent that the module uses, and returns the new content of the
// lock file. It returns an error that lists each agent without a usable binary.
func (l *Linked) Lock(ctx context.Context, old lock.Lock, upgrade bool) (lock.Lock, error) {
	var now lock.Lock
	var found diag.Diagnostics
	uses := map[string][]agents.Use{}
	for _, use := range l.parsed.Agents() {
		if len(uses[use.Plugin]) == 0 {
			l.Used = append(l.Used, UsedAgent{AgentUse: use})
		}
		uses[use.Plugin] = append(uses[use.Plugin], agents.Use{Name: use.Plugin, Constraint: use.Constraint, Source: use.Source})
	}
	for i := range l.Used {
		u := &l.Used[i]
		part, err := l.Catalog.Lock(ctx, uses[u.Plugin], old, upgrade)
		if err == nil {
			now.Agents = append(now.Agents, part.Agents...)
			u.Source = sourceOf(uses[u.Plugin])
			u.Binary, err = l.Catalog.Chosen(ctx, agents.Use{Name: u.Plugin, Source: u.Source}, &part)
		}
		if u.Err = err; err != nil {
			found = append(found, l.problem(*u))
		}
	}
	if found.HasErrors() {
		return lock.Lock{}, cli.Problems(found)
	}
	return now, ctx.Err()
}

// problem returns the error about an agent of the module that cannot be used.
func (l *Linked) problem(u UsedAgent) diag.Diagnostic {
	summary, detail := ExplainAgent(u)
	d := diag.Diagnostic{Severity: diag.SeverityError, Summary: summary, Detail: detail, Range: u.Where}
	return l.Named(diag.Diagnostics{d})[0]
}

// sourceOf returns the first `source` in the given uses of an agent; "" = there is none.
func sourceOf(uses []agents.Use) string {
	for _, u := range uses {
		if u.Source != "" {
			return u.Source
		}
	}
	return ""
}

// Install copies agent binaries into the directory of the module, where the other commands find
// these binaries. It copies only the binaries that Lock has taken from the `source` of an agent
// block.
func (l *Linked) Install(ctx context.Context) error {
	var found diag.Diagnostics
	for i := range l.Used {
		u := &l.Used[i]
		if u.Binary, u.Err = l.Catalog.Install(ctx, u.Binary); u.Err != nil {
			found = append(found, l.problem(*u))
		}
	}
	if found.HasErrors() {
		return cli.Problems(found)
	}
	return nil
}

// WriteLock writes the lock file if its content changes. If `readonly` is true, WriteLock returns
// an error instead.
func (l *Linked) WriteLock(old, now lock.Lock, readonly bool) error {
	before, after := lock.Format(old), lock.Format(now)
	if bytes.Equal(before, after) && (len(now.Agents) > 0 || len(old.Agents) == 0) {
		return nil
	}
	if readonly {
		return cli.Failed("Lock file would change", "%s does not fit the module and its agents. "+
			"Run `engine init` without --lockfile=readonly and commit the result.", lock.File)
	}
	if err := regular.Replace(filepath.Join(l.Dir, lock.File), after); err != nil {
		return fmt.Errorf("write the lock file: %w", err)
	}
	return nil
}

// ReadLock reads the lock file next to the module; nil = there is none.
func (m *Module) ReadLock() (*lock.Lock, error) { return ReadLock(m.Dir, m.Shown) }

// ReadLock reads the lock file in dir; nil = there is none. The parameter `shown` is the name of
// this directory in messages.
func ReadLock(dir, shown string) (*lock.Lock, error) {
	src, err := regular.Read(filepath.Join(dir, lock.File), regular.MaxSource)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the lock file: %w", err)
	}
	read, diags := lock.Read(src, path.Join(shown, lock.File))
	if diags.HasErrors() {
		return nil, cli.Problems(diags)
	}
	return &read, nil
}
