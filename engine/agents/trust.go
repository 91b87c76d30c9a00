package agents

import (
	"fmt"
	"strings"
)

// An UnlockedError says that the only file for an agent is in the module's own directory
// and no lock file names it. The file was not run.
type UnlockedError struct {
	Name string
	Path string
}

// Error names the file.
func (e *UnlockedError) Error() string {
	return fmt.Sprintf("agent %q: %s came with the module, and no lock file names it, so it is not run", e.Name, e.Path)
}

// Hint says what a person can do.
func (e *UnlockedError) Hint() string {
	return "if you trust the file, run `engine init`: it locks it"
}

// trusts reports whether a file may be run, judging by the place in which it was found.
// Files in the module's own directory come with a checkout, perhaps from a stranger. Of
// these, only files that the lock file names may be run. The other places belong to the
// user or to the engine.
func (c *Catalog) trusts(f Found) bool {
	if f.Source != SourceProject {
		return true
	}
	if c.lock == nil {
		return false
	}
	locked, ok := c.lock.Agent(f.Name)
	if !ok {
		return false
	}
	sum, err := c.entry(f.Path).hash(f.Path)
	return err == nil && strings.EqualFold(sum, locked.Hashes[Platform()])
}

// Displaced returns the installed binaries that are not used because the agent comes from
// the module's own directory; nil for a binary from another place.
func (c *Catalog) Displaced(b Binary) []Found {
	if b.Source != SourceProject {
		return nil
	}
	var list []Found
	for _, f := range c.named(b.Name) {
		if f.Source != SourceProject {
			list = append(list, f)
		}
	}
	return list
}
