package engine_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A logBook keeps what is logged at level info and above, one line each.
type logBook struct {
	slog.Handler
	mu    sync.Mutex
	lines []string
}

func (b *logBook) Enabled(context.Context, slog.Level) bool { return true }
func (b *logBook) Handle(_ context.Context, rec slog.Record) error {
	line := rec.Level.String() + " " + rec.Message
	rec.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	b.mu.Lock()
	defer b.mu.Unlock()
	if rec.Level >= slog.LevelInfo {
		b.lines = append(b.lines, line)
	}
	return nil
}

// taken returns the lines since the last time.
func (b *logBook) taken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := b.lines
	b.lines = nil
	return lines
}

// However many loops of an engine meet a store that is gone, its log says so once,
// and once that it is back and after how long; for each outage again.
func TestAnOutageIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.opts.Lease, w.opts.Writers = 60*time.Second, 2
		store, book := w.faulty(), &logBook{Handler: slog.DiscardHandler}
		w.cfg = func(c *engine.Config) { c.Logger = slog.New(book) }
		w.shop.on("charge", func(context.Context, int) error { time.Sleep(5 * time.Second); return nil })
		n := w.start()
		for range 2 {
			var runs []status.RunID
			for range 5 {
				runs = append(runs, w.submit(n, "order", nil))
			}
			time.Sleep(time.Second)
			if lines := book.taken(); len(lines) > 0 {
				t.Errorf("told without an outage: %q", lines)
			}
			store.noRead.Store(&errDown)
			store.down.Store(true)
			time.Sleep(20 * time.Second)
			lines := book.taken()
			if len(lines) != 1 || !strings.HasPrefix(lines[0], "WARN the store does not answer, trying again") || !strings.Contains(lines[0], errDown.Error()) {
				t.Errorf("of an outage of 20 s the log says %q, want one line with its reason", lines)
			}
			store.noRead.Store(nil)
			store.down.Store(false)
			for _, run := range runs {
				w.wait(n, run, status.RunSucceeded)
			}
			lines = book.taken()
			if len(lines) != 1 || !strings.HasPrefix(lines[0], "INFO the store answers again after=2") {
				t.Errorf("at its end the log says %q, want one line with how long it was", lines)
			}
		}
		n.drain(t)
	})
}
