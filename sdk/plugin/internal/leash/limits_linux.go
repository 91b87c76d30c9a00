package leash

import "fmt"

// An excess says which limit a process has exceeded.
type excess struct {
	name  string // name of the limit in docs/limits.md
	taken int64  // measured value, in the unit of the limit
	limit int64  // the limit: bytes or threads
}

// Names of the limits, as users write them in the option --limit.
const (
	nameMemory  = "agent_memory"
	nameThreads = "agent_threads"
)

// passed returns an excess that says which limit the process has exceeded. The parameters are
// a word and a number that the keeper has written to the host. The result is nil if this word
// does not mean that a limit was exceeded.
func (l Limits) passed(word string, number int) *excess {
	switch word {
	case wordOver + nameMemory:
		return &excess{nameMemory, int64(number), l.Memory}
	case wordOver + nameThreads:
		return &excess{nameThreads, int64(number), int64(l.Threads)}
	}
	return nil
}

// end returns the error of a process that was killed because of the excess.
func (e *excess) end() error {
	if e.name == nameMemory {
		return &ExitError{text: fmt.Sprintf("killed: it and what it started took %d MiB of memory; its limit %s is %d MiB, and --limit %[2]s=%[4]dMiB doubles it", e.taken>>20, e.name, e.limit>>20, e.limit>>19)}
	}
	return &ExitError{text: fmt.Sprintf("killed: it and what it started had %d threads; its limit %s is %d, and --limit %[2]s=%[4]d doubles it", e.taken, e.name, e.limit, 2*e.limit)}
}

// text returns the limits as the text that the host passes to the keeper.
func (l Limits) text() string { return fmt.Sprint(l.Memory, l.Threads, l.Files) }

// parseLimits reads limits from the text that Limits.text returns.
func parseLimits(text string) (l Limits) {
	_, _ = fmt.Sscan(text, &l.Memory, &l.Threads, &l.Files)
	return l
}
