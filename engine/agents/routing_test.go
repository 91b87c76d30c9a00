//go:build unix

package agents_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
)

// TestS70LoadDecides: how many calls each process has under way is counted, shown,
// and decides where the next call goes, also when the load has become uneven.
func TestS70LoadDecides(t *testing.T) {
	w := newWorld(t, agents.Options{})
	spec := mock("m", func(s *invoke.AgentSpec) { s.Instances = 2 })
	if err := w.Check(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	w.until(t, "two processes", func() bool { return len(w.started) == 2 })
	load := func() [2]int {
		list := w.instances("m")
		if len(list) != 2 {
			t.Fatalf("%d processes, want 2", len(list))
		}
		return [2]int{list[0].InFlight, list[1].InFlight}
	}
	begun := 0
	// begin makes a call that lasts, and returns which process got it.
	begin := func() (process int, end func()) {
		begun++
		ctx, cancel := context.WithCancel(t.Context())
		before, done := load(), make(chan struct{})
		c := call(spec, "call", `{"latency":"1h"}`, func(c *invoke.Call) { c.Request.IdempotencyKey = fmt.Sprint(begun) })
		go func() {
			defer close(done)
			if reply, err := w.Invoke(ctx, c); ctx.Err() == nil {
				t.Errorf("a call that lasts ended: %+v, %v", reply, err)
			}
		}()
		poll(t, "the call to be under way", func() bool { return load() != before })
		if load()[1] > before[1] {
			process = 1
		}
		return process, func() { cancel(); <-done }
	}
	ends := [2][]func(){}
	for range 6 {
		before := load()
		p, end := begin()
		if before[p] > before[1-p] {
			t.Errorf("a call went to process %d with %v under way", p+1, before)
		}
		ends[p] = append(ends[p], end)
	}
	if load() != [2]int{3, 3} {
		t.Fatalf("%v calls under way, want them shared", load())
	}
	for _, end := range ends[0] {
		end()
	}
	poll(t, "the load to be uneven", func() bool { return load() == [2]int{0, 3} })
	ends[0] = nil
	for range 3 {
		p, end := begin()
		if p != 0 {
			t.Errorf("a call went to the process that has %v under way", load())
		}
		ends[p] = append(ends[p], end)
	}
	for _, list := range ends {
		for _, end := range list {
			end()
		}
	}
}
