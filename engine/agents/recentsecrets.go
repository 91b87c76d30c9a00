package agents

import (
	"time"

	"github.com/saga-engine/engine/dsl/secret"
)

const (
	// secretsKept is how long after the end of a call the engine still removes the call's secrets
	// from the agent's log. The reason: a line that the agent logged during the call may arrive
	// later, because it waits in a pipe behind earlier lines.
	secretsKept = time.Minute
	// maxRecentSecrets is the largest number of secrets that a recentSecrets keeps. maxRecentBytes
	// is the largest total size of these secrets, in bytes.
	maxRecentSecrets = 10_000
	maxRecentBytes   = 8 << 20
)

// notShown replaces a log line if the line may contain a secret for which the recentSecrets had no
// space.
const notShown = "(not shown: this agent had more sensitive values within a minute than are remembered)"

// A recentSecrets keeps the secrets of calls that ended a short time ago, because the agent may
// still print them. Each recentSecrets belongs to a callBook, whose mutex protects it. The zero
// recentSecrets is ready to use.
type recentSecrets struct {
	texts map[string]time.Time // each secret, with the time until which it is kept
	bytes int                  // total size of the texts, in bytes
	swept time.Time            // time of the last call of the method `forget`
	// If lost is not zero, a secret may be missing in the field `texts` until this time, because
	// the recentSecrets was full. zero = no secret was ever missing.
	lost time.Time
}

// add keeps the secrets of a call that ends now. If there is no space for a secret, add sets the
// field `lost`.
func (h *recentSecrets) add(now time.Time, texts []string) {
	if len(texts) == 0 {
		return
	}
	if h.texts == nil {
		h.texts = map[string]time.Time{}
	}
	until := now.Add(secretsKept)
	for _, s := range texts {
		if _, known := h.texts[s]; !known {
			// Call the method `forget` at most once a second. A thousand calls may end in a second.
			// If each of them searched all texts, this would need most of the CPU time.
			if h.full(s) && now.Sub(h.swept) >= time.Second {
				h.forget(now)
			}
			if h.full(s) {
				h.lost = until
				continue
			}
			h.bytes += len(s)
		}
		h.texts[s] = until
	}
}

// full reports whether there is no space for the text s.
func (h *recentSecrets) full(s string) bool {
	return len(h.texts) >= maxRecentSecrets || h.bytes+len(s) > maxRecentBytes
}

// forget removes the texts that have been kept long enough.
func (h *recentSecrets) forget(now time.Time) {
	h.swept = now
	for s, until := range h.texts {
		if now.After(until) {
			delete(h.texts, s)
			h.bytes -= len(s)
		}
	}
}

// redactor returns a function for the lines that an agent logs. The function removes the kept
// texts, and the texts in `more`. If a secret may be missing in the kept texts, the function
// replaces the whole line with notShown.
func (h *recentSecrets) redactor(now time.Time, more map[string]bool) func(string) string {
	if now.Before(h.lost) {
		return func(string) string { return notShown }
	}
	h.forget(now)
	all := make([]string, 0, len(h.texts)+len(more))
	for s := range h.texts {
		if !more[s] {
			all = append(all, s)
		}
	}
	for s := range more {
		all = append(all, s)
	}
	return secret.Redactor(all)
}
