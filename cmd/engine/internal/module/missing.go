package module

import (
	"errors"
	"fmt"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/sdk/plugin"
)

// ExplainAgent returns the title and the text of the error for an agent that cannot be used. The
// text says why, and what to do.
func ExplainAgent(u UsedAgent) (summary, detail string) {
	var missing *agents.NotFoundError
	var version *agents.VersionError
	var changed *agents.ChecksumError
	var lock *agents.LockError
	var unlocked *agents.UnlockedError
	switch {
	case errors.As(u.Err, &unlocked):
		summary = fmt.Sprintf("Agent %q is not locked", u.Name)
	case errors.As(u.Err, &missing) && u.Similar != "" && len(missing.Misplaced) == 0:
		return fmt.Sprintf("Agent %q not found", u.Name), fmt.Sprintf("%s. Did you mean %q?", words.UpperFirst(u.Err.Error()), u.Similar)
	case errors.As(u.Err, &missing):
		summary = fmt.Sprintf("Agent %q not found", u.Name)
	case errors.As(u.Err, &version):
		summary = fmt.Sprintf("No fitting version of agent %q", u.Name)
	case errors.As(u.Err, &changed):
		summary = fmt.Sprintf("Agent %q has changed since it was locked", u.Name)
	case errors.As(u.Err, &lock):
		summary = fmt.Sprintf("Lock file does not fit agent %q", u.Name)
	default:
		summary = fmt.Sprintf("Agent %q cannot be used", u.Name)
	}
	return summary, words.UpperFirst(u.Err.Error()) + "." + Hint(u.Err)
}

// Hint returns the remedy that an error suggests, as a sentence with a space in front; "" =
// the error suggests none.
func Hint(err error) string {
	hint := hintOf(err)
	switch {
	case hint == "":
		return ""
	case strings.HasPrefix(hint, "chmod "):
		return " Run `" + hint + "`."
	case strings.HasSuffix(hint, "?") || strings.HasSuffix(hint, "."):
		return " " + words.UpperFirst(hint)
	}
	return " " + words.UpperFirst(hint) + "."
}

// hintOf returns the remedy that an error suggests, or "".
func hintOf(err error) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	var start *plugin.StartError
	if errors.As(err, &start) {
		return start.Hint
	}
	return ""
}
