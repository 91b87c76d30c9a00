package agents

import (
	"time"

	"github.com/saga-engine/engine/dsl/secret"
)

const (
	// hushFor is how long after the end of a call its secrets are still removed from the
	// agent's log. A line may wait in a pipe until earlier lines have been read.
	hushFor = time.Minute
	// maxHush is the largest number of secrets that are kept. maxHushBytes is their largest
	// total size in bytes.
	maxHush      = 10_000
	maxHushBytes = 8 << 20
)

// notShown replaces a line that may be sensitive.
const notShown = "(not shown: this agent had more sensitive values within a minute than are remembered)"

// A hush keeps the secrets of calls that have ended. The mutex of its callBook protects it.
// The zero hush is ready to use.
type hush struct {
	texts map[string]time.Time // each text, with the time until which it is kept
	bytes int
	swept time.Time // time of the last search for old texts
	lost  time.Time // texts that found no room may be missing until this time; zero = none is missing
}

// add keeps the texts of a call that ends now.
func (h *hush) add(now time.Time, texts []string) {
	if len(texts) == 0 {
		return
	}
	if h.texts == nil {
		h.texts = map[string]time.Time{}
	}
	until := now.Add(hushFor)
	for _, s := range texts {
		if _, known := h.texts[s]; !known {
			// forget is called at most once a second. With a thousand calls a second, it
			// would otherwise need most of the time.
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

// full reports whether there is no room for one more text.
func (h *hush) full(s string) bool {
	return len(h.texts) >= maxHush || h.bytes+len(s) > maxHushBytes
}

// forget drops the texts that need not be kept any more.
func (h *hush) forget(now time.Time) {
	h.swept = now
	for s, until := range h.texts {
		if now.After(until) {
			delete(h.texts, s)
			h.bytes -= len(s)
		}
	}
}

// redactor returns a function for the lines that an agent logs. The function removes the kept
// texts and the texts in more. While a text may be missing, it replaces the whole line.
func (h *hush) redactor(now time.Time, more map[string]bool) func(string) string {
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
