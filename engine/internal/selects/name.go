package selects

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine/internal/inbox"
	"github.com/saga-engine/engine/engine/internal/ticks"
	"github.com/saga-engine/engine/engine/store/firings"
	"github.com/saga-engine/engine/engine/store/naming"
)

// plain matches a key that can be used unchanged in the name of a run.
var plain = regexp.MustCompile(`^[A-Za-z0-9._:/-]+$`)

// hashed is the text before a hash that replaces a key in the name of a run.
const hashed = "k-"

// hashLen is the length of a hash in a name.
const hashLen = 32

// tickLen is the length of the tick at the end of the name that ticks.RunName returns.
const tickLen = len("20060102T150405Z")

// Begin returns the beginning of the names of all runs of a firing. This is
// "WORKFLOW.SCHEDULE.TICK.", or "WORKFLOW:ID::" if the firing is for an event. The rest of the name
// must have space for the hash of a key. If there would not be enough space, the beginning contains
// a hash instead of the names of the workflow and the schedule.
func Begin(f *firings.Firing) string {
	if f.Event != "" {
		return inbox.KeysOf(f.Workflow, f.Event)
	}
	return begin(f.Workflow, f.Schedule, f.Tick)
}

func begin(workflow, schedule string, tick time.Time) string {
	firing := ticks.RunName(workflow, schedule, tick)
	if len(firing)+len(".")+len(hashed)+hashLen > naming.MaxNameLen {
		firing = firing[len(firing)-tickLen:] + "-" + hash(firing)
	}
	return firing + "."
}

// RunName returns the public name of the run that a row starts: WORKFLOW.SCHEDULE.TICK.KEY. So a
// firing starts at most one run for each key, however often its pages are read. A hash replaces a
// key that is too long, that has other characters than names may have, or that begins with k-.
func RunName(workflow, schedule string, tick time.Time, key string) string {
	firing := begin(workflow, schedule, tick)
	if name := firing + key; plain.MatchString(key) && !strings.HasPrefix(key, hashed) && len(name) <= naming.MaxNameLen {
		return name
	}
	return firing + hashed + hash(firing+"\x00"+key)
}

// runName returns the public name of the run of a row in the firing f.
func runName(f *firings.Firing, key string) string {
	if f.Event != "" {
		return inbox.KeyRunName(f.Workflow, f.Event, key)
	}
	return RunName(f.Workflow, f.Schedule, f.Tick, key)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:hashLen/2])
}
