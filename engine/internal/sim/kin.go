package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/sim/flows"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// A kin is what a world with families has in addition: a module of package flows, whose runs start
// child runs, announce their states, and have limits that hold for all engines together.
type kin struct {
	w      *world
	module *flows.Module
	defs   *journal.Definitions

	// The mutex of the world protects the following fields.
	home   map[store.EngineID]*node // engine process of each membership
	flying int                      // calls of the agent `far` that are in flight
	most   int                      // largest value of the field `flying`
	starts []time.Time              // times at which calls of the agent `far` started in the last second
	hits   map[string]int           // number of faults, by kind of fault and construct
	full   int                      // submissions that were refused because a limit was reached
}

// definitions returns a cache of compiled workflows for the checks. In a world with families, all
// checks use the same cache, because the modules are large. In other worlds, each call returns a
// new cache.
func definitions(w *world) *journal.Definitions {
	if w.kin != nil {
		return w.kin.defs
	}
	return journal.NewDefinitions(w.store, nil)
}

// newKin decides whether the world has families. It has its own generator of random numbers, so that
// worlds without families do not change when families change.
func newKin(w *world) *kin {
	rng := rand.New(rand.NewPCG(w.seed, 0xfa7))
	if rng.IntN(3) > 0 {
		return nil
	}
	c := &w.conditions
	c.engines, c.runs, c.venom = 3, 2+rng.IntN(3), harmless
	c.stubborn = w.seed%2 == 0 // true in half of the worlds: many runs succeed, so there are few undos that can fail
	if c.slots == 0 {          // engines share the limits of agents only if each engine has slots, too
		c.slots = 8
	}
	return &kin{
		w: w, module: flows.New(rng), defs: journal.NewDefinitions(w.store, nil),
		home: map[store.EngineID]*node{}, hits: map[string]int{},
	}
}

// refuses reports whether the submission was refused because a limit with when_full = "reject" is
// full. Then the run is not submitted again.
func (k *kin) refuses(err error) bool {
	if !errors.Is(err, naming.ErrFull) {
		return false
	}
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	k.full++
	return true
}

// beginLocked reads the workflow of a run, and which run has started it.
func (k *kin) beginLocked(s *runLog, rec machine.Record) {
	if k == nil {
		return
	}
	s.kin.must, s.kin.reached = map[string]bool{}, map[string]bool{}
	ev, ok := rec.Event().(machine.Started)
	if !ok {
		k.w.faultLocked("run %d: its first record is no start", s.id)
		return
	}
	s.kin.parent, s.kin.step, s.kin.void = ev.Parent, ev.ParentStep, ev.Void
	ctx := context.WithoutCancel(k.w.ctx)
	rows, err := k.w.store.Runs(ctx, store.RunFilter{IDs: []status.RunID{s.id}})
	if err == nil && len(rows) == 1 {
		s.flow, err = k.defs.Workflow(ctx, rows[0].Workflow)
	}
	if err != nil || len(rows) != 1 {
		k.w.faultLocked("run %d: its workflow cannot be read: %v", s.id, err)
		s.flow = k.w.flow
	}
	if s.kin.parent == 0 {
		return
	}
	for _, other := range k.w.order {
		if other != s && other.kin.parent == s.kin.parent && other.kin.step == s.kin.step && other.rows > 0 && !other.state.Status().Final() {
			k.w.faultLocked("%s: step %s of run %d has another child run that is open: %s", ev.Name, s.kin.step, s.kin.parent, other.name)
		}
	}
}

// reachedLocked records the states that a run reaches with a record.
func (k *kin) reachedLocked(s *runLog, rec machine.Record) {
	if k == nil {
		return
	}
	for _, state := range rec.Reached() {
		s.kin.reached[state] = true
	}
	if ev, ok := rec.Event().(machine.CompensateRequested); ok && ev.Parent {
		s.kin.undone = true
	}
}

// payload returns what a signal carries.
func (k *kin) payload(n int) dsl.Value {
	if n == 0 {
		return dsl.Value{}
	}
	v, err := dsl.Document([]byte(`{"id": "signal"}`))
	if err != nil {
		k.w.fault("payload: %v", err)
	}
	return v
}

// stated reads an output that a person states.
func stated(do *dsl.Action, data []byte) (dsl.Value, error) {
	if do.Stated != nil {
		return do.Stated(data)
	}
	return do.Output(data)
}

// announces reports whether a run is a notification.
func announces(s *runLog) bool { return s.flow != nil && s.flow.Notifies != "" }

// progress returns a function that passes heartbeats and checkpoints of a call to the engine, until
// ctx ends.
func progress(ctx context.Context, call invoke.Call) func(sdk.Event) {
	return func(ev sdk.Event) {
		if call.OnProgress == nil || ctx.Err() != nil {
			return
		}
		switch ev := ev.(type) {
		case sdk.Heartbeat:
			call.OnProgress(invoke.Progress{Number: int(ev.Progress * 100), Note: ev.Note})
		case sdk.Checkpoint:
			call.OnProgress(invoke.Progress{Number: int(ev.Number), Blob: ev.Blob})
		}
	}
}

// care lets people help until every run has ended: they resume what is paused, and decide about what
// needs a person. All faults have ended, so every run must end.
func (w people) care(ctx context.Context) {
	for since := time.Now(); time.Since(since) < judgement && ctx.Err() == nil; {
		ended, needy := w.kin.look(ctx)
		if ended {
			return
		}
		for _, s := range needy {
			if announces(s) {
				w.ask(ctx, s.id, "retry", machine.RetryRequested{Extend: time.Hour})
			} else {
				w.mend(ctx, s)
			}
		}
		_ = wait.For(ctx, time.Second)
	}
}

// look checks all runs once. It returns true if nothing is left to do, or if it has found a fault. It
// also returns the runs that need a person and have no unanswered verb.
func (k *kin) look(ctx context.Context) (ended bool, needy []*runLog) {
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

// all returns the accepted runs and all runs that they have started.
func (k *kin) all(accepted map[string]status.RunID) map[string]status.RunID {
	for _, s := range k.w.order {
		if s.name != poisonName {
			accepted[s.name] = s.id
		}
	}
	return accepted
}

// widow kills, at random times, the engine of a child run, the engine of its parent, or both.
func (k *kin) widow(ctx context.Context) {
	if k == nil {
		return
	}
	w := k.w
	w.wg.Go(func() {
		for wait.For(ctx, time.Duration(500+w.draw(4000))*time.Millisecond) == nil && !w.isHealed() {
			which, nodes := k.couple()
			for _, n := range nodes {
				if e := n.get(); e != nil {
					n.setWorks(false)
					k.hit("kill", n)
					w.trace("e%d is killed: %s", n.n, which)
					e.StopNow()
				}
			}
		}
	})
}

// couple chooses an open child run, and the engines to kill: the owner of the child run, the owner of
// the parent, or both.
func (k *kin) couple() (which string, nodes []*node) {
	w := k.w
	w.mu.Lock()
	defer w.mu.Unlock()
	var open []*runLog
	for _, s := range w.order {
		if s.kin.parent != 0 && !s.state.Status().Final() && w.stories[s.kin.parent] != nil {
			open = append(open, s)
		}
	}
	if len(open) == 0 {
		return "", nil
	}
	s := open[w.rng.IntN(len(open))]
	child, parent := k.home[s.row.Owner], k.home[w.stories[s.kin.parent].row.Owner]
	which = []string{"engine of a child", "engine of a parent", "engines of both"}[w.rng.IntN(3)]
	apart := " in one engine"
	if child != parent {
		apart = " in two engines"
	}
	switch which {
	case "engine of a child":
		nodes = append(nodes, child)
	case "engine of a parent":
		nodes = append(nodes, parent)
	default:
		nodes = append(nodes, child)
		if parent != child {
			nodes = append(nodes, parent)
		}
	}
	nodes = slices.DeleteFunc(nodes, func(n *node) bool { return n == nil || n == w.client })
	if len(nodes) > 0 {
		k.hits[which+apart+" dies"]++
	}
	return which, nodes
}

// moves records the engine process to which a membership belongs.
func (k *kin) moves(e store.EngineID, n *node) {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	k.home[e] = n
}

// posted records a verb that a parent has sent to its child run.
func (k *kin) posted(id store.MessageID, m store.Message) {
	verb, ok := strings.CutPrefix(m.Dedup, "parent/")
	if !ok {
		return
	}
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	for _, q := range k.w.questions {
		if q.id == id && q.run == m.Run {
			return
		}
	}
	k.hits["parents ask children to "+verb]++
	k.w.questions = append(k.w.questions, question{id, m.Run, verb, m.By})
}

// hit counts a fault that an engine has. The parameter `trouble` is the kind of the fault. The
// fault counts once for each construct that the open runs of the engine use now.
func (k *kin) hit(trouble string, n *node) {
	if k == nil {
		return
	}
	w := k.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.order {
		if k.home[s.row.Owner] == n {
			k.hitLocked(trouble, s, "")
		}
	}
}

// hitRun counts a fault that a run has, once for each construct that the run uses now.
func (k *kin) hitRun(trouble string, run status.RunID) {
	if k == nil {
		return
	}
	w := k.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.stories[run]; s != nil {
		k.hitLocked(trouble, s, "")
	}
}

// hitCall counts a fault of a call, once for each construct that the step of the call uses.
func (k *kin) hitCall(trouble string, call invoke.Call) {
	if k == nil {
		return
	}
	w := k.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.stories[call.Run]; s != nil {
		k.hitLocked(trouble, s, call.Request.Step)
	}
}

// hitLocked counts a fault that a run has, once for each construct. If the parameter `step` is not
// empty, only the constructs of this step count. Otherwise the constructs of the workflow count,
// and those of all steps that have begun and not ended.
func (k *kin) hitLocked(trouble string, s *runLog, step string) {
	if s.rows == 0 || s.flow == nil || s.state.Status().Final() {
		return
	}
	flow := k.module.Flows[s.flow.Name]
	if announces(s) {
		for _, c := range noticeUses(k.module.Flows[s.flow.Notifies], s.name) {
			k.hits[trouble+": "+c]++
		}
	}
	if flow == nil {
		return
	}
	if step == "" {
		for _, c := range flow.Uses {
			if !strings.HasPrefix(c, "notify") {
				k.hits[trouble+": "+c]++
			}
		}
	}
	for v := range story.Nodes(s.state, s.flow) {
		active := v.State >= status.StepHeld && v.State <= status.StepWaiting || v.State == status.StepUndoing
		if v.Action == "value" {
			active = true
		}
		if step != "" {
			active = v.Name == step
		}
		if st := flow.Step(v.Name); active && st != nil {
			for _, c := range st.Uses {
				k.hits[trouble+": "+c]++
			}
		}
	}
}

// noticeUses returns the constructs that a notification uses.
func noticeUses(flow *flows.Flow, name string) (uses []string) {
	if flow == nil {
		return nil
	}
	_, rest, _ := strings.Cut(name, ".notify.")
	state, _, _ := strings.Cut(rest, ".")
	uses = append(uses, "notify "+state)
	for _, c := range []string{"notify retry", "two notify blocks"} {
		if slices.Contains(flow.Uses, c) {
			uses = append(uses, c)
		}
	}
	return uses
}

// count adds the numbers of this world to the parameter `counts`: for each construct, how many runs
// or steps have used it, and how many faults happened while they used it.
func (k *kin) count(counts map[string]int) {
	counts["families"]++
	counts["refused submissions"] += k.full
	for what, n := range k.hits {
		counts[what] += n
	}
	used := func(uses []string) {
		for _, c := range uses {
			counts["used: "+c]++
		}
	}
	for _, s := range k.w.order {
		if s.flow == nil {
			continue
		}
		if announces(s) {
			used(noticeUses(k.module.Flows[s.flow.Notifies], s.name))
		}
		if s.kin.parent != 0 {
			counts["children"]++
		}
		if s.kin.undone {
			counts["children that were undone"]++
		}
		flow := k.module.Flows[s.flow.Name]
		if flow == nil {
			continue
		}
		k.outcomes(counts, s, flow)
		for _, c := range flow.Uses {
			if !strings.HasPrefix(c, "notify ") && c != "two notify blocks" {
				counts["used: "+c]++
			}
		}
		for v := range story.Nodes(s.state, s.flow) {
			if st := flow.Step(v.Name); st != nil && v.Forward != status.StepPending && v.Forward != status.StepCancelled {
				used(st.Uses)
			}
		}
	}
}

// outcomes adds numbers of one run to the parameter `counts`: the error codes of its steps, and the
// caught failures whose catch.output names self.error. It also counts groups that waited in line.
func (k *kin) outcomes(counts map[string]int, s *runLog, flow *flows.Flow) {
	for _, f := range s.facts {
		switch {
		case f.Kind == story.FactRunAdmitted && s.kin.parent != 0 && strings.Contains(s.flow.Name, "."):
			counts["outcome: group waits in line"]++
		case f.Kind != story.FactStepFinished || f.Code == "":
		default:
			counts["outcome: "+f.Code]++
			if st := flow.Step(f.Step); st != nil && st.Tells && f.Status == "caught" {
				counts["outcome: self.error"]++
			}
		}
	}
}
