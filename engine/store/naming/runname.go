package naming

import (
	"strconv"
	"strings"

	"github.com/saga-engine/engine/engine/machine/status"
)

// givenPrefix is the beginning of the names that engines give to runs.
const givenPrefix = "r-"

// RunName returns the name of a run that was submitted without a name. It is made from the
// internal id, so no store needs to keep it.
func RunName(run status.RunID) string { return givenPrefix + strconv.FormatInt(int64(run), 36) }

// ParseRunName returns the id from which a RunName was made. It reports false if the text
// is not a RunName.
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

// ParseRunID returns the id in a text: in a RunName, or as a decimal number. A store uses
// it if no run has the text as its name.
func ParseRunID(name string) (status.RunID, bool) {
	if run, ok := ParseRunName(name); ok {
		return run, true
	}
	id, err := strconv.ParseInt(name, 10, 64)
	return status.RunID(id), err == nil
}
