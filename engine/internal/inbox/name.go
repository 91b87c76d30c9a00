package inbox

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/saga-engine/engine/engine/store/naming"
)

// RunName returns the public name of the run that an event starts: WORKFLOW:ID, such as
// order:evt-7. Other runs have such a name only if a person gives it to them. If the id has
// characters that a name cannot have, or if the name would be too long for a store, a hash of the
// workflow and the id takes the place of the id.
func RunName(workflow, event string) string {
	name := workflow + ":" + event
	plain := strings.TrimRight(event, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/-") == ""
	if plain && event != "" && len(name) <= naming.MaxNameLen && !strings.Contains(event, ".notify") {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:16])
	return workflow[:min(len(workflow), naming.MaxNameLen-len(hash)-2)] + "::" + hash
}

// Trigger returns the text that the history of a run stores about its start by an event: "event TYPE
// ID".
func Trigger(kind, event string) string { return "event " + kind + " " + naming.CleanText(event) }
