package chaos

import (
	"os"
	"time"
)

// If only `full` is true, each test runs as many rounds as docs/reliability.md says (`make chaos`).
// If `full` and `part` are true, each test runs fewer rounds (`make chaos SHORT=1`). If both are
// false, each test runs only a few rounds (`make test`).
var full, part = os.Getenv("CHAOS") != "", os.Getenv("CHAOS") == "part"

// times returns the number of rounds of a test. In `make test`, the result is the parameter
// `short`. In `make chaos`, it is the parameter `long`. In `make chaos SHORT=1`, it is a seventh of
// the parameter `long`, but at least the parameter `short`.
func times(short, long int) int {
	switch {
	case part:
		return max(short, long/7)
	case full:
		return long
	}
	return short
}

// patience returns how long a test may wait for something. The parameter `limit` is the longest
// time that an idle machine needs. The result is three times as long, because these tests need more
// CPU time than the machine has.
func patience(limit time.Duration) time.Duration { return 3 * limit }
