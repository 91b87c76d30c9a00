package agents

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
)

// A callTag is how the SDK tags what an agent logs while it works on a call.
type callTag struct {
	run, step string // public names
	attempt   int
}

// A knownCall is a call that an agent has or recently had.
type knownCall struct {
	run   machine.RunID
	scrub func(string) string
	calls int // with this tag, under way
}

// maxEnded is how many calls are remembered after their end: what an agent logs
// last may arrive after its reply.
const maxEnded = 256

// A callBook knows the calls of an agent by their tags. Only a run whose calls
// an agent has can it write into the logs of. The zero callBook is ready.
type callBook struct {
	mu     sync.Mutex // protects following fields
	calls  map[callTag]knownCall
	ended  [maxEnded]callTag // a ring
	oldest int               // of ended; those before it wrap around
}

func (b *callBook) begin(c *engine.Call) callTag {
	tag := callTag{c.Request.Run, c.Request.Step, c.Request.Attempt}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls == nil {
		b.calls = map[callTag]knownCall{}
	}
	b.calls[tag] = knownCall{run: c.Run, scrub: c.Scrub, calls: b.calls[tag].calls + 1}
	return tag
}

func (b *callBook) end(tag callTag) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.calls[tag]
	k.calls--
	b.calls[tag] = k
	forget := b.ended[b.oldest]
	b.ended[b.oldest] = tag
	b.oldest = (b.oldest + 1) % maxEnded
	if k, ok := b.calls[forget]; ok && k.calls == 0 && forget != (callTag{}) {
		delete(b.calls, forget)
	}
}

func (b *callBook) find(tag callTag) (run machine.RunID, scrub func(string) string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k, ok := b.calls[tag]
	if !ok {
		return 0, nil, false
	}
	return k.run, k.scrub, true
}

// tagged is the handler of what agents log: what belongs to a call is scrubbed
// of what that call was told in confidence, and also goes to the sink.
type tagged struct {
	next slog.Handler
	book *callBook
	sink func(engine.LogLine) // nil = nowhere
}

// Enabled reports whether anybody wants the level; the sink wants all.
func (h *tagged) Enabled(ctx context.Context, level slog.Level) bool {
	return h.sink != nil || h.next.Enabled(ctx, level)
}

// Handle passes the record on to whoever wants it.
func (h *tagged) Handle(ctx context.Context, rec slog.Record) error {
	var tag callTag
	rec.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "run":
			tag.run = a.Value.String()
		case "step":
			tag.step = a.Value.String()
		case "attempt":
			tag.attempt = number(a.Value)
		}
		return true
	})
	run, scrub, ok := h.book.find(tag)
	if ok && scrub != nil {
		r := &redactor{replace: scrub}
		out := slog.NewRecord(rec.Time, rec.Level, scrub(rec.Message), rec.PC)
		rec.Attrs(func(a slog.Attr) bool {
			switch a.Key {
			case "run", "step", "attempt": // ours
			default:
				a = r.attr(a)
			}
			out.AddAttrs(a)
			return true
		})
		rec = out
	}
	if ok && run != 0 && h.sink != nil {
		h.sink(engine.LogLine{
			Run: run, At: rec.Time, Step: tag.step, Attempt: tag.attempt, Level: levelName(rec.Level), Message: lineOf(rec),
		})
	}
	if !h.next.Enabled(ctx, rec.Level) {
		return nil
	}
	return h.next.Handle(ctx, rec)
}

// WithAttrs hands attributes on: they are ours, and the sink knows them.
func (h *tagged) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &tagged{next: h.next.WithAttrs(attrs), book: h.book, sink: h.sink}
}

// WithGroup hands the group on.
func (h *tagged) WithGroup(name string) slog.Handler {
	return &tagged{next: h.next.WithGroup(name), book: h.book, sink: h.sink}
}

// number reads a number as JSON holds it.
func number(v slog.Value) int {
	switch v.Kind() {
	case slog.KindInt64:
		return int(v.Int64())
	case slog.KindFloat64:
		return int(v.Float64())
	}
	return 0
}

// lineOf is a record as one text: the message and what else it says.
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
