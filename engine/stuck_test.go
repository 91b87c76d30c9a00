package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A trap is a Capacity whose first caller waits. So a shard that calls it hangs during a
// task.
type trap struct {
	free chan struct{} // closed when it lets go

	mu  sync.Mutex
	set bool
}

func newTrap() *trap { return &trap{free: make(chan struct{})} }

func (c *trap) arm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set = true
}

func (c *trap) Slot(invoke.AgentSpec) machine.Slot {
	c.mu.Lock()
	hang := c.set
	c.set = false
	c.mu.Unlock()
	if hang {
		<-c.free
	}
	return machine.Slot{Free: 1000}
}

func (c *trap) Reserve(invoke.AgentSpec, int) bool { return true }
func (c *trap) Release(invoke.AgentSpec, int)      {}
func (c *trap) OnFree(func(string))                {}

// A shard that does not get on costs its engine the lease, so that others go
// on with its runs; the engine says why, and works on as another membership.
func TestStuckShardLosesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.opts.Shards = 1
		w.shop.on("charge", func(ctx context.Context, n int) error {
			return pause(ctx, 4*time.Second)
		})
		stuck, log := newTrap(), &logBook{Handler: slog.DiscardHandler}
		w.cfg = func(c *engine.Config) { c.Capacity, c.Logger = stuck, slog.New(log) }
		a := w.start()
		run := w.submit(a, "order", nil)
		synctest.Wait()
		former := a.Engine()
		w.cfg = nil
		b := w.start()
		stuck.arm()
		began := time.Now()
		if err := a.Deliver(t.Context(), run, machine.SlotsFreed{}); !errors.Is(err, engine.ErrNotOwner) {
			t.Errorf("Deliver = %v, want that the run is not this engine's any more", err)
		}
		if took := time.Since(began); took < w.opts.Lease || took > 3*w.opts.Lease {
			t.Errorf("the engine gave up after %s, want after its lease of %s", took, w.opts.Lease)
		}
		w.wait(b, run, status.RunSucceeded)
		if text := strings.Join(log.taken(), "\n"); !strings.Contains(text, "has kept its shard busy") || !strings.Contains(text, naming.RunName(run)) {
			t.Errorf("the log does not say what the shard hung in:\n%s", text)
		}
		for a.Engine() == former || a.Engine() == 0 { // until the engine has joined again
			time.Sleep(time.Second)
		}
		again := w.submit(a, "order", nil)
		w.wait(a, again, status.RunSucceeded)
		close(stuck.free)
		a.drain(t)
		b.drain(t)
	})
}

// S46: a node that is stopped at once does not wait for a shard that hangs.
func TestStopNowLeavesAHangingShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.opts.Shards = 1
		stuck := newTrap()
		w.cfg = func(c *engine.Config) { c.Capacity = stuck }
		n := w.start()
		stuck.arm()
		submitted := make(chan error, 1)
		go func() {
			_, err := n.Submit(t.Context(), engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil)})
			submitted <- err
		}()
		synctest.Wait()
		n.stop() // waits for what is being decided
		synctest.Wait()
		began := time.Now()
		n.kill(t)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the node ended %s after it was told to end at once", took)
		}
		close(stuck.free)
		if err := <-submitted; err == nil {
			t.Error("a submission that hung was accepted")
		}
	})
}
