package agents

import (
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// A callTag is how the SDK tags what an agent logs while it works on a call.
type callTag struct {
	run, step string // public names
	attempt   int
}

// A knownCall is a call that an agent recently had.
type knownCall struct {
	tag     callTag
	run     status.RunID
	scrub   func(string) string
	secrets []string  // which scrub takes out
	process int64     // the number of the process that had it
	last    time.Time // when a printed line counts as printed during the call, at the latest; zero = always
}

// A bookedCall is a call under way, in the book of its agent. The book's mu protects it.
type bookedCall struct {
	knownCall
	before, after *bookedCall // on its page
}

// maxEnded is how many calls are remembered after their end: what an agent logs
// last may arrive after its reply.
const maxEnded = 256

// bookPages is how many pages the calls under way are spread over.
const bookPages = 256

const (
	// printDelay is how long a line that a process prints may take to arrive here.
	// Lines and answers come on different ways: a line that was printed during a
	// call may arrive after its answer.
	printDelay = 500 * time.Millisecond
	// maxPrinted is how many runs a printed line is kept for. A panic of a hundred
	// lines during a thousand calls would push everything else out of the queue of
	// lines that wait to be stored.
	maxPrinted = 32
)

// A callBook knows the calls of an agent by their tags. Only a run whose calls
// an agent has can it write into the logs of. The zero callBook is ready. Calls
// come and go by the ten thousand, and few are ever looked for: so they are
// linked with each other, which takes no memory and little time.
type callBook struct {
	mu     sync.Mutex             // protects following fields
	pages  [bookPages]*bookedCall // under way, linked by before and after
	ended  [maxEnded]knownCall    // a ring
	oldest int                    // of ended; those before it wrap around
	hush   hush                   // sensitive strings of calls that have ended
}

// page is where a call with this tag stands: the ends of names differ mostly, be
// it those of runs or of one run's instances.
func (t *callTag) page() int {
	h := uint(t.attempt)
	for _, name := range [...]string{t.run, t.step} {
		for i := max(0, len(name)-6); i < len(name); i++ {
			h = h*37 + uint(name[i])
		}
	}
	return int(h % bookPages)
}

// begin notes that the call is under way.
func (b *callBook) begin(f *bookedCall) {
	page := &b.pages[f.tag.page()]
	b.mu.Lock()
	defer b.mu.Unlock()
	f.after, *page = *page, f
	if f.after != nil {
		f.after.before = f
	}
}

// end notes that the call has ended, and up to when the agent's process may still
// print something about it; zero = for ever, because the process has ended.
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

// stray returns what takes out of a line what is sensitive in any call, for a line about
// a call that is not known any more.
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
	for i := range b.ended { // the latest first
		k := &b.ended[(b.oldest+2*maxEnded-1-i)%maxEnded]
		if k.tag == tag && k.tag != (callTag{}) {
			return k.run, k.scrub, true
		}
	}
	return 0, nil, false
}

// printedDuring returns the calls that a line may be about that this process
// printed, the calls under way first: one for each run that the line is kept for,
// and scrub, which takes out what is sensitive in any of the calls or was so in one
// that ended within a minute, and secrets. A run with several of these calls is named
// without a step.
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
		case k.run == 0: // a call of no run
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
	for i := range b.ended { // the latest first
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
