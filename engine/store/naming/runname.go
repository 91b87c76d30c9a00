package naming

import (
	"strconv"
	"strings"

	"github.com/saga-engine/engine/engine/machine/status"
)

// givenPrefix is the beginning of each name that RunName returns.
const givenPrefix = "r-"

// RunName returns the name of a run that was submitted without a name. It computes the name
// from the internal id, so no store needs to keep the name.
func RunName(run status.RunID) string { return givenPrefix + strconv.FormatInt(int64(run), 36) }

// ParseRunName returns the run id from which RunName made this name. It returns false if
// the text is not a result of RunName.
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

// ParseRunID reads a run id from a text, which is either a result of RunName or a decimal
// number. It returns false for any other text. A store calls ParseRunID if no run has the
// text as its name.
func ParseRunID(name string) (status.RunID, bool) {
	if run, ok := ParseRunName(name); ok {
		return run, true
	}
	id, err := strconv.ParseInt(name, 10, 64)
	return status.RunID(id), err == nil
}
