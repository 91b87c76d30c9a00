package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/cmd/internal/pause"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
)

// calls is the part of the benchmark that measures calls of the mock agent, without an engine and
// without a store. It compares calls that share one stream, in batches, with calls that each have
// their own stream.
func (l historyLab) calls(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	var subjects []subject
	for _, callers := range []int{64, 1, 256} {
		for _, unary := range []bool{true, false} {
			c := &caller{l: l.lab, callers: callers, row: "batched/" + strconv.Itoa(callers), procs: &processes{}}
			if unary {
				c.row = "unary/" + strconv.Itoa(callers)
			}
			c.pool = newPool(l.work, unary, c.procs)
			closing.add(func() error { c.pool.Close(); return nil })
			subjects = append(subjects, subject{c.row, c.measure})
		}
	}
	if err := l.runLab().inTurn(ctx, subjects); err != nil {
		return err
	}
	l.t.calls(l.book)
	return nil
}

// A caller calls an agent in the same way as the engine does, from many goroutines.
type caller struct {
	l       *lab
	row     string
	pool    *agents.Pool
	procs   *processes
	callers int
	calls   atomic.Int64
}

func (c *caller) measure(ctx context.Context, round int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	spec, err := c.spec()
	if err != nil {
		return err
	}
	var over atomic.Bool
	var wg sync.WaitGroup
	for i := range c.callers {
		wg.Go(func() {
			for !over.Load() {
				if err := c.call(ctx, spec, i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	err = c.l.prof.during(func() error { return c.watch(ctx, round) })
	over.Store(true)
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// watch counts the calls that end within a limited time. It records the calls per second and the
// CPU time of each call as figures of this round.
func (c *caller) watch(ctx context.Context, round int) error {
	if err := pause.For(ctx, c.l.p.warm); err != nil {
		return err
	}
	cpu := func() (own, agent time.Duration, err error) {
		own, _, err = processCPU(os.Getpid(), false)
		return own, c.procs.cpu(), err
	}
	own, agent, err := cpu()
	if err != nil {
		return err
	}
	before, at := c.calls.Load(), time.Now()
	if err := pause.For(ctx, c.l.p.each/2); err != nil {
		return err
	}
	n, took := float64(c.calls.Load()-before), time.Since(at)
	own2, agent2, err := cpu()
	if err != nil {
		return err
	}
	b := c.l.book
	b.put(round, c.row, "calls/s", n/took.Seconds())
	b.put(round, c.row, "µs", microseconds(took)*float64(c.callers)/max(1, n))
	b.put(round, c.row, "engine µs/call", microseconds(own2-own)/max(1, n))
	b.put(round, c.row, "agent µs/call", microseconds(agent2-agent)/max(1, n))
	c.l.tell("round %d: %s: %.0f calls/s", round+1, c.row, n/took.Seconds())
	return nil
}

// spec returns the AgentSpec of the mock agent. It returns an error if the workflow does not
// use this agent.
func (c *caller) spec() (invoke.AgentSpec, error) {
	agent := c.l.work.def.Workflow("five").Agents["mock"]
	if agent == nil {
		return invoke.AgentSpec{}, errors.New("the workflow has no agent mock")
	}
	return invoke.AgentSpec{Agent: agent, Key: "bench"}, nil
}

func (c *caller) call(ctx context.Context, spec invoke.AgentSpec, i int) error {
	n := c.calls.Add(1)
	reply, err := c.pool.Invoke(ctx, invoke.Call{Agent: spec, Run: 1, Request: sdk.Request{
		Action: "echo", Purpose: sdk.PurposeDo, Input: []byte(`{"value":` + c.l.work.value() + `}`), IdempotencyKey: fmt.Sprintf("%d/%d", i, n),
		Step: "a", Attempt: 1, CompleteBy: time.Now().Add(time.Minute), Remaining: time.Minute,
	}})
	if err != nil {
		return fmt.Errorf("call: %w", err)
	}
	if reply.Outcome != sdk.OutcomeResult {
		return fmt.Errorf("call: %+v", reply)
	}
	return nil
}
