package selects

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine/internal/ticks"
	"github.com/saga-engine/engine/engine/store/naming"
)

// plain matches a key that can be a part of the name of a run as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9._:/-]+$`)

// hashed is the beginning of the part of a name that replaces a key.
const hashed = "k-"

// tickLen is the length of the tick at the end of the name that ticks.RunName returns.
const tickLen = len("20060102T150405Z")

// RunName returns the public name of the run that a row starts: WORKFLOW.SCHEDULE.TICK.KEY. So a
// firing starts at most one run for each key, however often its pages are read. A key that is too
// long, or that has other characters than names may have, is replaced by a hash.
func RunName(workflow, schedule string, tick time.Time, key string) string {
	firing := ticks.RunName(workflow, schedule, tick)
	name := firing + "." + key
	if plain.MatchString(key) && !strings.HasPrefix(key, hashed) && len(name) <= naming.MaxNameLen {
		return name
	}
	sum := sha256.Sum256([]byte(firing + "\x00" + key))
	part := hashed + hex.EncodeToString(sum[:16])
	if len(firing)+1+len(part) > naming.MaxNameLen {
		firing = firing[len(firing)-tickLen:] // the hash has the workflow and the schedule, too
	}
	return firing + "." + part
}
