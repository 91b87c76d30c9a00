package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// envAlone says that the server is this test's alone.
const envAlone = "BENCH_ALONE"

// alone runs this test in a process of its own, on a server of its own.
func alone(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "run", "github.com/saga-engine/engine/engine/internal/pgtest/cmd/pgtest", "run", "--",
		os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, envServer+"=") }), envAlone+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}

// Bounds of what a step costs with 64 runs in flight.
const (
	mostCommits = 0.2
	mostLog     = 0.75 // of the naive mode's
)

// What does not drift from machine to machine: commits, rows and log of each
// step on a real PostgreSQL, with calls that take no time. The bounds leave room
// for a machine on which nothing comes in time to share a commit.
//
// The server counts for all of its databases, so that nothing else may be at work
// on it: the test runs once more on a server of its own.
func TestCountsOfSteps(t *testing.T) {
	if os.Getenv(envAlone) == "" {
		alone(t)
		return
	}
	ctx := t.Context()
	w := linked(t)
	engineStore, naiveStore := testDatabase(t, "counts"), testDatabase(t, "counts_naive")
	n, err := newNaive(ctx, naiveStore, 16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, n.Close) })

	ours := testEngine(t, w, setup{store: engineStore.store, d: engineStore, invoker: echo{}})
	theirs := testEngine(t, w, setup{store: n, d: naiveStore, invoker: echo{}, options: naiveOptions()})
	at := func(r *running, inFlight int, window time.Duration) *book {
		b := &book{}
		res, err := r.loader().load(ctx, load{workflow: "five", end: status.RunSucceeded, inFlight: inFlight, warm: 300 * time.Millisecond, window: window})
		if err != nil {
			t.Fatal(err)
		}
		res.put(b, 0, "r", steps)
		return b
	}
	many, lone, naive := at(ours, 64, 2*time.Second), at(ours, 1, time.Second), at(theirs, 64, 2*time.Second)

	for _, c := range []struct {
		name        string
		of          *book
		figure      string
		least, most float64
	}{
		{"transitions, 64 in flight", many, "rows/step", 1.2, 1.2},
		{"transitions, lone", lone, "rows/step", 1.2, 1.2},
		{"commits of transitions, lone", lone, "sends/step", 1.2, 1.2},
		{"commits of transitions, 64 in flight", many, "sends/step", 0, mostCommits},
		{"naive transitions", naive, "rows/step", 1.2, 1.2},
		// Of a short while on a busy machine, whose ends are not at whole runs: about 2.4.
		{"naive commits", naive, "commits/step", 1.5, 6},
	} {
		const exact = 0.0001
		if got, ok := c.of.median("r", c.figure); !ok || got < c.least-exact || got > c.most+exact {
			t.Errorf("%s: %.3f of each step, want %.2f to %.2f", c.name, got, c.least, c.most)
		}
	}
	log, _ := many.median("r", "log/step")
	if base, ok := naive.median("r", "log/step"); !ok || log > mostLog*base {
		t.Errorf("a step writes %.0f bytes of log, the naive mode %.0f: more than %.2f of it", log, base, mostLog)
	}
}

// The naive mode does what it says: every run and every step of it stands in
// its tables as ended.
func TestNaive(t *testing.T) {
	ctx := t.Context()
	d := testDatabase(t, "naive")
	n, err := newNaive(ctx, d, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, n.Close) })
	r := testEngine(t, linked(t), setup{store: n, d: d, invoker: echo{}, options: naiveOptions()})
	const runs = 20
	for range runs {
		if err := r.once(ctx, "five", status.RunSucceeded); err != nil {
			t.Fatal(err)
		}
	}
	var ended, done, kept int
	err = d.db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM naive.run WHERE state = $1 AND finished_at IS NOT NULL AND length(data) > $3),
		count(*) FILTER (WHERE state = $2 AND attempt = 1), count(*) FILTER (WHERE length(data) > $3) FROM naive.step`,
		int(status.RunSucceeded), int(status.StepSucceeded), payload).Scan(&ended, &done, &kept)
	if err != nil {
		t.Fatal(err)
	}
	if ended != runs || done != runs*steps || kept != runs*steps {
		t.Errorf("%d runs have ended, %d steps are done, %d hold their output; want %d, %d, %d", ended, done, kept, runs, runs*steps, runs*steps)
	}
}

// echo answers in the engine's own process, with what it was given.
type echo struct{}

// Invoke answers at once.
func (echo) Invoke(_ context.Context, call invoke.Call) (sdk.Reply, error) {
	return sdk.Reply{Outcome: sdk.OutcomeResult, Output: append(json.RawMessage(nil), call.Request.Input...)}, nil
}

func testDatabase(t *testing.T, suffix string) *database {
	t.Helper()
	d, err := makeDatabase(t.Context(), os.Getenv(envServer), suffix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, d.close) })
	return d
}

func testEngine(t *testing.T, w *work, s setup) *running {
	t.Helper()
	r, err := start(t.Context(), w, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.stop(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return r
}

func closed(t *testing.T, fn func() error) {
	t.Helper()
	if err := fn(); err != nil {
		t.Error(err)
	}
}
