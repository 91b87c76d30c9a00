package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/story"
)

// judgement is the longest time that runs may take to end after the faults have ended. It is
// far longer than the runs' deadline and any pause between attempts.
const judgement = time.Hour

// A Result is the result of a simulation.
type Result struct {
	Faults []string // broken promises that the checks found; empty = none
	// Tally counts the runs by final status, and the facts of all runs by kind. It shows whether
	// the simulation proves anything. A simulation without failures, or without successful runs,
	// proves little.
	Tally map[string]int
	Trace []byte // text with everything that happened, in order
}

// Simulate runs the simulation that the seed determines. The caller must be in a
// testing/synctest bubble. Simulate returns an error only if the generated workflow is not
// valid.
func Simulate(ctx context.Context, seed uint64) (Result, error) {
	w := &world{
		seed: seed, rng: rand.New(rand.NewPCG(seed, 0x5a6a)),
		stories: map[status.RunID]*runLog{}, fences: map[status.RunID]map[int64]int{}, buried: map[store.EngineID]bool{}, start: time.Now(),
		over: make(chan struct{}),
	}
	defer close(w.over)
	defer time.AfterFunc(longest, func() { panic(fmt.Sprintf("seed %d: the world has not ended after %v", seed, longest)) }).Stop()
	w.conditions = newFaultPlan(w.rng)
	w.store = memory.New(memory.Options{Now: w.now})
	w.plan = newPlan(w.rng)
	if w.conditions.venom != harmless {
		w.plan.source += poisonSource
	}
	w.remote = newRemote(seed, w.conditions.moody, w.conditions.stubborn)
	files := map[string]string{"w.hcl": w.plan.source}
	if w.kin = newKin(w); w.kin != nil {
		w.plan.source, files = w.kin.module.Source(), w.kin.module.Files
		w.remote.promised, w.remote.stubborn = w.kin.module.Idempotent, w.conditions.stubborn
	}
	var err error
	if w.def, err = define(files, w.remote.agent); err != nil {
		return Result{}, fmt.Errorf("seed %d: %w\n%s", seed, err, w.plan.source)
	}
	w.flow = w.def.Workflow("w")
	w.kin.keep(w.def)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.ctx, w.cancel = ctx, cancel
	w.trace("seed %d: %v\n%s", seed, w.conditions, w.plan.source)
	n := w.conditions.engines
	w.frozen, w.still, w.agentGates = make([]gate, n+1), make([]gate, n+1), make([]gate, n+1)
	w.client = &node{w: w, n: n}
	for i := range n {
		w.nodes = append(w.nodes, &node{w: w, n: i})
	}
	for _, n := range w.nodes {
		w.wg.Go(func() { n.live(ctx) })
	}
	w.strikes(ctx)
	w.kin.widow(ctx)
	mover{w.kin}.migrate(ctx)
	if w.conditions.verbs {
		w.wg.Go(func() { w.people().meddle(ctx) })
	}
	w.wg.Go(func() { w.judges().poison(ctx) })
	accepted := w.submitAll(ctx)
	_ = wait.For(ctx, time.Until(w.start.Add(w.conditions.faultTime)))
	w.heal()
	if w.kin != nil {
		w.people().care(ctx)
	} else {
		w.watch(ctx, accepted)
		if w.conditions.verbs {
			w.people().rescue(ctx, accepted)
		}
	}
	w.rest(ctx)
	cancel()
	w.wg.Wait()
	// Agents may continue their calls after the engines have ended.
	_ = wait.For(context.WithoutCancel(ctx), time.Until(w.latest)+time.Second)
	w.judges().judge(context.WithoutCancel(ctx), accepted)
	return Result{w.faults, w.tally(), w.log.Bytes()}, nil
}

func (w *world) tally() map[string]int {
	counts := map[string]int{}
	for _, s := range w.order {
		counts[s.state.Status().String()]++
		counts["runs"]++
		for _, f := range s.facts {
			counts[string(f.Kind)]++
			if f.Kind == story.FactVerb {
				counts["verb "+f.Status]++
			}
		}
	}
	if w.kin != nil {
		w.kin.count(counts)
	}
	counts["late"] = w.lates
	counts["taken while verbs waited"] = w.obeyed
	return counts
}

// live runs an engine, and starts it again after each end, until ctx ends.
func (n *node) live(ctx context.Context) {
	w := n.w
	for ctx.Err() == nil {
		cfg := engine.Config{
			Store: connect(w, n), Invoker: &line{w, n}, Logger: slog.New(slog.DiscardHandler),
			Options: engine.Options{Address: n.name(), Lease: w.conditions.lease, Writers: w.conditions.writers, Shards: w.conditions.shards, SnapshotRows: w.snapshotRows()},
		}
		if w.conditions.slots > 0 {
			s := newSlots(w, n, w.conditions.slots)
			n.mu.Lock()
			n.slots = s
			n.mu.Unlock()
			cfg.Capacity = s
		}
		node, err := engine.NewNode(cfg)
		if err != nil {
			w.fault("engine %d: %v", n.n, err)
			return
		}
		n.run(ctx, node)
		_ = wait.For(ctx, time.Duration(1+w.draw(3000))*time.Millisecond)
	}
}

// run lets an engine work from a start to its end. The engine ends when ctx ends, or at a random
// time (lifetime).
func (n *node) run(ctx context.Context, node *engine.Node) {
	w := n.w
	n.set(node)
	n.setWorks(true)
	defer n.setWorks(false)
	sub, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	life, kill := w.lifetime()
	wg.Go(func() {
		switch {
		case life == 0 || wait.For(sub, life) != nil:
		case kill:
			n.setWorks(false)
			w.kin.hit("kill", n)
			w.trace("e%d is killed", n.n)
			node.StopNow()
		default:
			n.setWorks(false)
			w.kin.hit("stop", n)
			w.trace("e%d is told to stop", n.n)
			stop()
		}
	})
	err := node.Run(sub)
	w.trace("e%d ends: %v", n.n, err)
	n.set(nil)
	stop()
	wg.Wait()
	if runs := node.Quarantined(); len(runs) > 0 {
		w.fault("engine %d quarantined runs: %v", n.n, runs)
	}
	if err != nil && !errors.Is(err, engine.ErrStopping) && !errors.Is(err, errLost) && ctx.Err() == nil && sub.Err() == nil {
		w.fault("engine %d: Run = %v", n.n, err)
	}
}

// rest waits until no call can be in flight any more. Then it checks that all slots are free.
func (w *world) rest(ctx context.Context) {
	w.mu.Lock()
	latest := w.latest
	w.mu.Unlock()
	_ = wait.For(ctx, time.Until(latest)+5*time.Second)
	for _, n := range w.nodes {
		n.mu.Lock()
		s := n.slots
		n.mu.Unlock()
		if s != nil {
			s.judge()
		}
	}
}

// submitAll submits every run, and repeats each submission until the run is accepted. It
// returns the ids of the accepted runs by name.
func (w *world) submitAll(ctx context.Context) map[string]status.RunID {
	accepted := map[string]status.RunID{}
	for i := range w.conditions.runs {
		name := fmt.Sprintf("run-%d", i)
		_ = wait.For(ctx, time.Duration(w.draw(2500))*time.Millisecond)
		for ctx.Err() == nil {
			run, err := w.submit(ctx, name)
			if err == nil {
				accepted[name] = run
				w.registry().hasten(ctx, run)
				break
			}
			if w.kin != nil && w.kin.wasFull(err) {
				break
			}
			_ = wait.For(ctx, 300*time.Millisecond)
		}
	}
	return accepted
}

var errNobody = errors.New("sim: no engine is running")

func (w *world) submit(ctx context.Context, name string) (status.RunID, error) {
	vars, diags := w.flow.Bind(nil)
	if diags.HasErrors() {
		w.fault("bind: %v", diags.Err())
		return 0, diags.Err()
	}
	sub, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ask := engine.Submission{Definition: w.def, Workflow: "w", Vars: vars, Name: name, By: "sim"}
	var s store.Submitted
	var err error
	switch node := w.nodes[w.draw(len(w.nodes))].get(); {
	case w.conditions.detached:
		s, err = engine.Enqueue(sub, engine.Config{
			Store: &wire{store.Complete(w.store), w, w.client}, Options: engine.Options{Address: "client", Lease: w.conditions.lease, Writers: 1},
		}, ask)
	case node == nil:
		return 0, errNobody
	default:
		s, err = node.Submit(sub, ask)
	}
	w.trace("submit %s: %d %t %v", name, s.Run, s.Exists, err)
	return s.Run, err
}

// watch waits until every run has ended or needs a person, and has no waiting messages.
// Meanwhile it checks that an engine notices each due run in time (I8).
func (w *world) watch(ctx context.Context, accepted map[string]status.RunID) {
	for since := time.Now(); time.Since(since) < judgement && ctx.Err() == nil; {
		settled, paused := w.checkRuns(accepted)
		if settled {
			return
		}
		for _, s := range paused {
			w.people().ask(ctx, s.id, "resume", machine.ResumeRequested{})
		}
		_ = wait.For(ctx, time.Second)
	}
}

// checkRuns checks all runs once. It returns true in two cases, in which the method `watch` can
// stop waiting: all runs have ended or need a person, or checkRuns has found a fault. It also
// returns the paused runs that have no unanswered verb.
func (w *world) checkRuns(accepted map[string]status.RunID) (settled bool, paused []*runLog) {
	w.mu.Lock()
	defer w.mu.Unlock()
	settled = w.judges().containedLocked()
	if !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.works }) {
		w.idleAt = time.Now()
	}
	for _, name := range slices.Sorted(maps.Keys(accepted)) {
		s := w.stories[accepted[name]]
		if s == nil {
			return true, nil // the store has lost an accepted run; the method `judge` reports this later
		}
		if mail, err := w.store.Messages(context.WithoutCancel(w.ctx), s.id, 0, 1); err != nil || len(mail) > 0 {
			settled = false
		}
		ended := s.state.Status()
		if ended.Final() {
			continue
		}
		due, ok := s.state.NextDue()
		if late := w.now().Sub(due); ok && time.Since(later(w.healedAt, w.idleAt)) > w.patience() && late > w.patience() {
			w.faultLocked("%s: something is due for %v and nobody has noticed (I8)", s.name, late)
			return true, nil
		}
		asked := w.people().askedLocked(s)
		if ended == status.RunPaused && !asked {
			paused = append(paused, s)
		}
		settled = settled && ended.NeedsHuman() && !asked
	}
	return settled, paused
}

// rescue works in three rounds. In each round it sends a verb to every run that needs a
// person (mend), and then waits for all runs (watch).
func (w people) rescue(ctx context.Context, accepted map[string]status.RunID) {
	for range 3 {
		for i := range w.conditions.runs {
			w.mu.Lock()
			s := w.stories[accepted[fmt.Sprintf("run-%d", i)]]
			w.mu.Unlock()
			if s != nil && w.status(s).NeedsHuman() {
				w.mend(ctx, s)
			}
		}
		w.watch(ctx, accepted)
	}
}

// care lets people help until every run has ended. People resume paused runs, and send verbs to
// runs that need a person. Every run must end, because all faults have ended.
func (w people) care(ctx context.Context) {
	for since := time.Now(); time.Since(since) < judgement && ctx.Err() == nil; {
		ended, needy := w.kin.checkRuns(ctx)
		if ended {
			return
		}
		for _, s := range needy {
			if w.announces(s) {
				w.ask(ctx, s.id, "retry", machine.RetryRequested{Extend: time.Hour})
			} else {
				w.mend(ctx, s)
			}
		}
		_ = wait.For(ctx, time.Second)
	}
}

// checkRuns checks all runs once. It returns true if nothing is left to do, or if it has found a
// fault. It also returns the runs that need a person and have no unanswered verb.
func (k *kin) checkRuns(ctx context.Context) (ended bool, needy []*runLog) {
	w := k.w
	ctx = context.WithoutCancel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	ended = true
	if !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.works }) {
		w.idleAt = time.Now()
	}
	for _, s := range w.order {
		if mail, err := w.store.Messages(ctx, s.id, 0, 1); err != nil || len(mail) > 0 {
			ended = false
		}
		now := s.state.Status()
		if now.Final() {
			continue
		}
		ended = false
		due, ok := s.state.NextDue()
		if late := w.now().Sub(due); ok && time.Since(later(w.healedAt, w.idleAt)) > w.patience() && late > w.patience() {
			w.faultLocked("%s: something is due for %v and nobody has noticed (I8)", s.name, late)
			return true, nil
		}
		if (now.NeedsHuman() || now == status.RunPaused) && !w.people().askedLocked(s) {
			needy = append(needy, s)
		}
	}
	if open, err := w.store.Open(ctx, noNotice, 1); err != nil || len(open) > 0 {
		ended = false
	}
	return ended, needy
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
