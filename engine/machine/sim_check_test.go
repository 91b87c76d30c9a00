package machine_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// check looks at what a record made of the state.
func (w *world) check(before *machine.State, rec machine.Record) error {
	s := w.s
	r := s.Run()
	if err := w.checkOutlasted(); err != nil {
		return err
	}
	if _, _, verb := machine.Asked(rec.Event()); !verb && len(rec.Delta().Nodes) == 0 && rec.Delta().Run == nil && len(rec.Commands()) > 0 {
		return errors.New("a record without changes commands something")
	}
	_, blind := rec.Event().(machine.EngineLost) // time does not pass before it
	if st := s.Status(); !st.Final() {
		due, isDue := s.NextDue()
		seen := len(s.OpenAttempts(w.wf)) > 0 || isDue || len(s.Held()) > 0 || st == status.RunPaused || st.NeedsHuman() || w.awaits() != ""
		if !seen {
			return fmt.Errorf("promise 4: a %s run is stuck unseen", st)
		}
		if isDue && !due.After(w.now) && w.slots == nil && !blind {
			return fmt.Errorf("promise 13: NextDue %v is not after %v", due, w.now)
		}
	}
	if need := s.Run().State.NeedsHuman() && s.Status() != before.Status(); need {
		w.asked++
	}
	alerts, want := w.alertsOf(rec), b2i(s.Run().State.NeedsHuman() && s.Status() != before.Status())
	if _, isTime := rec.Event().(machine.TimePassed); !isTime && s.Run().State.NeedsHuman() && before.Run().State.NeedsHuman() {
		want = alerts & 1 // an operator's attempt may fail within the record: one more alert
	}
	if alerts != want {
		return fmt.Errorf("I9: %d alerts in a record that leads from %s to %s", alerts, before.Status(), s.Status())
	}
	if r.DeadlineRuns() && !blind && !r.Parked && !r.Passed && r.Deadline <= model.ToInstant(w.now) {
		return errors.New("S57: the run's deadline has passed and the run goes on")
	}
	if before.Run().Passed && r.Phase == model.PhaseUndo && !r.NoUndo {
		return errors.New("pivot: the run turned after its point of no return")
	}
	if v := w.wf.Pivot; v >= 0 && r.Phase == model.PhaseUndo && before.Run().Phase == model.PhaseForward && s.Nodes()[v].Effect() == status.EffectMaybe {
		return errors.New("pivot: the run turned while nobody knows whether the pivot took effect")
	}
	for i, n := range s.Nodes() {
		if i < len(before.Nodes()) && n.Signal.Number < before.Nodes()[i].Signal.Number {
			return fmt.Errorf("%s takes signal %d after signal %d", story.Node(s, w.wf, i).Name, n.Signal.Number, before.Nodes()[i].Signal.Number)
		}
		if err := w.checkNode(i, n); err != nil {
			return fmt.Errorf("%s: %w", story.Node(s, w.wf, i).Name, err)
		}
	}
	if err := w.checkWaits(); err != nil {
		return err
	}
	if err := w.checkHanded(); err != nil {
		return err
	}
	return w.checkInstances()
}

// checkWaits looks at steps that call no agent, and at signals: each is taken once at
// most, and none is kept while a step waits that takes it.
func (w *world) checkWaits() error {
	s, r := w.s, w.s.Run()
	numbers := map[int32]bool{}
	for _, x := range s.EarlySignals() {
		numbers[x.Number] = true
	}
	waits := 0
	for i, n := range s.Nodes() {
		v := story.Node(s, w.wf, i)
		switch {
		case !w.wf.Steps[n.Step].Gone && !w.wf.Steps[n.Step].Calls() && (len(n.Attempts) > 0 || n.Effect() != status.EffectNone):
			return fmt.Errorf("%s calls no agent, and has attempts or an effect", v.Name)
		case n.Signal.Number != 0 && numbers[n.Signal.Number]:
			return fmt.Errorf("%s: signal %d was taken twice", v.Name, n.Signal.Number)
		case n.Signal.Number != 0 && !fits(w.wf.Steps[n.Step], w.payloads[n.Signal.Number]):
			return fmt.Errorf("%s has taken signal %d, whose payload has the wrong type", v.Name, n.Signal.Number)
		case n.TimedOut && w.wf.Steps[n.Step].Wait != nil && w.wf.Steps[n.Step].Wait.Continue && v.State == status.StepFailed && n.Fwd.Code() == machine.CodeDeadlineExceeded:
			return fmt.Errorf("%s has failed at its deadline, although on_timeout is continue", v.Name)
		}
		numbers[n.Signal.Number] = true
		for _, x := range s.EarlySignals() {
			if x.Number < n.Signal.Number && slices.Contains(strings.Split(n.Signal.Awaits, "\n"), x.Name) && (x.Fail != "" || fits(w.wf.Steps[n.Step], string(x.Payload.JSON()))) {
				return fmt.Errorf("%s has taken signal %d, and signal %d before it is still there", v.Name, n.Signal.Number, x.Number)
			}
		}
		if !n.Waits() {
			continue
		}
		waits++
		for _, x := range s.EarlySignals() {
			if slices.Contains(v.Awaits, x.Name) && (x.Fail != "" || fits(w.wf.Steps[n.Step], string(x.Payload.JSON()))) {
				return fmt.Errorf("%s waits for signal %s, which the run has", v.Name, x.Name)
			}
		}
		if until := n.Fwd.Until; until != 0 && until <= model.ToInstant(w.now) && !r.Held() && !r.Parked {
			return fmt.Errorf("%s waits until %v, which has passed", v.Name, until.Time())
		}
	}
	if waits != int(r.Waits) {
		return fmt.Errorf("%d steps wait, and the run counts %d", waits, r.Waits)
	}
	if want := r.Waits > 0 && r.Waits == r.Live; (s.Status() == status.RunWaiting) != want && s.Status() == status.RunRunning {
		return fmt.Errorf("the run is %s with %d of %d nodes waiting", s.Status(), r.Waits, r.Live)
	}
	return nil
}

// fits reports whether a wait step takes a signal with this payload. The payload "" is the one of a
// signal with which the wait fails. A step that has become another one by a migration takes any.
func fits(step *dsl.Step, payload string) bool {
	if payload == "" || step.Wait == nil {
		return true
	}
	_, err := step.Wait.Payload([]byte(payload))
	return err == nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// checkLate holds against every answer that it is late exactly if nobody waited
// for it any more (S28).
func (w *world) checkLate(before *machine.State, ev machine.Event, rec machine.Record) error {
	var id machine.AttemptID
	switch ev := ev.(type) {
	case machine.AttemptOK:
		id = ev.Attempt
	case machine.AttemptFailed:
		id = ev.Attempt
	case machine.AttemptUnknown:
		id = ev.Attempt
	case machine.AttemptNotDone:
		id = ev.Attempt
	case machine.AttemptDeferred:
		id = ev.Attempt
	default:
		if rec.Late() {
			return fmt.Errorf("S28: %T is called late, but is no answer", ev)
		}
		return nil
	}
	open := false
	if id.Node >= 0 && id.Node < len(before.Nodes()) {
		a := before.Nodes()[id.Node].Find(id.Call)
		open = a != nil && a.Status == model.AttemptOpen
	}
	due, isDue := before.NextDue()
	switch passed := isDue && !due.After(w.now); {
	case !open && !rec.Late():
		return fmt.Errorf("S28: a late %T is not called so", ev)
	case open && rec.Late() && !passed:
		return fmt.Errorf("S28: %T is called late, but was awaited", ev)
	}
	return nil
}

// checkHeard holds that an attempt that has just been heard of may be silent
// from now on for as long as its step says.
func (w *world) checkHeard(k *call) error {
	a := w.s.Nodes()[k.node].Find(k.inv.Attempt.Call)
	set, err := w.wf.Steps[k.inv.Step].Settings(&dsl.Scope{})
	if err != nil || a == nil || a.Status != model.AttemptOpen || set.HeartbeatTimeout == 0 || k.kind != model.CallDo {
		return err
	}
	if want := model.Earliest(a.CompleteBy, model.ToInstant(w.now.Add(set.HeartbeatTimeout))); a.Expires() != want {
		return fmt.Errorf("heard of now, but is over at %v instead of %v", a.Expires().Time(), want.Time())
	}
	return nil
}

// checkExplanation holds against a run that needs a person that this person is
// told what to do: every remedy is accepted, and there is one.
func (w *world) checkExplanation() error {
	if !w.c.chance(30) {
		return nil
	}
	x := story.Explain(w.s, w.wf, w.now)
	if !x.NeedsHuman || len(x.Remedies) == 0 || len(x.Sentences) == 0 {
		return fmt.Errorf("nobody is told what to do about a run that is %s: %+v", w.s.Status(), x)
	}
	return nil
}

// alertsOf counts alerts that call for a person.
func (w *world) alertsOf(rec machine.Record) int {
	n := 0
	for _, c := range rec.Commands() {
		if a, ok := c.(machine.Alert); ok && a.Kind != "overdue" {
			n++
		}
	}
	return n
}

func (w *world) checkNode(i int, n *model.Node) error {
	step := w.wf.Steps[n.Step]
	set, err := step.Settings(&dsl.Scope{})
	if err != nil {
		return err
	}
	if limit := set.Retry.MaxAttempts; limit != dsl.Unbounded && int(n.Fwd.Attempt) > limit {
		return fmt.Errorf("promise 7: attempt %d of %d", n.Fwd.Attempt, limit)
	}
	if int(n.Fwd.Rounds) > set.Retry.CoolDowns {
		return fmt.Errorf("promise 7: cool-down %d of %d", n.Fwd.Rounds, set.Retry.CoolDowns)
	}
	if step.Undo != nil {
		us, err := step.Undo.Settings(&dsl.Scope{})
		if err != nil {
			return err
		}
		if limit := us.Retry.MaxAttempts; limit != dsl.Unbounded && int(n.Und.Attempt) > limit && n.Und.Kind == model.CallUndo {
			return fmt.Errorf("promise 7: undo attempt %d of %d", n.Und.Attempt, limit)
		}
	}
	for k := range n.Attempts {
		a := &n.Attempts[k]
		if a.CompleteBy <= a.Started {
			return fmt.Errorf("S10: attempt %d has no time to complete", a.Call)
		}
		if a.Status == model.AttemptOpen && a.Expires() <= model.ToInstant(w.now) {
			return fmt.Errorf("S17: attempt %d is open past its complete-by, or silent for too long", a.Call)
		}
		if set.HeartbeatTimeout > 0 && a.Status == model.AttemptOpen && (a.Kind == model.CallDo || a.Kind == model.CallLearn) && a.Expires() > model.ToInstant(w.now.Add(set.HeartbeatTimeout)) {
			return fmt.Errorf("attempt %d may be silent for longer than its step says", a.Call)
		}
		if (a.Status == model.AttemptFailed || a.Status == model.AttemptUnknown) && a.Kind != model.CallLookup && a.Kind != model.CallUndoLookup {
			w.misses[machine.AttemptID{i, int(a.Call)}] = true
		}
	}
	missed := 0
	for id := range w.misses {
		if id.Node == i {
			missed++
		}
	}
	if got := int(n.Fwd.Failures + n.Und.Failures); got != missed {
		return fmt.Errorf("I9: failure count %d, but %d attempts ended without result", got, missed)
	}
	if row := machine.StepRowOf(i, n); row.State == status.StepRunning && row.CompleteBy.IsZero() {
		return errors.New("S10: a running row without complete-by")
	}
	if err := w.checkLoop(i, n); err != nil {
		return err
	}
	if n.Undo == model.UndoNone && !n.Ended() && !w.s.Run().Parked && !w.s.Run().Turning && n.Fwd.Ready != 0 && n.Fwd.Deadline != 0 && n.Fwd.Deadline <= model.ToInstant(w.now) {
		return errors.New("the step's deadline has passed and the step goes on")
	}
	return nil
}

// checkInstances compares the counters of for_each steps with their instances.
func (w *world) checkInstances() error {
	s := w.s
	if s.Run().Phase == model.PhaseUndo {
		return nil // only effects matter now
	}
	for i := range s.Run().Steps {
		a := s.Nodes()[i]
		if !a.Expanded {
			continue
		}
		bad, over, active, flying := 0, 0, 0, 0
		for k := a.First; k < a.First+a.Count; k++ {
			n := s.Nodes()[k]
			switch {
			case n.Ended():
				over++
				if n.State == status.StepFailed {
					bad++
				}
			case n.Fwd.Ready != 0:
				active++
			}
			if n.Open() {
				flying++
			}
		}
		set, _ := w.wf.Steps[i].Settings(&dsl.Scope{})
		allowed := 0
		if set.MaxFailures != nil {
			allowed = set.MaxFailures(a.Count)
		}
		name := w.wf.Steps[i].Name
		switch {
		case a.State == status.StepHeld && active > 0:
			return fmt.Errorf("%s: held, but %d of its instances have begun and not ended", name, active)
		case bad != a.Bad || over != a.Over || active != a.Active:
			return fmt.Errorf("%s: counters %d/%d/%d, instances %d/%d/%d", name, a.Bad, a.Over, a.Active, bad, over, active)
		case set.MaxParallel > 0 && flying > set.MaxParallel:
			return fmt.Errorf("%s: %d instances in flight, max_parallel is %d", name, flying, set.MaxParallel)
		case a.State == status.StepSucceeded && (bad > allowed || over != a.Count):
			return fmt.Errorf("%s: succeeded with %d failed, %d allowed, %d of %d over", name, bad, allowed, over, a.Count)
		case bad > allowed && !a.Ended():
			return fmt.Errorf("%s: goes on with %d failed, %d allowed", name, bad, allowed)
		}
	}
	return nil
}

// checkInvoke looks at a call that the machine commands.
func (w *world) checkInvoke(before *machine.State, inv machine.Invoke) error {
	i := inv.Attempt.Node
	n := w.s.Nodes()[i]
	step := w.wf.Steps[inv.Step]
	name := story.Node(w.s, w.wf, i).Name
	a := n.Find(inv.Attempt.Call)
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s %s: %s", verb(inv.Purpose), name, fmt.Sprintf(format, args...))
	}
	if a == nil || a.Status != model.AttemptOpen || !a.CompleteBy.Time().Equal(inv.CompleteBy) {
		return fail("promise 12: the attempt is not in the record")
	}
	if !inv.CompleteBy.After(w.now) {
		return fail("S10: complete-by %v is not in the future", inv.CompleteBy)
	}
	if w.start.Void {
		return fail("a child run that must begin no step calls")
	}
	if w.isChild(inv) {
		if err := w.checkChild(before, inv, n); err != nil || attached(before, inv) {
			return err
		}
	}
	r := w.s.Run()
	if r.Paused {
		return fail("the run is paused")
	}
	if r.Lost() {
		return fail("engines died with the run, and nobody has said how it goes on")
	}
	if slot, ok := w.slots[inv.Agent]; ok && slot.Free == 0 {
		return fail("no slot is free")
	}
	if r.Phase == model.PhaseForward && r.Parked && r.ParkedAt != model.ToInstant(w.now) {
		return fail("the run is parked")
	}
	if err := w.checkKey(inv, n); err != nil {
		return fail("%v", err)
	}
	flying := func(kind ...model.CallKind) bool {
		for _, k := range w.calls {
			for _, want := range kind {
				if k.node == i && k.kind == want && !k.applyAt.IsZero() {
					return true
				}
			}
		}
		return false
	}
	switch a.Kind {
	case model.CallDo:
		return w.checkDo(inv, n, fail, flying(model.CallDo, model.CallLearn))
	case model.CallLookup:
		if flying(model.CallDo, model.CallLearn) {
			return fail("asked while an earlier attempt may still take effect")
		}
		if want := int(n.Fwd.Lookups) + 1; inv.Number != want || int(a.Number) != want {
			return fail("question %d after %d questions without an answer", inv.Number, want-1)
		}
	case model.CallLearn:
		if !step.Do.Idempotent || flying(model.CallDo) {
			return fail("I7: invoked again although that is not safe")
		}
	case model.CallUndo:
		if n.Clearing {
			return w.checkClearing(inv, n, fail, flying(model.CallDo, model.CallLearn), flying(model.CallUndo))
		}
		return w.checkUndo(inv, n, fail, flying(model.CallDo, model.CallLearn), flying(model.CallUndo))
	}
	return nil
}

// checkStop looks at a call that the machine interrupts: promise 14. An attempt
// that was silent for too long is not awaited any more and may always be stopped.
func (w *world) checkStop(cmd machine.Stop) error {
	n := w.s.Nodes()[cmd.Attempt.Node]
	a := n.Find(cmd.Attempt.Call)
	if a == nil {
		return fmt.Errorf("promise 14: a call that does not exist is told to stop: %v", cmd.Attempt)
	}
	// The same decision may stop a child run, because its deadline has passed, and handle its answer.
	if child := w.wf.Steps[n.Step].Child != nil; cmd.NoCompensate != (w.s.Run().NoUndo && (child || a.Status == model.AttemptOpen)) {
		return fmt.Errorf("promise 14: %s is stopped with NoCompensate = %t", story.Node(w.s, w.wf, cmd.Attempt.Node).Name, cmd.NoCompensate)
	}
	do := w.wf.Steps[n.Step].Do
	if a.Status == model.AttemptOpen && (a.Kind != model.CallDo || !do.ReadOnly && !do.Cancellable) {
		return fmt.Errorf("promise 14: %s is told to stop, which would make its outcome unknown", story.Node(w.s, w.wf, cmd.Attempt.Node).Name)
	}
	return nil
}

type failer func(string, ...any) error

func (w *world) checkDo(inv machine.Invoke, n *model.Node, fail failer, flying bool) error {
	step := w.wf.Steps[inv.Step]
	r := w.s.Run()
	if r.Phase == model.PhaseUndo {
		return fail("forward work after the turn")
	}
	if r.Turning {
		return fail("forward work while the run is about to turn")
	}
	for _, j := range step.After {
		if !w.s.Nodes()[j].Well() {
			return fail("promise 6: %s has not ended", w.wf.Steps[j].Name)
		}
	}
	unbound := r.Parked && w.isChild(inv) // no deadline of forward work expires while a run is parked
	if r.Deadline != 0 && !r.Passed && !r.Overdue && !unbound && model.ToInstant(inv.CompleteBy) > r.Deadline {
		return fail("S57: complete-by is after the run's deadline")
	}
	d := n.Fwd.Deadline
	if n.Item {
		d = w.s.Nodes()[n.Step].Fwd.Deadline
	}
	if d != 0 && !unbound && model.ToInstant(inv.CompleteBy) > d {
		return fail("complete-by is after the step's deadline")
	}
	if wish := w.wishes[inv.Attempt.Node]; wish.After(w.now) {
		return fail("called before %v, when the agent wants to be left alone", wish)
	}
	parts := w.entry(inv.IdempotencyKey, inv.Attempt.Node).parts
	switch c := inv.Checkpoint; {
	case step.OnRerun == dsl.RerunUndoFirst && (c != nil || parts > 0 || flying):
		return fail("S83: started anew though something is left of an earlier attempt")
	case c != nil && int(c.Number) != parts || c == nil && parts > 0:
		return fail("S83: continues after %+v, but the last checkpoint is %d", c, parts)
	}
	if !step.Do.Idempotent && !step.Do.ReadOnly {
		if e := w.entry(inv.IdempotencyKey, inv.Attempt.Node); e.applied > 0 || flying {
			return fail("I4: repeated although it may have taken effect and is not idempotent")
		}
	}
	return nil
}

// checkClearing looks at an undo that is called before another attempt (S83).
func (w *world) checkClearing(inv machine.Invoke, n *model.Node, fail failer, flying, undoing bool) error {
	step := w.wf.Steps[inv.Step]
	switch {
	case step.OnRerun != dsl.RerunUndoFirst:
		return fail("S83: undone before another attempt though nobody said so")
	case w.s.Run().Phase == model.PhaseUndo:
		return fail("S83: cleared for another attempt after the turn")
	case flying || n.Effect() == status.EffectNone:
		return fail("S83: an attempt may still take effect, or there is none")
	case !step.Undo.Do.Idempotent && (w.undone[inv.IdempotencyKey] > 0 || undoing):
		return fail("repeated although it may have been carried out and is not idempotent")
	}
	return nil
}

func (w *world) checkUndo(inv machine.Invoke, n *model.Node, fail failer, flying, undoing bool) error {
	step := w.wf.Steps[inv.Step]
	if w.s.Run().Passed {
		return fail("undo after the pivot")
	}
	if flying {
		return fail("I7: an attempt may still take effect")
	}
	if !step.Undo.Do.Idempotent && (w.undone[inv.IdempotencyKey] > 0 || undoing) {
		return fail("repeated although it may have been carried out and is not idempotent")
	}
	if step.NoUndo {
		return fail("undone against its declaration")
	}
	for i, d := range w.s.Nodes() { // promise 8: everything downstream is undone
		if !w.downstream(n.Of(), d.Of()) || d.Expanded {
			continue
		}
		dep := w.wf.Steps[d.Step]
		if dep.Undo == nil || d.Undo == model.UndoLeft {
			continue
		}
		if e := w.ledger[w.forwardKey(i)]; e != nil && e.applied > e.undone {
			return fail("promise 8: %s is not undone yet", story.Node(w.s, w.wf, i).Name)
		}
		if left, _ := w.left(i); left > 0 && w.looping(i) {
			return fail("promise 8: %s is not undone yet", story.Node(w.s, w.wf, i).Name)
		}
		for _, k := range w.calls {
			if k.node == i && k.kind == model.CallDo && !k.applyAt.IsZero() {
				return fail("promise 8: %s may still take effect", story.Node(w.s, w.wf, i).Name)
			}
		}
	}
	return nil
}

// downstream reports whether step b depends on step a, transitively.
func (w *world) downstream(a, b int) bool {
	for _, j := range w.wf.Steps[a].Before {
		if j == b || w.downstream(j, b) {
			return true
		}
	}
	return false
}

// checkKey holds S26 against every call: the same key for all attempts, and
// for nothing else.
func (w *world) checkKey(inv machine.Invoke, n *model.Node) error {
	direction := "do"
	if inv.Purpose == sdk.PurposeUndo || inv.ForwardKey != "" {
		direction = "undo"
	}
	id := fmt.Sprintf("%d %s %d", inv.Attempt.Node, direction, n.Gen)
	if direction == "do" {
		id += fmt.Sprintf(" %d", n.Loop.Iteration)
	}
	if key, ok := w.keys[id]; ok && key != inv.IdempotencyKey {
		return errors.New("S26: the key changed between attempts")
	}
	for other, key := range w.keys {
		if key == inv.IdempotencyKey && other != id {
			return errors.New("S26: two calls share a key")
		}
	}
	w.keys[id] = inv.IdempotencyKey
	if inv.IdempotencyKey == "" || direction == "undo" && inv.ForwardKey == "" {
		return errors.New("S26: no key")
	}
	return nil
}

// audit compares the end of the run with the ledger: I5, I6, promise 9.
func (w *world) audit() error {
	s := w.s
	if err := w.checkKept(); err != nil {
		return err
	}
	for i, n := range s.Nodes() {
		if n.Expanded {
			continue
		}
		step := w.wf.Steps[n.Step]
		name := story.Node(s, w.wf, i).Name
		if step.Repeat != nil {
			if err := w.auditLoop(i, n, name); err != nil {
				return err
			}
			continue
		}
		applied, undone := 0, 0
		for key, e := range w.ledger {
			if e.node != i {
				continue
			}
			if e.applied == e.undone && key != w.forwardKey(i) {
				continue // undone before another attempt, under another key
			}
			applied += e.applied
			undone += e.undone
		}
		if applied > 1 {
			return fmt.Errorf("%s: took effect %d times", name, applied)
		}
		if undone > applied {
			return fmt.Errorf("%s: undone %d times, done %d times", name, undone, applied)
		}
		if s.Status() == status.RunSucceeded {
			if undone > 0 && (step.OnRerun != dsl.RerunUndoFirst || n.State == status.StepSucceeded) {
				return fmt.Errorf("I5: %s was undone in a run that succeeded", name)
			}
			if n.State == status.StepSucceeded && applied != 1 && !step.Do.ReadOnly {
				return fmt.Errorf("I5: %s succeeded and took effect %d times", name, applied)
			}
			continue
		}
		if applied > undone && step.Undo != nil && n.Undo != model.UndoLeft {
			return fmt.Errorf("I6: the run is %s, but the effect of %s is still there", s.Status(), name)
		}
	}
	if s.Status() == status.RunFailed && int(s.Run().Undone)+int(s.Run().Left) > 0 {
		return errors.New("failed means that there was nothing to undo")
	}
	if s.Status() == status.RunCancelled != s.Run().Cancel {
		return errors.New("cancelled exactly if cancel was asked")
	}
	if err := w.reload(); err != nil {
		return err
	}
	if due, ok := s.NextDue(); ok {
		return fmt.Errorf("promise 3: a final run is due at %v", due.Format(time.RFC3339))
	}
	return nil
}

// checkAlerts checks that each turn to a state that needs a person raises one
// alert, and nothing else does (I9).
func checkAlerts(rec machine.Record, before *machine.State) error {
	alerts, turns := 0, 0
	for _, c := range rec.Commands() {
		if a, ok := c.(machine.Alert); ok && a.Kind != "overdue" {
			alerts++
		}
	}
	facts := story.Facts(nil, before, rec)
	for _, f := range facts {
		if f.Kind == story.FactRunParked {
			turns++
		}
	}
	// A reader that wants only some kinds gets the same facts of those kinds.
	var wanted []story.FactKind
	for k, kind := range []story.FactKind{
		story.FactRunCreated, story.FactStepHeld, story.FactAttemptStarted, story.FactAttemptProgress, story.FactAttemptFinished, story.FactRetryScheduled, story.FactStepFinished,
		story.FactUndoStarted, story.FactUndoFinished, story.FactRunTurned, story.FactRunParked, story.FactRunTakenOver, story.FactVerb, story.FactRunFinished,
	} {
		if uint32(int(before.Run().Records)*0x9e3779b9>>7)>>k&1 == 1 {
			wanted = append(wanted, kind)
		}
	}
	kinds := story.NewFactKinds(wanted...)
	chosen, all := story.AppendFacts(nil, kinds, nil, before, rec)
	count := len(facts)
	facts = slices.DeleteFunc(facts, func(f story.Fact) bool { return !slices.Contains(wanted, f.Kind) })
	if all != count || len(chosen) != len(facts) || len(facts) > 0 && !reflect.DeepEqual(chosen, facts) {
		return fmt.Errorf("facts: of %d these were chosen: %v, want of %d: %v", all, chosen, count, facts)
	}
	if alerts != turns {
		return fmt.Errorf("I9: %d alerts where the run came to need a person %d times", alerts, turns)
	}
	return nil
}
