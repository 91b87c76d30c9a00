package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/memory"
	"github.com/saga-engine/engine/sdk"
)

const (
	engines   = 2
	runs      = 4
	lease     = 2 * time.Second
	trouble   = 60 * time.Second // how long things go wrong
	judgement = 26 * time.Hour   // after the longest default deadline, that of a compensation
)

// A world is one simulation.
type world struct {
	seed   uint64
	plan   plan
	def    *dsl.Definition
	store  *memory.Store
	remote *remote
	nodes  [engines]*node
	wg     sync.WaitGroup

	mu      sync.Mutex // protects following fields
	rng     *rand.Rand
	healed  bool
	frozen  [engines]chan struct{}
	fences  map[string]map[int64]int // by run and fencing token: the engine that called under it
	sent    map[string]int           // calls sent, by run and key
	faults  []string
	journal []string // what happened, for people
}

// A node is one engine that crashes and comes back.
type node struct {
	w *world
	n int

	mu   sync.Mutex // protects following field
	node *engine.Node
}

// Simulate runs the world of a seed and returns what is wrong with what it
// left behind, and its story. It must run in a testing/synctest bubble.
func Simulate(ctx context.Context, seed uint64) (faults, story []string, err error) {
	w := &world{
		seed: seed, rng: rand.New(rand.NewPCG(seed, 0x5a6a)), store: memory.New(memory.Options{}), remote: newRemote(seed),
		fences: map[string]map[int64]int{}, sent: map[string]int{},
	}
	w.plan = newPlan(w.rng)
	if w.def, err = define(w.plan.source, w.remote.agent); err != nil {
		return nil, []string{w.plan.source}, fmt.Errorf("seed %d: %w", seed, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	for i := range w.nodes {
		w.nodes[i] = &node{w: w, n: i}
		w.wg.Go(func() { w.nodes[i].live(ctx) })
	}
	w.wg.Go(func() { w.freeze(ctx) })
	accepted := w.submitAll(ctx)
	if err := pause(ctx, trouble); err != nil {
		cancel()
		return nil, nil, err
	}
	w.heal()
	for start := time.Now(); time.Since(start) < judgement && !w.settled(ctx, accepted); {
		if err := pause(ctx, 5*time.Second); err != nil {
			break
		}
	}
	cancel()
	w.wg.Wait()
	w.judge(context.WithoutCancel(ctx), accepted)
	return w.faults, append([]string{w.plan.source}, w.journal...), nil
}

func define(source string, agent *sdk.Agent) (*dsl.Definition, error) {
	m, diags := dsl.Parse(fstest.MapFS{"w.hcl": {Data: []byte(source)}}, dsl.ParseOptions{})
	if diags.HasErrors() {
		return nil, diags.Err()
	}
	schema, err := agent.Schema()
	if err != nil {
		return nil, err
	}
	def, diags := dsl.Link(m, map[string]dsl.AgentBinary{"far": {Schema: schema, Version: "1.0.0", Checksum: "00"}})
	return def, diags.Err()
}

// live runs an engine, kills it now and then while things go wrong, and starts
// it again.
func (n *node) live(ctx context.Context) {
	for ctx.Err() == nil {
		life := n.w.lifetime()
		node, err := engine.NewNode(engine.Config{
			Store: &wire{n.w.store, n.w, n.n}, Invoker: &line{n.w, n.n}, Logger: slog.New(slog.DiscardHandler),
			Options: engine.Options{Address: fmt.Sprintf("sim-%d", n.n), Lease: lease, Writers: 2, Shards: 2},
		})
		if err != nil {
			n.w.fault("engine %d: %v", n.n, err)
			return
		}
		n.set(node)
		sub, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { n.takeOver(sub, node) })
		wg.Go(func() {
			if life > 0 && pause(sub, life) == nil {
				n.w.note("engine %d dies", n.n)
				node.StopNow()
			}
		})
		err = node.Run(sub)
		n.w.note("engine %d ends: %v", n.n, err)
		n.set(nil)
		stop()
		wg.Wait()
		if err != nil && !errors.Is(err, engine.ErrStopping) && !errors.Is(err, errLost) && ctx.Err() == nil {
			n.w.fault("engine %d: Run = %v", n.n, err)
		}
		_ = pause(ctx, time.Duration(1+n.w.draw(4000))*time.Millisecond)
	}
}

func (n *node) set(node *engine.Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.node = node
}

func (n *node) get() *engine.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.node
}

// takeOver looks for runs without an owner, as a server does.
func (n *node) takeOver(ctx context.Context, node *engine.Node) {
	for every := time.Second; pause(ctx, every) == nil; every = min(every*5/4, time.Minute) {
		got, err := node.TakeOver(ctx)
		switch {
		case errors.Is(err, engine.ErrStopping) || ctx.Err() != nil:
			return
		case err != nil:
			n.w.note("engine %d: takeover: %v", n.n, err)
		case got > 0:
			n.w.note("engine %d took %d runs over", n.n, got)
		}
		if troubles := node.Troubles(); len(troubles) > 0 {
			n.w.fault("engine %d set runs aside: %v", n.n, troubles)
		}
	}
}

// submitAll submits every run until it is accepted.
func (w *world) submitAll(ctx context.Context) map[string]machine.RunID {
	accepted := map[string]machine.RunID{}
	for i := range runs {
		name := fmt.Sprintf("run-%d", i)
		_ = pause(ctx, time.Duration(w.draw(10000))*time.Millisecond)
		for ctx.Err() == nil {
			if node := w.nodes[w.draw(engines)].get(); node != nil {
				vars, diags := w.def.Workflow("w").Bind(nil)
				if diags.HasErrors() {
					w.fault("bind: %v", diags.Err())
					return accepted
				}
				sub, cancel := context.WithTimeout(ctx, 5*time.Second)
				s, err := node.Submit(sub, engine.Submission{Definition: w.def, Workflow: "w", Vars: vars, Name: name})
				cancel()
				if err == nil {
					accepted[name] = s.Run
					break
				}
			}
			_ = pause(ctx, 300*time.Millisecond)
		}
	}
	return accepted
}

// settled reports whether every run has ended or needs a human.
func (w *world) settled(ctx context.Context, accepted map[string]machine.RunID) bool {
	for _, run := range accepted {
		head, _, err := w.store.Load(ctx, run)
		if err != nil || !head.State.Final() && !head.State.NeedsHuman() {
			return false
		}
	}
	return true
}

// freeze stops an engine's way to the store for a while, now and then.
func (w *world) freeze(ctx context.Context) {
	for pause(ctx, time.Duration(1+w.draw(10))*time.Second) == nil && !w.isHealed() {
		i := w.draw(engines)
		c := make(chan struct{})
		w.mu.Lock()
		w.frozen[i] = c
		w.mu.Unlock()
		w.note("engine %d freezes", i)
		_ = pause(ctx, time.Duration(w.draw(6000))*time.Millisecond)
		w.mu.Lock()
		w.frozen[i] = nil
		w.mu.Unlock()
		close(c)
		w.note("engine %d thaws", i)
	}
}

func (w *world) thawed(ctx context.Context, node int) error {
	w.mu.Lock()
	c := w.frozen[node]
	w.mu.Unlock()
	if c == nil {
		return nil
	}
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cut decides whether a message between an engine and the store is lost.
func (w *world) cut(int) bool { return !w.isHealed() && w.draw(40) == 0 }

// loses decides whether an agent's reply is lost.
func (w *world) loses() bool { return !w.isHealed() && w.draw(25) == 0 }

// lifetime decides how long an engine lives; 0 = to the end.
func (w *world) lifetime() time.Duration {
	if w.isHealed() {
		return 0
	}
	return time.Duration(1+w.draw(12000)) * time.Millisecond
}

func (w *world) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

func (w *world) isHealed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.healed
}

func (w *world) heal() {
	w.remote.heal()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.healed = true
}

// called records a call before it reaches the far side.
func (w *world) called(node int, call engine.Call) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	req := call.Request
	if !w.healed && w.rng.IntN(30) == 0 {
		return &engine.Deferred{Until: time.Now().Add(time.Duration(w.rng.IntN(3000)) * time.Millisecond), Why: "circuit open"}
	}
	if w.fences[req.Run] == nil {
		w.fences[req.Run] = map[int64]int{}
	}
	if other, ok := w.fences[req.Run][req.Fence]; ok && other != node {
		w.faults = append(w.faults, fmt.Sprintf("%s: engines %d and %d called under one fencing token %d (I2)", req.Run, other, node, req.Fence))
	}
	w.fences[req.Run][req.Fence] = node
	w.sent[req.Run+" "+req.Step]++
	w.journal = append(w.journal, fmt.Sprintf("%s engine %d calls %s %s %s purpose %d attempt %d fence %d", time.Now().Format("04:05.000"), node, req.Run, req.Step, req.Action, req.Purpose, req.Attempt, req.Fence))
	return nil
}

func (w *world) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.journal = append(w.journal, time.Now().Format("04:05.000")+" "+strings.TrimSpace(fmt.Sprintf(format, args...)))
}
