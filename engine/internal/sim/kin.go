package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/sim/flows"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/notice"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// noNotice is the zero Notice. As the parameter `after` of Open, it means that the list begins with
// the first notice.
var noNotice notice.Notice

// definitions returns a cache of compiled workflows for the checks. In a world with families, all
// checks use the same cache, because the modules are large. In other worlds, each call returns a
// new cache.
func definitions(w *world) *journal.Definitions {
	if w.kin != nil {
		return w.kin.defs
	}
	return journal.NewDefinitions(w.store, nil)
}

// newKin decides whether the world has families. It uses its own generator of random numbers. So a
// change of the code for families does not change the worlds without families.
func newKin(w *world) *kin {
	rng := rand.New(rand.NewPCG(w.seed, 0xfa7))
	if rng.IntN(3) > 0 {
		return nil
	}
	c := &w.conditions
	c.engines, c.runs, c.venom = 3, 2+rng.IntN(3), harmless
	// Half of the worlds with families are stubborn. Of the other worlds, only a quarter are.
	// Families need more, because few of their runs are undone.
	c.stubborn = w.seed%2 == 0
	// Engines share the limits of agents only if each engine has its own limit of slots, too.
	if c.slots == 0 {
		c.slots = 8
	}
	k := &kin{
		w: w, module: flows.New(rng), defs: journal.NewDefinitions(w.store, nil),
		home: map[store.EngineID]*node{}, hits: map[string]int{},
	}
	k.rng = rand.New(rand.NewPCG(w.seed, 0x307e5))
	k.modules, k.byKey = []*flows.Module{k.module}, map[string]*flows.Module{}
	if k.rng.IntN(3) > 0 {
		k.tries = 4 + k.rng.IntN(8)
	}
	return k
}

// wasFull reports whether the submission was refused because a limit with when_full = "reject" had
// no free place. Then the run is not submitted again.
func (k *kin) wasFull(err error) bool {
	if !errors.Is(err, naming.ErrFull) {
		return false
	}
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	k.full++
	return true
}

// payload returns the payload of a signal: no value if n is 0, and otherwise an object with the
// attribute `id`.
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

// stated decodes the output of an action, as a person states it in a verb.
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

// all returns the accepted runs and all runs that they have started.
func (k *kin) all(accepted map[string]status.RunID) map[string]status.RunID {
	for _, s := range k.w.order {
		if s.name != poisonName {
			accepted[s.name] = s.id
		}
	}
	return accepted
}

// moves records the engine process to which a membership belongs.
func (k *kin) moves(e store.EngineID, n *node) {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	k.home[e] = n
}

// posted records a verb that a parent has sent to its child run. Engines send no other verbs.
// posted is not called for the verbs of people, because people send them directly to the store.
func (k *kin) posted(id store.MessageID, m store.Message) {
	if m.Kind != store.MessageVerb {
		return
	}
	verb, ok := strings.CutPrefix(m.Dedup, "parent/")
	// Only the verb that changes the time until which the parent waits has no text that begins with
	// "parent/".
	if !ok {
		verb = "wait until another time"
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

// hit counts a fault of the given kind, which strikes an engine. The fault counts once for each
// construct that the open runs of the engine use now.
func (k *kin) hit(kind string, n *node) {
	if k == nil {
		return
	}
	w := k.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.order {
		if k.home[s.row.Owner] == n {
			k.hitLocked(kind, s, "")
		}
	}
}

// hitRun counts a fault that strikes a run, once for each construct that the run uses now.
func (k *kin) hitRun(kind string, run status.RunID) {
	if k == nil {
		return
	}
	w := k.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.stories[run]; s != nil {
		k.hitLocked(kind, s, "")
	}
}

// hitCall counts a fault of a call, once for each construct that the step of the call uses.
func (k *kin) hitCall(kind string, call invoke.Call) {
	if k == nil {
		return
	}
	w := k.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.stories[call.Run]; s != nil {
		k.hitLocked(kind, s, call.Request.Step)
	}
}

// hitLocked counts a fault that strikes a run, once for each construct. If the parameter `step` is
// not empty, it counts only the constructs of this step. If `step` is empty, it counts the
// constructs of the workflow, of the active steps, and of the steps that compute a value.
func (k *kin) hitLocked(kind string, s *runLog, step string) {
	if s.rows == 0 || s.flow == nil || s.state.Status().Final() {
		return
	}
	flow := k.flowOf(s)
	if announces(s) {
		for _, c := range noticeUses(k.moduleOf(s.flow).Flows[s.flow.Notifies], s.name) {
			k.hits[kind+": "+c]++
		}
	}
	if flow == nil {
		return
	}
	if step == "" {
		for _, c := range flow.Uses {
			if !strings.HasPrefix(c, "notify") {
				k.hits[kind+": "+c]++
			}
		}
	}
	for v := range story.Nodes(s.state, s.flow) {
		active := v.State >= status.StepHeld && v.State <= status.StepWaiting || v.State == status.StepUndoing
		if v.Action == "value" {
			active = true
		}
		if step != "" {
			active = v.Name == s.kin.now(step)
		}
		if st := flow.Step(v.Name); active && st != nil {
			for _, c := range st.Uses {
				k.hits[kind+": "+c]++
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

// count adds the numbers of this world to the parameter `counts`. For each construct, these are two
// numbers: how many runs or steps have used the construct, and how many faults happened while a run
// or step used it.
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
			used(noticeUses(k.moduleOf(s.flow).Flows[s.flow.Notifies], s.name))
		}
		if s.kin.parent != 0 {
			counts["children"]++
		}
		if s.kin.undone {
			counts["children that were undone"]++
		}
		flow := k.flowOf(s)
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
// caught failures whose catch.output names self.error. It also counts groups that waited in line,
// and groups that started with early signals.
func (k *kin) outcomes(counts map[string]int, s *runLog, flow *flows.Flow) {
	if len(s.records) > 0 {
		if e, ok := s.records[0].Event().(machine.Started); ok && len(e.Signals) > 0 {
			counts["outcome: group starts with early signals"]++
		}
	}
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

// keep records the definition of the module.
func (k *kin) keep(def *dsl.Definition) {
	if k != nil {
		k.linked, k.byKey[def.Digest()] = []*dsl.Definition{def}, k.module
	}
}

// moduleOf returns the module to which a workflow belongs.
func (k *kin) moduleOf(flow *dsl.Workflow) *flows.Module { return k.byKey[flow.Digest] }

// flowOf returns the generated workflow that a run has now; nil = the run is a notification.
func (k *kin) flowOf(s *runLog) *flows.Flow { return k.moduleOf(s.flow).Flows[s.flow.Name] }

// limits returns the workflows and groups with a concurrency limit, in the module and all its
// variants. Variants never change the limit of a workflow.
func (k *kin) limits() map[string]*flows.Flow {
	all := map[string]*flows.Flow{}
	for _, m := range k.modules {
		for name, f := range m.Flows {
			if f.Limit > 0 {
				all[name] = f
			}
		}
	}
	return all
}

// declined counts a migration that the operator refuses at once. The owner of the run gets no verb
// in this case.
func (k *kin) declined(verb machine.Event) {
	if _, ok := verb.(machine.Migrated); !ok || k == nil {
		return
	}
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	k.hits["migrations refused at once"]++
}

// stepOfParent returns the present name of the step or instance that started a child run.
func (k *kin) stepOfParent(s *runLog) string {
	if p := k.w.stories[s.kin.parent]; p != nil {
		return p.kin.now(s.kin.step)
	}
	return s.kin.step
}
