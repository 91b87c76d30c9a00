package story

import (
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// Facts returns the facts of a record, in the order in which people should read them. The parameter
// `s` is the state before the record. The names of steps and actions, and the largest number of
// attempts, come from the workflow `wf`. If `wf` is nil, a step has a number such as #3 instead of
// its name, and the facts do not have actions and largest numbers of attempts.
func Facts(wf *dsl.Workflow, s *machine.State, r machine.Record) []Fact {
	facts, _ := AppendFacts(nil, AllFactKinds(), wf, s, r)
	return facts
}

// AppendFacts adds the facts of the record `r` to the list `facts`, but only facts of the kinds in
// the set `kinds`. Facts of other kinds are not computed, but only counted, which is cheaper.
// AppendFacts returns the longer list, and the number of the record's facts of all kinds.
func AppendFacts(facts []Fact, kinds FactKinds, wf *dsl.Workflow, s *machine.State, r machine.Record) ([]Fact, int) {
	c := s.Change(&r)
	t := factWriter{wf: wf, c: c, facts: facts, kinds: kinds}
	if c.Visible() {
		t.collect()
	}
	return t.facts, t.count
}

// Count returns the number of facts that a record has. The parameter `c` is the change that the
// record makes. Calling Count is much cheaper than computing the facts.
func Count(wf *dsl.Workflow, c *machine.Change) int {
	if !c.Visible() {
		return 0
	}
	t := factWriter{wf: wf, c: *c}
	t.collect()
	return t.count
}

// collect collects the facts of the record.
func (t *factWriter) collect() {
	t.heads()
	for k := range t.c.Len() {
		t.attemptEnds(t.pair(k))
	}
	for k := range t.c.Len() { // first the ends of instances, then the ends of steps
		if v := t.pair(k); v.now.Item {
			t.nodeEnds(v)
		}
	}
	for k := range t.c.Len() {
		if v := t.pair(k); !v.now.Item {
			t.nodeEnds(v)
		}
	}
	t.turns()
	for k := range t.c.Len() {
		t.beginnings(t.pair(k))
	}
	t.end()
}

// A factWriter computes the facts of one record from the state before the record and the state
// after it.
type factWriter struct {
	wf    *dsl.Workflow
	c     machine.Change
	facts []Fact
	kinds FactKinds // facts of other kinds are only counted
	count int

	// The last result of the method `step`: `each` is the index of the for_each step plus 1, `among`
	// is the number of its instances, and `limit` is its deadline.
	each, among int
	limit       model.Instant
}

type pair struct {
	i        int
	old, now *model.Node
}

// before returns the run's fields as they were before the record. The method `after` returns the
// fields as they are after the record.
func (t *factWriter) before() *model.Run { return t.c.Before() }

func (t *factWriter) after() *model.Run { return t.c.After() }

// pair returns the k-th node that the record changes: its index, and its fields before and
// after the record.
func (t *factWriter) pair(k int) pair {
	i, was, now := t.c.Node(k)
	return pair{i, was, now}
}

// add adds a fact. The caller must have checked with the method `skips` that facts of this kind are
// wanted.
func (t *factWriter) add(f Fact) {
	t.count++
	f.At = t.c.At().Time()
	t.facts = append(t.facts, f)
}

// skips returns true if facts of this kind are not wanted. In this case it has counted one more
// fact, and the caller must not add the fact.
func (t *factWriter) skips(kind FactKind) bool {
	if t.kinds.has(kind) {
		return false
	}
	t.count++
	return true
}

// heads adds the facts that follow from the event alone, such as the start of the run, a
// takeover, a verb or a signal.
func (t *factWriter) heads() {
	switch ev := t.c.Event().(type) {
	case machine.Started:
		t.started(ev)
	case machine.TakenOver:
		if !t.skips(FactRunTakenOver) {
			t.add(Fact{Kind: FactRunTakenOver, Unowned: ev.From == 0, Rest: t.rest()})
		}
	case machine.SlotsFreed:
		if ev.Admitted && !t.skips(FactRunAdmitted) {
			f := Fact{Kind: FactRunAdmitted, Rest: t.rest()}
			if t.after().Line.Limit == 0 { // the run waited only for its unique key
				f.Message = "its unique key is free"
			}
			t.add(f)
		}
	case machine.CancelRequested:
		t.verb("cancel", "", ev.By, ev.Reason, ev.Ask)
	case machine.PauseRequested:
		t.verb("pause", "", ev.By, ev.Reason, ev.Ask)
	case machine.ResumeRequested:
		t.verb("resume", "", ev.By, ev.Reason, ev.Ask)
	case machine.ParentWaits:
		t.verb("extend", "", ev.By, "", ev.Ask)
	case machine.RetryRequested:
		t.verb("retry", ev.Step, ev.By, ev.Reason, ev.Ask)
	case machine.CompensateRequested:
		t.verb("compensate", ev.Step, ev.By, ev.Reason, ev.Ask)
	case machine.SettleRequested:
		t.verb("settle", ev.Step, ev.By, ev.Reason, ev.Ask)
	case machine.Migrated:
		t.verb("migrate", "", ev.By, ev.Reason, ev.Ask)
	case machine.SignalReceived:
		if !t.skips(FactSignalReceived) {
			t.add(Fact{
				Kind: FactSignalReceived, Signal: ev.Name, Known: t.c.Knows(ev.ID),
				Code: ev.Fail, Message: ev.Reason, By: ev.By, Ask: ev.Ask, Rest: t.rest(),
			})
		}
	case machine.Refused:
		if !t.skips(FactVerb) {
			t.add(Fact{Kind: FactVerb, Status: "refused", Code: ev.Verb, Message: ev.Reason, By: ev.By, Ask: ev.Ask, Rest: t.rest()})
		}
	case machine.AttemptProgress:
		if !t.skips(FactAttemptProgress) {
			t.progress(ev)
		}
	}
}

// started adds the facts of the start of a run: that it exists, that it was restarted from an ended
// run, and the signals that the run of a group has from its start.
func (t *factWriter) started(ev machine.Started) {
	if !t.skips(FactRunCreated) {
		t.add(Fact{Kind: FactRunCreated, Run: ev.Name, Key: ev.Key, RunDeadline: t.after().Deadline.Time(), By: ev.StartedBy})
	}
	if ev.From.Run != 0 {
		t.verb("restart", ev.From.Step, ev.StartedBy, ev.From.Reason, 0)
	}
	for k := range ev.Signals {
		if s := &ev.Signals[k]; !t.skips(FactSignalReceived) {
			t.add(Fact{Kind: FactSignalReceived, Signal: s.Name, Code: s.Fail, Message: s.Reason, By: s.By, Rest: t.rest()})
		}
	}
}

func (t *factWriter) verb(verb, step, by, reason string, ask int64) {
	if !t.skips(FactVerb) {
		t.add(Fact{Kind: FactVerb, Status: "accepted", Code: verb, Step: step, Message: reason, By: by, Ask: ask, Rest: t.rest()})
	}
}

// rest returns the value of Fact.Rest: the status of the run after the record, if the run then
// needs a person or has ended; otherwise "".
func (t *factWriter) rest() string {
	if s := t.after().State; s.NeedsHuman() || s.Final() {
		return s.String()
	}
	return ""
}

// progress adds the fact about a checkpoint or heartbeat of a running attempt.
func (t *factWriter) progress(ev machine.AttemptProgress) {
	f := Fact{Kind: FactAttemptProgress, Message: ev.Note}
	if i := ev.Attempt.Node; i >= 0 && i < len(t.c.Nodes()) {
		p := pair{i, t.c.Nodes()[i], t.c.Nodes()[i]}
		f.Step = t.name(p)
		if a := p.now.Find(ev.Attempt.Call); a != nil {
			f.Attempt, f.Purpose, f.Undo = int(a.Number), purposeOf(a.Kind), p.now.Undoes(a)
		}
	}
	t.add(f)
}

func (t *factWriter) name(p pair) string { return model.NodeName(t.wf, p.i, p.now) }

// attemptEnds adds a fact for each attempt of a node that ends with this record.
func (t *factWriter) attemptEnds(p pair) {
	for k := range p.now.Attempts {
		a := &p.now.Attempts[k]
		if a.Status == model.AttemptOpen || a.Ended != t.c.At() {
			continue
		}
		if old := p.old.Find(int(a.Call)); old != nil && old.Status != model.AttemptOpen {
			continue
		}
		if t.skips(FactAttemptFinished) {
			continue
		}
		f := t.attemptFact(p, a)
		f.Kind = FactAttemptFinished
		f.Status, f.Code, f.Message = model.AttemptStatuses[a.Status], a.Code(), a.Message()
		f.Took = (a.Ended.Time()).Sub(a.Started.Time())
		t.add(f)
	}
}

// nodeEnds adds the facts about the end of a step or of its undo.
func (t *factWriter) nodeEnds(p pair) {
	if t.takenOver(p) {
		return
	}
	if p.now.Ended() && !p.old.Ended() && !t.skips(FactStepFinished) {
		f := Fact{Kind: FactStepFinished, Step: t.name(p), Action: model.ActionName(t.wf, p.now, model.CallDo), Status: p.now.State.String(), Attempt: int(p.now.Fwd.Total)}
		if p.now.State == status.StepFailed || p.now.State == status.StepCaught {
			f.Code, f.Message = p.now.Fwd.Code(), p.now.Fwd.Message()
			f.NotRepeated = t.notRepeated(p.now)
		}
		began := p.now.Fwd.Began
		if p.now.Expanded { // a for_each step itself makes no call
			began = p.now.Fwd.Ready
		}
		f.Took = since(began, p.now.Fwd.Ended)
		t.add(f)
	}
	if t.undoEnds(p) && !t.skips(FactUndoFinished) {
		t.undoEnd(p)
	}
}

// takenOver reports whether this record makes the run the heir of an ended run, and the node is one
// that the run takes over. The end of such a node is no new fact: a fact of the ended run has
// reported it.
func (t *factWriter) takenOver(p pair) bool {
	if len(t.before().Ancestors) > 0 || len(t.after().Ancestors) == 0 {
		return false
	}
	from, _ := t.after().Legacy(p.now.Step)
	return from != nil
}

// undoEnds reports whether the undo of a node has ended.
func (t *factWriter) undoEnds(p pair) bool {
	if p.now.Undo == p.old.Undo || p.now.Expanded {
		return false
	}
	switch p.now.Undo {
	case model.UndoDone, model.UndoFailed, model.UndoLeft, model.UndoDeclared:
		return true
	case model.UndoNone: // if a new attempt may follow the undo, the undo ends with UndoNone
		return p.now.Gen > p.old.Gen || p.now.Ended() && p.now.Und.Miss != model.MissNone && !p.now.Done
	}
	return false
}

// undoEnd adds the fact that the undo of a node has ended.
func (t *factWriter) undoEnd(p pair) {
	f := Fact{
		Kind: FactUndoFinished, Step: t.name(p), Undo: true, Action: model.ActionName(t.wf, p.now, model.CallUndo),
		Attempt: int(p.now.Und.Total), Took: since(p.now.Und.Began, p.now.Und.Ended),
	}
	switch {
	case p.now.Undo == model.UndoDone:
		f.Status = "undone"
	case p.now.Undo == model.UndoFailed:
		f.Status, f.Code, f.Message = "undo_failed", p.now.Und.Code(), p.now.Und.Message()
	case p.now.Undo == model.UndoLeft:
		f.Status = "left_as_is"
	case p.now.Undo == model.UndoDeclared:
		f.Status = "not_undone_by_declaration"
	case p.now.Gen > p.old.Gen:
		f.Status, f.Attempt, f.Took = "undone", int(p.old.Und.Total), since(p.old.Und.Began, t.c.At())
	default:
		f.Status, f.Code, f.Message = "undo_failed", p.now.Und.Code(), p.now.Und.Message()
		f.Took = since(p.old.Und.Began, t.c.At())
	}
	t.add(f)
}

func since(from, to model.Instant) time.Duration {
	if from == 0 || to == 0 {
		return 0
	}
	return to.Time().Sub(from.Time())
}

// attemptFact returns a fact with those fields that are the same when an attempt starts and
// when it ends.
func (t *factWriter) attemptFact(p pair, a *model.Attempt) Fact {
	f := Fact{
		Step: t.name(p), Action: model.ActionName(t.wf, p.now, a.Kind), Purpose: purposeOf(a.Kind), Undo: p.now.Undoes(a),
		Attempt: int(a.Number), Of: t.allowed(p.now, a.Kind), CompleteBy: a.CompleteBy.Time(), Among: t.instances(p.now),
	}
	t.deadline(&f, p.now)
	return f
}

// deadline sets the field UndoDeadline of a fact about an undo, and the field StepDeadline of any
// other fact. The parameter `n` is the node of the fact. For an instance, StepDeadline is the
// deadline of its for_each step.
func (t *factWriter) deadline(f *Fact, n *model.Node) {
	switch {
	case f.Undo:
		f.UndoDeadline = n.Und.Deadline.Time()
	case n.Item:
		t.step(int(n.Step))
		f.StepDeadline = t.limit.Time()
	default:
		f.StepDeadline = n.Fwd.Deadline.Time()
	}
}

// purposeOf returns the purpose that people see for a call of this kind.
func purposeOf(k model.CallKind) Purpose {
	switch k {
	case model.CallDo:
		return PurposeDo
	case model.CallUndo:
		return PurposeUndo
	case model.CallLookup, model.CallUndoLookup:
		return PurposeLookup
	case model.CallLearn:
		return PurposeLearn
	}
	return ""
}

// allowed returns how many attempts one round of a node's calls may have; 0 = not known. The number
// is not known in three cases. First, the workflow is not known. Second, the settings of retry
// depend on results of steps, or cost more than factCost. Third, calls of this kind have no such
// settings.
func (t *factWriter) allowed(n *model.Node, kind model.CallKind) (attempts int) {
	if t.wf == nil || int(n.Step) >= len(t.wf.Steps) {
		return 0
	}
	step := t.wf.Steps[n.Step]
	settings := step.Settings
	switch {
	case kind == model.CallUndo && step.Undo != nil && step.Undo.Settings != nil:
		settings = step.Undo.Settings
	case kind != model.CallDo:
		return 0
	}
	s, err := settings(t.scope())
	if err != nil {
		return 0
	}
	return s.Retry.MaxAttempts
}

// factCost is the largest cost of evaluating the settings of a step for a fact. Its unit is
// approximately a nanosecond (dsl.Allowance). The shard computes facts after a decision, and
// other runs wait meanwhile. So the engine does not evaluate settings that cost more, and the
// fact does not show them.
const factCost = 1_000_000

// scope returns the values that the settings of a step can read for a fact: the run's
// variables.
func (t *factWriter) scope() *dsl.Scope {
	return &dsl.Scope{Vars: t.after().Vars.V, Allowance: dsl.NewAllowance(factCost)}
}

// notRepeated returns why the last call of a failed node was not repeated. It returns "" if there
// is no reason to show, or if the workflow is not known. It also returns "" if the settings depend
// on results of steps or cost more than factCost.
func (t *factWriter) notRepeated(n *model.Node) NotRepeated {
	if t.wf == nil || int(n.Step) >= len(t.wf.Steps) {
		return ""
	}
	step := t.wf.Steps[n.Step]
	s, err := step.Settings(t.scope())
	if err != nil {
		return ""
	}
	return notRepeated(step, s, n)
}

// turns adds a fact if the run has turned back, now needs a person, or is now overdue.
func (t *factWriter) turns() {
	b, a := t.before(), t.after()
	if a.Phase != b.Phase && !t.skips(FactRunTurned) {
		t.add(Fact{Kind: FactRunTurned, Step: a.Failure.Step, Code: a.Failure.Code, Message: a.Failure.Message, CompensationDeadline: a.UndoDeadline.Time()})
	}
	if a.Lost() && !b.Lost() && !b.State.NeedsHuman() && !t.skips(FactRunParked) {
		f := machine.LostFailure(a)
		t.add(Fact{Kind: FactRunParked, Status: a.State.String(), Code: f.Code, Message: f.Message})
	}
	if a.Parked && !b.Parked && !b.Lost() && !t.skips(FactRunParked) {
		t.add(Fact{Kind: FactRunParked, Status: status.RunParked.String(), Step: a.Failure.Step, Code: a.Failure.Code, Message: a.Failure.Message})
	}
	if a.Stuck && !b.Stuck && !t.skips(FactRunParked) {
		f := Fact{
			Kind: FactRunParked, Status: status.RunCompensationFailed.String(), Step: a.Failure.Step, Code: a.Failure.Code, Message: a.Failure.Message,
			Undone: int(a.Undone), LeftAsIs: int(a.Left),
		}
		f.UndoFailures, f.UndoBlocked = undoFailures(t.wf, t.nodes())
		t.add(f)
	}
	if a.Overdue && !b.Overdue && !a.Parked && !t.skips(FactVerb) {
		t.add(Fact{Kind: FactVerb, Status: "overdue", Message: "the run's deadline has passed", Rest: t.rest()})
	}
}

// nodes returns all nodes as they are after the record.
func (t *factWriter) nodes() []*model.Node {
	all := slices.Clone(t.c.Nodes())
	for k := range t.c.Len() {
		i, _, now := t.c.Node(k)
		for len(all) <= i {
			all = append(all, &model.Blank)
		}
		all[i] = now
	}
	return all
}

// beginnings adds a fact if a node starts an undo or an attempt, is held, begins to wait for a
// signal or a timer, or begins a pause.
func (t *factWriter) beginnings(p pair) {
	if p.now.Undo == model.UndoActive && p.old.Undo != model.UndoActive && p.old.Und.Began == 0 && !p.now.Expanded && !t.skips(FactUndoStarted) {
		t.add(Fact{Kind: FactUndoStarted, Step: t.name(p), Undo: true, Action: model.ActionName(t.wf, p.now, model.CallUndo), UndoDeadline: p.now.Und.Deadline.Time()})
	}
	for k := range p.now.Attempts {
		if a := &p.now.Attempts[k]; a.Started == t.c.At() && p.old.Find(int(a.Call)) == nil && !t.skips(FactAttemptStarted) {
			f := t.attemptFact(p, a)
			f.Kind = FactAttemptStarted
			t.iteration(&f, p.now, p.now.Loop.Iteration)
			t.add(f)
		}
	}
	undo := p.now.Undo != model.UndoNone
	if p.now.Queue != 0 && p.now.Hold > 0 && int(p.now.Hold) <= len(t.after().Holds) && (p.old.Queue == 0 || p.old.Hold != p.now.Hold) && !t.skips(FactStepHeld) {
		h := t.after().Holds[p.now.Hold-1]
		f := Fact{Kind: FactStepHeld, Step: t.waiting(p), Undo: undo, Agent: h.Agent, Until: h.Until.Time(), Message: h.Why, Among: t.instances(p.now)}
		t.deadline(&f, p.now)
		t.add(f)
	}
	if p.now.Waits() && (!p.old.Waits() || p.now.Loop != p.old.Loop) && !t.skips(FactWaitStarted) {
		f := Fact{Kind: FactWaitStarted, Step: t.name(p), Until: p.now.Track().Until.Time(), Awaits: awaited(p.now), Among: t.instances(p.now)}
		t.iteration(&f, p.now, p.now.Loop.Iteration)
		t.deadline(&f, p.now)
		t.add(f)
	}
	t.pause(p, undo)
}

// pause adds a fact if a node begins a pause: before another attempt, a lookup or an iteration.
func (t *factWriter) pause(p pair, undo bool) {
	track, was := p.now.Track(), p.old.Track()
	if track.Act == model.Backoff && (was.Act != model.Backoff || was.Until != track.Until) && p.now.Undo != model.UndoPending && !t.skips(FactRetryScheduled) {
		f := Fact{
			Kind: FactRetryScheduled, Step: t.name(p), Undo: undo, Purpose: purposeOf(track.Kind), Until: track.Until.Time(),
			Code: track.Code(), Message: track.Message(), CoolDown: p.now.Fwd.Rounds > p.old.Fwd.Rounds,
			Among: t.instances(p.now),
		}
		switch {
		case !undo && p.now.Loop.Between:
			t.iteration(&f, p.now, p.now.Loop.Iteration+1)
		case f.Purpose != PurposeLookup:
			f.Attempt, f.Of = int(track.Attempt)+1, t.allowed(p.now, track.Kind)
		}
		t.deadline(&f, p.now)
		t.add(f)
	}
}

// awaited returns the names of the signals for which a node waits now; nil = none.
func awaited(n *model.Node) []string {
	if !n.Waits() || n.Signal.Awaits == "" {
		return nil
	}
	return strings.Split(n.Signal.Awaits, "\n")
}

// instances returns the number of instances of the for_each step to which a node belongs.
func (t *factWriter) instances(n *model.Node) int {
	switch {
	case n.Expanded:
		return n.Count
	case !n.Item:
		return 0
	}
	t.step(int(n.Step))
	return t.among
}

// step sets the fields `among` and `limit` for a for_each step, as they are after the record. The
// parameter `i` is the index of the step. The instances of a step follow each other in a record, so
// the factWriter keeps the last result. Without that, the time would grow with the square of the
// number of instances.
func (t *factWriter) step(i int) {
	if t.each == i+1 {
		return
	}
	t.each, t.among, t.limit = i+1, 0, 0
	for k := range t.c.Len() {
		if changed, _, now := t.c.Node(k); changed == i {
			t.among, t.limit = now.Count, now.Fwd.Deadline
			return
		}
	}
	if i < len(t.c.Nodes()) {
		n := t.c.Nodes()[i]
		t.among, t.limit = n.Count, n.Fwd.Deadline
	}
}

// waiting returns the name of the node that waits for an agent. For a for_each step, that is
// the instance that begins next.
func (t *factWriter) waiting(p pair) string {
	n := p.now
	if n.Expanded && n.Next < n.Count {
		next := n.First + n.Next
		for k := range t.c.Len() {
			if i, _, now := t.c.Node(k); i == next {
				return model.NodeName(t.wf, next, now)
			}
		}
		if next < len(t.c.Nodes()) {
			return model.NodeName(t.wf, next, t.c.Nodes()[next])
		}
	}
	return t.name(p)
}

// end adds the fact that the run has ended.
func (t *factWriter) end() {
	a := t.after()
	if a.Finished == 0 || t.before().Finished != 0 || t.skips(FactRunFinished) {
		return
	}
	t.add(Fact{
		Kind: FactRunFinished, Status: a.State.String(), Step: a.Failure.Step, Code: a.Failure.Code, Message: a.Failure.Message,
		Outputs: namedValues(a.Outputs), Undone: int(a.Undone), LeftAsIs: int(a.Left), Undeclared: int(a.Undeclared),
		Kept: keptByDeclaration(t.wf, a, t.nodes), Took: since(a.Started, a.Finished),
	})
}

// iteration sets the fields Iteration and Iterations of the fact f, if f is about the attempts,
// waits or pauses of a step with a repeat block. It sets nothing in a fact about an undo or a
// lookup. The parameter `number` counts the iterations from 0.
func (t *factWriter) iteration(f *Fact, n *model.Node, number int32) {
	if !f.Undo && f.Purpose != PurposeLookup && loops(t.wf, n) {
		f.Iteration, f.Iterations = int(number)+1, mostIterations(t.wf, n, t.scope())
	}
}
