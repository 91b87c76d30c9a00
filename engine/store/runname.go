package store

import (
	"strconv"
	"strings"

	"github.com/saga-engine/engine/engine/machine"
)

// givenPrefix begins the names that engines give.
const givenPrefix = "r-"

// RunName is the name of a run that was submitted without one. It is derived
// from the internal id, so that no store need keep it.
func RunName(run machine.RunID) string { return givenPrefix + strconv.FormatInt(int64(run), 36) }

// ParseRunName returns the id of which a text is the RunName, if it is one.
func ParseRunName(name string) (machine.RunID, bool) {
	digits, given := strings.CutPrefix(name, givenPrefix)
	if !given {
		return 0, false
	}
	id, err := strconv.ParseInt(digits, 36, 64)
	run := machine.RunID(id)
	if err != nil || id <= 0 || RunName(run) != name {
		return 0, false
	}
	return run, true
}

// Public returns the name of the run that is submitted under these names.
func (n Names) Public(run machine.RunID) string {
	if n.Name == "" {
		return RunName(run)
	}
	return n.Name
}

// Kept reports whether a store has to keep the names: most runs have one that
// is derived, and no key.
func (n Names) Kept() bool { return n.Name != "" || n.Key != "" }

// ParseRunID returns the id that a text without a run of that name means: a
// RunName, or the internal id in decimal.
func ParseRunID(name string) (machine.RunID, bool) {
	if run, ok := ParseRunName(name); ok {
		return run, true
	}
	id, err := strconv.ParseInt(name, 10, 64)
	return machine.RunID(id), err == nil
}
