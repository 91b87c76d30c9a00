package engine

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/saga-engine/engine/engine/internal/lists"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/store"
)

// Limits of a LogKeeper, which stores the log lines of agents.
const (
	// MaxLogMessage is the largest size of one line, in bytes.
	MaxLogMessage = 4 << 10

	logBatch   = 100
	logEvery   = time.Second
	maxLogWait = 4000 // largest number of lines that wait to be stored
	logFlush   = 2 * time.Second
)

// A LogKeeper stores what agents log while they work on calls. It stores many lines in one
// statement, in the background. If there are too many lines it drops some, so that a call
// never has to wait. Logs are for people: a lost line changes no run.
type LogKeeper struct {
	store  store.Evidence
	logger *slog.Logger
	full   chan struct{} // receives a value when at least logBatch lines wait to be stored

	mu      sync.Mutex // protects the fields below
	lines   []store.LogLine
	dropped int
}

// NewLogKeeper returns a LogKeeper. It stores nothing until Run is called. If lines cannot be
// stored or are dropped, it writes a message to `logger`; nil = it writes none.
func NewLogKeeper(store store.Evidence, logger *slog.Logger) *LogKeeper {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &LogKeeper{store: store, logger: logger, full: make(chan struct{}, 1)}
}

// Keep adds a line to the waiting lines, which the method Run stores soon. It never blocks. If too
// many lines wait, because the store does not answer or agents log too much, Keep drops and counts
// the line. Control characters and line breaks become spaces, and invalid UTF-8 is replaced. Keep
// cuts a line that is longer than MaxLogMessage.
func (k *LogKeeper) Keep(line store.LogLine) {
	line.Message, line.Step = oneLine(line.Message, MaxLogMessage), oneLine(line.Step, MaxLogMessage)
	if line.At.IsZero() {
		line.At = time.Now()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.lines) >= maxLogWait {
		k.dropped++
		return
	}
	k.lines = append(k.lines, line)
	if len(k.lines) >= logBatch {
		wait.Wake(k.full)
	}
}

// Run stores lines until ctx ends. It stores a batch as soon as a hundred lines wait, unless the
// store has just failed. Once a second it stores all waiting lines, even if there are fewer than a
// hundred. When ctx ends, it tries for at most two seconds to store the remaining lines, and
// returns ctx's error.
func (k *LogKeeper) Run(ctx context.Context) error {
	ticker := time.NewTicker(logEvery)
	defer ticker.Stop()
	failing := false
	for {
		least := 1
		select {
		case <-k.full:
			if failing {
				continue // the last flush failed, so the next flush comes at the next tick
			}
			least = logBatch
		case <-ticker.C:
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), logFlush)
			defer cancel()
			if err := k.flush(last, 1); err != nil {
				k.logger.Warn("what agents logged last could not be kept", "error", err)
			}
			return ctx.Err()
		}
		err := k.flush(ctx, least)
		if err != nil && !failing && ctx.Err() == nil {
			// The level Debug is enough: if the store does not answer, the engine logs that in
			// other code at a higher level.
			k.logger.Debug("what agents log cannot be kept now and waits", "error", err)
		}
		failing = err != nil
	}
}

// flush stores one batch after another, until fewer than `least` lines wait. If the store
// fails, flush returns the error, and the lines of that batch stay in k.lines.
func (k *LogKeeper) flush(ctx context.Context, least int) error {
	for {
		k.mu.Lock()
		dropped := k.dropped
		k.dropped = 0
		n := min(len(k.lines), logBatch)
		batch := append([]store.LogLine(nil), k.lines[:n]...)
		k.mu.Unlock()
		if dropped > 0 {
			k.logger.Warn("lines that agents logged were dropped", "lines", dropped)
		}
		if n < least {
			return nil
		}
		if err := k.store.KeepLogs(ctx, batch); err != nil {
			return fmt.Errorf("keep %d lines: %w", n, err)
		}
		k.mu.Lock()
		// Only flush removes lines, so the first n elements of k.lines are still the lines in
		// `batch`.
		k.lines = lists.DropFirst(k.lines, n)
		k.mu.Unlock()
	}
}

// oneLine returns the text s with a space for each control character, and with U+FFFD for
// invalid UTF-8. It cuts the result. The parameter `limit` is the largest allowed size, in bytes.
func oneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) <= limit {
		return s
	}
	const mark = "…"
	return strings.ToValidUTF8(s[:limit-len(mark)], "") + mark
}
