package agents

import (
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// A callTag identifies a call. The SDK adds it to each line that an agent logs during a call.
type callTag struct {
	run, step string // public id of the run, and name of the step
	attempt   int    // number of the attempt
}

// A knownCall is a call that an agent has now or had recently.
type knownCall struct {
	tag     callTag
	run     status.RunID        // 0 = the call belongs to no run
	scrub   func(string) string // removes the call's secrets from a text; nil = the call has no secrets
	secrets []string            // secrets that the function `scrub` removes
	process int64               // number of the process that had the call
	// The latest time at which a printed line of the call may arrive. zero = there is no latest
	// time.
	last time.Time
}

// A bookedCall is the entry of a call in progress in the callBook of its agent. The mutex of
// the callBook protects the entry.
type bookedCall struct {
	knownCall
	before, after *bookedCall // neighbours in one of the lists callBook.pages; nil = none
}

// maxEnded is how many calls a callBook remembers after their end. The last lines that an agent
// logs during a call may arrive after the reply.
const maxEnded = 256

// bookPages is the number of lists over which the calls in progress are spread.
const bookPages = 256

const (
	// printDelay is the longest time that a printed line may take to arrive here. Lines and
	// answers use different channels. So a line that a process printed during a call may
	// arrive after the answer.
	printDelay = 500 * time.Millisecond
	// maxPrinted is the largest number of runs whose logs get a copy of one printed line.
	// Without this limit, a panic with a hundred lines during a thousand calls would fill the
	// queue, and other lines would be lost.
	maxPrinted = 32
)

// A callBook finds the calls of one agent by their tags. A log line whose tag belongs to no call of
// the agent is written into no run's log. So an agent can write only into the logs of runs that
// have called it. The zero callBook is ready to use. Tens of thousands of calls are added to a
// callBook, but the engine searches for few of them. So the calls in progress are in linked lists:
// adding a call needs no allocation and little time.
type callBook struct {
	mu     sync.Mutex             // protects the fields below
	pages  [bookPages]*bookedCall // lists of the calls in progress
	ended  [maxEnded]knownCall    // ring buffer of the last calls that have ended
	oldest int                    // index of the oldest call in the field `ended`
	recent recentSecrets          // secrets of calls that ended in the last minute
}

// page returns the index in callBook.pages for a call with this tag. It hashes the number of the
// attempt, and the last 6 bytes of the run's id and of the step's name. Most ids and names differ
// in these bytes.
func (t *callTag) page() int {
	h := uint(t.attempt)
	for _, name := range [...]string{t.run, t.step} {
		for i := max(0, len(name)-6); i < len(name); i++ {
			h = h*37 + uint(name[i])
		}
	}
	return int(h % bookPages)
}

// begin adds a call to the calls in progress.
func (b *callBook) begin(f *bookedCall) {
	page := &b.pages[f.tag.page()]
	b.mu.Lock()
	defer b.mu.Unlock()
	f.after, *page = *page, f
	if f.after != nil {
		f.after.before = f
	}
}

// end moves a call from the calls in progress to the calls that have ended. The parameter `last` is
// the latest time at which a printed line of the call may arrive. If the process has ended, `last`
// is zero: then every line that arrives later may belong to the call.
func (b *callBook) end(f *bookedCall, last time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f.before != nil {
		f.before.after = f.after
	} else {
		b.pages[f.tag.page()] = f.after
	}
	if f.after != nil {
		f.after.before = f.before
	}
	f.before, f.after = nil, nil
	b.ended[b.oldest] = f.knownCall
	b.ended[b.oldest].last = last
	b.oldest = (b.oldest + 1) % maxEnded
	b.recent.add(time.Now(), f.secrets)
}

// stray returns a function for lines about a call that the callBook does not know. The function
// removes the secrets of all calls in progress, and of calls that ended in the last minute. If some
// of these secrets may not be known any more, the function replaces the whole line with notShown.
func (b *callBook) stray() func(string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	texts := map[string]bool{}
	for _, f := range b.pages {
		for ; f != nil; f = f.after {
			for _, s := range f.secrets {
				texts[s] = true
			}
		}
	}
	return b.recent.redactor(time.Now(), texts)
}

// find returns the run of the call with this tag. The function `scrub` removes the call's secrets
// from a text; nil = the call has no secrets. `ok` is false if the callBook does not know such a
// call.
func (b *callBook) find(tag callTag) (run status.RunID, scrub func(string) string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for f := b.pages[tag.page()]; f != nil; f = f.after {
		if f.tag == tag {
			return f.run, f.scrub, true
		}
	}
	// Begin with the call that ended last.
	for i := range b.ended {
		k := &b.ended[(b.oldest+2*maxEnded-1-i)%maxEnded]
		if k.tag == tag && k.tag != (callTag{}) {
			return k.run, k.scrub, true
		}
	}
	return 0, nil, false
}

// printedDuring returns the calls during which this process may have printed a line: first calls in
// progress, and then calls that have ended. It returns at most one call for each run, and calls for
// at most maxPrinted runs. If the line may belong to several calls of one run, the returned call of
// this run names no step. The result `scrub` is a function that removes three kinds of secrets from
// the line: the given secrets, the secrets of all calls to which the line may belong, and of calls
// that ended in the last minute. If some of these secrets may not be known any more, `scrub`
// replaces the whole line with notShown.
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
			if f.process == process {
				note(f.knownCall)
			}
		}
	}
	// Begin with the call that ended last.
	for i := range b.ended {
		k := b.ended[(b.oldest+2*maxEnded-1-i)%maxEnded]
		if k.process == process && (k.last.IsZero() || !now.After(k.last)) {
			note(k)
		}
	}
	redact := b.recent.redactor(now, texts)
	return calls, func(text string) string {
		text = redact(text)
		for _, s := range scrubs {
			text = s(text)
		}
		return text
	}
}
