package agents

import (
	"context"
	"log/slog"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

const (
	// printDelay is how long a line that a process prints may take to arrive here. Lines
	// and answers use different channels, so a line that was printed during a call may
	// arrive after the answer.
	printDelay = 500 * time.Millisecond
	// maxPrinted is for how many runs a printed line is kept. Otherwise a panic with a
	// hundred lines during a thousand calls would push all other lines out of the queue.
	maxPrinted = 32
)

// printedDuring returns the calls during which this process may have printed a line, calls
// in progress first. It returns one call for each run for which the line is kept. A run
// with several such calls is named without a step. scrub removes the given secrets, and the
// sensitive values of these calls and of calls that ended within a minute.
func (b *callBook) printedDuring(process int64, now time.Time, secrets []string) (calls []knownCall, scrub func(string) string) {
	texts := map[string]bool{}
	keep := func(secrets []string) {
		for _, s := range secrets {
			texts[s] = true
		}
	}
	keep(secrets)
	var scrubs []func(string) string
	index := map[status.RunID]int{}
	note := func(k knownCall) {
		keep(k.secrets)
		if k.scrub != nil && k.secrets == nil {
			scrubs = append(scrubs, k.scrub)
		}
		switch n, known := index[k.run]; {
		case k.run == 0: // the call belongs to no run
		case known && calls[n].tag != k.tag:
			calls[n].tag = callTag{run: k.tag.run}
		case !known && len(calls) < maxPrinted:
			index[k.run] = len(calls)
			calls = append(calls, k)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.pages {
		for ; f != nil; f = f.after {
			if f.life.number() == process {
				note(knownCall{tag: f.tag, run: f.call.Run, scrub: f.call.Scrub, secrets: f.call.Secrets})
			}
		}
	}
	for i := range b.ended { // the latest call first
		k := b.ended[(b.oldest+2*maxEnded-1-i)%maxEnded]
		if k.process == process && (k.last.IsZero() || !now.After(k.last)) {
			note(k)
		}
	}
	redact := b.hush.redactor(now, texts)
	return calls, func(text string) string {
		text = redact(text)
		for _, s := range scrubs {
			text = s(text)
		}
		return text
	}
}

// handlePrinted handles a printed line that does not name its call. It keeps the line for
// every run that it may belong to, and passes it on. A panic is such a line, and a person
// looks for its reason in the log of the run.
func (h *tagged) handlePrinted(ctx context.Context, rec slog.Record) error {
	calls, scrub := h.book.printedDuring(h.process, time.Now(), h.secrets)
	rec = scrubbed(rec, scrub)
	if h.sink != nil {
		message, level := lineOf(rec), levelName(rec.Level)
		for _, k := range calls {
			h.sink(store.LogLine{
				Run: k.run, At: rec.Time, Step: k.tag.step, Attempt: k.tag.attempt, Level: level, Message: message,
			})
		}
	}
	if !h.next.Enabled(ctx, rec.Level) {
		return nil
	}
	return h.next.Handle(ctx, rec)
}
