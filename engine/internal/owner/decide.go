package owner

import (
	"maps"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/clock"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// decide turns waiting events into one transition. Each event is decided on the state
// that the events before it lead to. So the state in memory is ahead of the journal by
// the transition in flight. Calls and answers wait until that transition has landed; if
// it does not land, the state is read again. decide returns nil if nothing has to be
// written.
func (sh *shard) decide(r *ownedRun, todo []*delivery) (*pendingCommit, error) {
	x := decision{sh: sh, r: r, f: sh.spares.blankCommit(), todo: todo, before: r.state.Status()}
	x.f.deliveries = todo
	x.f.Transition = store.Transition{Run: r.id, Seq: r.seq}
	ok := false
	defer func() { // also after a panic
		if !ok {
			x.f.release(sh.s.capacity)
		}
	}()
	for i, next := 0, nextEvent; i < len(x.todo) && next != noMore; {
		var err error
		if next, err = x.one(i); err != nil {
			return nil, err
		}
		if next == nextEvent {
			i++
		}
	}
	if err := x.row(); err != nil {
		return nil, err
	}
	ok = true
	return x.f, nil
}

// note collects the sensitive strings that an event brings, and counts calls
// that were not sent.
func (n *notes) note(e machine.Event) {
	switch e := e.(type) {
	case machine.Started:
		n.sensitive = append(n.sensitive, e.Vars.SensitiveStrings()...)
	case machine.AttemptOK:
		n.sensitive = append(n.sensitive, e.Output.SensitiveStrings()...)
	case machine.SettleRequested:
		n.sensitive = append(n.sensitive, e.Output.SensitiveStrings()...)
	}
	n.count(e)
}

// count counts how often in a row a node's call was not sent.
func (n *notes) count(e machine.Event) {
	switch e := e.(type) {
	case machine.AttemptDeferred:
		if n.refusals == nil {
			n.refusals = map[int]int{}
		}
		n.refusals[e.Attempt.Node]++
	case machine.AttemptOK:
		delete(n.refusals, e.Attempt.Node)
	case machine.AttemptFailed:
		delete(n.refusals, e.Attempt.Node)
	case machine.AttemptUnknown:
		delete(n.refusals, e.Attempt.Node)
	case machine.AttemptNotDone:
		delete(n.refusals, e.Attempt.Node)
	case machine.TakenOver: // this engine may have the agents that the former owner lacked
		n.refusals = nil
	}
}

// time sets the complete-by of the attempt that a message answers.
func (r *ownedRun) time(d *delivery) {
	if _, ok := answered(d.Event); d.message == 0 || !ok {
		return
	}
	if a, ok := r.state.OpenAttempt(r.wf, d.Attempt); ok {
		d.CompleteBy = a.CompleteBy
	}
}

// postpone leaves the events from index i on for the run's next row, and returns the
// events before them.
func (sh *shard) postpone(r *ownedRun, todo []*delivery, i int) []*delivery {
	r.pending = append(slices.Clone(todo[i:]), r.pending...)
	return todo[:i]
}

// begin prepares a transition for an event that makes this engine the owner.
func (sh *shard) begin(r *ownedRun, f *pendingCommit, d *delivery) {
	engine := sh.s.engine
	if d.start != nil {
		f.started = d.start
		f.Transition.Workflow, f.Transition.Owner = d.start.Workflow, &engine
	}
	if _, ok := d.Event.(machine.TakenOver); ok {
		f.Transition.Owner, f.adopting = &engine, true
		f.Transition.Heard = r.heard
	}
}

// decideOne decides one event, and reserves a slot for every call that the decision
// starts, so that each committed call can be sent. The run may use the slot of the call
// that the event answers. If another run has taken a slot in between, decideOne decides
// again: Decide is pure, so that is safe. A decision that costs too much for a shard is
// returned, and the pool makes it.
func (sh *shard) decideOne(r *ownedRun, f *pendingCommit, d *delivery, at time.Time, now clock.Moment) (machine.Record, *costlyDecision) {
	in := machine.Input{At: at, Event: d.Event, Engine: int32(sh.s.engine), Scratch: &sh.scratch, Allowance: &sh.allowance,
		Ceilings: sh.s.n.cfg.Options.Ceilings, Journal: r.stored}
	var own *call.Reservation
	if d.Slot.Of(sh.s.capacity) && d.Slot.Take() {
		own = d.Slot.Own()
		defer own.Release() // if it is not used
	}
	var full map[string]bool // agents that reported free slots and then refused them twice
	made := sh.ready(r, d, now)
	if made != nil {
		full = made.full
	}
	for try := 0; ; try++ {
		var rec machine.Record
		if made != nil {
			rec = made.rec
			r.tellSlow(&f.Transition, made.took)
		} else {
			in.Slots = sh.slots(r, d, own, full, now)
			sh.allowance = *dsl.NewAllowance(shardCost)
			if rec = machine.Decide(r.wf, r.state, in); sh.allowance.Over() {
				own.HandBack(d.Slot)
				return machine.Record{}, sh.costly(r, d, in, full)
			}
		}
		commands := rec.Commands()
		agent, ok := sh.reserve(r, f, own, commands)
		if ok {
			f.commands = append(f.commands, commands...)
			return rec, nil
		}
		if try > 0 || made != nil {
			if full = maps.Clone(full); full == nil {
				full = map[string]bool{}
			}
			full[agent] = true
		}
		made = nil
	}
}

// recall returns events for calls whose complete-by has passed at the given time and
// which this engine knows it has not sent. Such a call must not count as one whose answer
// is missing.
func (sh *shard) recall(r *ownedRun, at time.Time) []*delivery {
	if due, ok := r.state.NextDue(); !ok || due.After(at) || !r.owned {
		return nil
	}
	var unsent []*delivery
	for _, a := range r.state.ExpiredAttempts(r.wf, at) {
		if !sh.s.n.Calls.Recall(r.id, a.ID) {
			continue
		}
		unsent = append(unsent, &delivery{Answer: call.Answer{
			Event:   machine.AttemptDeferred{Attempt: a.ID, Until: at.Add(sh.s.n.cfg.Options.MinScan), Why: call.WhyTooLate},
			Arrived: at, Attempt: a.ID, CompleteBy: a.CompleteBy,
		}})
	}
	return unsent
}

// decidedAt returns the time at which an event is decided. That is now, or the arrival of
// an answer that came before its complete-by if complete-by has passed since. It is never
// before the run's last record.
func decidedAt(state *machine.State, d *delivery, at time.Time) time.Time {
	if d.answers() && !at.Before(d.CompleteBy) && d.Arrived.Before(d.CompleteBy) {
		at = d.Arrived
	}
	if last := state.Last(); at.Before(last) {
		at = last
	}
	return at
}

// mayNotStart returns why no call of the run may start now; nil = calls may.
func (sh *shard) mayNotStart(r *ownedRun, d *delivery, now clock.Moment) *machine.Slot {
	n := sh.s.n
	switch {
	case d.quiet || r.unheard:
		return &machine.Slot{Why: "the engine takes the run over"}
	case n.Idle != "":
		return &machine.Slot{Why: n.Idle}
	case n.Draining.Load():
		return &machine.Slot{Why: "engine is stopping"}
	case !now.Leased:
		return &machine.Slot{Why: call.WhyNoLease, Until: now.Store.Add(n.cfg.Options.MaxScan)}
	}
	return nil
}

// slots returns, for each agent, whether calls may start now. Free slots belong to the
// runs that wait in line for them. One exception: a run whose call was answered may use
// the slot of that call, so that it need not queue between its steps. Every run is
// finite, so no run waits for ever.
func (sh *shard) slots(r *ownedRun, d *delivery, own *call.Reservation, full map[string]bool, now clock.Moment) map[string]machine.Slot {
	if sh.slotsOf == nil {
		sh.slotsOf = map[string]machine.Slot{}
	}
	slots := sh.slotsOf // the map of the last decision is reused
	clear(slots)
	if slot := sh.mayNotStart(r, d, now); slot != nil {
		for agent := range r.specs {
			slots[agent] = *slot
		}
		return slots
	}
	if sh.s.capacity == nil {
		return nil
	}
	called := d.decided != nil // the queue has told the run that a slot is free
	for agent, spec := range r.specs {
		slot := sh.s.capacity.Slot(spec)
		if !called && !d.answers() {
			slot.Free = max(0, slot.Free-sh.s.Queue.ahead(spec.Key))
		}
		if full[agent] {
			slot.Free = 0
		}
		if own != nil && own.Key() == spec.Key && slot.Until.IsZero() {
			slot.Free++
		}
		if !slot.Until.IsZero() { // agents go by this process's clock, runs by the store's
			slot.Until = now.Store.Add(max(0, slot.Until.Sub(now.Local)))
		}
		if slot.Free == 0 && slot.Why == "" {
			slot.Why = "full"
		}
		slots[agent] = slot
	}
	return slots
}

// reserve takes one slot for every call, and uses own first. If an agent has too few
// slots it takes none and returns that agent.
func (sh *shard) reserve(r *ownedRun, f *pendingCommit, own *call.Reservation, commands []machine.Command) (string, bool) {
	capacity := sh.s.capacity
	if capacity == nil {
		return "", true
	}
	taken := pendingCommit{}
	var used *invoke.AgentSpec // the agent for which own is used
	for _, c := range commands {
		inv, ok := c.(machine.Invoke)
		if !ok {
			continue
		}
		spec := r.specs[inv.Agent]
		if used == nil && own != nil && own.Key() == spec.Key {
			used = &spec
			continue
		}
		if !capacity.Reserve(spec, 1) {
			taken.release(capacity)
			return inv.Agent, false
		}
		taken.reserved = append(taken.reserved, spec)
	}
	f.reserved = append(f.reserved, taken.reserved...)
	if used != nil && own.Take() {
		f.reserved = append(f.reserved, *used)
	}
	return "", true
}

// check returns the values on which the run's bound depends, after the records.
func (sh *shard) check(r *ownedRun, before machine.RunState) check {
	due, has := r.state.NextDue()
	return check{
		due: due, hasDue: has, floor: r.wf.Shortest,
		inFlight: r.state.InFlight,
		final:    r.state.Status().Final() && !before.Final(),
	}
}

// AddRecord adds to a transition what the run's row and the views show of a record.
// before is the run's state before the record.
func AddRecord(t *store.Transition, rec machine.Record, before *machine.State) {
	if state, ok := rec.RunState(); ok {
		t.State = state
	}
	var few [4]machine.StepRow
	for _, row := range rec.AppendSteps(few[:0], before) {
		setStep(t, store.StepRow{Node: int32(row.Node), State: row.State, Failures: row.Failures, Attempt: row.Attempt, CompleteBy: row.CompleteBy})
	}
	for _, node := range rec.NewNodes() {
		t.NewNodes = append(t.NewNodes, store.NodeName{Node: int32(node.Node), Step: int32(node.Step), Name: node.Name})
	}
	for _, c := range rec.Commands() {
		if a, ok := c.(machine.Alert); ok {
			t.Alerts = append(t.Alerts, store.Alert{Kind: a.Kind, Step: a.Step, Code: naming.CleanText(a.Code), Message: naming.CleanText(a.Message)})
		}
	}
}

// setStep keeps one entry for each step: the last one.
func setStep(t *store.Transition, row store.StepRow) {
	if len(t.Steps) < 64 { // beyond that, views take the later of two entries
		for i := range t.Steps {
			if t.Steps[i].Node == row.Node {
				t.Steps[i] = row
				return
			}
		}
	}
	if t.Steps == nil {
		t.Steps = make([]store.StepRow, 0, 2) // a step that ends and the one that follows
	}
	t.Steps = append(t.Steps, row)
}
