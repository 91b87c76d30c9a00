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

// Chosen returns the binary that a new lock file names for an agent. The lock file was made by the
// method Lock. If the agent has a source, Install may not have copied the binary yet. In this case
// Chosen returns the file in the source.
func (c *Catalog) Chosen(ctx context.Context, use Use, now *lock.Lock) (Binary, error) {
	locked, ok := now.Agent(use.Name)
	if use.Source == "" || !ok || c.overridden(use.Name) {
		return c.Resolve(ctx, Use{Name: use.Name}, now)
	}
	return c.fromSource(ctx, use, locked, true)
}

// Install copies a binary to the directory .engine/agents of the module, if the binary comes from
// the source that an agent block names. Every command finds the copy there. Install returns the
// installed binary. If a binary does not come from such a source, Install returns it unchanged. If
// another build of the same version is already installed, Install does not replace it, because open
// runs may need that build. In this case the error is an *OccupiedError.
func (c *Catalog) Install(ctx context.Context, b Binary) (Binary, error) {
	if b.Source != sourceBlock || len(c.search.Modules) == 0 {
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

// copyBinary copies a program to a path at which there is no file. After a crash, the path has the
// whole file or no file. The parameter `sum` is the expected checksum. If the copy has another
// checksum, the program was changed meanwhile, and copyBinary returns an error.
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
	defer os.Remove(tmp.Name()) //nolint:errcheck // after the rename, no file has the name of tmp, and Remove does nothing
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
