package agents

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A printed line goes to each run with a call in the process that printed it,
// once, and without the secrets of any of them.
func TestPrintedLines(t *testing.T) {
	const one, other = 1, 2 // numbers of processes
	flightOf := func(process int64, run int, step, secret string) *bookedCall {
		return &bookedCall{knownCall: knownCall{
			run: status.RunID(run), tag: callTag{fmt.Sprint("r", run), step, 1}, process: process,
			scrub: strings.NewReplacer(secret, "(sensitive)").Replace,
		}}
	}
	var (
		b    callBook
		got  []string
		text strings.Builder
	)
	log := slog.New(&tagged{
		next: slog.NewTextHandler(&text, nil), book: &b, process: 1,
		sink: func(l store.LogLine) {
			got = append(got, fmt.Sprintf("%d %q %d %s %s", l.Run, l.Step, l.Attempt, l.Level, l.Message))
		},
	})
	printed := func(want ...string) {
		t.Helper()
		got = nil
		text.Reset()
		log.ErrorContext(context.Background(), "panic: swordfish hunter2", "stream", "stderr")
		seen := map[string]bool{}
		for _, line := range got {
			seen[line] = true
		}
		for _, w := range want {
			if !seen[w] {
				t.Errorf("no line %s", w)
			}
		}
		if len(got) != len(want) {
			t.Errorf("lines: %q, want %d", got, len(want))
		}
		if !strings.Contains(text.String(), "panic: ") || len(want) > 0 && strings.Contains(text.String(), "hunter2") {
			t.Errorf("the engine's log: %s", text.String())
		}
	}
	const both = "error panic: (sensitive) (sensitive) stream=stderr"

	printed() // no call is under way
	pay, ship, book := flightOf(one, 1, "pay", "hunter2"), flightOf(one, 2, "ship", "swordfish"), flightOf(one, 2, "book", "swordfish")
	far := flightOf(other, 3, "far", "x")
	b.begin(pay)
	b.begin(ship)
	b.begin(far)
	printed(`1 "pay" 1 `+both, `2 "ship" 1 `+both)
	b.begin(book)
	printed(`1 "pay" 1 `+both, `2 "" 0 `+both)

	// After their ends: one long ago, one a moment ago, one with its process.
	b.end(ship, time.Now().Add(-time.Hour))
	b.end(book, time.Now().Add(time.Hour))
	b.end(pay, time.Time{})
	printed(`1 "pay" 1 `+both, `2 "book" 1 `+both)
	log.Info("what the agent logs, but not for a call")
	if len(got) != 2 {
		t.Errorf("a line that was not printed is a run's: %q", got)
	}

	for i := range 2 * maxPrinted {
		b.begin(flightOf(one, 100+i, "many", "hunter2"))
	}
	log.Info("hello", "stream", "stderr")
	if len(got) != 2+maxPrinted {
		t.Errorf("%d lines, want %d", len(got)-2, maxPrinted)
	}
}
