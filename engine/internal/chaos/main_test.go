package chaos

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/internal/pgtest"
)

var programs *Binaries

func TestMain(m *testing.M) {
	// Engines of tests often wait: for leases to run out, for calls.
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue {
		if err := p.Value.Set("8"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	dir, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := func() int {
		defer os.RemoveAll(dir)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		if programs, err = Build(ctx, "../../..", dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := pgtest.Main(m)
		report.print()
		return code
	}()
	os.Exit(code)
}

// newWorld makes a world over a database of its own.
func newWorld(t *testing.T, seed uint64) *World {
	t.Helper()
	return NewWorld(t, programs, pgtest.DSN(t), seed)
}

// report gathers what `make chaos` prints at its end.
var report = &reported{}

type reported struct {
	mu    sync.Mutex // protects the fields below
	lines []string
	notes []string
}

// count notes a fault's numbers.
func (r *reported) count(fault string, rounds int, v Verdict, began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	bound := "-"
	if v.Attempts > 0 {
		bound = fmt.Sprintf("%.2g", 3/float64(v.Attempts))
	}
	r.lines = append(r.lines, fmt.Sprintf("| %s | %d | %d | %d | %d | %s | %.0f s |", fault, rounds, v.Runs, v.Attempts, v.Calls, bound, time.Since(began).Seconds()))
}

func (r *reported) print() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.notes {
		fmt.Println("|", n)
	}
	if len(r.lines) == 0 {
		return
	}
	fmt.Println("| fault | rounds | runs | step attempts | calls | violations per attempt, 95 % bound | took |\n|---|---|---|---|---|---|---|")
	for _, l := range r.lines {
		fmt.Println(l)
	}
}

// add sums verdicts.
func (v *Verdict) add(o Verdict) {
	v.Runs += o.Runs
	v.Attempts += o.Attempts
	v.Calls += o.Calls
	v.Signals += o.Signals
}
