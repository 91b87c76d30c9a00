package agents

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A callTag is the tag that the SDK adds to what an agent logs during a call.
type callTag struct {
	run, step string // public names
	attempt   int
}

// A knownCall is a call that an agent had recently.
type knownCall struct {
	tag     callTag
	run     status.RunID
	scrub   func(string) string
	secrets []string // secrets that scrub removes
	process int64    // number of the process that had the call
	// Lines that were printed before this time count as printed during the call; zero =
	// always.
	last time.Time
}

// maxEnded is how many calls are remembered after their end, because the last log lines of
// an agent may arrive after its reply.
const maxEnded = 256

// bookPages is the number of lists over which the calls in progress are spread.
const bookPages = 256

// A callBook finds the calls of an agent by their tags. An agent can write only into the
// logs of runs whose calls it has. The zero callBook is ready to use. Tens of thousands of
// calls begin and end, and few are ever searched for. So calls in progress are kept in
// linked lists, which need no allocation and little time.
type callBook struct {
	mu     sync.Mutex             // protects following fields
	pages  [bookPages]*activeCall // calls in progress, linked by before and after
	ended  [maxEnded]knownCall    // calls that have ended, as a ring
	oldest int                    // index in ended of the oldest call; the next call overwrites it
	hush   hush                   // sensitive strings of calls that have ended
}

// page returns the list for a call with this tag. It hashes the ends of the names, because
// the names of runs and of instances differ mostly at the end.
func (t *callTag) page() int {
	h := uint(t.attempt)
	for _, name := range [...]string{t.run, t.step} {
		for i := max(0, len(name)-6); i < len(name); i++ {
			h = h*37 + uint(name[i])
		}
	}
	return int(h % bookPages)
}

func (b *callBook) begin(f *activeCall) {
	f.tag = callTag{f.call.Request.Run, f.call.Request.Step, f.call.Request.Attempt}
	page := &b.pages[f.tag.page()]
	b.mu.Lock()
	defer b.mu.Unlock()
	f.after, *page = *page, f
	if f.after != nil {
		f.after.before = f
	}
}

// end records that the call has ended. Until the time last the agent's process may still
// print something about it; zero = for ever, because the process has ended.
func (b *callBook) end(f *activeCall, last time.Time) {
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
	b.ended[b.oldest] = knownCall{tag: f.tag, run: f.call.Run, scrub: f.call.Scrub, secrets: f.call.Secrets, process: f.life.number(), last: last}
	b.oldest = (b.oldest + 1) % maxEnded
	b.hush.add(time.Now(), f.call.Secrets)
}

// stray returns a function that removes the sensitive values of all calls from a line. It
// is used for a line about a call that is not known any more.
func (b *callBook) stray() func(string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	texts := map[string]bool{}
	for _, f := range b.pages {
		for ; f != nil; f = f.after {
			for _, s := range f.call.Secrets {
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
			return f.call.Run, f.call.Scrub, true
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

// tagged is the slog.Handler for the log of an agent. It removes the secrets of a call from
// a line that belongs to the call, and also passes the line to the sink.
type tagged struct {
	next    slog.Handler
	book    *callBook
	process int64               // number of the process that logs; 0 = the engine logs
	secrets []string            // secrets of the agent's configuration
	redact  func(string) string // removes these secrets
	sink    func(store.LogLine) // nil = there is no sink
}

// Enabled reports true for every level that the logger or the sink accepts. The sink
// accepts all levels.
func (h *tagged) Enabled(ctx context.Context, level slog.Level) bool {
	return h.sink != nil || h.next.Enabled(ctx, level)
}

// Handle passes a record to the logger and to the sink.
func (h *tagged) Handle(ctx context.Context, rec slog.Record) error {
	var tag callTag
	printed := false
	rec.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "stream":
			printed = true
		case "run":
			tag.run = a.Value.String()
		case "step":
			tag.step = a.Value.String()
		case "attempt":
			tag.attempt = number(a.Value)
		}
		return true
	})
	if printed && tag == (callTag{}) && h.process != 0 {
		return h.handlePrinted(ctx, rec)
	}
	run, scrub, ok := h.book.find(tag)
	// The call's secrets must be removed first. They include the secrets of the
	// configuration, and a secret of the call may contain a secret of the configuration.
	switch {
	case ok && scrub != nil:
		rec = scrubbed(rec, scrub)
	case !ok && h.process != 0:
		rec = scrubbed(rec, h.book.stray())
	}
	if len(h.secrets) > 0 {
		rec = scrubbed(rec, h.redact)
	}
	if ok && run != 0 && h.sink != nil {
		h.sink(store.LogLine{
			Run: run, At: rec.Time, Step: tag.step, Attempt: tag.attempt, Level: levelName(rec.Level), Message: lineOf(rec),
		})
	}
	if !h.next.Enabled(ctx, rec.Level) {
		return nil
	}
	return h.next.Handle(ctx, rec)
}

// scrubbed returns the record without sensitive values.
func scrubbed(rec slog.Record, scrub func(string) string) slog.Record {
	out := slog.NewRecord(rec.Time, rec.Level, scrub(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "run", "step", "attempt": // attributes of the engine, not of the agent
		default:
			a = redactAttr(a, scrub)
		}
		out.AddAttrs(a)
		return true
	})
	return out
}

// WithAttrs passes attributes on. They are the engine's own, and the sink knows them.
func (h *tagged) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *h
	out.next = h.next.WithAttrs(attrs)
	return &out
}

// WithGroup passes the group on.
func (h *tagged) WithGroup(name string) slog.Handler {
	out := *h
	out.next = h.next.WithGroup(name)
	return &out
}

// number reads a number from JSON.
func number(v slog.Value) int {
	switch v.Kind() {
	case slog.KindInt64:
		return int(v.Int64())
	case slog.KindFloat64:
		return int(v.Float64())
	}
	return 0
}

// lineOf returns a record as one line of text: the message and the attributes.
func lineOf(rec slog.Record) string {
	var b strings.Builder
	b.WriteString(rec.Message)
	rec.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "run", "step", "attempt":
		default:
			if b.Len() < engine.MaxLogMessage {
				fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
			}
		}
		return true
	})
	return b.String()
}

func levelName(l slog.Level) string {
	switch {
	case l < slog.LevelInfo:
		return "debug"
	case l < slog.LevelWarn:
		return "info"
	case l < slog.LevelError:
		return "warn"
	}
	return "error"
}
