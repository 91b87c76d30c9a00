package naming

import (
	"strconv"
	"strings"

	"github.com/saga-engine/engine/engine/machine/status"
)

// givenPrefix begins the names that engines give.
const givenPrefix = "r-"

// RunName is the name of a run that was submitted without one. It is derived
// from the internal id, so that no store need keep it.
func RunName(run status.RunID) string { return givenPrefix + strconv.FormatInt(int64(run), 36) }

// ParseRunName returns the id of which a text is the RunName, if it is one.
func ParseRunName(name string) (status.RunID, bool) {
	digits, given := strings.CutPrefix(name, givenPrefix)
	if !given {
		return 0, false
	}
	id, err := strconv.ParseInt(digits, 36, 64)
	run := status.RunID(id)
	if err != nil || id <= 0 || RunName(run) != name {
		return 0, false
	}
	return run, true
}

// ParseRunID returns the id in a text that is no name of a run: a RunName, or the internal
// id in decimal.
func ParseRunID(name string) (status.RunID, bool) {
	if run, ok := ParseRunName(name); ok {
		return run, true
	}
	id, err := strconv.ParseInt(name, 10, 64)
	return status.RunID(id), err == nil
}
