package naming

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/saga-engine/engine/engine/machine/status"
)

// Sizes that every store accepts. It refuses larger ones.
const (
	MaxNameLen  = 100  // characters of Names.Name, all of them ASCII
	MaxKeyBytes = 1024 // bytes of Names.Key, which is part of a unique index
	MaxDedupLen = 100  // characters of Message.Dedup, which is part of a unique index
)

// Names are the public names under which a run is submitted.
type Names struct {
	Name     string // public id, at most 100 characters; "" = RunName of the internal id
	Workflow string // workflow name: the scope of Key
	Key      string // unique key; "" = none
}

// Public returns the name of the run that is submitted under these names.
func (n Names) Public(run status.RunID) string {
	if n.Name == "" {
		return RunName(run)
	}
	return n.Name
}

// Kept reports whether a store has to keep the names. Most runs have no key, and a name
// that follows from their id.
func (n Names) Kept() bool { return n.Name != "" || n.Key != "" }

// Validate reports why the names cannot be kept. A run's name has a narrow
// grammar, [A-Za-z0-9][A-Za-z0-9._:/-]*, and is no RunName; a unique key is any
// text.
func (n Names) Validate() error {
	_, given := ParseRunName(n.Name)
	switch {
	case utf8.RuneCountInString(n.Name) > MaxNameLen:
		return fmt.Errorf("engine: run name of %d characters exceeds %d", utf8.RuneCountInString(n.Name), MaxNameLen)
	case len(n.Key) > MaxKeyBytes:
		return fmt.Errorf("engine: unique key of %d bytes exceeds %d", len(n.Key), MaxKeyBytes)
	case given:
		return fmt.Errorf("engine: run name %q: no run has it, and names of this form are given by engines: choose another", n.Name)
	case n.Name != "" && !validName(n.Name):
		return fmt.Errorf("engine: run name %q: it must begin with an ASCII letter or digit and hold only those and . _ : / -", n.Name)
	case n.Key != CleanText(n.Key):
		return fmt.Errorf("engine: unique key %q holds bytes that are not text", n.Key)
	case n.Key != "" && n.Workflow == "":
		return fmt.Errorf("engine: unique key %q has no workflow", n.Key)
	}
	return nil
}

// validName reports whether a text can name a run: what can stand unquoted in
// a shell, a URL and a log. Its length is checked apart.
func validName(s string) bool {
	for i, c := range []byte(s) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || strings.IndexByte("._:/-", c) < 0) {
			return false
		}
	}
	return s != ""
}

// CleanText replaces NUL and bytes that are not UTF-8 by U+FFFD, so that every store can
// keep s as text. Views and alerts use it: otherwise a text of an agent could stop a commit.
func CleanText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
