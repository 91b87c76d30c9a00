package inbox

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/saga-engine/engine/engine/store/naming"
)

const hashLen = 32

// between separates the id of the event from the key in the name of a run. If a hash replaces the
// id, `between` also comes before this hash. So an id that contains two colons in a row must be
// replaced by a hash, too: otherwise names could be confused.
const between = "::"

// hashed is the text before a hash that replaces a key in the name of a run.
const hashed = "k-"

// RunName returns the public name of the run that an event starts: WORKFLOW:ID, such as
// order:evt-7. Other runs have such a name only if a person gives it to them. In three cases, a
// hash of the workflow and the id replaces the id: if a name cannot contain the id (see the
// function `plain`), if the name would have two colons in a row, or if the name would be too long
// for a store.
func RunName(workflow, event string) string {
	name := workflow + ":" + event
	if plain(event) && len(name) <= naming.MaxNameLen && !strings.Contains(":"+event, between) {
		return name
	}
	return hashedName(workflow, name, naming.MaxNameLen)
}

// KeyRunName returns the public name of the run that an event starts for a key, or for a row with
// this key: WORKFLOW:ID::KEY, such as order:evt-7::o-1. In three cases, a hash replaces the key: if
// a name cannot contain the key (see the function `plain`), if the key looks like the hash of a
// key, or if the name would be too long for a store. All these names begin with the result of
// KeysOf.
func KeyRunName(workflow, event, key string) string {
	begin := KeysOf(workflow, event)
	if name := begin + key; plain(key) && !isHash(key) && len(name) <= naming.MaxNameLen {
		return name
	}
	return begin + hashed + hash(key)
}

// KeysOf returns the beginning of the names of all runs that an event starts for keys:
// WORKFLOW:ID::. A hash replaces the id in three cases: if a name cannot contain the id (see the
// function `plain`), if the id would make two colons in a row, or if no hash of a key would fit
// after the id.
func KeysOf(workflow, event string) string {
	const most = naming.MaxNameLen - len(between) - len(hashed) - hashLen
	name := workflow + ":" + event
	if !plain(event) || len(name) > most || strings.Contains(":"+event+":", between) {
		name = hashedName(workflow, name, most)
	}
	return name + between
}

// plain reports whether the name of a run can contain the text. A text with .notify cannot be in
// such a name, because the names of notifications contain it.
func plain(text string) bool {
	return text != "" && !strings.Contains(text, ".notify") &&
		strings.TrimRight(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/-") == ""
}

// isHash reports whether a key looks like the hash of a key.
func isHash(key string) bool {
	rest, ok := strings.CutPrefix(key, hashed)
	return ok && len(rest) == hashLen && strings.Trim(rest, "0123456789abcdef") == ""
}

// hashedName returns a name with at most `most` characters: the beginning of the workflow's name,
// two colons, and a hash of the parameter `text`.
func hashedName(workflow, text string, most int) string {
	return workflow[:min(len(workflow), most-hashLen-len(between))] + between + hash(text)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:hashLen/2])
}

// Trigger returns the text with which the history of a run says that an event has started the run:
// "event TYPE ID".
func Trigger(kind, event string) string { return "event " + kind + " " + naming.CleanText(event) }
