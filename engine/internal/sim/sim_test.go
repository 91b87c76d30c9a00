package sim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/internal/sim/steady"
)

// number reads a number from the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// simulate runs the world of one seed.
func simulate(t *testing.T, seed uint64) (res Result, ok bool) {
	ok = t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, seed)
		synctest.Test(t, func(t *testing.T) {
			reseed(seed)
			var err error
			if res, err = Simulate(t.Context(), seed); err != nil {
				t.Fatal(err)
			}
		})
	})
	return res, ok
}

// block is how many seeds share a process. What a process has done before, such
// as caches that it has filled, shifts what it draws later; so a process always
// begins with the first seed of a block, and a seed's trace is a function of the
// seed.
const block = 100

// TestWorlds runs the worlds of SIM_SEEDS seeds from SIM_FROM on, in this very
// process. TestSteady runs them in processes with steady turns. Here the Go runtime
// chooses the turns of goroutines: so no second build is needed, and the race detector
// works.
func TestWorlds(t *testing.T) {
	if steadied {
		debug.SetGCPercent(-1) // a garbage collection would be a turn that the seed does not decide
		debug.SetMemoryLimit(1 << 30)
	}
	from, count := number(t, "SIM_FROM", 1), number(t, "SIM_SEEDS", 40)
	traces := os.Getenv("SIM_TRACES") // a file for a digest of each trace
	var digests bytes.Buffer
	failed, tally := 0, map[string]int{}
	first := from
	if steadied {
		first = (from-1)/block*block + 1
	}
	for seed := first; seed < from+count && failed < 3; seed++ {
		if steadied {
			fmt.Fprintf(os.Stderr, "seed %d\n", seed) // if the world does not end, the last line names it
			if seed%16 == 0 {
				runtime.GC()
			}
		}
		res, ok := simulate(t, seed)
		if seed < from {
			continue
		}
		if dir := os.Getenv("SIM_TRACE"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("seed-%d", seed)), res.Trace, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Fprintf(&digests, "%d %x\n", seed, sha256.Sum256(res.Trace))
		for k, n := range res.Tally {
			tally[k] += n
		}
		if len(res.Faults) > 0 || !ok {
			failed++
			t.Errorf("seed %d:\n%s\nagain: make sim FROM=%d SEEDS=1\n%s", seed, strings.Join(res.Faults, "\n"), seed, res.Trace)
		}
	}
	t.Log(tally)
	if file := os.Getenv("SIM_TALLY"); file != "" {
		data, err := json.Marshal(tally)
		if err == nil {
			err = os.WriteFile(file, data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if traces != "" {
		if err := os.WriteFile(traces, digests.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// build builds this package's tests so that their seed decides everything.
func build(t *testing.T, dir string, more map[string]string) string {
	t.Helper()
	overlay, err := steady.Overlay(dir, more)
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "sim.test")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-tags", steady.Tag, "-overlay", overlay, "-o", bin, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// patient is how long a block may take. It takes a second, and much longer on a busy
// machine.
const patient = 5 * time.Minute

// errRestless is the error of a block of seeds that did not end in time.
var errRestless = errors.New("the block did not end")

// hunt runs worlds in a steady process and returns its output. Returns errRestless if the
// process takes longer than patience. The process then prints the stacks of its goroutines.
func hunt(ctx context.Context, patience time.Duration, bin string, from, count uint64, env ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errRestless)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, "-test.run", "^TestWorlds$", "-test.timeout", "0")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", fmt.Sprintf("SIM_FROM=%d", from), fmt.Sprintf("SIM_SEEDS=%d", count))
	cmd.Env = append(cmd.Env, env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("seeds from %d on: %w", from, context.Cause(ctx))
	}
	return string(out), err
}

// TestSteady builds these tests once more, so that a seed decides everything,
// and runs the worlds of SIM_SEEDS=500 seeds from SIM_FROM=1 on.
func TestSteady(t *testing.T) {
	bin := build(t, t.TempDir(), nil)
	t.Run("same seed same trace", func(t *testing.T) { sameTrace(t, bin) })
	t.Run("seeds", func(t *testing.T) { seeds(t, bin) })
}

// S1, S3, S5, S6, S19, S21, S22, S28, S29, S30, S45, S49, S87 and I1 to I10:
// several engines that crash, stop, freeze and lose messages, over a far side
// that fails in many ways, bring every run to its end, or to a person, with the effects
// that its status promises.
func seeds(t *testing.T, bin string) {
	from, count := number(t, "SIM_FROM", 1), number(t, "SIM_SEEDS", 500)
	if testing.Short() {
		count = min(count, 250)
	}
	var wg sync.WaitGroup
	blocks, dir := make(chan uint64), t.TempDir()
	for range min(runtime.NumCPU(), 8) {
		wg.Go(func() {
			for at := range blocks {
				if t.Failed() {
					continue // one story is enough to read
				}
				end := min((at-1)/block*block+1+block, from+count)
				if out, err := hunt(t.Context(), patient, bin, at, end-at, fmt.Sprintf("SIM_TALLY=%s/%d", dir, at)); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			}
		})
	}
	for at := from; at < from+count; at = (at-1)/block*block + 1 + block {
		blocks <- at
	}
	close(blocks)
	wg.Wait()
	if !t.Failed() && from == 1 && count >= 500 {
		checkCoverage(t, dir)
	}
}

// The same seed makes the same trace, byte by byte, in another process too.
func sameTrace(t *testing.T, bin string) {
	dir := t.TempDir()
	digests := map[string]string{}
	run := func(name string, from, count uint64) {
		file := filepath.Join(dir, "traces")
		if out, err := hunt(t.Context(), patient, bin, from, count, "SIM_TRACES="+file); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			seed, digest, _ := strings.Cut(strings.TrimSpace(line), " ")
			if known, ok := digests[seed]; ok && known != digest {
				t.Errorf("seed %s: another trace %s", seed, name)
			}
			digests[seed] = digest
		}
	}
	run("", 1, block)
	run("in a second process", 1, block)
	for _, seed := range []uint64{3, 17, 58, 99} {
		run("when it is looked at by itself", seed, 1)
	}
	if len(digests) != block {
		t.Errorf("%d traces of %d seeds", len(digests), block)
	}
	different := map[string]bool{}
	for _, d := range digests {
		different[d] = true
	}
	if len(different) != block {
		t.Errorf("%d seeds make %d different traces", block, len(different))
	}
}
