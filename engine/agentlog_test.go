package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A logStore remembers what it is given in each statement.
type logStore struct {
	store.Full
	mu      sync.Mutex
	batches [][]store.LogLine
	asked   int
	down    bool
}

func (s *logStore) KeepLogs(_ context.Context, lines []store.LogLine) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.down {
		return errors.New("the store is down")
	}
	s.batches = append(s.batches, lines)
	return nil
}

// lines returns everything that was stored, in order.
func (s *logStore) lines() (all []store.LogLine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.batches {
		all = append(all, b...)
	}
	return all
}

// statements returns how many statements stored something, and how many there
// were.
func (s *logStore) statements() (stored, asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.batches), s.asked
}

// keeper runs a keeper until end is called.
func keeper(t *testing.T, s *logStore, log *strings.Builder) (k *engine.LogKeeper, end func()) {
	t.Helper()
	k = engine.NewLogKeeper(s, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	return k, func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want Canceled", err)
		}
	}
}

// What agents log is stored in order, many lines in one statement, within a
// second, and what is left when the engine ends is stored too.
func TestLogsAreKeptInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := &logStore{}, &strings.Builder{}
		k, end := keeper(t, s, log)
		for n := range 250 {
			k.Keep(store.LogLine{Run: 1, Message: fmt.Sprint(n)})
		}
		synctest.Wait() // a hundred do not wait for the second
		if stored, _ := s.statements(); len(s.lines()) != 200 || stored != 2 {
			t.Errorf("%d lines in %d statements at once", len(s.lines()), stored)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(s.lines()) != 250 {
			t.Errorf("%d lines after a second, want 250", len(s.lines()))
		}
		_, idle := s.statements()
		time.Sleep(time.Minute)
		if _, asked := s.statements(); asked != idle {
			t.Errorf("the store was asked %d times for nothing", asked-idle)
		}
		k.Keep(store.LogLine{Run: 1, Message: "250"})
		end()
		for n, l := range s.lines() {
			if l.Message != fmt.Sprint(n) || l.At.IsZero() {
				t.Fatalf("line %d: %+v", n, l)
			}
		}
		if len(s.lines()) != 251 || log.Len() > 0 {
			t.Errorf("%d lines, log %q", len(s.lines()), log)
		}
	})
}

// Logs never hold anybody up: while the store is down lines wait, as many as
// are allowed; beyond that they are dropped, counted and said so.
func TestLogsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := &logStore{down: true}, &strings.Builder{}
		k, end := keeper(t, s, log)
		for n := range 5000 {
			k.Keep(store.LogLine{Run: 1, Message: fmt.Sprint(n)})
		}
		time.Sleep(10 * time.Second)
		if _, asked := s.statements(); asked > 15 {
			t.Errorf("a store that is down was asked %d times in 10 s", asked)
		}
		s.mu.Lock()
		s.down = false
		s.mu.Unlock()
		time.Sleep(2 * time.Second)
		all := s.lines()
		if len(all) != 4000 || all[0].Message != "0" || all[3999].Message != "3999" {
			t.Errorf("%d lines were kept, want the first 4000", len(all))
		}
		end()
		for _, b := range s.batches {
			if len(b) > 100 {
				t.Errorf("%d lines in one statement", len(b))
			}
		}
		dropped := 0
		for _, line := range strings.Split(log.String(), "\n") {
			if _, n, ok := strings.Cut(line, " lines="); ok {
				count, err := strconv.Atoi(n)
				if err != nil {
					t.Errorf("log line %q: %v", line, err)
				}
				dropped += count
			}
		}
		if text := log.String(); dropped != 1000 || strings.Count(text, "cannot be kept now") != 1 {
			t.Errorf("%d lines were dropped; log: %s", dropped, text)
		}
	})
}

// T20, T21: a line is one line of text, of bounded length.
func TestLogLinesAreText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &logStore{}
		k, end := keeper(t, s, &strings.Builder{})
		k.Keep(store.LogLine{Run: 1, Step: "a\x1b[31m", Message: "one\r\ntwo\x00\xff\tthree"})
		k.Keep(store.LogLine{Run: 1, Message: strings.Repeat("ä", 1<<20)})
		end()
		all := s.lines()
		if all[0].Message != "one  two \uFFFD three" || all[0].Step != "a [31m" {
			t.Errorf("line %q of step %q", all[0].Message, all[0].Step)
		}
		if n := len(all[1].Message); n > engine.MaxLogMessage || n < engine.MaxLogMessage-8 || !strings.HasSuffix(all[1].Message, "ä…") {
			t.Errorf("a long line has %d bytes and ends with %q", n, all[1].Message[n-8:])
		}
	})
}

// What is kept is there to be read.
func TestLogsReachTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneStep)
		n := w.start()
		run := w.submit(n, "one", nil)
		w.wait(n, run, status.RunSucceeded)
		k := engine.NewLogKeeper(w.mem, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		k.Keep(store.LogLine{Run: run, Step: "reserve", Attempt: 1, Level: "warn", Message: "low"})
		k.Keep(store.LogLine{Run: 1 << 40, Message: "of no run"})
		if err := k.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
		lines, err := w.mem.Logs(t.Context(), run, 0, 10)
		if err != nil || len(lines) != 1 || lines[0].Message != "low" || lines[0].Level != "warn" || lines[0].Attempt != 1 {
			t.Errorf("lines: %+v, %v", lines, err)
		}
		n.drain(t)
	})
}
