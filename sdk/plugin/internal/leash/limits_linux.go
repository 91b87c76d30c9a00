package leash

import "fmt"

// An excess says which limit a process has passed.
type excess struct {
	name  string // of the limit, as docs/limits.md has it
	taken int64
	limit int64
}

// Names of the limits, as users set them.
const (
	nameMemory  = "agent_memory"
	nameThreads = "agent_threads"
)

// passed returns the excess that a keeper told of; nil if the word is another one.
func (l Limits) passed(word string, number int) *excess {
	switch word {
	case wordOver + nameMemory:
		return &excess{nameMemory, int64(number), l.Memory}
	case wordOver + nameThreads:
		return &excess{nameThreads, int64(number), int64(l.Threads)}
	}
	return nil
}

// end is the error of a process that was killed for it.
func (e *excess) end() error {
	if e.name == nameMemory {
		return &ExitError{text: fmt.Sprintf("killed: it and what it started took %d MiB of memory; its limit %s is %d MiB, and --limit %[2]s=%[4]dMiB doubles it", e.taken>>20, e.name, e.limit>>20, e.limit>>19)}
	}
	return &ExitError{text: fmt.Sprintf("killed: it and what it started had %d threads; its limit %s is %d, and --limit %[2]s=%[4]d doubles it", e.taken, e.name, e.limit, 2*e.limit)}
}

// text is how the host tells the keeper.
func (l Limits) text() string { return fmt.Sprint(l.Memory, l.Threads, l.Files) }

// parseLimits reads what text made.
func parseLimits(text string) (l Limits) {
	_, _ = fmt.Sscan(text, &l.Memory, &l.Threads, &l.Files)
	return l
}
