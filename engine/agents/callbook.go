package agents

import (
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// A callTag is the tag that the SDK adds to a line that an agent logs during a call.
type callTag struct {
	run, step string // public id of the run, and name of the step
	attempt   int
}

// A knownCall is a call that an agent had recently.
type knownCall struct {
	tag     callTag
	run     status.RunID
	scrub   func(string) string
	secrets []string // secrets that scrub removes
	process int64    // number of the process that had the call
	// A printed line that arrives by this time may belong to the call; zero = every later
	// line may belong to it.
	last time.Time
}

// A bookedCall is a call in progress, in the callBook of its agent. The mutex of the callBook
// protects it.
type bookedCall struct {
	knownCall
	before, after *bookedCall // neighbours in the list callBook.pages[tag.page()]
}

// maxEnded is how many calls are remembered after their end, because the last log lines of
// an agent may arrive after its reply.
const maxEnded = 256

// bookPages is the number of lists over which the calls in progress are spread.
const bookPages = 256

const (
	// printDelay is how long a line that a process prints may take to arrive here. Lines
	// and answers use different channels, so a line that was printed during a call may
	// arrive after the answer.
	printDelay = 500 * time.Millisecond
	// maxPrinted is the largest number of runs that get one printed line into their logs.
	// Without a limit, a panic with a hundred lines during a thousand calls would push all
	// other lines out of the queue.
	maxPrinted = 32
)

// A callBook finds the calls of an agent by their tags. An agent can write only into the logs
// of runs whose calls it has. The zero callBook is ready to use. A callBook gets tens of
// thousands of calls, but few of them are ever searched for. So it keeps the calls in
// progress in linked lists, which need no allocation and little time.
type callBook struct {
	mu     sync.Mutex             // protects following fields
	pages  [bookPages]*bookedCall // lists of the calls in progress
	ended  [maxEnded]knownCall    // ring buffer of the last calls that have ended
	oldest int                    // index of the oldest call in ended
	hush   hush                   // secrets of calls that have ended
}

// page returns the index in callBook.pages for a call with this tag. It hashes only the last
// 6 bytes of the run and step names, because names differ mostly there.
func (t *callTag) page() int {
	h := uint(t.attempt)
	for _, name := range [...]string{t.run, t.step} {
		for i := max(0, len(name)-6); i < len(name); i++ {
			h = h*37 + uint(name[i])
		}
	}
	return int(h % bookPages)
}

// begin adds a call that is in progress.
func (b *callBook) begin(f *bookedCall) {
	page := &b.pages[f.tag.page()]
	b.mu.Lock()
	defer b.mu.Unlock()
	f.after, *page = *page, f
	if f.after != nil {
		f.after.before = f
	}
}

// end records that the call has ended. A printed line that arrives until the time last may
// still belong to the call. Zero means that every later line may, because the process has
// ended.
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
	b.hush.add(time.Now(), f.secrets)
}

// stray returns a function that removes the sensitive values of all calls from a line. It
// is used for a line about a call that is not known any more.
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
	return b.hush.redactor(time.Now(), texts)
}

func (b *callBook) find(tag callTag) (run status.RunID, scrub func(string) string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for f := b.pages[tag.page()]; f != nil; f = f.after {
		if f.tag == tag {
			return f.run, f.scrub, true
		}
	}
	for i := range b.ended { // the latest call first
		k := &b.ended[(b.oldest+2*maxEnded-1-i)%maxEnded]
		if k.tag == tag && k.tag != (callTag{}) {
			return k.run, k.scrub, true
		}
	}
	return 0, nil, false
}

// printedDuring returns the calls during which this process may have printed a line, calls in
// progress first. It returns one call for each run for which the line is kept. If a run has
// several such calls, the returned call names no step. scrub removes the given secrets, and
// the sensitive values of these calls and of calls that ended in the last minute.
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
