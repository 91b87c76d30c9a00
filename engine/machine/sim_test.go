package machine_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/saga-engine/engine/engine/machine/status"
)

// TestPromises runs random workflows in random worlds and holds every promise
// of the core against every record. SIM_SEEDS says how many (default 5000) and
// SIM_FROM after which one to begin, SIM_SEED replays one, and with SIM_BRIEF a
// failure is neither shrunk nor told.
//
// S1, S2, S6, S8, S10, S17, S18, S20, S22, S23, S24, S26, S28, S31, S57, S59,
// S64, S77, S79: see check, checkInvoke and audit.
func TestPromises(t *testing.T) {
	if text := os.Getenv("SIM_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("SIM_SEED: %v", err)
		}
		replay(t, seed)
		return
	}
	seeds := uint64(5000)
	if text := os.Getenv("SIM_SEEDS"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("SIM_SEEDS: %v", err)
		}
		seeds = n
	}
	from := uint64(0)
	if text := os.Getenv("SIM_FROM"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("SIM_FROM: %v", err)
		}
		from = n
	}
	var next, failed atomic.Uint64
	failed.Store(^uint64(0))
	ends := make([]map[status.RunState]int, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for k := range ends {
		ends[k] = map[status.RunState]int{}
		wg.Go(func() {
			for {
				seed := from + next.Add(1)
				if seed > from+seeds || failed.Load() != ^uint64(0) {
					return
				}
				w, err := runWorld(newChooser(seed), false)
				if err != nil {
					failed.CompareAndSwap(^uint64(0), seed)
					return
				}
				ends[k][w.s.Status()]++
			}
		})
	}
	wg.Wait()
	if seed := failed.Load(); seed != ^uint64(0) {
		replay(t, seed)
		return
	}
	checkShared(t)
	if seeds >= 5000 {
		checkGroups(t)
	}
	total := map[status.RunState]int{}
	for _, m := range ends {
		for state, n := range m {
			total[state] += n
		}
	}
	t.Logf("%d seeds: %v", seeds, total)
	if seeds >= 1000 { // a world in which nothing interesting happens proves nothing
		for _, state := range []status.RunState{status.RunSucceeded, status.RunFailed, status.RunCompensated, status.RunCancelled} {
			if total[state] < int(seeds)/50 {
				t.Errorf("only %d of %d runs ended %s: the simulation is void", total[state], seeds, state)
			}
		}
	}
}

// runWorld runs one world; a panic is a failure like any other.
func runWorld(c *chooser, trace bool) (w *world, err error) {
	defer func() {
		if p := recover(); p != nil {
			buf := make([]byte, 4096)
			err = fmt.Errorf("panic: %v\n%s", p, buf[:runtime.Stack(buf, false)])
		}
	}()
	w = newWorld(c)
	w.trace, w.deep = trace, trace
	return w, w.live()
}

// kindOf is an error without names and numbers, so that shrinking keeps to
// the failure it began with.
func kindOf(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i:]
	}
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}

// replay runs a seed again, shrinks it if it fails, and reports.
func replay(t *testing.T, seed uint64) {
	t.Helper()
	c := newChooser(seed)
	w, err := runWorld(c, true)
	if err == nil {
		t.Logf("seed %d is fine: %s\n%s", seed, w.s.Status(), w.report())
		return
	}
	first := err
	if os.Getenv("SIM_BRIEF") != "" {
		t.Fatalf("seed %d: %v", seed, err)
	}
	runs := 0
	least := shrink(c.made, func(choices []uint16) bool {
		if runs++; runs > 5000 {
			return false
		}
		_, err := runWorld(&chooser{replay: choices}, false)
		return err != nil && kindOf(err) == kindOf(first)
	})
	w, err = runWorld(&chooser{replay: least}, true)
	if err == nil { // cannot happen unless a world is not deterministic
		t.Fatalf("seed %d fails (%v) but its shrunk form does not", seed, first)
	}
	t.Fatalf("seed %d: %v\nafter shrinking: %v\nreplay: SIM_SEED=%d go test -run TestPromises -v ./engine/machine\n%s", seed, first, err, seed, w.report())
}
