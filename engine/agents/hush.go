package agents

import (
	"time"

	"github.com/saga-engine/engine/dsl/secret"
)

const (
	// hushFor is how long what a call knew in confidence is looked for in what its
	// agent says after its end. Lines wait in a pipe until those before them were read.
	hushFor = time.Minute
	// maxHush is how many such texts are remembered, and maxHushBytes what they take.
	maxHush      = 10_000
	maxHushBytes = 8 << 20
)

// notShown stands for a line of which it is not known whether it is sensitive.
const notShown = "(not shown: this agent had more sensitive values within a minute than are remembered)"

// A hush remembers the sensitive texts of calls that have ended. Its owner's mutex
// protects it. The zero hush is ready.
type hush struct {
	texts map[string]time.Time // until when
	bytes int
	swept time.Time // when old texts were last looked for
	lost  time.Time // until when a text may be missing; zero = none is
}

// add remembers texts of a call that ends now.
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
			// Not for each text: a thousand calls a second would go through all texts.
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

// forget drops what need not be looked for any more.
func (h *hush) forget(now time.Time) {
	h.swept = now
	for s, until := range h.texts {
		if now.After(until) {
			delete(h.texts, s)
			h.bytes -= len(s)
		}
	}
}

// redactor returns what takes these texts, and those that are remembered, out of what
// an agent says.
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
