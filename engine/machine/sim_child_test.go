package machine_test

import (
	"errors"
	"fmt"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// childStep is a step with a child run as the linker makes it.
var childStep = func() *dsl.Step {
	m, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(`
workflow "child" {
  step "v" { value = 1 }
}
workflow "parent" {
  step "c" { workflow = workflow.child }
}`)}}, dsl.ParseOptions{})
	if diags.HasErrors() {
		panic(diags.Err())
	}
	def, diags := dsl.Link(m, nil)
	if diags.HasErrors() {
		panic(diags.Err())
	}
	return def.Workflow("parent").Steps[0]
}()

// child makes a step start a child run. The child is undone by its key.
func child(s *spec) {
	s.Child = childStep.Child
	s.Do = &dsl.Action{Agent: childStep.Do.Agent, Name: "child", Output: anyOutput, Idempotent: true, Cancellable: true}
	s.Retryable = func(string) bool { return false }
	if s.Undo != nil {
		s.Undo.Do = &dsl.Action{Agent: childStep.Do.Agent, Name: "undo", Output: anyOutput, Idempotent: true, ByKey: true}
		s.Undo.UsesSelf = false
		s.Undo.Retryable = func(string) bool { return false }
	}
}

// randomChild makes a step with a child run: alone or one for each key, with limits and a catch.
func randomChild(c *chooser, i int) *spec {
	s := do(stepName(i), child)
	switch {
	case c.chance(15):
		noUndo(s)
	case c.chance(20): // its own undo
		s.Undo.Do = &dsl.Action{Agent: "shop", Name: "un" + s.Name, Idempotent: true, ByKey: true, Output: anyOutput}
	}
	if c.chance(30) {
		each([]string{"k", "l", "m"}[:c.n(4)]...)(s)
		if c.chance(40) {
			parallel(1 + c.n(2))(s)
		}
		if c.chance(40) {
			maxFailures(1 + c.n(2))(s)
		}
	}
	if c.chance(30) {
		deadline(time.Duration(5+c.n(90)) * time.Second)(s)
	}
	if c.chance(25) {
		catch(`{"instead":true}`, []string{"*", "declined", "deadline_exceeded"}[c.n(3)])(s)
	}
	if c.chance(15) {
		post(s)
	}
	if c.chance(60) {
		randomGroup(c, s)
	}
	return s
}

// A kid is a child run, as the engine that answers for it sees it.
type kid struct {
	endAt     time.Time
	succeeds  bool
	cancelled bool
	signals   []int32     // numbers of the signals with which it started
	starved   error       // says that it should have started with more signals; nil = it has enough
	kept      status.Kept // effects that stay when the child ends without success
	undoKept  status.Kept // effects that stay when the child is undone after its success
}

// failed reports whether the child run has ended without an effect.
func (k *kid) failed(now time.Time) bool { return !k.succeeds && !k.endAt.After(now) }

// isChild reports whether a call starts or undoes a child run.
func (w *world) isChild(inv machine.Invoke) bool { return inv.Agent == w.wf.ChildAgent() }

// kidOf returns the child run with this key. A first call starts it. A child that an undo finds
// missing begins nothing.
func (w *world) kidOf(key string, void bool) *kid {
	if w.kids == nil {
		w.kids = map[string]*kid{}
	}
	k := w.kids[key]
	if k == nil {
		k = &kid{endAt: w.now, cancelled: true}
		if !void {
			k = &kid{endAt: w.now.Add(time.Duration(1+w.c.n(60000)) * time.Millisecond), succeeds: w.c.chance(75)}
			k.kept, k.undoKept = randomKept(w.c), randomKept(w.c)
		}
		w.kids[key] = k
	}
	return k
}

// invokeChild plans the answer to a call for a child run. Every call with the same key gets the
// answer of the same child.
func (w *world) invokeChild(inv machine.Invoke) {
	a := w.s.Nodes()[inv.Attempt.Node].Find(inv.Attempt.Call)
	k := &call{inv: inv, kind: a.Kind, node: inv.Attempt.Node}
	w.calls = append(w.calls, k)
	if a.Kind == model.CallUndo {
		kid := w.kidOf(inv.ForwardKey, true)
		w.cancelKid(inv.ForwardKey)
		k.answerAt = later(w.now, kid.endAt).Add(time.Duration(1+w.c.n(3000)) * time.Millisecond)
		kept := kid.kept
		if kid.succeeds {
			kept = kid.undoKept
		}
		k.answer = machine.AttemptOK{Attempt: inv.Attempt, Kept: kept}
		w.undoKid(inv)
		return
	}
	if w.noRoom(inv, k) {
		return
	}
	fresh := w.kids[inv.IdempotencyKey] == nil
	kid := w.kidOf(inv.IdempotencyKey, false)
	if fresh {
		w.hand(inv, kid)
	}
	k.answerAt = later(w.now.Add(time.Millisecond), kid.endAt)
	w.answerChild(k, kid)
	w.note("    child run of %s ends at %v", story.Node(w.s, w.wf, k.node).Name, kid.endAt.Format("05.000"))
}

// answerChild sets the answer to a call that starts a child run.
func (w *world) answerChild(k *call, of *kid) {
	switch {
	case of.cancelled:
		k.answer = childFailed(k.inv.Attempt, "cancelled", of.kept)
	case of.succeeds:
		w.entry(k.inv.IdempotencyKey, k.node).applied = 1
		k.answer = w.result(k)
	default:
		k.answer = childFailed(k.inv.Attempt, "declined", of.kept)
	}
}

// randomKept returns which effects stay when a child run has ended: mostly none.
func randomKept(c *chooser) (kept status.Kept) {
	for _, some := range []status.Kept{status.KeptLeft, status.KeptDeclared, status.KeptUndone} {
		if c.chance(20) {
			kept |= some
		}
	}
	if !kept.Stay() {
		return 0
	}
	if c.chance(20) {
		kept |= status.KeptInDoubt
	}
	return kept
}

// undidNothing is an element of world.kept: the undo of the node has undone nothing in the child run.
const undidNothing status.Kept = 1 << 7

// noteKept remembers which effects a child run has kept, as the record of its end says.
func (w *world) noteKept(rec machine.Record) {
	node, call, kept := -1, 0, status.Kept(0)
	switch ev := rec.Event().(type) {
	case machine.AttemptOK:
		node, call, kept = ev.Attempt.Node, ev.Attempt.Call, ev.Kept
	case machine.AttemptFailed:
		node, call, kept = ev.Attempt.Node, ev.Attempt.Call, ev.Kept
	}
	if kept == 0 || rec.Late() {
		return
	}
	if w.kept == nil {
		w.kept = map[int]status.Kept{}
	}
	w.kept[node] |= kept.OfStep()
	if a := w.s.Nodes()[node].Find(call); a.Kind == model.CallUndo && !kept.Has(status.KeptUndone) {
		w.kept[node] |= undidNothing
	}
}

// checkKept checks that the run has not forgotten which effects its child runs keep, and that it counts
// each step once for each kind of effect.
func (w *world) checkKept() error {
	left, declared := 0, 0
	for i, n := range w.s.Nodes() {
		if n.Expanded {
			continue
		}
		name := story.Node(w.s, w.wf, i).Name
		want := w.kept[i].OfStep()
		if w.kept[i].Has(undidNothing) && n.Undo == model.UndoDone {
			return fmt.Errorf("%s counts as undone, but its child run has undone nothing", name)
		}
		if n.Kept&want != want || want.Stay() && n.Effect() != status.EffectDone {
			return fmt.Errorf("%s: the child runs keep %b, but the run knows only %b and an effect %v", name, want, n.Kept, n.Effect())
		}
		if n.LeavesEffect() {
			left++
		}
		if n.DeclaresEffect() {
			declared++
		}
	}
	if r := w.s.Run(); left != int(r.Left) || declared != int(r.Undeclared) {
		return fmt.Errorf("promise 9: %d effects are left by persons and %d by declaration, counted %d and %d", left, declared, r.Left, r.Undeclared)
	}
	return nil
}

// cancelKid cancels a child run. A child that has ended stays as it is.
func (w *world) cancelKid(key string) {
	kid := w.kids[key]
	if kid == nil || !kid.endAt.After(w.now) {
		return
	}
	kid.cancelled, kid.succeeds = true, false
	for _, k := range w.calls {
		if w.isChild(k.inv) && k.kind != model.CallUndo && k.inv.IdempotencyKey == key {
			w.entry(key, k.node).applied = 0
			if k.answer != nil {
				w.answerChild(k, kid)
			}
		}
	}
	if e := w.ledger[key]; e != nil {
		e.applied = 0
	}
}

// undoKid undoes a child run, whatever the parent knows of it.
func (w *world) undoKid(inv machine.Invoke) {
	e := w.entry(inv.ForwardKey, inv.Attempt.Node)
	if e.applied > 0 && e.undone == 0 {
		e.undone = 1
		w.note("    UNDONE child run of %s", story.Node(w.s, w.wf, inv.Attempt.Node).Name)
	}
}

// stopChild handles the command Stop for a call that starts a child run.
func (w *world) stopChild(cmd machine.Stop) bool {
	for _, k := range w.calls {
		if k.inv.Attempt == cmd.Attempt && w.isChild(k.inv) {
			w.cancelKid(k.inv.IdempotencyKey)
			return true
		}
	}
	return w.wf.Steps[w.s.Nodes()[cmd.Attempt.Node].Step].Child != nil
}

// checkAttached checks that a takeover sends every open call for a child run again, and that a run
// which has turned back asks the child to stop.
func (w *world) checkAttached(rec machine.Record) error {
	sent, stopped := map[machine.AttemptID]bool{}, map[machine.AttemptID]bool{}
	for _, cmd := range rec.Commands() {
		switch cmd := cmd.(type) {
		case machine.Invoke:
			if sent[cmd.Attempt] {
				return fmt.Errorf("attempt %v is sent twice", cmd.Attempt)
			}
			sent[cmd.Attempt] = true
		case machine.Stop:
			stopped[cmd.Attempt] = true
		}
	}
	for i, n := range w.s.Nodes() {
		for k := range n.Attempts {
			a, id := &n.Attempts[k], machine.AttemptID{Node: i, Call: int(n.Attempts[k].Call)}
			if a.Status != model.AttemptOpen || model.ActionOf(w.wf, n, a.Kind).Agent != w.wf.ChildAgent() {
				continue
			}
			if !sent[id] {
				return fmt.Errorf("after a takeover the call %v for a child run is not sent again", id)
			}
			if a.Kind == model.CallDo && n.Undo != model.UndoNone && !stopped[id] {
				return fmt.Errorf("after a takeover the child run of call %v is not asked to stop", id)
			}
		}
	}
	return nil
}

// attached reports whether a call was open before the record, so that the call is only sent again.
func attached(before *machine.State, inv machine.Invoke) bool {
	if inv.Attempt.Node >= before.NodeCount() {
		return false
	}
	a := before.Nodes()[inv.Attempt.Node].Find(inv.Attempt.Call)
	return a != nil && a.Status == model.AttemptOpen
}

// checkChild checks the promises about a call that starts or undoes a child run.
func (w *world) checkChild(before *machine.State, inv machine.Invoke, n *model.Node) error {
	switch {
	case inv.CompleteBy.Sub(w.now) < time.Hour && n.Undo == model.UndoNone && n.Fwd.Deadline == 0 && w.s.Run().Deadline == 0 && !n.Item:
		return fmt.Errorf("a child run has only until %v, although nothing sets a deadline", inv.CompleteBy)
	case w.kids[inv.IdempotencyKey] != nil && w.kids[inv.IdempotencyKey].failed(w.now) && !attached(before, inv) && before.Nodes()[inv.Attempt.Node].OwnEffect() == status.EffectNone:
		return errors.New("a step starts a child run again that has ended without an effect")
	case inv.Purpose == sdk.PurposeUndo && inv.ForwardKey != w.forwardKey(inv.Attempt.Node):
		return errors.New("a child run is undone under another key than it was started with")
	}
	return w.checkCarried(inv)
}

// checkOutlasted checks that no deadline has ended a call for a child run: only the end of the child
// does.
func (w *world) checkOutlasted() error {
	for i, n := range w.s.Nodes() {
		for k := range n.Attempts {
			if a := &n.Attempts[k]; w.wf.Steps[n.Step].Child != nil && a.Kind == model.CallDo && a.Status == model.AttemptUnknown && a.Code() == sdk.CodeTimeout {
				return fmt.Errorf("%s: time has ended the call for a child run", story.Node(w.s, w.wf, i).Name)
			}
		}
	}
	return nil
}

// parentTurns lets the parent of the run turn back after the run has succeeded.
func (w *world) parentTurns() error {
	if r := w.s.Run(); r.State != status.RunSucceeded || w.start.Parent == 0 || r.Passed || !w.c.chance(70) {
		return nil
	}
	w.turns = 0
	if err := w.deliver(machine.CompensateRequested{Parent: true, By: "parent", Reason: "undone"}); err != nil {
		return err
	}
	if w.s.Status() == status.RunSucceeded {
		return errors.New("a child run that has succeeded is not undone with its parent")
	}
	for !w.s.Status().Final() {
		if w.turns++; w.turns > 3000 {
			return errors.New("promise 5: the undo of a child run does not end")
		}
		if w.turns > 60 {
			w.c.calm = true
			w.slots, w.ceilings = nil, machine.Ceilings{}
		}
		if err := w.turn(); err != nil {
			return err
		}
	}
	return nil
}

// reopened reports whether a run that has succeeded turns back because of the event.
func reopened(before *machine.State, ev machine.Event) bool {
	c, verb := ev.(machine.CompensateRequested)
	return verb && c.Parent && before.Run().Undoable()
}
