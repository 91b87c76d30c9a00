package chaos

import (
	"os"
	"time"
)

// full means that each test runs as many rounds as docs/reliability.md says (`make chaos`).
// part means that full is set, too, but each test runs fewer rounds (`make chaos SHORT=1`).
// Without both, each test runs only a few rounds (`make test`).
var full, part = os.Getenv("CHAOS") != "", os.Getenv("CHAOS") == "part"

// times returns how many rounds a test runs: short in `make test`, and long in `make chaos`.
// With SHORT=1 it returns a seventh of long, but at least short.
func times(short, long int) int {
	switch {
	case part:
		return max(short, long/7)
	case full:
		return long
	}
	return short
}

// patience returns how long a test may wait for something: three times what a quiet machine
// needs at most, because these tests need more CPU than the machine has.
func patience(limit time.Duration) time.Duration { return 3 * limit }
