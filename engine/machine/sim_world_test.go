package machine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// A world runs one workflow against a remote that keeps a ledger of effects,
// with agents that fail, lose and delay answers, engines that die, and
// operators who intervene. Every line of what happens is kept for the report.
type world struct {
	scratch machine.Scratch // of all decisions
	reader  wire.Reader     // of all folds
	c       *chooser
	wf      *dsl.Workflow
	moves   movings // migrations of the run; see sim_migrate_test.go
	reborn  rebirth // what the run has taken over; see sim_restart_test.go
	s       *machine.State
	j       journal
	now     time.Time
	slots   map[string]machine.Slot

	calls    []*call                    // in flight, or with an effect still to come
	old      []machine.Event            // answers that were delivered, for duplicates
	ledger   map[string]*account        // by forward key
	start    machine.Started            // first event of the run
	kids     map[string]*kid            // child runs by forward key
	absent   map[machine.AttemptID]bool // whether a call for a group finds no room for its run
	ended    map[int32]string           // by number of a signal: the wait that it has ended
	kept     map[int]status.Kept        // by node: effects that its child runs keep
	undone   map[string]int             // by undo key: how often it was carried out
	keys     map[string]string          // (node, direction, generation) → key
	misses   map[machine.AttemptID]bool
	alerts   int
	asked    int   // times the run came to need a person
	asks     int64 // verbs delivered
	signals  int   // signals sent
	sent     []machine.SignalReceived
	taken    map[string]bool   // ids of signals that the run has taken
	ids      map[int32]string  // ids of signals, by the number that the run gave them
	payloads map[int32]string  // payloads of signals, by the same number; "" = the wait fails with the signal
	wishes   map[int]time.Time // by node: before it the agent does not want to be called
	rests    map[int]resting   // by node: before it the next iteration of a loop may not begin
	engine   int32
	ceilings machine.Ceilings
	log      []string
	trace    bool
	deep     bool // check every decision in full
	turns    int
}

// A call is one request on its way.
type call struct {
	inv      machine.Invoke
	kind     model.CallKind
	node     int
	applyAt  time.Time // when the effect happens; zero = never, or already
	answerAt time.Time
	answer   machine.Event // nil = lost
	beatAt   time.Time     // when it is heard of next; zero = never again
	point    int           // checkpoints it has recorded
}

// account is the ledger's row of one forward key.
type account struct {
	node      int
	parts     int  // the last checkpoint that was recorded under the key
	applied   int  // effects that happened
	undone    int  // effects that were undone
	tombstone bool // a by-key undo came: nothing may happen any more
}

const simStart = 1_000_000

func newWorld(c *chooser) *world {
	w := &world{
		c: c, wf: randomFlow(c), s: machine.NewState(), now: noon, engine: 1,
		taken:    map[string]bool{},
		ids:      map[int32]string{},
		payloads: map[int32]string{},
		ledger:   map[string]*account{}, undone: map[string]int{}, keys: map[string]string{}, misses: map[machine.AttemptID]bool{}, wishes: map[int]time.Time{}, rests: map[int]resting{},
	}
	if c.chance(8) { // until the world heals
		w.ceilings = machine.Ceilings{Records: 2 + c.n(30), Values: int64(100 + c.n(2000)), Checkpoints: int64(1 + c.n(300)), Instances: 1 + c.n(8)}
	}
	return w
}

func (w *world) note(format string, args ...any) {
	if w.trace {
		w.log = append(w.log, w.now.Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	}
}

// live runs the world to its end.
func (w *world) live() error {
	start := machine.Started{RunID: simStart, Name: "sim", Vars: js(`{"order":"a value that is long enough"}`)}
	if w.c.chance(25) {
		start.Parent, start.ParentName, start.ParentStep, start.Void = simStart-1, "parent", "step", w.c.chance(4)
		if w.c.chance(15) {
			start.Until = w.now.Add(time.Duration(10+w.c.n(200)) * time.Second)
		}
	}
	return w.lead(start)
}

// lead runs the world to its end, from the start of its run.
func (w *world) lead(start machine.Started) error {
	w.start = start
	if err := w.deliver(start); err != nil {
		return err
	}
	if r := w.s.Run(); !start.Until.IsZero() && (r.Deadline == 0 || r.Deadline > model.ToInstant(start.Until)) {
		return fmt.Errorf("the run has the deadline %v, but its parent waits only until %v", r.Deadline.Time(), start.Until)
	}
	for !w.s.Status().Final() {
		if w.turns++; w.turns > 3000 {
			return errors.New("promise 5: the run does not end")
		}
		if w.turns > 60 {
			w.c.calm = true // the world heals
			w.slots, w.ceilings = nil, machine.Ceilings{}
		}
		if err := w.migrate(); err != nil {
			return err
		}
		if w.s.Status().Final() { // the migration was over a ceiling, and nothing had to be undone
			break
		}
		if err := w.turn(); err != nil {
			return err
		}
	}
	if err := w.parentTurns(); err != nil {
		return err
	}
	w.c.calm = true
	if err := w.stragglers(); err != nil {
		return err
	}
	return w.audit()
}

// turn lets one thing happen.
func (w *world) turn() error {
	if w.reborn.undoable && w.c.chance(25) { // so that what was taken over is undone
		return w.deliver(machine.CancelRequested{By: "op"})
	}
	if w.c.chance(22) {
		return w.meddle()
	}
	w.randomSlots()
	due, isDue := w.s.NextDue()
	next := w.nextCall()
	beat := w.nextBeat()
	switch {
	case beat != nil && (next == nil || beat.beatAt.Before(next.answerAt)) && (!isDue || !beat.beatAt.After(due)):
		return w.progress(beat)
	case next != nil && (!isDue || !next.answerAt.After(due) || w.c.chance(20)):
		return w.deliverCall(next)
	case isDue:
		if due.After(w.now) {
			if err := w.tooEarly(due); err != nil {
				return err
			}
			w.pass(due)
		}
		if w.c.chance(15) {
			w.pass(w.now.Add(time.Duration(w.c.n(5000)) * time.Millisecond)) // a Supervisor that lags
		}
		return w.deliver(machine.TimePassed{})
	case w.s.Status() == status.RunPaused:
		return w.deliver(machine.ResumeRequested{By: "op", Extend: time.Duration(w.c.n(2)) * time.Minute})
	case w.s.Run().State.NeedsHuman():
		if err := w.checkExplanation(); err != nil {
			return err
		}
		return w.operate()
	case len(w.s.Held()) > 0:
		w.slots = nil
		return w.deliver(machine.SlotsFreed{})
	case w.awaits() != "":
		return w.signal(w.awaits())
	}
	return errors.New("promise 4: the run is stuck unseen")
}

// awaits returns a signal that some step waits for; "" = none does.
func (w *world) awaits() string {
	for i := range w.s.Nodes() {
		if names := story.Node(w.s, w.wf, i).Awaits; len(names) > 0 {
			return names[len(names)-1]
		}
	}
	return ""
}

// signal sends a signal. It may be one that was sent before, of the wrong type, or one
// with which the wait fails.
func (w *world) signal(name string) error {
	w.signals++
	ev := machine.SignalReceived{Name: name, Payload: js(fmt.Sprintf(`{"signal":%d}`, w.signals)), By: "op"}
	switch w.c.pick(6, 1, 1, 1) {
	case 1:
		ev.Payload = js(`"bad"`)
	case 2:
		ev.Payload = js(`"poor"`)
	case 3:
		ev.Fail = "no"
	}
	if w.c.chance(60) {
		ev.ID = fmt.Sprint("m", w.signals)
	}
	if len(w.sent) > 0 && w.c.chance(20) {
		ev = w.sent[w.c.n(len(w.sent))] // the sender has lost the answer and repeats it
	}
	w.sent = append(w.sent, ev)
	before, final := w.s.Signals(), w.s.Status().Final()
	again := ev.ID != "" && w.taken[ev.ID]
	w.ids[int32(before)+1], w.payloads[int32(before)+1] = ev.ID, string(ev.Payload.JSON())
	if ev.Fail != "" {
		w.payloads[int32(before)+1] = ""
	}
	if err := w.deliver(ev); err != nil {
		return err
	}
	refused := w.refused(w.asks)
	switch took := w.s.Signals() - before; {
	case took == 1 && again:
		return fmt.Errorf("signal %s was taken twice", ev.ID)
	case took == 1 && ev.ID != "":
		w.taken[ev.ID] = true
	case took > 1, took == 0 && !again && !refused && !final:
		return fmt.Errorf("%d signals were taken, and one was sent: %+v", took, ev)
	}
	return nil
}

// tooEarly checks that nothing is due before NextDue: promise 13.
func (w *world) tooEarly(due time.Time) error {
	if !w.c.chance(20) {
		return nil
	}
	at := w.now.Add(due.Sub(w.now) / 2).Truncate(time.Microsecond)
	if !at.Before(due) || at.Before(w.now) || len(w.s.Held()) > 0 {
		return nil
	}
	if rec := machine.Decide(w.wf, w.s, machine.Input{At: at, Event: machine.TimePassed{}}); !rec.Empty() {
		return fmt.Errorf("promise 13: something was due at %v, before NextDue %v", at, due)
	}
	return nil
}

// pass moves the clock; effects on the way happen.
func (w *world) pass(to time.Time) {
	for {
		var first *call
		for _, k := range w.calls {
			if !k.applyAt.IsZero() && !k.applyAt.After(to) && (first == nil || k.applyAt.Before(first.applyAt)) {
				first = k
			}
		}
		if first == nil {
			break
		}
		w.apply(first)
	}
	if to.After(w.now) {
		w.now = to
	}
	w.forget()
}

// forget drops calls that can have no consequences any more.
func (w *world) forget() {
	kept := w.calls[:0]
	for _, k := range w.calls {
		if k.answer != nil || !k.applyAt.IsZero() || !k.beatAt.IsZero() {
			kept = append(kept, k)
		}
	}
	w.calls = kept
}

func (w *world) nextCall() *call {
	var next *call
	for _, k := range w.calls {
		if k.answer != nil && (next == nil || k.answerAt.Before(next.answerAt)) {
			next = k
		}
	}
	return next
}

// nextBeat returns the call that is heard of next.
func (w *world) nextBeat() *call {
	var next *call
	for _, k := range w.calls {
		if !k.beatAt.IsZero() && (next == nil || k.beatAt.Before(next.beatAt)) {
			next = k
		}
	}
	return next
}

// progress delivers a heartbeat or a checkpoint of a call, and plans the next.
func (w *world) progress(k *call) error {
	w.pass(k.beatAt)
	ev := machine.AttemptProgress{Attempt: k.inv.Attempt}
	if w.c.chance(40) {
		k.point++
		ev.Number, ev.Blob = k.point, []byte(fmt.Sprint("at ", k.point))
	}
	k.beatAt = time.Time{}
	if next := w.now.Add(time.Duration(200+w.c.n(3000)) * time.Millisecond); next.Before(k.inv.CompleteBy) && !w.c.chance(20) {
		k.beatAt = next
	}
	if a := w.s.Nodes()[k.node].Find(k.inv.Attempt.Call); ev.Blob != nil && a != nil && a.Status == model.AttemptOpen && a.Expires() > model.ToInstant(w.now) && k.kind == model.CallDo {
		e := w.entry(k.inv.IdempotencyKey, k.node)
		before := e.parts
		e.parts = max(e.parts, k.point)
		if w.ceilings != (machine.Ceilings{}) && before > 0 { // it may be past a ceiling, and is not recorded then
			defer func() {
				if w.s.Nodes()[k.node].Point < k.point && e.parts == k.point {
					e.parts = before
				}
			}()
		}
	}
	w.forget()
	if err := w.deliver(ev); err != nil {
		return err
	}
	return w.checkHeard(k)
}

func (w *world) deliverCall(k *call) error {
	k.beatAt = time.Time{} // it is over
	w.pass(k.answerAt)
	ev := k.answer
	k.answer = nil
	w.old = append(w.old, ev)
	w.forget()
	return w.deliver(ev)
}

// randomSlots makes agents full or their circuits open for a while.
func (w *world) randomSlots() {
	if !w.c.chance(10) {
		return
	}
	w.slots = nil
	for _, a := range []string{"shop", "bank"} {
		switch w.c.pick(3, 1, 1) {
		case 1:
			w.slot(a, machine.Slot{Free: w.c.n(3), Why: "full"})
		case 2:
			w.slot(a, machine.Slot{Until: w.now.Add(time.Duration(1+w.c.n(10)) * time.Second), Why: "circuit open"})
		}
	}
}

func (w *world) slot(agent string, s machine.Slot) {
	if w.slots == nil {
		w.slots = map[string]machine.Slot{}
	}
	w.slots[agent] = s
}

// meddle makes something happen that nobody waited for.
func (w *world) meddle() error {
	signals := 3
	if slices.ContainsFunc(w.wf.Steps, func(s *dsl.Step) bool { return s.Wait != nil && s.Repeat != nil }) {
		signals = 15 // each iteration takes one
	}
	names := []string{"go", "stop", "unheard"}
	for i, s := range w.wf.Steps {
		if s.Listens() && w.s.Nodes()[i].Fwd.Ready == 0 { // a group that has not started
			signals, names[2] = 40, "inside"
		}
	}
	switch w.c.pick(3, 4, 2, 2, 2, 4, 2, 3, 2, 3, signals) {
	case 0:
		return w.deliver(machine.TimePassed{})
	case 1: // a duplicate
		if len(w.old) == 0 {
			return nil
		}
		ev := w.old[w.c.n(len(w.old))]
		if rec := machine.Decide(w.wf, w.s, machine.Input{At: w.s.Last(), Event: ev, Slots: map[string]machine.Slot{"shop": {}, "bank": {}}}); len(rec.Commands()) > 0 {
			return fmt.Errorf("promise 2: a duplicate %T commands %v", ev, rec.Commands())
		}
		if due, ok := w.s.NextDue(); (!ok || due.After(w.now)) && len(w.s.Held()) == 0 {
			if rec := machine.Decide(w.wf, w.s, machine.Input{At: w.now, Event: ev}); !rec.Empty() || !rec.Late() {
				return fmt.Errorf("promise 2: a duplicate %T changes something", ev)
			}
		}
		return w.deliver(ev)
	case 2:
		return w.deliver(machine.CancelRequested{By: "op", Reason: "because", NoCompensate: w.c.chance(25)})
	case 3:
		return w.deliver(machine.PauseRequested{By: "op"})
	case 4:
		return w.deliver(machine.ResumeRequested{By: "op"})
	case 5: // the engine dies; its calls go on, their answers are lost or late
		for _, k := range w.calls {
			if w.c.chance(60) {
				k.answer, k.beatAt = nil, time.Time{}
			}
		}
		w.forget()
		if err := w.reload(); err != nil {
			return err
		}
		w.engine++
		if w.c.chance(50) { // its lease takes a while to run out
			w.pass(w.now.Add(time.Duration(w.c.n(8000)) * time.Millisecond))
		}
		return w.deliver(machine.TakenOver{By: w.engine, From: w.engine - 1})
	case 6: // a decision that is never committed
		if k := w.nextCall(); k != nil {
			machine.Decide(w.wf, w.s, machine.Input{At: later(w.now, k.answerAt), Event: k.answer, Slots: w.slots})
		}
		return nil
	case 7:
		return w.randomVerb()
	case 8:
		if int(w.s.Run().Records)%2 == 0 { // engines die with the run, which is parked without being read
			return w.park()
		}
		return w.deliver(machine.SlotsFreed{})
	case 9: // the engine freezes; others take over, and what it hears it tells late
		for _, k := range w.calls {
			if k.answer != nil && w.c.chance(70) {
				k.answerAt = k.answerAt.Add(time.Duration(w.c.n(60000)) * time.Millisecond)
			}
		}
		for range 1 + w.c.n(3) {
			w.engine++
			if err := w.deliver(machine.TakenOver{By: w.engine, From: w.engine - int32(w.c.n(3))}); err != nil {
				return err
			}
		}
	case 10:
		for range 1 + w.c.n(3) { // several, for loops that wait
			if err := w.signal(names[w.c.pick(3, 3, signals/3)]); err != nil {
				return err
			}
		}
	}
	return nil
}

// park parks the run as an engine does that does not dare to read it.
func (w *world) park() error {
	ev := machine.EngineLost{Deaths: 3, Why: "3 engines ended"}
	decided := machine.Decide(w.wf, w.s, machine.Input{At: w.now, Event: ev, Slots: w.slots})
	if blind := machine.Lost(later(w.now, w.s.Last()), ev, w.s.Status()); !w.s.Run().Lost() && !w.s.Status().Final() {
		a, err := wire.Encode([]machine.Record{decided})
		if err != nil {
			return err
		}
		b, err := wire.Encode([]machine.Record{blind})
		if err != nil {
			return err
		}
		if string(a) != string(b) {
			return fmt.Errorf("a run is parked by %x without its state, and by %x with it", b, a)
		}
	}
	return w.deliver(ev)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// reload folds the journal, as an engine does that takes over.
func (w *world) reload() error {
	s, err := w.j.fold(w.wf, &w.reader)
	if err != nil {
		return err
	}
	if err := sameFold(w.s, s); err != nil {
		return err
	}
	w.s = s
	return nil
}

func (w *world) randomVerb() error {
	step := stepName(w.c.n(len(w.wf.Steps)))
	switch w.c.n(5) {
	case 0:
		return w.deliver(machine.RetryRequested{By: "op", Step: step, Extend: time.Duration(w.c.n(2)) * time.Minute, NewKey: w.c.chance(30)})
	case 1:
		return w.deliver(machine.CompensateRequested{By: "op"})
	case 2:
		return w.deliver(machine.CompensateRequested{By: "op", Step: step, Retry: w.c.chance(50), Skip: w.c.chance(30)})
	case 3:
		return w.settle(w.c.n(len(w.s.Nodes())))
	}
	return w.deliver(machine.ResumeRequested{By: "op", Extend: time.Minute})
}

// operate does what an operator does for a run that needs one. In a healed
// world it brings the run to its end.
func (w *world) operate() error {
	before := int(w.s.Run().Records)
	for i, n := range w.s.Nodes() {
		doubt := n.Present() == status.EffectMaybe && (n.Undo == model.UndoNone && n.State == status.StepFailed || n.Undo == model.UndoFailed) || n.Undo == model.UndoFailed && n.UndoDoubt > 0
		if doubt && !w.c.chance(30) {
			if err := w.settle(i); err != nil {
				return err
			}
			if _, refused := w.lastRefusal(); !refused {
				return nil
			}
		}
	}
	if w.s.Status() == status.RunCompensationFailed {
		for i, n := range w.s.Nodes() {
			if n.Undo != model.UndoFailed || n.Expanded {
				continue
			}
			ev := machine.CompensateRequested{By: "op", Step: story.Node(w.s, w.wf, i).Name}
			ev.Skip = w.turns > 1000 || w.c.chance(20) || n.Und.Miss == model.MissExpression
			ev.Retry = !ev.Skip
			return w.deliver(ev)
		}
		return fmt.Errorf("compensation_failed without a failed undo")
	}
	switch w.c.pick(2, 2, 1) {
	case 1:
		if err := w.deliver(machine.RetryRequested{By: "op", Extend: 10 * time.Minute}); err != nil {
			return err
		}
	case 2:
		if err := w.deliver(machine.CancelRequested{By: "op", NoCompensate: w.c.chance(30)}); err != nil {
			return err
		}
	default:
		if err := w.deliver(machine.CompensateRequested{By: "op"}); err != nil {
			return err
		}
	}
	if _, refused := w.lastRefusal(); !refused || int(w.s.Run().Records) == before {
		return nil
	}
	if w.turns < 1000 {
		if err := w.deliver(machine.RetryRequested{By: "op", Extend: 10 * time.Minute}); err != nil {
			return err
		}
		if _, refused := w.lastRefusal(); !refused {
			return nil
		}
	}
	return w.deliver(machine.CancelRequested{By: "op", NoCompensate: true})
}

// settle states the truth about a node, as the ledger knows it.
func (w *world) settle(i int) error {
	n := w.s.Nodes()[i]
	if n.Expanded {
		return nil
	}
	if kid := w.kids[w.forwardKey(i)]; kid != nil {
		w.pass(kid.endAt)
	}
	for _, k := range w.calls {
		if k.node == i && !k.applyAt.IsZero() {
			w.pass(k.applyAt) // an operator looks when the dust has settled
		}
	}
	if n.Undo == model.UndoFailed && n.UndoDoubt == 0 && n.Effect() == status.EffectDone && n.Stated != model.StatedNothing {
		// Nothing about the undo is in doubt: "not done" would take back what was
		// stated of the step.
		return w.deliver(machine.CompensateRequested{By: "op", Step: story.Node(w.s, w.wf, i).Name, Retry: true})
	}
	ev := machine.SettleRequested{Step: story.Node(w.s, w.wf, i).Name, By: "op", Reason: "looked", Output: js(fmt.Sprintf(`{"id":"settled %d"}`, i))}
	e := w.entry(w.forwardKey(i), i)
	left, applied := w.left(i)
	if w.looping(i) {
		ev.Output = js(fmt.Sprintf(`{"key":%q}`, w.forwardKey(i)))
	}
	switch {
	case n.Undo == model.UndoFailed && (!w.looping(i) && e.applied > 0 && e.undone >= e.applied || w.looping(i) && applied > 0 && left == 0):
		ev.As = machine.SettleUndone
	case n.Undo == model.UndoFailed && n.Effect() == status.EffectDone && n.Present() != status.EffectMaybe:
		ev.As = machine.SettleNotDone
	case n.Undo != model.UndoFailed && e.applied > 0 && e.undone >= e.applied: // before another attempt, whether or not the run knows yet that this has ended
		ev.As = machine.SettleUndone
	case e.applied > 0:
		ev.As = machine.SettleSucceeded
	default:
		ev.As = machine.SettleNotDone
	}
	if ev.As == machine.SettleSucceeded && !w.looping(i) && w.c.chance(30) { // the first statement may be wrong about the output
		wrong := ev
		wrong.Output = js(`{"id":"wrong"}`)
		if err := w.deliver(wrong); err != nil {
			return err
		}
	}
	return w.deliver(ev)
}

func (w *world) forwardKey(i int) string {
	n := w.s.Nodes()[i]
	return machine.IdempotencyKey(w.idOf(int(n.Step)), w.wf.Steps[n.Step].KeyName(), n.Key, "do", int(n.Loop.Iteration), int(n.Gen))
}

func (w *world) entry(key string, node int) *account {
	e := w.ledger[key]
	if e == nil {
		e = &account{node: node}
		w.ledger[key] = e
	}
	return e
}

func (w *world) lastRefusal() (machine.Refused, bool) {
	if len(w.j.rows) == 0 {
		return machine.Refused{}, false
	}
	recs, err := wire.Decode(w.j.rows[len(w.j.rows)-1])
	if err != nil || len(recs) != 1 {
		return machine.Refused{}, false
	}
	return recs[0].Refused()
}

// refused reports whether the verb with this number was refused.
func (w *world) refused(ask int64) bool {
	for k := len(w.j.rows) - 1; k >= 0 && k > len(w.j.rows)-4; k-- {
		recs, err := wire.Decode(w.j.rows[k])
		if err != nil {
			return false
		}
		for _, r := range recs {
			if v, ok := r.Refused(); ok && v.Ask == ask {
				return true
			}
		}
	}
	return false
}

// deliver decides, commits, applies and acts, with all checks.
func (w *world) deliver(ev machine.Event) error {
	_, _, isVerb := machine.Asked(ev)
	if isVerb {
		w.asks++
		ev = machine.WithAsk(ev, w.asks)
	}
	in := machine.Input{At: w.now, Event: ev, Next: w.moves.next, Slots: w.slots, Scratch: &w.scratch, Ceilings: w.ceilings, Past: w.reborn.past}
	before := w.s.Clone()
	var rec machine.Record
	if deep := w.c.chance(5); deep || w.deep {
		var err error
		if rec, err = decideTwice(w.wf, w.s, in); err != nil {
			return err
		}
	} else {
		rec = machine.Decide(w.wf, w.s, in)
	}
	if err := w.checkLate(before, ev, rec); err != nil {
		return err
	}
	if ask, _, ok := machine.Asked(rec.Event()); isVerb && (!ok || ask != w.asks || rec.Empty() != (before.Status().Final() && !reopened(before, ev))) {
		return fmt.Errorf("S85: the request %T has no answer", ev)
	}
	w.noteWish(before, ev, rec)
	if rec.Empty() {
		w.note("%T: nothing", ev)
		if len(rec.Commands()) > 0 {
			return fmt.Errorf("promise 2: an empty record commands %v", rec.Commands())
		}
		if due, ok := w.s.NextDue(); ok && !due.After(w.now) {
			return fmt.Errorf("promise 13: NextDue %v has passed and nothing happened at %v", due, w.now)
		}
		return nil
	}
	if before.Status().Final() && !reopened(before, ev) {
		return fmt.Errorf("promise 3: a final run changed on %T", ev)
	}
	w.noteKept(rec)
	if err := w.j.append(rec); err != nil {
		return err
	}
	if w.c.chance(10) {
		row := w.j.rows[len(w.j.rows)-1]
		if len(w.j.rows)%2 == 0 {
			if _, err := foldCounted(&w.reader, w.s, w.wf, row, nil); err != nil {
				return err
			}
		} else if err := foldRow(w.s, row); err != nil {
			return err
		}
	} else {
		w.s.Apply(rec)
	}
	w.j.keep(w.s)
	w.note("%T%+v", ev, ev)
	w.wf = rec.Moved(w.wf, w.moves.next)
	if err := checkAlerts(rec, before); err != nil {
		return err
	}
	for _, f := range story.Facts(w.wf, before, rec) {
		w.note("    %s %s %s %s %s", f.Kind, f.Step, f.Status, f.Code, f.Message)
	}
	if err := w.check(before, rec); err != nil {
		return err
	}
	if answer, ok := ev.(machine.AttemptNotDone); ok && !rec.Late() {
		w.entry(w.forwardKey(answer.Attempt.Node), answer.Attempt.Node).parts = 0
	}
	w.forgetParts(before)
	if _, taken := ev.(machine.TakenOver); taken {
		if err := w.checkAttached(rec); err != nil {
			return err
		}
	}
	dies := w.c.chance(2) // between the commit and the calls
	for _, cmd := range rec.Commands() {
		switch cmd := cmd.(type) {
		case machine.Invoke:
			if err := w.checkInvoke(before, cmd); err != nil {
				return err
			}
			if !dies {
				w.invoke(cmd)
			}
		case machine.Stop:
			if err := w.checkStop(cmd); err != nil {
				return err
			}
			if !dies {
				w.stop(cmd)
			}
		case machine.Alert:
			w.alerts++
			w.note("    alert %s", cmd.Kind)
		}
	}
	if dies {
		w.engine++
		w.note("engine dies before it acts")
		if err := w.reload(); err != nil {
			return err
		}
		return w.deliver(machine.TakenOver{By: w.engine, From: w.engine - 1})
	}
	return nil
}

// noteWish notes how long an agent wants to be left alone with the work of a
// node. An operator need not wait.
func (w *world) noteWish(before *machine.State, ev machine.Event, rec machine.Record) {
	var id machine.AttemptID
	var after time.Duration
	switch ev := ev.(type) {
	case machine.AttemptFailed:
		id, after = ev.Attempt, ev.RetryAfter
	case machine.AttemptUnknown:
		id, after = ev.Attempt, ev.RetryAfter
	case machine.RetryRequested:
		if _, refused := rec.Refused(); !refused {
			clear(w.wishes)
			for i, n := range before.Nodes() {
				if rest, ok := w.rests[i]; ok && n.State == status.StepFailed { // the new round begins at once
					w.rests[i] = resting{rest.iteration, w.now}
				}
			}
		}
	}
	if after > 0 && !rec.Late() && before.Nodes()[id.Node].Find(id.Call).Kind == model.CallDo {
		w.wishes[id.Node] = later(w.wishes[id.Node], w.now.Add(after))
	}
}

// forgetParts drops what was recorded under keys of which it has become known
// that nothing was done.
func (w *world) forgetParts(before *machine.State) {
	for i, n := range w.s.Nodes() {
		if i < len(before.Nodes()) && n.Present() == status.EffectNone && before.Nodes()[i].Present() != status.EffectNone && n.Loop.Iteration == before.Nodes()[i].Loop.Iteration {
			w.entry(w.forwardKey(i), i).parts = 0
		}
	}
}

// invoke plans what becomes of a call.
func (w *world) invoke(inv machine.Invoke) {
	if w.isChild(inv) {
		w.invokeChild(inv)
		return
	}
	a := w.s.Nodes()[inv.Attempt.Node].Find(inv.Attempt.Call)
	k := &call{inv: inv, kind: a.Kind, node: inv.Attempt.Node}
	w.calls = append(w.calls, k)
	k.answerAt = w.now.Add(time.Duration(1+w.c.n(3000)) * time.Millisecond)
	if c := inv.Checkpoint; c != nil {
		k.point = int(c.Number)
	}
	if inv.Purpose != sdk.PurposeLookup && w.c.chance(20) {
		k.beatAt = w.now.Add(time.Duration(w.c.n(2500)) * time.Millisecond)
	}
	id := inv.Attempt
	rest := inv.CompleteBy.Sub(w.now)
	late := func() time.Time { // up to just before the grace is over
		return w.now.Add(time.Duration(w.c.n(int((rest+1900*time.Millisecond)/time.Millisecond))) * time.Millisecond)
	}
	switch fate := w.c.pick(14, 3, 3, 2, 2, 3, 2, 2, 2, 2); {
	case fate == 8:
		until := time.Time{}
		if w.c.chance(60) {
			until = w.now.Add(time.Duration(w.c.n(8)) * time.Second)
		}
		k.answer, k.beatAt = machine.AttemptDeferred{Attempt: id, Until: until, Why: "not sent"}, time.Time{}
	case inv.Purpose == sdk.PurposeLookup:
		w.planLookup(k, fate)
	case fate == 1:
		k.answer = machine.AttemptFailed{Attempt: id, Code: []string{"flaky", "unavailable", "invalid"}[w.c.n(3)], RetryAfter: time.Duration(w.c.n(4)) * time.Second}
	case fate == 2:
		k.answer = machine.AttemptFailed{Attempt: id, Code: "declined", Permanent: w.c.chance(50), Data: randomData(w.c)}
		if len(w.wf.Steps[inv.Step].FailWhen) > 0 && k.kind == model.CallDo && w.c.chance(60) { // a refusal in the reply
			k.answer = machine.AttemptOK{Attempt: id, Output: js(`"no"`)}
		}
	case fate == 3: // the agent is lost after it did it
		w.apply(k)
		k.answer = machine.AttemptUnknown{Attempt: id, Code: []string{"agent_lost", "internal"}[w.c.n(2)], RetryAfter: time.Duration(w.c.n(3)) * time.Second}
	case fate == 4: // ... or before
		k.answer = machine.AttemptUnknown{Attempt: id, Code: []string{"agent_lost", "internal"}[w.c.n(2)], RetryAfter: time.Duration(w.c.n(3)) * time.Second}
	case fate == 5:
		k.applyAt = late()
	case fate == 6:
	case fate == 7: // done, but the answer comes late
		k.applyAt = late()
		k.answerAt = inv.CompleteBy.Add(time.Duration(w.c.n(5000)) * time.Millisecond)
		k.answer = w.result(k)
	default:
		w.apply(k)
		k.answer = w.result(k)
		if fate == 9 && k.kind == model.CallDo {
			poor := `"poor"`
			if w.looping(k.node) {
				poor = fmt.Sprintf(`{"key":%q,"quality":"poor"}`, k.inv.IdempotencyKey)
			}
			k.answer = machine.AttemptOK{Attempt: id, Output: js(poor)}
		}
	}
	w.note("    call %s %s #%d answer %T at %v effect at %v", verb(inv.Purpose), story.Node(w.s, w.wf, k.node).Name, id.Call, k.answer, k.answerAt.Format("05.000"), k.applyAt.Format("05.000"))
}

// randomData is what an agent sends with a failure; some of it is sensitive.
func randomData(c *chooser) dsl.Value {
	switch c.n(3) {
	case 1:
		return js(`{"balance":3}`)
	case 2:
		return dsl.NewValue([]byte(`{"token":"a secret that is long enough"}`), []string{"/token"}, nil)
	}
	return dsl.Value{}
}

// stop interrupts a call, as most agents do when they are asked to: the answer
// is lost, and the effect happens or not.
func (w *world) stop(cmd machine.Stop) {
	if w.stopChild(cmd) {
		return
	}
	for _, k := range w.calls {
		if k.inv.Attempt != cmd.Attempt || k.answer == nil || w.c.chance(30) {
			continue
		}
		if _, unsent := k.answer.(machine.AttemptDeferred); unsent {
			continue
		}
		k.beatAt = time.Time{}
		k.answer = machine.AttemptUnknown{Attempt: cmd.Attempt, Code: sdk.CodeAborted}
		if !k.applyAt.IsZero() && w.c.chance(50) {
			k.applyAt = time.Time{}
		}
		w.note("    stop %s #%d", story.Node(w.s, w.wf, k.node).Name, cmd.Attempt.Call)
	}
}

// result is an answer; some nodes have the same output, some none.
func (w *world) result(k *call) machine.Event {
	if w.looping(k.node) {
		return machine.AttemptOK{Attempt: k.inv.Attempt, Output: js(fmt.Sprintf(`{"key":%q}`, k.inv.IdempotencyKey))}
	}
	if k.node%5 == 4 {
		return machine.AttemptOK{Attempt: k.inv.Attempt}
	}
	return machine.AttemptOK{Attempt: k.inv.Attempt, Output: js(fmt.Sprintf(`{"id":"output of node %d"}`, k.node/2))}
}

// planLookup answers truthfully, or not at all.
func (w *world) planLookup(k *call, fate int) {
	id := k.inv.Attempt
	switch fate {
	case 1, 2:
		k.answer = machine.AttemptFailed{Attempt: id, Code: "unavailable", Permanent: fate == 2}
	case 3, 4:
		k.answer = machine.AttemptUnknown{Attempt: id, Code: "agent_lost"}
	case 5, 6, 7:
	default:
		done := false
		if k.kind == model.CallUndoLookup {
			done = w.undone[k.inv.IdempotencyKey] > 0
		} else {
			done = w.entry(k.inv.IdempotencyKey, k.node).applied > 0
		}
		k.answer = machine.Event(machine.AttemptNotDone{Attempt: id})
		if done {
			k.answer = w.result(k)
		}
	}
}

// apply lets the effect of a call happen at the remote.
func (w *world) apply(k *call) {
	k.applyAt = time.Time{}
	step := w.wf.Steps[k.inv.Step]
	switch k.kind {
	case model.CallDo, model.CallLearn:
		if step.Do.ReadOnly {
			return
		}
		e := w.entry(k.inv.IdempotencyKey, k.node)
		if e.tombstone || step.Do.Idempotent && e.applied > 0 {
			return
		}
		e.applied++
		w.note("    EFFECT of %s", story.Node(w.s, w.wf, k.node).Name)
	case model.CallUndo:
		e := w.entry(k.inv.ForwardKey, k.node)
		if step.Undo.Do.ByKey {
			e.tombstone = true
		}
		if step.Undo.Do.Idempotent && w.undone[k.inv.IdempotencyKey] > 0 {
			return
		}
		w.undone[k.inv.IdempotencyKey]++
		if step.Repeat != nil {
			w.undoLoop(k)
			return
		}
		if e.applied > 0 {
			e.undone++
			w.note("    UNDONE %s", story.Node(w.s, w.wf, k.node).Name)
		}
	}
}

// stragglers lets everything arrive that is still on its way to a run that has
// ended; nothing of it may change anything.
func (w *world) stragglers() error {
	for len(w.calls) > 0 {
		if beat := w.nextBeat(); beat != nil {
			if err := w.progress(beat); err != nil {
				return err
			}
			continue
		}
		next := w.nextCall()
		if next == nil {
			w.pass(w.now.Add(time.Hour))
			continue
		}
		if err := w.deliverCall(next); err != nil {
			return err
		}
	}
	for _, ev := range []machine.Event{machine.TimePassed{}, machine.TakenOver{By: 9}, machine.CancelRequested{}, machine.PauseRequested{}, machine.RetryRequested{}, machine.CompensateRequested{}, machine.SettleRequested{}, machine.ResumeRequested{}, machine.SlotsFreed{}} {
		if err := w.deliver(ev); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) report() string {
	return describe(w.wf) + strings.Join(w.log, "\n")
}
