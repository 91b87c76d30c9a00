package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/sim/flows"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// mostVariants is the largest number of variants of a module in one world.
const mostVariants = 3

// prepareMoves decides how many times people try to migrate a run of the world. In a third of the worlds
// they never do.
func (k *kin) prepareMoves() {
	k.rng = rand.New(rand.NewPCG(k.w.seed, 0x307e5))
	k.modules, k.byKey = []*flows.Module{k.module}, map[string]*flows.Module{}
	if k.rng.IntN(3) > 0 {
		k.tries = 4 + k.rng.IntN(8)
	}
}

// keep records the definition of the module.
func (k *kin) keep(def *dsl.Definition) {
	if k != nil {
		k.linked, k.byKey[def.Digest()] = []*dsl.Definition{def}, k.module
	}
}

// variant returns the definition with the given number: 0 is the module of the world, and each other one
// is a variant of the one before it. It returns nil if the definition is not valid, which is a fault of the
// simulation.
func (k *kin) variant(n int) *dsl.Definition {
	for len(k.linked) <= n {
		at := len(k.linked)
		m := k.modules[at-1].Variant(k.rng, at)
		def, err := define(m.Files, k.w.remote.agent)
		if err != nil {
			k.w.fault("variant %d: %v\n%s", at, err, m.Source())
			return nil
		}
		k.w.trace("variant %d: %v\n%s", at, m.Changes, m.Source())
		k.w.mu.Lock()
		k.modules, k.linked, k.byKey[def.Digest()] = append(k.modules, m), append(k.linked, def), m
		k.w.mu.Unlock()
	}
	return k.linked[n]
}

// moduleOf returns the module to which a workflow belongs.
func (k *kin) moduleOf(flow *dsl.Workflow) *flows.Module { return k.byKey[flow.Digest] }

// flowOf returns what is known of the workflow that a run has now; nil = the run is a notification.
func (k *kin) flowOf(s *runLog) *flows.Flow { return k.moduleOf(s.flow).Flows[s.flow.Name] }

// limits returns the workflows and groups with a concurrency limit, of all variants. Variants never change
// the limit of a workflow.
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

// migrate lets people move runs to variants of their definition at random times. They begin while there
// are faults, and may continue when the faults have ended.
func (k *kin) migrate(ctx context.Context) {
	if k == nil {
		return
	}
	k.w.wg.Go(func() {
		for range k.tries {
			if wait.For(ctx, time.Duration(300+k.rng.IntN(6000))*time.Millisecond) != nil {
				return
			}
			if s, name, at := k.movable(); s != nil {
				k.move(ctx, s, name, at)
			}
		}
	})
}

// movable chooses a run to migrate, and returns its workflow and the number of its present definition. It returns nil if
// there is no run. Mostly it chooses an open run: others are refused. It never chooses a run that the
// command line does not move: a notification, the run of a group, or a run of a workflow of a library.
func (k *kin) movable() (s *runLog, name string, at int) {
	w := k.w
	w.mu.Lock()
	defer w.mu.Unlock()
	var open, all []*runLog
	for _, s := range w.order {
		if s.flow == nil || s.flow.Inner || announces(s) {
			continue
		}
		all = append(all, s)
		if now := s.state.Status(); !now.Final() && now != status.RunCompensating {
			open = append(open, s)
		}
	}
	if len(open) > 0 && k.rng.IntN(12) > 0 {
		all = open
	}
	if len(all) == 0 {
		return nil, "", 0
	}
	s = all[k.rng.IntN(len(all))]
	return s, s.flow.Name, slices.Index(k.modules, k.moduleOf(s.flow))
}

// move asks the owner of a run of the given workflow to move it to a later definition, or rarely to the present one, which is
// refused. In one of three cases the person pauses the run first, as the pages for operators advise.
func (k *kin) move(ctx context.Context, s *runLog, name string, at int) {
	to := min(mostVariants, at+1+k.rng.IntN(2))
	if k.rng.IntN(15) == 0 {
		to = at
	}
	def := k.variant(to)
	if def == nil {
		return
	}
	people := k.w.people()
	pauses := k.rng.IntN(3) == 0
	if pauses {
		people.ask(ctx, s.id, "pause", machine.PauseRequested{})
		_ = wait.For(ctx, time.Duration(k.rng.IntN(8000))*time.Millisecond)
	}
	ids, err := k.defs.Put(ctx, def)
	if err != nil {
		if ctx.Err() == nil {
			k.w.fault("store variant %d: %v", to, err)
		}
		return
	}
	k.w.trace("run %d goes from variant %d to %d", s.id, at, to)
	for range 1 + k.rng.IntN(5)/3 { // two people may do it at once: mostly the owner refuses the second one
		people.ask(ctx, s.id, "migrate", machine.Migrated{Workflow: int32(ids[name]), Digest: def.Digest()})
	}
	if pauses {
		people.ask(ctx, s.id, "resume", machine.ResumeRequested{})
	}
}

// declined counts a migration that the operator refuses at once. The run does not get the verb.
func (k *kin) declined(verb machine.Event) {
	if _, ok := verb.(machine.Migrated); !ok || k == nil {
		return
	}
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	k.hits["migrations refused at once"]++
}

// moved is what the checks need to know of the migrations of a run. The zero value is for a world without
// families: no run is migrated there.
type moved struct {
	flows []held            // workflows that the run has had, oldest first
	was   map[string]string // earlier name of a renamed step, by the later name
	is    map[string]string // later name of a renamed step, by the earlier name
	begun map[string]int    // index into the field `flows` for the last attempt of a step or instance, by its first name
}

// held is a workflow that a run has from a row of its journal on.
type held struct {
	row  int32
	flow *dsl.Workflow
}

func newMoved(flow *dsl.Workflow) moved {
	return moved{flows: []held{{0, flow}}, was: map[string]string{}, is: map[string]string{}, begun: map[string]int{}}
}

// first returns the name that a step or an instance had when its run began. Names of steps are unique in all
// variants.
func (m *moved) first(name string) string { return rename(m.was, name) }

// now returns the present name of a step or an instance that had the given name.
func (m *moved) now(name string) string { return rename(m.is, name) }

// rename follows the names of a step in the map.
func rename(names map[string]string, name string) string {
	base, key, each := strings.Cut(name, "[")
	for names[base] != "" {
		base = names[base]
	}
	if each {
		return base + "[" + key
	}
	return base
}

// calls records that an attempt of a step has begun.
func (m *moved) calls(step string) {
	if m.begun != nil {
		m.begun[m.first(step)] = len(m.flows) - 1
	}
}

// removed reports whether the run had the step, and has none with this name since a migration.
func (m *moved) removed(flow *dsl.Workflow, step string) bool {
	base, _, _ := strings.Cut(step, "[")
	return slices.ContainsFunc(flow.Steps, func(s *dsl.Step) bool { return s.Gone && s.Name == base+" (removed)" })
}

// again reports whether a step has another idempotency key than that of the effect, because a migration has
// let the step start again from the beginning.
func (m *moved) again(key, present string) bool { return len(m.flows) > 1 && key != present }

// at returns the workflow that the run had after the row with the given number.
func (m *moved) at(row int32) *dsl.Workflow {
	flow := m.flows[0].flow
	for _, h := range m.flows {
		if h.row <= row {
			flow = h.flow
		}
	}
	return flow
}
