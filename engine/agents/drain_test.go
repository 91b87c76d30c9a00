//go:build unix

package agents_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk"
)

// thaw lets a frozen process go on.
func (w *world) thaw(pid int) {
	w.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		w.t.Fatal(err)
	}
}

// instances returns the states of an agent's processes.
func (w *world) instances(name string) []agents.InstanceStatus {
	for _, a := range w.Details() {
		if a.Agent == name {
			return a.Instances
		}
	}
	return nil
}

// poll waits for what nobody tells.
func poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(limit) {
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}

// background makes a call and returns where its end will be told.
func (w *world) background(c invoke.Call) <-chan string {
	done := make(chan string, 1)
	go func() {
		reply, err := w.Invoke(context.WithoutCancel(w.t.Context()), c)
		done <- fmt.Sprintf("%d %s %v", reply.Outcome, reply.Code, err)
	}()
	return done
}

// TestS69SlowProcessIsDrained: a process that gives no sign of life gets no
// more calls and another one takes its place; the call that it has goes on, and
// counts when it is answered after all; then the process ends.
func TestS69SlowProcessIsDrained(t *testing.T) {
	w := newWorld(t, agents.Options{PingInterval: 50 * time.Millisecond, PingTimeout: 2 * time.Second, Stable: time.Millisecond})
	spec := mock("m")
	beats := make(chan struct{}, 1000)
	done := w.background(call(spec, "call", `{"latency":"1500ms"}`, func(c *invoke.Call) {
		c.Request.IdempotencyKey = "slow"
		c.OnProgress = func(invoke.Progress) { beats <- struct{}{} }
	}))
	<-beats
	slow := w.pid(0)
	w.freeze(slow)
	w.until(t, "another process", func() bool { return len(w.started) == 2 })
	list := w.instances("m")
	if len(list) != 2 || list[1].State != agents.InstanceDraining || list[1].Pid != slow || list[1].Healthy || list[1].InFlight != 1 || list[1].Missed == 0 || list[1].Why == "" {
		t.Errorf("status: %+v, want the slow one draining with its call", list)
	}
	for n := range 5 { // on the new one, or they would hang
		w.mustInvoke(call(spec, "echo", `{}`, func(c *invoke.Call) { c.Request.IdempotencyKey = fmt.Sprint(n) }))
	}
	w.thaw(slow)
	if got := <-done; got != fmt.Sprintf("%d  <nil>", sdk.OutcomeResult) {
		t.Errorf("the slow call ended with %s, want its result", got)
	}
	w.until(t, "the end of the slow process", func() bool { return len(w.ended) == 1 && w.ended[0].Pid == slow })
	poll(t, "one healthy process", func() bool {
		list := w.instances("m")
		return len(list) == 1 && list[0].State == agents.InstanceReady && list[0].Healthy && list[0].Pid != slow
	})
}

// TestS69SlowByItsCalls: a process whose calls are not answered in time while
// another's are is replaced; with nobody to compare it with it is left alone,
// because then it may be the far side.
func TestS69SlowByItsCalls(t *testing.T) {
	hang := func(spec invoke.AgentSpec, key string) invoke.Call {
		return call(spec, "call", `{"hang":true}`, func(c *invoke.Call) {
			c.Request.IdempotencyKey = key
			c.Request.CompleteBy = time.Now().Add(150 * time.Millisecond)
		})
	}
	t.Run("alone", func(t *testing.T) {
		w := newWorld(t, agents.Options{SlowAfter: 2})
		if err := w.Check(t.Context(), mock("m")); err != nil {
			t.Fatal(err)
		}
		for n := range 5 {
			<-w.background(hang(mock("m"), fmt.Sprint(n)))
		}
		if list := w.instances("m"); len(list) != 1 || !list[0].Healthy || list[0].Expired != 5 || len(w.pids()) != 1 {
			t.Errorf("status: %+v, want the same process", list)
		}
		w.mustInvoke(call(mock("m"), "echo", `{}`))
		if list := w.instances("m"); list[0].Expired != 0 {
			t.Errorf("expired %d in a row after an answer", list[0].Expired)
		}
	})
	t.Run("of two", func(t *testing.T) {
		w := newWorld(t, agents.Options{SlowAfter: 3, Stable: time.Millisecond, PingInterval: time.Hour, CloseGrace: 100 * time.Millisecond})
		spec := mock("m", func(s *invoke.AgentSpec) { s.Instances = 2 })
		if err := w.Check(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		w.until(t, "two processes", func() bool { return len(w.started) == 2 })
		frozen := w.pid(0)
		w.freeze(frozen)
		for n := 0; len(w.pids()) < 3 && n < 50; n++ {
			// Two at a time: one goes to each.
			short := func(c *invoke.Call) {
				c.Request.IdempotencyKey = fmt.Sprint("k", n)
				c.Request.CompleteBy = time.Now().Add(200 * time.Millisecond)
			}
			a := w.background(call(spec, "call", `{"latency":"20ms"}`, short))
			b := w.background(call(spec, "call_once", `{"latency":"20ms"}`, short))
			<-a
			<-b
		}
		w.until(t, "a third process", func() bool { return len(w.started) == 3 })
		poll(t, "two healthy processes", func() bool {
			healthy := 0
			for _, i := range w.instances("m") {
				if i.Healthy && i.Pid != frozen {
					healthy++
				}
			}
			return healthy == 2
		})
	})
}

// TestReplacementsAreBounded: of the processes that were replaced only a few go
// on, however slow each new one is.
func TestReplacementsAreBounded(t *testing.T) {
	w := newWorld(t, agents.Options{PingInterval: 20 * time.Millisecond, PingTimeout: time.Second, Stable: time.Nanosecond, CloseGrace: 100 * time.Millisecond})
	var lost []<-chan string
	for n := range 3 {
		beat := make(chan struct{}, 1000)
		lost = append(lost, w.background(call(mock("m"), "call", `{"latency":"15s"}`, func(c *invoke.Call) {
			c.Request.IdempotencyKey = fmt.Sprint(n)
			c.OnProgress = func(invoke.Progress) { beat <- struct{}{} }
		})))
		<-beat
		w.freeze(w.pid(n))
		w.until(t, "its successor", func() bool { return len(w.started) == n+2 })
	}
	poll(t, "the end of the oldest", func() bool { return strings.Contains(w.log.String(), "too many drained processes") })
	if list := w.instances("m"); len(list) > 4 {
		t.Errorf("%d processes at once", len(list))
	}
	if got := <-lost[0]; !strings.HasPrefix(got, fmt.Sprintf("%d %s", sdk.OutcomeUnknown, sdk.CodeAgentLost)) {
		t.Errorf("call of the oldest: %s, want it lost", got)
	}
}

// TestIdleProcessEnds: an agent that has had no call for long costs no process;
// the next call starts one. A reserved slot keeps it.
func TestIdleProcessEnds(t *testing.T) {
	w := newWorld(t, agents.Options{IdleAfter: 200 * time.Millisecond})
	spec := mock("m", func(s *invoke.AgentSpec) { s.Instances = 2; s.MaxConcurrency = 4 })
	if !w.Reserve(spec, 1) {
		t.Fatal("no slot")
	}
	w.mustInvoke(call(spec, "call", `{"latency":"600ms"}`))
	<-time.After(400 * time.Millisecond)
	if n := len(w.pids()); n != 2 || len(w.instances("m")) != 2 || !w.instances("m")[0].Healthy {
		t.Errorf("%d processes, %+v: want both alive while a slot is reserved", n, w.instances("m"))
	}
	w.Release(spec, 1)
	w.until(t, "the end of both", func() bool { return len(w.ended) == 2 })
	for _, i := range w.instances("m") {
		if i.State != agents.InstanceDown || i.Why != "" || !i.Next.IsZero() {
			t.Errorf("status: %+v, want down without a fault", i)
		}
	}
	if slot := w.Slot(spec); slot.Free != 4 {
		t.Errorf("slot=%+v, want all free", slot)
	}
	w.mustInvoke(call(spec, "echo", `{}`))
	w.until(t, "a new process", func() bool { return len(w.started) > 2 })

	never := newWorld(t, agents.Options{IdleAfter: -1})
	never.mustInvoke(call(mock("m"), "echo", `{}`))
	if list := never.instances("m"); !list[0].Healthy {
		t.Errorf("status: %+v", list)
	}
}

// TestStatus: what people see of breakers, processes and load.
func TestStatus(t *testing.T) {
	w := newWorld(t, agents.Options{})
	spec := mock("m", breaker(dsl.Breaker{TripAfter: 2, Cooldown: time.Hour, Probes: 1}), func(s *invoke.AgentSpec) { s.MaxConcurrency = 3 })
	beat := make(chan struct{}, 1000)
	done := w.background(call(spec, "call", `{"latency":"500ms"}`, func(c *invoke.Call) { c.OnProgress = func(invoke.Progress) { beat <- struct{}{} } }))
	<-beat
	st := w.Details()
	if len(st) != 1 || st[0].Agent != "m" || st[0].Circuit != agents.CircuitClosed || st[0].InFlight != 1 || st[0].Healthy != 1 {
		t.Errorf("status: %+v", st)
	}
	if i := st[0].Instances; len(i) != 1 || i[0].Pid != w.pid(0) || i[0].InFlight != 1 || i[0].State != agents.InstanceReady || i[0].Since.IsZero() {
		t.Errorf("instances: %+v", i)
	}
	<-done
	w.mustInvoke(call(spec, "call_once", `{"fail":{}}`))
	if st := w.Details()[0]; st.Failures != 1 {
		t.Errorf("failures=%d, want 1", st.Failures)
	}
	w.mustInvoke(call(spec, "call_once", `{"fail":{}}`))
	if st := w.Details()[0]; st.Circuit != agents.CircuitOpen || time.Until(st.Until) < 59*time.Minute {
		t.Errorf("status: %+v, want an open circuit for an hour", st)
	}
	bad := mock("gone", func(s *invoke.AgentSpec) { s.Plugin = "not-there" })
	_, err := w.Invoke(t.Context(), call(bad, "go", `{}`))
	mustDefer(t, err)
	if i := w.instances("gone"); len(i) != 1 || i[0].State != agents.InstanceDown || !strings.Contains(i[0].Why, "not installed") || i[0].Next.IsZero() {
		t.Errorf("instances: %+v, want one that is down, and why", i)
	}
}

// TestT10Crashes: processes that crash or hang make outcomes unknown, and three
// in a row open the breaker; what the open breaker holds back never arrives and
// so spends no attempt; the probe closes it, and every effect is there once.
func TestT10Crashes(t *testing.T) { ways(t, testT10Crashes) }

func testT10Crashes(t *testing.T, o agents.Options) {
	t.Parallel()
	o.MinBackoff, o.MaxBackoff = time.Millisecond, 5*time.Millisecond
	path := filepath.Join(t.TempDir(), "ledger")
	w := newWorld(t, o)
	spec := mock("m", config(fmt.Sprintf(`{"ledger":%q}`, path)), breaker(dsl.Breaker{TripAfter: 3, Cooldown: 200 * time.Millisecond, Probes: 1}))
	rounds := times(6, 670) // a thousand crashes and a thousand hangs
	patience := 300 * time.Millisecond
	if rounds == 6 {
		patience = 2 * time.Second // other tests use the processors too, and the call must still reach the agent in time
	}
	sent, held := 0, 0
	for n := range rounds {
		input := `{"crash":true,"times":3}`
		if n%2 == 0 {
			input = `{"hang":true,"times":3}`
		}
		for attempt := 1; attempt <= 4; {
			reply, err := w.Invoke(t.Context(), call(spec, "call", input, func(c *invoke.Call) {
				c.Request.IdempotencyKey, c.Request.Attempt = fmt.Sprint(n), attempt
				if attempt <= 3 && n%2 == 0 {
					c.Request.CompleteBy = time.Now().Add(patience)
				}
			}))
			var d *invoke.Deferred
			if errors.As(err, &d) {
				if d.Why == "circuit open" {
					held++
				}
				timer := time.NewTimer(max(time.Until(d.Until), time.Millisecond))
				<-timer.C
				continue
			}
			sent++
			switch {
			case attempt == 4 && (err != nil || reply.Outcome != sdk.OutcomeResult),
				attempt < 4 && n%2 == 0 && !errors.Is(err, context.DeadlineExceeded),
				attempt < 4 && n%2 != 0 && (err != nil || reply.Code != sdk.CodeAgentLost):
				t.Fatalf("call %d, attempt %d: %+v, %v", n, attempt, reply, err)
			}
			attempt++
		}
	}
	kinds, applied := ledger(t, path)
	if kinds["arrived"] != sent || sent != 4*rounds || len(applied) != rounds || held < rounds {
		t.Errorf("%d arrived, %d sent, %d held back, %d effects; want %d sent and arrived, %d effects, some held back each time",
			kinds["arrived"], sent, held, len(applied), 4*rounds, rounds)
	}
	for key, n := range applied {
		if n != 1 {
			t.Errorf("key %s: %d effects", key, n)
		}
	}
	w.until(t, "the last change", func() bool { return len(w.circuits) == 3*rounds })
	for i, c := range w.circuits {
		if want := []agents.Circuit{agents.CircuitOpen, agents.CircuitHalfOpen, agents.CircuitClosed}[i%3]; c.To != want {
			t.Errorf("change %d to %s, want %s", i, c.To, want)
		}
	}
}

// TestLogSink: what agents log about a call reaches the sink with the run's
// internal id, all levels of it and without what the call was told in
// confidence; what belongs to no run does not.
func TestLogSink(t *testing.T) {
	var mu sync.Mutex
	var lines []store.LogLine
	w := newWorld(t, agents.Options{LogSink: func(l store.LogLine) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, l)
	}})
	scrub := strings.NewReplacer("hunter2", "(sensitive)").Replace
	w.mustInvoke(call(mock("m"), "junk", `{"text":"no run's"}`))
	poll(t, "what belongs to no run", func() bool { return strings.Count(w.log.String(), "no run's") == 2 })
	for n, attempt := range []int{1, 2} {
		c := call(mock("m"), "log", `{"text":"the word is hunter2","level":"debug"}`, func(c *invoke.Call) {
			c.Run, c.Scrub = status.RunID(77+n), scrub
			c.Request.Run, c.Request.Step, c.Request.Attempt = fmt.Sprint("r", n), `s["a"]`, attempt
		})
		w.mustInvoke(c)
	}
	poll(t, "the lines", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(lines) >= 2
	})
	w.Close()
	mu.Lock()
	defer mu.Unlock()
	if len(lines) != 2 {
		t.Fatalf("lines: %+v, want two", lines)
	}
	for n, l := range lines {
		if l.Run != status.RunID(77+n) || l.Step != `s["a"]` || l.Attempt != n+1 || l.Level != "debug" || l.Message != "the word is (sensitive) answer=42" || l.At.IsZero() {
			t.Errorf("line %d: %+v", n, l)
		}
	}
	if text := w.log.String(); strings.Contains(text, "hunter2") {
		t.Error("the log holds the secret")
	}
}
