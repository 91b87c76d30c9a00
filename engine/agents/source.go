package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/saga-engine/engine/dsl/lock"
)

// A SourceError says that the source in an agent block does not give the binary that is needed.
type SourceError struct {
	Name string
	Path string // absolute path that the source means
	Err  error
}

// Error names the agent and the path, and contains the text of the cause.
func (e *SourceError) Error() string {
	var missing *NotFoundError
	if errors.As(e.Err, &missing) && len(missing.Misplaced) == 0 && missing.Err == nil {
		return fmt.Sprintf("agent %q: its source is %s, and no %s is there", e.Name, e.Path, binaryName(e.Name))
	}
	return fmt.Sprintf("agent %q: its source is %s, and there: %v", e.Name, e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *SourceError) Unwrap() error { return e.Err }

// Hint says how a person can make the source right.
func (e *SourceError) Hint() string {
	var changed *ChecksumError
	var missing *NotFoundError
	if errors.As(e.Err, &missing) && len(missing.Misplaced) > 0 {
		return missing.Hint()
	}
	if errors.As(e.Err, &changed) {
		return "if the change is meant, run `engine init --upgrade` to lock it; otherwise put the locked binary there"
	}
	return fmt.Sprintf("put %s there, or correct the argument source of the agent block", binaryName(e.Name))
}

// An OccupiedError says that another build of the same version is in the place where an agent has to
// be installed.
type OccupiedError struct {
	Name, Version string
	Path          string // the other file
}

// Error names the file that is in the way.
func (e *OccupiedError) Error() string {
	return fmt.Sprintf("agent %q: %s is another build of version %s, and open runs may need it", e.Name, e.Path, e.Version)
}

// Hint says how a person can install the new build.
func (e *OccupiedError) Hint() string {
	return "give the new build another version; or, if `engine list` shows no open run that needs the old one, delete that file, and run `engine init --upgrade` again"
}

// sourceLocked returns an error if an agent has a source and the lock file does not say that its
// binary came from there.
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

// fromSource returns the binary of an agent whose block names a source. If keep is true, it returns
// the binary in the lock entry before: a file that is installed already, or else one of the source.
// Otherwise it returns the newest file of the source that meets the constraint.
func (c *Catalog) fromSource(ctx context.Context, use Use, before lock.Agent, keep bool) (Binary, error) {
	sum := before.Hashes[Platform()]
	if keep && sum != "" {
		if b, err := c.Exact(ctx, use.Name, before.Version, sum); err == nil {
			return b, nil // an error here only means that the binary is not installed yet
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

// Chosen returns the binary in a new lock file. Lock made this lock file, and Install may not have been
// called for it yet: if the agent has a source, the binary may still be there.
func (c *Catalog) Chosen(ctx context.Context, use Use, now *lock.Lock) (Binary, error) {
	locked, ok := now.Agent(use.Name)
	if use.Source == "" || !ok || c.overridden(use.Name) {
		return c.Resolve(ctx, Use{Name: use.Name}, now)
	}
	return c.fromSource(ctx, use, locked, true)
}

// Install copies a binary from the source in its agent block to the directory .engine/agents of the
// module, where every command finds it. It returns the installed binary. A binary from another place
// is returned as it is. Install never replaces another build of the same version: open runs may need
// it. Then the error is an *OccupiedError.
func (c *Catalog) Install(ctx context.Context, b Binary) (Binary, error) {
	if b.Source != SourceBlock || len(c.search.Modules) == 0 {
		return b, nil
	}
	target, err := filepath.Abs(filepath.Join(c.search.Modules[0], ".engine", "agents", b.Name, b.Version, Platform(), binaryName(b.Name)))
	if err != nil {
		return Binary{}, fmt.Errorf("install agent %q: %w", b.Name, err)
	}
	switch sum, err := checksum(target); {
	case err == nil && sum != b.Checksum:
		return Binary{}, &OccupiedError{Name: b.Name, Version: b.Version, Path: target}
	case errors.Is(err, fs.ErrNotExist):
		if err := copyBinary(b.Path, target, b.Checksum); err != nil {
			return Binary{}, fmt.Errorf("install agent %q: %w", b.Name, err)
		}
		c.Refresh()
	case err != nil:
		return Binary{}, fmt.Errorf("install agent %q: %w", b.Name, err)
	}
	return c.Exact(ctx, b.Name, b.Version, b.Checksum)
}

// copyBinary copies a program to a path at which there is no file. After a crash the whole file is
// there, or none. If the file has another checksum than sum, it was changed meanwhile, and copyBinary
// returns an error.
func copyBinary(from, to, sum string) error {
	dir := filepath.Dir(to)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	tmp, err := os.CreateTemp(dir, ".installing-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // after the rename there is no such file
	_, err = io.Copy(tmp, in)
	if err == nil {
		err = tmp.Chmod(0o755)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	switch got, err := checksum(tmp.Name()); {
	case err != nil:
		return err
	case got != sum:
		return fmt.Errorf("%s was changed while it was installed; run the command again", from)
	}
	return os.Rename(tmp.Name(), to)
}

// blockFound lists the binaries that the sources in agent blocks name. The keys are names of agents.
func blockFound(sources map[string]string) ([]Found, error) {
	var found []Found
	for _, name := range sortedKeys(sources) {
		path, err := filepath.Abs(sources[name])
		if err != nil {
			return found, err
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			found = append(found, Found{Name: name, Path: path, Source: SourceBlock, Place: filepath.Dir(path)})
			continue
		}
		here, err := place{SourceBlock, path, true}.search()
		if err != nil {
			return found, err
		}
		for _, f := range here {
			if f.Name == name {
				found = append(found, f)
			}
		}
	}
	return found, nil
}
