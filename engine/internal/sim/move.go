package sim

import (
	"context"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// mostVariants is the largest number of variants of a module in one world.
const mostVariants = 3

// mover has the methods that migrate runs of a world with families, and that check the migrations.
// The field `kin` is nil in a world without families.
type mover struct{ *kin }

// variant returns the definition with the given number. Number 0 is the module of the world. Each
// further definition is a variant of the definition with the previous number. If a definition is
// not valid, variant returns nil, and records a fault of the simulation.
func (k mover) variant(n int) *dsl.Definition {
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

// migrate lets people move runs to variants of their definition at random times. The people begin
// while there are faults, and may continue after the faults have ended.
func (k mover) migrate(ctx context.Context) {
	if k.kin == nil {
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

// movable chooses a run to migrate. It returns the run, its workflow and the number of its present
// definition. If it finds no run, the first result is nil. Usually it chooses an open run, because
// an owner refuses to move any other run. It never chooses a run that the command line cannot move:
// a notification, the run of a group, or a run of a workflow of a library.
func (k mover) movable() (s *runLog, name string, at int) {
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

// move asks the owner of a run of the given workflow to move the run to a later definition. Rarely
// it names the present definition, and then the owner refuses the move. In one of three cases the
// person pauses the run before the move, as the pages for operators advise.
func (k mover) move(ctx context.Context, s *runLog, name string, at int) {
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
	// Two people may send the same verb at once. Then the owner mostly refuses the second verb.
	for range 1 + k.rng.IntN(5)/3 {
		people.ask(ctx, s.id, "migrate", machine.Migrated{Workflow: int32(ids[name]), Digest: def.Digest()})
	}
	if pauses {
		people.ask(ctx, s.id, "resume", machine.ResumeRequested{})
	}
}
