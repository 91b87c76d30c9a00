//go:build unix

package agents_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// watcher is an Observer that remembers, and lets tests wait.
type watcher struct {
	mu       sync.Mutex // protects the fields below
	circuits []agents.CircuitChange
	started  []agents.ProcessInfo
	ended    []agents.ProcessInfo
	freed    int
	news     chan struct{} // closed and replaced by each change
}

func newWatcher() *watcher { return &watcher{news: make(chan struct{})} }

func (w *watcher) change(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn()
	close(w.news)
	w.news = make(chan struct{})
}

func (w *watcher) CircuitChanged(c agents.CircuitChange) {
	w.change(func() { w.circuits = append(w.circuits, c) })
}

func (w *watcher) ProcessStarted(p agents.ProcessInfo) {
	w.change(func() { w.started = append(w.started, p) })
}

func (w *watcher) ProcessEnded(p agents.ProcessInfo, _ error) {
	w.change(func() { w.ended = append(w.ended, p) })
}

func (w *watcher) free(string) { w.change(func() { w.freed++ }) }

// until waits for ok, which is asked with the lock held.
func (w *watcher) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.After(patience)
	for {
		w.mu.Lock()
		done, news := ok(), w.news
		w.mu.Unlock()
		if done {
			return
		}
		select {
		case <-news:
		case <-limit:
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}

func (w *watcher) pids() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	var pids []int
	for _, p := range w.started {
		pids = append(pids, p.Pid)
	}
	return pids
}

// pid returns the process that started as number n, from 0, and waits until it
// is known: a process may answer before those who watch have heard of it.
func (w *world) pid(n int) int {
	w.t.Helper()
	w.until(w.t, fmt.Sprintf("process %d", n), func() bool { return len(w.started) > n })
	return w.pids()[n]
}

// world is a Pool with what a test sees of it.
type world struct {
	*agents.Pool
	*watcher
	t   *testing.T
	log *syncBuilder
}

type syncBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuilder) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuilder) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// freeze stops a process and returns when it stands still: a signal takes its
// time to arrive.
func (w *world) freeze(pid int) {
	w.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		w.t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			w.t.Fatal(err)
		}
		if strings.Contains(string(stat), ") T ") {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("process %d does not stop: %s", pid, stat)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// newWorld makes a pool that finds the mock agent, and what is in dirs.
func newWorld(t *testing.T, o agents.Options, dirs ...string) *world {
	t.Helper()
	w := &world{watcher: newWatcher(), t: t, log: &syncBuilder{}}
	if o.Catalog == nil {
		o.Catalog = agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{
			PluginDirs: append(dirs, filepath.Dir(mockBinary)),
		}})
	}
	o.Observer = w.watcher
	o.Logger = slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.Pool = agents.NewPool(o)
	w.OnFree(w.free)
	t.Cleanup(func() {
		w.Close()
		for _, pid := range w.pids() {
			if alive(pid) {
				t.Errorf("process %d is left behind", pid)
			}
		}
		if t.Failed() {
			t.Logf("log:\n%s", w.log)
		}
	})
	return w
}

// alive reports whether a process exists that is not only waiting to be reaped.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// mock is the spec of a mock agent; the functions change it.
func mock(name string, change ...func(*invoke.AgentSpec)) invoke.AgentSpec {
	spec := invoke.AgentSpec{Agent: &dsl.Agent{Name: name, Plugin: "mock", Instances: 1}, Key: name}
	for _, c := range change {
		c(&spec)
	}
	return spec
}

func config(text string) func(*invoke.AgentSpec) {
	return func(s *invoke.AgentSpec) { s.Config = dsl.NewValue([]byte(text), nil, nil) }
}

func breaker(b dsl.Breaker) func(*invoke.AgentSpec) {
	return func(s *invoke.AgentSpec) { s.Breaker = b }
}

// call is a request for an action of the mock agent.
func call(spec invoke.AgentSpec, action, input string, change ...func(*invoke.Call)) invoke.Call {
	c := invoke.Call{Agent: spec, Request: sdk.Request{
		Action: action, Purpose: sdk.PurposeDo, Input: json.RawMessage(input), IdempotencyKey: "key",
		CompleteBy: time.Now().Add(patience), Run: "r1", Step: "s", Attempt: 1,
	}}
	for _, ch := range change {
		ch(&c)
	}
	return c
}

func (w *world) mustInvoke(c invoke.Call) sdk.Reply {
	w.t.Helper()
	reply, err := w.Invoke(w.t.Context(), c)
	if err != nil {
		w.t.Fatalf("%s %s: %v", c.Request.Action, c.Request.Input, err)
	}
	// A process may answer before those who watch have heard of it.
	w.until(w.t, "the process that answered", func() bool { return len(w.started) > 0 })
	return reply
}

// eventually invokes until the call is sent: a pause after a crash passes.
func (w *world) eventually(c invoke.Call) sdk.Reply {
	w.t.Helper()
	for limit := time.Now().Add(patience); ; {
		reply, err := w.Invoke(w.t.Context(), c)
		var deferred *invoke.Deferred
		if !errors.As(err, &deferred) {
			if err != nil {
				w.t.Fatal(err)
			}
			return reply
		}
		if time.Now().After(limit) {
			w.t.Fatalf("deferred for ever: %v", err)
		}
		timer := time.NewTimer(time.Until(deferred.Until))
		<-timer.C
	}
}

func mustDefer(t *testing.T, err error) *invoke.Deferred {
	t.Helper()
	var d *invoke.Deferred
	if !errors.As(err, &d) {
		t.Fatalf("error=%v, want *invoke.Deferred", err)
	}
	return d
}

// ledger reads the mock agent's ledger and counts its lines by kind.
func ledger(t *testing.T, path string) (kinds map[string]int, applied map[string]int) {
	t.Helper()
	kinds, applied = map[string]int{}, map[string]int{}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return kinds, applied
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	for s := bufio.NewScanner(f); s.Scan(); {
		var e struct {
			Kind, Key string
			Applied   bool
		}
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		kinds[e.Kind]++
		if e.Applied {
			applied[e.Key]++
		}
	}
	return kinds, applied
}
