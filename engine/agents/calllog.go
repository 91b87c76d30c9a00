package agents

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/store"
)

// tagged is the slog.Handler for the log of an agent. If the handler knows the call to which a line
// belongs, it removes the secrets of the call from the line. Then it passes the line to the logger,
// and to the function `sink`, which stores the line in the log of the call's run.
type tagged struct {
	next    slog.Handler        // handler of the logger
	book    *callBook           // calls of the agent
	process int64               // number of the process that logs; 0 = the engine logs
	secrets []string            // secrets of the agent's configuration
	redact  func(string) string // removes the texts in the field `secrets` from a line
	sink    func(store.LogLine) // receives lines for the logs of runs; nil = there is no sink
}

// Enabled reports whether lines of this level are needed. If there is a sink, lines of all levels
// are needed. Otherwise the logger decides.
func (h *tagged) Enabled(ctx context.Context, level slog.Level) bool {
	return h.sink != nil || h.next.Enabled(ctx, level)
}

// Handle removes the secrets from a line and passes the line to the logger. If the call of the line
// is known and belongs to a run, Handle also passes the line to the function `sink`.
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
	// Remove the call's secrets before h.secrets. A secret of the call may contain a secret of the
	// configuration. If the shorter secret were removed first, the rest of the longer one would
	// stay.
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

// scrubbed returns a copy of a log line in which the function `scrub` has changed all texts, except
// the attributes run, step and attempt.
func scrubbed(rec slog.Record, scrub func(string) string) slog.Record {
	out := slog.NewRecord(rec.Time, rec.Level, scrub(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "run", "step", "attempt": // the tag of the call, which has no secrets
		default:
			a = redactAttr(a, scrub)
		}
		out.AddAttrs(a)
		return true
	})
	return out
}

// WithAttrs returns a handler that adds the attributes to each line for the logger. The function
// `sink` gets lines without these attributes, because they come from the engine and only describe
// the agent.
func (h *tagged) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *h
	out.next = h.next.WithAttrs(attrs)
	return &out
}

// WithGroup returns a handler that adds the group to each line for the logger.
func (h *tagged) WithGroup(name string) slog.Handler {
	out := *h
	out.next = h.next.WithGroup(name)
	return &out
}

// number returns the number in an attribute, or 0 if the attribute is neither an int64 nor a
// float64. A number from JSON is a float.
func number(v slog.Value) int {
	switch v.Kind() {
	case slog.KindInt64:
		return int(v.Int64())
	case slog.KindFloat64:
		return int(v.Float64())
	}
	return 0
}

// lineOf returns a log line as one text: the message and the attributes. It leaves out the
// attributes that name the call: run, step and attempt. When the text has engine.MaxLogMessage
// bytes or more, lineOf adds no further attribute.
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

// handlePrinted handles a printed line that does not name its call, such as the text of a panic. It
// passes the line to the logger. If there is a sink, it also passes the line to the function
// `sink`, once for each run to which the line may belong, because people look for the line in the
// log of the run.
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
