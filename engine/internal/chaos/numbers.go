package chaos

import (
	"os"
	"time"
)

// full says whether the numbers of docs/reliability.md are run, as `make chaos`
// does, or a part of them, as `make chaos SHORT=1`, instead of the few of `make
// test`.
var full, part = os.Getenv("CHAOS") != "", os.Getenv("CHAOS") == "part"

// times picks the number of rounds.
func times(short, long int) int {
	switch {
	case part:
		return max(short, long/7)
	case full:
		return long
	}
	return short
}

// patience stretches how long something may take: a full run keeps the machine
// busier than it can serve at once.
func patience(limit time.Duration) time.Duration {
	if full {
		return 3 * limit
	}
	return limit
}
