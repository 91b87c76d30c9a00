package ticks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/store/naming"
)

// RunName returns the public name of the run that a schedule starts at a tick:
// WORKFLOW.SCHEDULE.TICK. Names of workflows and schedules that are too long for the store are cut,
// and a hash of them keeps the name unique.
func RunName(workflow, schedule string, tick time.Time) string {
	at := tick.UTC().Format("20060102T150405Z")
	name := workflow + "." + schedule
	if most := naming.MaxNameLen - len(at) - 1; len(name) > most {
		sum := sha256.Sum256([]byte(name))
		hash := hex.EncodeToString(sum[:6])
		name = name[:most-len(hash)-1] + "." + hash
	}
	return fmt.Sprintf("%s.%s", name, at)
}
