//go:build unix

package agents_test

import (
	"bufio"
	"context"
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
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/plugin"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// watcher is an Observer that remembers, and lets tests wait.
type watcher struct {
	mu       sync.Mutex // protects following fields
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
func mock(name string, change ...func(*engine.AgentSpec)) engine.AgentSpec {
	spec := engine.AgentSpec{Agent: &dsl.Agent{Name: name, Plugin: "mock", Instances: 1}, Key: name}
	for _, c := range change {
		c(&spec)
	}
	return spec
}

func config(text string) func(*engine.AgentSpec) {
	return func(s *engine.AgentSpec) { s.Config = dsl.NewValue([]byte(text), nil, nil) }
}

func breaker(b dsl.Breaker) func(*engine.AgentSpec) {
	return func(s *engine.AgentSpec) { s.Breaker = b }
}

// call is a request for an action of the mock agent.
func call(spec engine.AgentSpec, action, input string, change ...func(*engine.Call)) engine.Call {
	c := engine.Call{Agent: spec, Request: sdk.Request{
		Action: action, Purpose: sdk.PurposeDo, Input: json.RawMessage(input), IdempotencyKey: "key",
		CompleteBy: time.Now().Add(patience), Run: "r1", Step: "s", Attempt: 1,
	}}
	for _, ch := range change {
		ch(&c)
	}
	return c
}

func (w *world) mustInvoke(c engine.Call) sdk.Reply {
	w.t.Helper()
	reply, err := w.Invoke(w.t.Context(), c)
	if err != nil {
		w.t.Fatalf("%s %s: %v", c.Request.Action, c.Request.Input, err)
	}
	return reply
}

// mustResult invokes until the call is sent: a pause after a crash passes.
func (w *world) eventually(c engine.Call) sdk.Reply {
	w.t.Helper()
	for limit := time.Now().Add(patience); ; {
		reply, err := w.Invoke(w.t.Context(), c)
		var deferred *engine.Deferred
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

func mustDefer(t *testing.T, err error) *engine.Deferred {
	t.Helper()
	var d *engine.Deferred
	if !errors.As(err, &d) {
		t.Fatalf("error=%v, want *engine.Deferred", err)
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

func TestInvoke(t *testing.T) {
	w := newWorld(t, agents.Options{})
	reply := w.mustInvoke(call(mock("m"), "echo", `{"value":{"n":12345678901234567890.5,"ok":true}}`))
	if reply.Outcome != sdk.OutcomeResult || string(reply.Output) != `{"value":{"n":12345678901234567890.5,"ok":true}}` {
		t.Errorf("reply=%+v", reply)
	}
	w.mustInvoke(call(mock("m"), "echo", `{}`))
	if pids := w.pids(); len(pids) != 1 {
		t.Errorf("%d processes for one spec, want 1", len(pids))
	}
}

// TestS31ErrorReplyAtOnce: a failure comes back long before complete-by, with
// its code and whether it is permanent; a reply that is too large, of another
// kind or to an action that does not exist is told from it (S35).
func TestS31ErrorReplyAtOnce(t *testing.T) {
	w := newWorld(t, agents.Options{})
	for name, tc := range map[string]struct {
		action, input string
		want          sdk.Reply
	}{
		"permanent": {"call", `{"fail":{"code":"card_declined","message":"no","permanent":true}}`, sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "card_declined", Message: "no", Permanent: true}},
		"transient": {"call", `{"fail":{"retry_after":"3s"}}`, sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "unavailable", Message: "as the script says", RetryAfter: 3 * time.Second}},
		"unknown":   {"call", `{"fail":{"unknown":true,"code":"unavailable","message":"who knows"}}`, sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: "unavailable", Message: "who knows"}},
		"S35 large": {"big", `{"bytes":2097152}`, sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: sdk.CodeBadReply}},
		"no action": {"fly", `{}`, sdk.Reply{Outcome: sdk.OutcomeFailed, Code: sdk.CodeInvalid, Permanent: true}},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			c := call(mock("m"), tc.action, tc.input)
			c.Request.IdempotencyKey = name
			got := w.mustInvoke(c)
			if tc.want.Message == "" {
				got.Message = ""
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("got %+v\nwant %+v", got, tc.want)
			}
			if took := time.Since(start); took > patience/2 {
				t.Errorf("took %s", took)
			}
		})
	}
}

// TestS30Crash: a process that dies in the middle of a call makes its outcome
// unknown, nothing else; the next attempt starts another one, with the same
// idempotency key (S26), and the effect is there once.
func TestS30Crash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	w := newWorld(t, agents.Options{MinBackoff: time.Millisecond})
	spec := mock("m", config(fmt.Sprintf(`{"ledger":%q}`, path)))
	c := call(spec, "call", `{"crash":true,"times":1,"value":7}`)
	if reply := w.mustInvoke(c); reply.Outcome != sdk.OutcomeUnknown || reply.Code != sdk.CodeAgentLost {
		t.Errorf("reply=%+v, want unknown agent_lost", reply)
	}
	w.until(t, "the end of the process", func() bool { return len(w.ended) == 1 })
	c.Request.Attempt = 2
	if reply := w.eventually(c); reply.Outcome != sdk.OutcomeResult || string(reply.Output) != `{"value":7}` {
		t.Errorf("reply=%+v, want the result", reply)
	}
	if pids := w.pids(); len(pids) != 2 || pids[0] == pids[1] {
		t.Errorf("processes %v, want two", pids)
	}
	kinds, applied := ledger(t, path)
	if kinds["arrived"] != 2 || len(applied) != 1 || applied["key"] != 1 {
		t.Errorf("ledger: %v, applied %v, want two arrivals and one effect", kinds, applied)
	}
}

// TestS28Hang: a call that is not answered ends at complete-by with an error
// and no reply, and the process goes on serving others.
func TestS28Hang(t *testing.T) {
	w := newWorld(t, agents.Options{})
	w.mustInvoke(call(mock("m"), "echo", `{}`))
	c := call(mock("m"), "call", `{"hang":true}`)
	c.Request.CompleteBy = time.Now().Add(300 * time.Millisecond)
	reply, err := w.Invoke(t.Context(), c)
	if !errors.Is(err, context.DeadlineExceeded) || reply.Outcome != sdk.OutcomeInvalid {
		t.Errorf("reply=%+v error=%v, want no reply and DeadlineExceeded", reply, err)
	}
	if time.Now().Before(c.Request.CompleteBy) {
		t.Error("given up before complete-by")
	}
	w.mustInvoke(call(mock("m"), "echo", `{}`))
	if pids := w.pids(); len(pids) != 1 {
		t.Errorf("%d processes, want the same one", len(pids))
	}
}

// TestNotSentInTime: past complete-by nothing is sent, and that is known.
func TestNotSentInTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	w := newWorld(t, agents.Options{})
	spec := mock("m", config(fmt.Sprintf(`{"ledger":%q}`, path)))
	if err := w.Check(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	c := call(spec, "call", `{}`)
	c.Request.CompleteBy = time.Now().Add(-time.Second)
	_, err := w.Invoke(t.Context(), c)
	mustDefer(t, err)
	if kinds, _ := ledger(t, path); len(kinds) > 0 {
		t.Errorf("ledger: %v, want nothing", kinds)
	}
}

// TestStop: a call that is not wanted any more is told so and still awaited;
// one whose context ends is not.
func TestStop(t *testing.T) {
	w := newWorld(t, agents.Options{})
	if err := w.Check(t.Context(), mock("m")); err != nil {
		t.Fatal(err)
	}
	beats := make(chan struct{}, 100)
	stop := make(chan struct{})
	start := time.Now()
	go func() {
		<-beats
		close(stop)
	}()
	reply := w.mustInvoke(call(mock("m"), "call", `{"latency":"15s"}`, func(c *engine.Call) {
		c.Stop = stop
		c.OnProgress = func(engine.Progress) { beats <- struct{}{} }
	}))
	if reply.Outcome != sdk.OutcomeUnknown || reply.Code != sdk.CodeAborted || time.Since(start) > 10*time.Second {
		t.Errorf("reply=%+v after %s, want the agent's aborted soon", reply, time.Since(start))
	}
	_, err := w.Invoke(t.Context(), call(mock("m"), "call", `{"latency":"15s"}`, func(c *engine.Call) { c.Stop = stop }))
	if err != nil {
		mustDefer(t, err) // stopped before it was sent
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-beats
		cancel()
	}()
	_, err = w.Invoke(ctx, call(mock("m"), "call", `{"hang":true,"latency":"15s"}`, func(c *engine.Call) {
		c.Request.IdempotencyKey = "other"
		c.Request.CompleteBy = time.Now().Add(5 * time.Second)
		c.Request.Input = []byte(`{"latency":"15s"}`)
		c.OnProgress = func(engine.Progress) { beats <- struct{}{} }
	}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error=%v, want context.Canceled", err)
	}
}

// TestProgress: heartbeats arrive while the call runs and never afterwards.
func TestProgress(t *testing.T) {
	w := newWorld(t, agents.Options{})
	var mu sync.Mutex
	var notes []string
	over := false
	w.mustInvoke(call(mock("m"), "call", `{"latency":"350ms"}`, func(c *engine.Call) {
		c.OnProgress = func(p engine.Progress) {
			mu.Lock()
			defer mu.Unlock()
			if over {
				t.Error("progress after the end")
			}
			notes = append(notes, p.Note)
		}
	}))
	mu.Lock()
	defer mu.Unlock()
	over = true
	if len(notes) == 0 || notes[0] != "waiting" {
		t.Errorf("notes=%q, want heartbeats", notes)
	}
}

// TestBadBinaries: whatever is wrong with a binary, Check says it before a run
// starts, typed and with a hint, and a call is deferred with the reason.
func TestBadBinaries(t *testing.T) {
	good := description("bad", "1.0.0", 1)
	for name, tc := range map[string]struct {
		install func(t *testing.T, dir string)
		change  func(*engine.AgentSpec)
		want    string
		reason  plugin.Reason
	}{
		"junk instead of a handshake": {install: func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "engine-agent-bad"), good, "echo 'Welcome to my agent!'; exec sleep 30")
		}, want: "Welcome to my agent!", reason: plugin.ReasonHandshake},
		"exit 0": {install: func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "engine-agent-bad"), good, "exit 0")
		}, want: "ended before its handshake", reason: plugin.ReasonExited},
		"exit 3 with a word": {install: func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "engine-agent-bad"), good, "echo 'no licence' >&2; exit 3")
		}, want: "no licence", reason: plugin.ReasonExited},
		"other protocol": {install: func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "engine-agent-bad"), good, "echo '1|99|unix|/nowhere|grpc|'; exec sleep 30")
		}, want: "speaks protocol 99", reason: plugin.ReasonProtocol},
		"other protocol by its description": {install: func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "engine-agent-bad"), description("bad", "1.0.0", 99), "exit 1")
		}, want: "speaks protocol 99", reason: plugin.ReasonProtocol},
		"no handshake at all": {install: func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "engine-agent-bad"), good, "exec sleep 30")
		}, want: "no handshake", reason: plugin.ReasonTimeout},
		"not executable": {install: func(t *testing.T, dir string) {
			path := script(t, filepath.Join(dir, "engine-agent-bad"), good, "")
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
		}, want: "not executable", reason: plugin.ReasonNotExecutable},
		"not a program": {install: func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "engine-agent-bad"), []byte("\x00\x01\x02"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, want: "engine-agent-bad", reason: plugin.ReasonNotExecutable},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tc.install(t, dir)
			w := newWorld(t, agents.Options{StartTimeout: 2 * time.Second, MinBackoff: time.Minute, MaxBackoff: time.Minute}, dir)
			spec := mock("bad", func(s *engine.AgentSpec) { s.Plugin = "bad" })
			err := w.Check(t.Context(), spec)
			var start *plugin.StartError
			if !errors.As(err, &start) || start.Reason != tc.reason || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error=%v, want %s: %q", err, tc.reason, tc.want)
			}
			_, err = w.Invoke(t.Context(), call(spec, "go", `{}`))
			d := mustDefer(t, err)
			if left := time.Until(d.Until); left < 30*time.Second || left > time.Minute || !strings.Contains(d.Why, tc.want) {
				t.Errorf("deferred for %s: %s, want the pause and the reason", left, d.Why)
			}
			if slot := w.Slot(spec); slot.Free != 0 || slot.Until.IsZero() || !strings.Contains(slot.Why, tc.want) {
				t.Errorf("slot=%+v, want none until the next start, and the reason", slot)
			}
		})
	}
}

// TestMissingAndChanged: a binary that is not there, or not in the pinned
// version, or not the pinned file.
func TestMissingAndChanged(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(mockBinary)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "engine-agent-mock")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	catalog := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{dir}}})
	b, err := catalog.Find(t.Context(), "mock", "")
	if err != nil {
		t.Fatal(err)
	}
	pinned := func(s *engine.AgentSpec) { s.Version, s.Checksum = b.Version, b.Checksum }
	w := newWorld(t, agents.Options{Catalog: catalog, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond})
	if reply := w.mustInvoke(call(mock("pinned", pinned), "echo", `{}`)); reply.Outcome != sdk.OutcomeResult {
		t.Errorf("reply=%+v", reply)
	}
	var missing *agents.NotFoundError
	if err := w.Check(t.Context(), mock("x", func(s *engine.AgentSpec) { s.Plugin = "nothere" })); !errors.As(err, &missing) {
		t.Errorf("error=%v, want *NotFoundError", err)
	}
	var version *agents.VersionError
	if err := w.Check(t.Context(), mock("y", func(s *engine.AgentSpec) { s.Version = "9.9.9" })); !errors.As(err, &version) {
		t.Errorf("error=%v, want *VersionError", err)
	}
	// The file changes between the description and the start: the start itself
	// must notice.
	stale := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{dir}}})
	if _, err := stale.Find(t.Context(), "mock", ""); err != nil {
		t.Fatal(err)
	}
	late := newWorld(t, agents.Options{Catalog: stale, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond})
	if err := os.WriteFile(path, append(data, 0), 0o755); err != nil && !errors.Is(err, syscall.ETXTBSY) {
		t.Fatal(err)
	}
	err = late.Check(t.Context(), mock("z", pinned))
	var start *plugin.StartError
	if !errors.As(err, &start) || start.Reason != plugin.ReasonChecksum {
		t.Errorf("error=%v, want a changed checksum", err)
	}
	var changed *agents.ChecksumError
	if err := w.Check(t.Context(), mock("z", pinned)); !errors.As(err, &changed) {
		t.Errorf("error=%v, want *ChecksumError", err)
	}
	_, err = w.Invoke(t.Context(), call(mock("z", pinned), "echo", `{}`))
	mustDefer(t, err)
	// And it heals when the file does.
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	if reply := w.eventually(call(mock("z", pinned), "echo", `{}`)); reply.Outcome != sdk.OutcomeResult {
		t.Errorf("reply=%+v", reply)
	}
}

// TestS27TwoAgentsOneBinary: two agent blocks of one plugin are two agents, with
// their own configuration and their own breaker.
func TestS27TwoAgentsOneBinary(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, agents.Options{})
	paths := map[string]string{"east": filepath.Join(dir, "east"), "west": filepath.Join(dir, "west")}
	for name, path := range paths {
		spec := mock(name, config(fmt.Sprintf(`{"ledger":%q}`, path)), breaker(dsl.Breaker{TripAfter: 1, Cooldown: time.Hour}))
		w.mustInvoke(call(spec, "call", `{}`, func(c *engine.Call) { c.Request.IdempotencyKey = name }))
	}
	for name, path := range paths {
		if _, applied := ledger(t, path); applied[name] != 1 || len(applied) != 1 {
			t.Errorf("%s: applied %v, want its own effect only", name, applied)
		}
	}
	w.mustInvoke(call(mock("east"), "call", `{"fail":{}}`))
	_, err := w.Invoke(t.Context(), call(mock("east"), "call", `{}`))
	mustDefer(t, err)
	w.mustInvoke(call(mock("west"), "call", `{}`))
	if pids := w.pids(); len(pids) != 2 {
		t.Errorf("%d processes, want 2", len(pids))
	}
}

// TestS33Instances: several processes of one agent; calls go to the one with
// the most free capacity, and one that dies takes only its own with it (S69,
// S70).
func TestS33Instances(t *testing.T) {
	w := newWorld(t, agents.Options{MinBackoff: time.Millisecond})
	spec := mock("m", func(s *engine.AgentSpec) { s.Instances = 3 })
	if err := w.Check(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	w.until(t, "three processes", func() bool { return len(w.started) == 3 })
	replies := make(chan sdk.Reply, 3)
	beating := make(chan int, 1000)
	for n := range 3 {
		go func() {
			reply, err := w.Invoke(t.Context(), call(spec, "call_once", `{"latency":"2s"}`, func(c *engine.Call) {
				c.Request.IdempotencyKey = fmt.Sprint(n)
				c.OnProgress = func(engine.Progress) { beating <- n }
			}))
			if err != nil {
				t.Error(err)
			}
			replies <- reply
		}()
	}
	seen := map[int]bool{}
	for len(seen) < 3 {
		select {
		case n := <-beating:
			seen[n] = true
		case <-time.After(patience):
			t.Fatalf("calls under way: %v", seen)
		}
	}
	if err := syscall.Kill(w.pids()[1], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]int{}
	for range 3 {
		reply := <-replies
		outcomes[reply.Code]++
	}
	if outcomes[sdk.CodeAgentLost] != 1 || outcomes[""] != 2 {
		t.Errorf("outcomes by code: %v, want one lost and two results: one call on each process", outcomes)
	}
	w.eventually(call(spec, "echo", `{}`))
	w.until(t, "the fourth process", func() bool { return len(w.started) == 4 })
}

// TestS34Breaker: failures open the breaker; then nothing is sent, so that no
// attempt is spent, until a probe; the probe's result closes it. Business codes
// leave it alone.
func TestS34Breaker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	const cooldown = 400 * time.Millisecond
	w := newWorld(t, agents.Options{})
	spec := mock("m", config(fmt.Sprintf(`{"ledger":%q}`, path)), breaker(dsl.Breaker{TripAfter: 2, Cooldown: cooldown, Probes: 1}))
	arrivals := func() int {
		kinds, _ := ledger(t, path)
		return kinds["arrived"]
	}
	fail := func(code string) {
		w.mustInvoke(call(spec, "call", fmt.Sprintf(`{"fail":{"code":%q}}`, code), func(c *engine.Call) { c.Request.IdempotencyKey = "bad" }))
	}
	for range 5 {
		fail("card_declined")
	}
	fail("unavailable")
	w.mustInvoke(call(spec, "call", `{}`)) // breaks the row of failures
	fail("unavailable")
	if slot := w.Slot(spec); slot.Free == 0 {
		t.Fatalf("slot=%+v, want a closed breaker", slot)
	}
	fail("unavailable")
	opened := time.Now()
	sent := arrivals()

	slot := w.Slot(spec)
	if slot.Free != 0 || slot.Why != "circuit open" || slot.Until.Before(opened) || slot.Until.After(opened.Add(cooldown)) {
		t.Errorf("slot=%+v, want none until the probe", slot)
	}
	if w.Reserve(spec, 1) {
		t.Error("a slot of an open breaker was reserved")
	}
	for range 10 {
		_, err := w.Invoke(t.Context(), call(spec, "call", `{}`))
		if d := mustDefer(t, err); !d.Until.Equal(slot.Until) || d.Why != "circuit open" {
			t.Errorf("deferred: %+v, want until %s", d, slot.Until)
		}
	}
	if n := arrivals(); n != sent {
		t.Errorf("%d calls came through an open breaker", n-sent)
	}

	w.until(t, "half-open", func() bool { return len(w.circuits) >= 2 })
	if slot := w.Slot(spec); slot.Free != 1 {
		t.Errorf("half-open: slot=%+v, want one probe", slot)
	}
	probing := make(chan struct{}, 100)
	done := make(chan sdk.Reply, 1)
	go func() {
		reply, err := w.Invoke(t.Context(), call(spec, "call", `{"latency":"1s"}`, func(c *engine.Call) {
			c.Request.IdempotencyKey = "probe"
			c.OnProgress = func(engine.Progress) { probing <- struct{}{} }
		}))
		if err != nil {
			t.Error(err)
		}
		done <- reply
	}()
	<-probing
	if slot := w.Slot(spec); slot.Free != 0 || slot.Why == "" {
		t.Errorf("probe under way: slot=%+v, want none", slot)
	}
	_, err := w.Invoke(t.Context(), call(spec, "call", `{}`))
	mustDefer(t, err)
	if reply := <-done; reply.Outcome != sdk.OutcomeResult {
		t.Errorf("probe: %+v", reply)
	}
	w.until(t, "closed", func() bool { return len(w.circuits) >= 3 })
	if n := arrivals(); n != sent+1 {
		t.Errorf("%d calls while half-open, want the probe", n-sent)
	}
	if slot := w.Slot(spec); slot.Free == 0 {
		t.Errorf("closed: slot=%+v", slot)
	}
	// And once more, with a probe that fails.
	fail("unavailable")
	fail("unavailable")
	w.until(t, "half-open again", func() bool { return len(w.circuits) >= 5 })
	fail("unavailable")
	_, err = w.Invoke(t.Context(), call(spec, "call", `{}`))
	mustDefer(t, err)
	w.until(t, "open again", func() bool { return len(w.circuits) >= 6 })
	w.mu.Lock()
	defer w.mu.Unlock()
	var states []string
	for _, c := range w.circuits[:6] {
		states = append(states, string(c.To))
		if c.To == agents.CircuitOpen != !c.Until.IsZero() || c.Agent != "m" || c.Key != "m" {
			t.Errorf("change=%+v", c)
		}
	}
	if got, want := strings.Join(states, " "), "open half-open closed open half-open open"; got != want {
		t.Errorf("states: %s\nwant: %s", got, want)
	}
	if w.circuits[0].Failures != 2 || w.freed == 0 {
		t.Errorf("failures=%d freed=%d, want 2 and some", w.circuits[0].Failures, w.freed)
	}
}

// TestS34BreakerByRatio: the breaker opens when enough calls of the window
// failed, though never in a row; unknown outcomes and silence count too.
func TestS34BreakerByRatio(t *testing.T) {
	w := newWorld(t, agents.Options{})
	spec := mock("m", breaker(dsl.Breaker{FailureRatio: 0.5, MinCalls: 6, Window: time.Minute, Cooldown: time.Hour}))
	for n := range 3 {
		w.mustInvoke(call(spec, "call_once", `{}`))
		if slot := w.Slot(spec); slot.Free == 0 {
			t.Fatalf("open after %d calls: %+v", 2*n+1, slot)
		}
		switch n {
		case 0:
			w.mustInvoke(call(spec, "call_once", `{"fail":{}}`))
		case 1:
			w.mustInvoke(call(spec, "call_once", `{"fail":{"unknown":true,"code":"odd"}}`))
		default:
			_, err := w.Invoke(t.Context(), call(spec, "call_once", `{"hang":true}`, func(c *engine.Call) {
				c.Request.CompleteBy = time.Now().Add(200 * time.Millisecond)
			}))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
	}
	if slot := w.Slot(spec); slot.Free != 0 || slot.Why != "circuit open" {
		t.Errorf("slot=%+v, want an open breaker", slot)
	}
}

// TestRestartBackoff: the pause before the next start grows while starts fail,
// and a call that waits for nothing is told until when.
func TestRestartBackoff(t *testing.T) {
	dir := t.TempDir()
	script(t, filepath.Join(dir, "engine-agent-bad"), description("bad", "1.0.0", 1), "exit 1")
	w := newWorld(t, agents.Options{MinBackoff: 100 * time.Millisecond, MaxBackoff: 350 * time.Millisecond}, dir)
	spec := mock("bad", func(s *engine.AgentSpec) { s.Plugin = "bad" })
	for n, want := range []time.Duration{100, 200, 350, 350} {
		want *= time.Millisecond
		_, err := w.Invoke(t.Context(), call(spec, "go", `{}`))
		d := mustDefer(t, err)
		if left := time.Until(d.Until); left > want || left < want-90*time.Millisecond {
			t.Errorf("start %d: next in %s, want %s", n+1, left, want)
		}
		_, err = w.Invoke(t.Context(), call(spec, "go", `{}`))
		if again := mustDefer(t, err); !again.Until.Equal(d.Until) {
			t.Errorf("start %d: was tried before its time", n+1)
		}
		before := 0
		w.until(t, "the pause", func() bool { before = w.freed; return w.freed > n })
		if before != n+1 {
			t.Errorf("%d times freed, want %d", before, n+1)
		}
	}
}

func TestConcurrencyLimit(t *testing.T) {
	w := newWorld(t, agents.Options{})
	spec := mock("m", func(s *engine.AgentSpec) { s.MaxConcurrency = 2 })
	if slot := w.Slot(spec); slot.Free != 2 || slot.Why != "" {
		t.Errorf("slot=%+v, want 2 free", slot)
	}
	if w.Reserve(spec, 3) {
		t.Error("3 of 2 slots were reserved")
	}
	for n, want := range []bool{true, true, false} {
		if got := w.Reserve(spec, 1); got != want {
			t.Errorf("reservation %d: got %t, want %t", n+1, got, want)
		}
	}
	if slot := w.Slot(spec); slot.Free != 0 || slot.Why != "full" {
		t.Errorf("slot=%+v, want full", slot)
	}
	w.Release(spec, 1)
	w.until(t, "a free slot", func() bool { return w.freed == 1 })
	if slot := w.Slot(spec); slot.Free != 1 {
		t.Errorf("slot=%+v, want 1 free", slot)
	}
	w.Release(spec, 1)

	// Calls that reserved nothing are counted all the same.
	under := make(chan struct{}, 100)
	var wg sync.WaitGroup
	for n := range 2 {
		wg.Go(func() {
			w.mustInvoke(call(spec, "call_once", `{"latency":"1s"}`, func(c *engine.Call) {
				c.Request.IdempotencyKey = fmt.Sprint(n)
				first := sync.OnceFunc(func() { under <- struct{}{} })
				c.OnProgress = func(engine.Progress) { first() }
			}))
		})
	}
	<-under
	<-under
	_, err := w.Invoke(t.Context(), call(spec, "echo", `{}`))
	if d := mustDefer(t, err); d.Why != "full" {
		t.Errorf("deferred: %+v, want full", d)
	}
	wg.Wait()
	w.mustInvoke(call(spec, "echo", `{}`))
	if slot := w.Slot(mock("free")); slot.Free < 1000 {
		t.Errorf("slot=%+v, want no limit without max_concurrency", slot)
	}
}

// TestEnvironment: a process sees the variables its block allows and no other of
// the engine's, and its standard input is empty.
func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	seen := filepath.Join(dir, "seen")
	script(t, filepath.Join(dir, "engine-agent-bad"), description("bad", "1.0.0", 1), "env -0 > '"+seen+"'; cat > '"+seen+".stdin'; exit 1")
	t.Setenv("DATABASE_URL", "canary-1")
	t.Setenv("ALLOWED", "yes")
	w := newWorld(t, agents.Options{MinBackoff: time.Hour}, dir)
	spec := mock("bad", func(s *engine.AgentSpec) { s.Plugin, s.Env = "bad", []string{"ALLOWED", "NOT_SET"} })
	if err := w.Check(t.Context(), spec); err == nil {
		t.Fatal("the agent started")
	}
	data, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimRight(string(data), "\x00"), "\x00") {
		name, value, _ := strings.Cut(line, "=")
		switch {
		case name == "ALLOWED" && value == "yes":
		case strings.HasPrefix(name, "PLUGIN_"), strings.HasPrefix(name, "ENGINE_AGENT_"):
		case name == "PWD", name == "SHLVL", name == "_", name == "OLDPWD": // the shell's own
		default:
			t.Errorf("the process sees %s", line)
		}
	}
	if stdin, err := os.ReadFile(seen + ".stdin"); err != nil || len(stdin) > 0 {
		t.Errorf("stdin: %q %v, want nothing", stdin, err)
	}
	if !strings.Contains(string(data), "ALLOWED=yes") {
		t.Error("the process does not see what it is allowed")
	}
}

// TestSecrets: a configuration's secrets are resolved when a process starts; one
// that cannot be is the reason why calls are held; none shows in a log or in an
// error.
func TestSecrets(t *testing.T) {
	const canary = "canary-2-dont-tell"
	secret := func(field string) func(*engine.AgentSpec) {
		return func(s *engine.AgentSpec) {
			s.Config = dsl.NewValue([]byte(`{"`+field+`":null}`), []string{"/" + field}, []dsl.Secret{
				{Path: "/" + field, Parts: []dsl.SecretPart{{Text: t.TempDir() + "/"}, {Ref: "env:X"}}},
			})
		}
	}
	var mu sync.Mutex
	set := false
	w := newWorld(t, agents.Options{RetrySecret: 50 * time.Millisecond, Secrets: func(ref string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if !set {
			return "", fmt.Errorf("%s is not set", ref)
		}
		return canary, nil
	}})
	spec := mock("m", secret("ledger"))
	var unset *agents.SecretError
	if err := w.Check(t.Context(), spec); !errors.As(err, &unset) || !strings.Contains(err.Error(), "env:X is not set") {
		t.Errorf("error=%v, want *SecretError", err)
	}
	_, err := w.Invoke(t.Context(), call(spec, "echo", `{}`))
	if d := mustDefer(t, err); !strings.Contains(d.Why, "env:X is not set") {
		t.Errorf("deferred: %+v", d)
	}
	mu.Lock()
	set = true
	mu.Unlock()
	w.eventually(call(spec, "echo", `{}`))
	w.mustInvoke(call(spec, "junk", `{"text":"the key is `+canary+`"}`))
	w.mustInvoke(call(spec, "echo", `{}`))
	refusing := mock("n", secret("refuse"))
	var refused *agents.ConfigError
	if err := w.Check(t.Context(), refusing); !errors.As(err, &refused) || strings.Contains(err.Error(), canary) {
		t.Errorf("error=%v, want *ConfigError without the secret", err)
	}
	w.Close()
	log := w.log.String()
	if strings.Contains(log, canary) || !strings.Contains(log, "the key is (sensitive)") {
		t.Errorf("log:\n%s", log)
	}
}

// TestFrozenProcess: a process that gives no sign of life is killed, so that its
// calls end and another one starts.
func TestFrozenProcess(t *testing.T) {
	w := newWorld(t, agents.Options{PingInterval: 50 * time.Millisecond, PingTimeout: 300 * time.Millisecond, MinBackoff: time.Millisecond})
	if err := w.Check(t.Context(), mock("m")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(w.pids()[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	reply := w.mustInvoke(call(mock("m"), "echo", `{}`))
	if reply.Outcome != sdk.OutcomeUnknown || reply.Code != sdk.CodeAgentLost {
		t.Errorf("reply=%+v, want unknown agent_lost", reply)
	}
	w.until(t, "the end of the process", func() bool { return len(w.ended) == 1 })
	w.eventually(call(mock("m"), "echo", `{}`))
}

// TestClose: no process outlives Close, not even one that hangs; calls under way
// end as unknown, later ones are deferred.
func TestClose(t *testing.T) {
	w := newWorld(t, agents.Options{CloseGrace: 500 * time.Millisecond})
	spec := mock("m", func(s *engine.AgentSpec) { s.Instances = 2 })
	if err := w.Check(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	w.until(t, "two processes", func() bool { return len(w.started) == 2 })
	if err := syscall.Kill(w.pids()[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	done := make(chan sdk.Reply, 4)
	for n := range 4 {
		go func() {
			reply, err := w.Invoke(context.WithoutCancel(t.Context()), call(spec, "call", `{"hang":true}`, func(c *engine.Call) {
				c.Request.IdempotencyKey = fmt.Sprint(n)
			}))
			if err != nil {
				mustDefer(t, err)
			}
			done <- reply
		}()
	}
	start := time.Now()
	w.Close()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("Close took %s", took)
	}
	for range 4 {
		if reply := <-done; reply.Outcome != sdk.OutcomeInvalid && reply.Outcome != sdk.OutcomeUnknown {
			t.Errorf("reply=%+v", reply)
		}
	}
	for _, pid := range w.pids() {
		if alive(pid) {
			t.Errorf("process %d is alive after Close", pid)
		}
	}
	_, err := w.Invoke(t.Context(), call(spec, "echo", `{}`))
	mustDefer(t, err)
	if err := w.Check(t.Context(), spec); err == nil {
		t.Error("Check starts a process after Close")
	}
	if w.Reserve(spec, 1) || w.Slot(spec).Free > 0 {
		t.Error("there are slots after Close")
	}
	w.Close()
}
