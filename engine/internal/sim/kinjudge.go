package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// beginLocked records the workflow and the parent of a run that begins. It checks that the parent's
// step has no other open child run.
func (k *kin) beginLocked(s *runLog, rec machine.Record) {
	if k == nil {
		return
	}
	s.kin.must, s.kin.reached = map[string][]*dsl.Workflow{}, map[string][]*dsl.Workflow{}
	ev, ok := rec.Event().(machine.Started)
	if !ok {
		k.w.faultLocked("run %d: its first record is no start", s.id)
		return
	}
	s.kin.parent, s.kin.step, s.kin.void, s.kin.until = ev.Parent, ev.ParentStep, ev.Void, ev.Until
	ctx := context.WithoutCancel(k.w.ctx)
	rows, err := k.w.store.Runs(ctx, store.RunFilter{IDs: []status.RunID{s.id}})
	if err == nil && len(rows) == 1 {
		s.flow, err = k.defs.Workflow(ctx, rows[0].Workflow)
	}
	if err != nil || len(rows) != 1 {
		k.w.faultLocked("run %d: its workflow cannot be read: %v", s.id, err)
		s.flow = k.w.flow
	}
	s.kin.moved = newMoved(s.flow)
	if s.kin.parent == 0 {
		return
	}
	for _, other := range k.w.order {
		if other != s && other.kin.parent == s.kin.parent && k.stepOfParent(other) == k.stepOfParent(s) && other.rows > 0 && !other.state.Status().Final() {
			k.w.faultLocked("%s: step %s of run %d has another child run that is open: %s", ev.Name, s.kin.step, s.kin.parent, other.name)
		}
	}
}

// reachedLocked records the states that a run reaches with a record. It also records whether the
// parent of the run has asked the run to turn back.
func (k *kin) reachedLocked(s *runLog, rec machine.Record) {
	if k == nil {
		return
	}
	for _, state := range rec.Reached() {
		s.kin.reached[state] = append(s.kin.reached[state], s.flow)
	}
	if ev, ok := rec.Event().(machine.CompensateRequested); ok && ev.Parent {
		s.kin.undone = true
	}
}

// cancelledLocked checks a cancel that a child run gets from its parent. If the parent was
// cancelled without compensation, the cancel of the child must be without compensation, too. There
// is another reason for which the parent may ask the child to turn back: the time of the step is
// over. So cancelledLocked does not check a cancel that comes after this time, or less than ten
// seconds before it.
func (k *kin) cancelledLocked(s *runLog, rec machine.Record, ev machine.CancelRequested) {
	if k == nil {
		return
	}
	p := k.w.stories[s.kin.parent]
	if p == nil || ev.By != p.name || ev.NoCompensate || !p.state.Run().NoUndo || rec.At().Add(10*time.Second).After(s.kin.until) {
		return
	}
	k.w.faultLocked("%s is asked to undo itself, but its parent %s was cancelled without compensation", s.name, p.name)
}

// landedLocked checks a family after each commit of a row: no child run is open after its parent
// has ended, and no limit of open runs is exceeded. It also checks the definition in the row, and
// records the state for the check of the notifications.
func (k *kin) landedLocked(ctx context.Context, s *runLog, row store.RunRow) {
	now := s.state.Status()
	if now.Final() || now.NeedsHuman() {
		state := now.String()
		// Engines died while they had the run in hand, so no record reaches this state.
		if s.kin.reached[state] == nil {
			s.kin.reached[state] = []*dsl.Workflow{s.flow}
		}
		s.kin.must[state] = append(s.kin.must[state], s.kin.reached[state][len(s.kin.reached[state])-1])
	}
	if row.Digest != s.flow.Digest {
		k.w.faultLocked("%s: replay says definition %.12s, the row says %.12s (I10)", s.name, s.flow.Digest, row.Digest)
	}
	if now.Final() {
		for _, c := range k.w.order {
			if c.kin.parent == s.id && !k.endsLocked(ctx, s, c) {
				k.w.faultLocked("%s is %v, but its child run %s is %v", s.name, now, c.name, c.state.Status())
			}
		}
	} else if p := k.w.stories[s.kin.parent]; p != nil && p.state.Status().Final() && !k.endsLocked(ctx, p, s) {
		k.w.faultLocked("%s is %v after its parent has ended as %v", s.name, now, p.state.Status())
	}
	limits := k.limits()
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		f := limits[name]
		for _, key := range []string{"", "n", "r", "s", "a", "b", "c"} { // first letters of var.tag, and keys of for_each
			p, err := k.w.store.Places(ctx, name, key, 100)
			// The number of open child runs that had succeeded and now turn back: such a run needs
			// no place.
			again := 0
			for _, c := range k.w.order {
				// If one commit has the present row and the row that lets this child run turn back,
				// the second row may not be checked yet. So a child run that has ended counts, too,
				// if it has a place in the store.
				if (c.kin.undone || c.state.Status().Final()) && slices.Contains(p.Open, c.name) {
					again++
				}
			}
			if err != nil || p.Taken-again > f.Limit {
				k.w.faultLocked("%d runs of %s hold places with the key %q, the limit is %d: %v", p.Taken, name, key, f.Limit, err)
			}
		}
	}
}

// endsLocked reports whether a child run has ended before its parent. It also returns true if a
// person has skipped the undo of the step: then the parent does not wait for the child.
func (k *kin) endsLocked(ctx context.Context, parent, child *runLog) bool {
	if parent.skipped[parent.kin.first(child.kin.step)] {
		return true
	}
	if !child.state.Status().Final() {
		k.readLocked(ctx, child)
	}
	return child.state.Status().Final()
}

// readLocked reads the rows of a run that are committed and not checked yet.
func (k *kin) readLocked(ctx context.Context, s *runLog) { k.w.foldLocked(ctx, s) }

// forwardLocked checks that a run starts no attempt after its parent has ended, except for undos.
func (k *kin) forwardLocked(s *runLog, f story.Fact) {
	if k == nil {
		return
	}
	if p := k.w.stories[s.kin.parent]; p != nil && p.state.Status().Final() && f.Purpose == story.PurposeDo {
		k.w.faultLocked("%s: attempt %d of %s starts after its parent %s has ended as %v", s.name, f.Attempt, f.Step, p.name, p.state.Status())
	}
}

// answeredLocked checks an answer to a step that starts or undoes a child run: the child must have
// ended in the way that the answer says. answeredLocked returns false if the answer is not about a
// child run.
func (k *kin) answeredLocked(s *runLog, f story.Fact) bool {
	if k == nil {
		return false
	}
	base, _, _ := strings.Cut(f.Step, "[")
	i := slices.IndexFunc(s.flow.Steps, func(st *dsl.Step) bool { return st.Name == base })
	if i < 0 || s.flow.Steps[i].Child == nil {
		return false
	}
	if f.Undo && s.flow.Steps[i].Undo.Do.Agent != s.flow.ChildAgent() {
		return false
	}
	for _, c := range k.w.order {
		if c.kin.parent != s.id || s.kin.now(c.kin.step) != f.Step {
			continue
		}
		switch done := c.state.Status(); {
		case !f.Undo && done == status.RunSucceeded:
			return true
		case f.Undo && (!done.Final() || done == status.RunSucceeded):
			k.w.faultLocked("%s: the undo of %s is done, but its child run %s is %v", s.name, f.Step, c.name, done)
		}
	}
	if !f.Undo {
		k.w.faultLocked("%s: %s has succeeded, but none of its child runs has", s.name, f.Step)
	}
	return true
}

// calledLocked checks a call before it is sent: its run must not wait in line, and no more calls
// may start in a second than rate_limit says.
func (k *kin) calledLocked(call invoke.Call) {
	rows, err := k.w.store.Runs(context.WithoutCancel(k.w.ctx), store.RunFilter{IDs: []status.RunID{call.Run}})
	if err != nil || len(rows) != 1 || rows[0].InLine {
		k.w.faultLocked("%s: %s is called while the run waits in line: %v", call.Request.Run, call.Request.Step, err)
	}
	if call.Agent.Name != "far" || k.module.Rate == 0 {
		return
	}
	now := time.Now()
	k.starts = slices.DeleteFunc(k.starts, func(t time.Time) bool { return now.Sub(t) >= time.Second })
	k.starts = append(k.starts, now)
	if len(k.starts) > k.module.Rate {
		k.w.faultLocked("%s: %d calls of the agent far start within a second, the limit is %d", call.Request.Run, len(k.starts), k.module.Rate)
	}
}

// departs counts a call that is sent to the remote service. It checks that all engines together
// have no more calls in flight than max_concurrency says. The caller must call the returned
// function `landed` when the agent has answered.
func (k *kin) departs(call invoke.Call) (landed func()) {
	if call.Agent.Name != "far" {
		return func() {}
	}
	w := k.w
	w.mu.Lock()
	defer w.mu.Unlock()
	k.flying++
	k.most = max(k.most, k.flying)
	if limit := k.module.MaxConcurrency; limit > 0 && k.flying > limit {
		w.faultLocked("%s: %d calls of the agent far are in flight, the limit is %d", call.Request.Run, k.flying, limit)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		k.flying--
	}
}

// judgeKinEffect checks that an effect was undone under at most one idempotency key. It returns
// false if judgeEffect must not check the effect.
func (w judges) judgeKinEffect(name string, e *effect, step *dsl.Step) bool {
	if len(e.undos) > 1 {
		w.fault("%s: the effect of %s was undone under %d keys", name, e.name, len(e.undos))
	}
	// With on_rerun = "undo_first", a failed attempt is undone even if its run succeeds later. The
	// next attempt has another idempotency key.
	return step.OnRerun != dsl.RerunUndoFirst || e.undone == 0
}

// judgeFamilies compares parents with their child runs, and states with their notifications.
func (w judges) judgeFamilies(ctx context.Context) {
	for _, s := range w.order {
		if !s.state.Status().Final() {
			w.fault("%s is %v, although people help and all faults have ended (I8)", s.name, s.state.Status())
		}
		if s.kin.parent != 0 {
			w.judgeChild(s)
		}
		w.judgeNotices(s)
		w.judgeCaught(s)
		if s.state.Status() == status.RunCompensated {
			w.judgeKinOrder(s)
		}
	}
	handovers(w).judge()
	w.judgeRings()
	if open, err := w.store.Open(ctx, noNotice, 10); err != nil || len(open) > 0 {
		w.fault("the states %v were never announced: %v", open, err)
	}
	if w.kin.flying != 0 {
		w.fault("%d calls are in flight after all engines have ended", w.kin.flying)
	}
}

// judgeChild checks that a child run has ended as its parent needs it. If the child has succeeded
// and the parent is undone, the child must be undone, too. The child must not be undone if the
// parent has succeeded, or if the step of the parent keeps the effects of the child.
func (w judges) judgeChild(s *runLog) {
	p := w.stories[s.kin.parent]
	if p == nil {
		w.fault("%s: its parent run %d is missing", s.name, s.kin.parent)
		return
	}
	name := w.kin.stepOfParent(s)
	base, _, _ := strings.Cut(name, "[")
	i := slices.IndexFunc(p.flow.Steps, func(st *dsl.Step) bool { return st.Name == base })
	if i < 0 {
		if !p.kin.removed(p.flow, base) || s.state.Status() == status.RunSucceeded {
			w.fault("%s is %v, and its parent %s has no step %s", s.name, s.state.Status(), p.name, base)
		}
		return
	}
	step, ended := p.flow.Steps[i], p.state.Status()
	stays := step.NoUndo || step.Undo != nil && step.Undo.Do.Agent != p.flow.ChildAgent()
	turned := ended == status.RunCompensated || ended == status.RunFailed || ended == status.RunCancelled
	switch done := s.state.Status(); {
	case done == status.RunSucceeded && turned && !stays && !p.stopped && !p.skipped[p.kin.first(name)]:
		w.fault("%s has succeeded, but its parent %s is %v: the child must be undone", s.name, p.name, ended)
	case s.kin.undone && ended == status.RunSucceeded:
		w.fault("%s was undone, but its parent %s has succeeded", s.name, p.name)
	case s.kin.undone && stays:
		w.fault("%s was undone, but step %s of %s does not undo its child run", s.name, name, p.name)
	}
}

// judgeCaught checks the outputs with which catch blocks replace failures. If a catch block uses
// self.error, the output must have the code of the failure.
func (w judges) judgeCaught(s *runLog) {
	flow := w.kin.flowOf(s)
	if flow == nil {
		return
	}
	for v := range story.Nodes(s.state, s.flow) {
		st := flow.Step(v.Name)
		if v.Each || v.Forward != status.StepCaught || st == nil || !st.Tells {
			continue
		}
		var out struct{ ID string }
		if err := json.Unmarshal(v.Output.JSON(), &out); err != nil || out.ID != "caught "+v.Code {
			w.fault("%s: %s has failed with the code %s, and catch.output is %s: %v", s.name, v.Name, v.Code, v.Output.JSON(), err)
		}
	}
}

// judgeNotices checks that each state of a run was announced at least once, if the run has reached
// this state and a notify block names it.
func (w judges) judgeNotices(s *runLog) {
	if s.flow == nil || s.state.Run().Lost() {
		return
	}
	for state, all := range s.kin.must {
		for _, flow := range all {
			for _, n := range notifyBlocksOf(w.kin, flow, state) {
				if !w.rang(fmt.Sprintf("%s %s %d ", namedBy(w.world, s), state, n)) {
					w.fault("%s has become %s, and block %d has not announced it", s.name, state, n)
				}
			}
		}
	}
}

// rang reports whether a text with this beginning was announced.
func (w judges) rang(beginning string) bool {
	for text := range w.remote.rings {
		if strings.HasPrefix(text, beginning) {
			return true
		}
	}
	return false
}

// judgeRings checks each announcement of a state. The announced run, or the run of one of its
// groups, must have reached this state. The notify block that made the announcement must name this
// state.
func (w judges) judgeRings() {
	names := map[string][]*runLog{}
	for _, s := range w.order {
		name := namedBy(w.world, s)
		names[name] = append(names[name], s)
	}
	for text := range w.remote.rings {
		var name, state string
		var block int
		if n, err := fmt.Sscanf(text, "%s %s %d", &name, &state, &block); n != 3 || err != nil {
			w.fault("a notification says %q: %v", text, err)
			continue
		}
		if !slices.ContainsFunc(names[name], func(s *runLog) bool {
			return slices.ContainsFunc(s.kin.reached[state], func(flow *dsl.Workflow) bool {
				return slices.Contains(notifyBlocksOf(w.kin, flow, state), block)
			})
		}) {
			w.fault("a notification says that %s is %s, which it never was, or which block %d of that time does not announce", name, state, block)
		}
	}
}

// judgeKinOrder checks the order of the undos in a family. If step b depends on step a, the effects
// of b must be undone before the effects of a. This includes effects of child runs.
func (w judges) judgeKinOrder(s *runLog) {
	flow := w.kin.flowOf(s)
	if flow == nil {
		return
	}
	for i := range flow.Steps {
		b := &flow.Steps[i]
		for _, j := range b.After {
			a := &flow.Steps[j]
			if a.Restarts || b.Restarts {
				continue
			}
			for _, x := range w.under(s, a.Names()) {
				for _, y := range w.under(s, b.Names()) {
					if x.undone < y.undone {
						w.fault("%s: %s of %s was undone before %s of %s, although %s depends on %s (I6)", s.name, x.name, x.run, y.name, y.run, b.Name, a.Name)
					}
				}
			}
		}
	}
}

// under returns the undone effects of the steps in the parameter `steps`; nil = all steps of the
// run. It includes the effects of child runs that were undone together with their parent.
func (w judges) under(s *runLog, steps []string) (all []*effect) {
	for _, e := range w.remote.keys {
		if e.run == s.name && e.applied > 0 && e.undone > 0 && (steps == nil || slices.Contains(steps, s.kin.now(e.name))) {
			if st := w.kin.flowOf(s).Step(s.kin.now(e.name)); st != nil && !st.Restarts {
				all = append(all, e)
			}
		}
	}
	for _, c := range w.order {
		if c.kin.parent == s.id && c.kin.undone && (steps == nil || slices.Contains(steps, w.kin.stepOfParent(c))) {
			all = append(all, w.under(c, nil)...)
		}
	}
	return all
}
