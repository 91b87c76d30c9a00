package chaos

import (
	"os"
	"time"
)

// full says whether the numbers of docs/reliability.md are run, as `make chaos` does. part
// says that only a part of them is run, as `make chaos SHORT=1` does. Without both, the few
// numbers of `make test` are run.
var full, part = os.Getenv("CHAOS") != "", os.Getenv("CHAOS") == "part"

// times returns the number of rounds.
func times(short, long int) int {
	switch {
	case part:
		return max(short, long/7)
	case full:
		return long
	}
	return short
}

// patience returns how long something may take. A full run uses more CPU than the machine
// has, so it gets three times the limit.
func patience(limit time.Duration) time.Duration {
	if full {
		return 3 * limit
	}
	return limit
}
