package machine

import (
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// Facts returns the record's part of the run's story, in the order in which
// people should read it. s is the state before the record; wf gives steps and
// actions their names and the limits of attempts, and may be nil.
func (r Record) Facts(wf *dsl.Workflow, s *State) []Fact {
	facts, _ := r.AppendFacts(nil, AllFactKinds(), wf, s)
	return facts
}

// AppendFacts appends to facts those of what Facts returns that are of the given
// kinds, and returns how many there are of all kinds. A fact is large and costs
// more to make than to count.
func (r Record) AppendFacts(facts []Fact, kinds FactKinds, wf *dsl.Workflow, s *State) ([]Fact, int) {
	if r.Empty() && !r.final {
		return facts, 0
	}
	t := teller{wf: wf, r: r, s: s, o: s.foresee(&r), facts: facts, kinds: kinds}
	t.tell()
	return t.facts, t.count
}

// CountFacts returns how many Facts the record has, at much less cost than
// telling them.
func (r Record) CountFacts(wf *dsl.Workflow, s *State) int {
	if r.Empty() && !r.final {
		return 0
	}
	t := teller{wf: wf, r: r, s: s, o: s.foresee(&r)}
	t.tell()
	return t.count
}

// tell goes through the record.
func (t *teller) tell() {
	r := &t.r
	t.heads()
	for k := range r.nodes {
		t.attemptEnds(t.pair(k))
	}
	for k := range r.nodes { // instances before their step
		if v := t.pair(k); v.now.item {
			t.nodeEnds(v)
		}
	}
	for k := range r.nodes {
		if v := t.pair(k); !v.now.item {
			t.nodeEnds(v)
		}
	}
	t.turns()
	for k := range r.nodes {
		t.beginnings(t.pair(k))
	}
	t.end()
}

// A teller turns the difference between two states into facts.
type teller struct {
	wf    *dsl.Workflow
	r     Record
	s     *State // before the record
	o     outcome
	facts []Fact
	kinds FactKinds // others are counted and not made
	count int

	each, among int // the for_each step asked for last, plus one, and its instances
}

type pair struct {
	i        int
	old, now *node
}

// before and after return the run before and after the record.
func (t *teller) before() *run { return &t.s.run }
func (t *teller) after() *run  { return &t.o.run }

// pair returns the k-th node of the record before and after it.
func (t *teller) pair(k int) pair {
	i := t.r.nodes[k].node
	return pair{i, t.s.before(i), t.o.node(&t.r, k)}
}

// say makes a fact whose kind was not skipped.
func (t *teller) say(f Fact) {
	t.count++
	f.At = t.r.at.time()
	t.facts = append(t.facts, f)
}

// skips counts a fact that need not be made, and reports whether that is so.
func (t *teller) skips(kind FactKind) bool {
	if t.kinds.has(kind) {
		return false
	}
	t.count++
	return true
}

// heads tells what came from outside.
func (t *teller) heads() {
	switch ev := t.r.event.(type) {
	case Started:
		if !t.skips(FactRunCreated) {
			t.say(Fact{Kind: FactRunCreated, Run: ev.Name, Key: ev.Key, RunDeadline: t.after().deadline.time(), By: ev.StartedBy})
		}
	case TakenOver:
		if !t.skips(FactRunTakenOver) {
			t.say(Fact{Kind: FactRunTakenOver, Unowned: ev.From == 0})
		}
	case CancelRequested:
		t.verb("cancel", "", ev.By, ev.Reason, ev.Ask)
	case PauseRequested:
		t.verb("pause", "", ev.By, ev.Reason, ev.Ask)
	case ResumeRequested:
		t.verb("resume", "", ev.By, ev.Reason, ev.Ask)
	case RetryRequested:
		t.verb("retry", ev.Step, ev.By, ev.Reason, ev.Ask)
	case CompensateRequested:
		t.verb("compensate", ev.Step, ev.By, ev.Reason, ev.Ask)
	case SettleRequested:
		t.verb("settle", ev.Step, ev.By, ev.Reason, ev.Ask)
	case Refused:
		if !t.skips(FactVerb) {
			t.say(Fact{Kind: FactVerb, Status: "refused", Code: ev.Verb, Message: ev.Reason, By: ev.By, Ask: ev.Ask})
		}
	case AttemptProgress:
		if !t.skips(FactAttemptProgress) {
			t.progress(ev)
		}
	}
}

func (t *teller) verb(verb, step, by, reason string, ask int64) {
	if !t.skips(FactVerb) {
		t.say(Fact{Kind: FactVerb, Status: "accepted", Code: verb, Step: step, Message: reason, By: by, Ask: ask})
	}
}

// progress tells what a running attempt says of itself.
func (t *teller) progress(ev AttemptProgress) {
	f := Fact{Kind: FactAttemptProgress, Message: ev.Note}
	if i := ev.Attempt.Node; i >= 0 && i < len(t.s.nodes) {
		p := pair{i, t.s.nodes[i], t.s.nodes[i]}
		f.Step = t.name(p)
		if a := p.now.find(ev.Attempt.Call); a != nil {
			f.Attempt, f.Purpose, f.Undo = int(a.number), a.kind.told(), p.now.undoes(a)
		}
	}
	t.say(f)
}

func (t *teller) name(p pair) string { return nodeName(t.wf, p.i, p.now) }

// attemptEnds tells which attempts of a node have ended.
func (t *teller) attemptEnds(p pair) {
	for k := range p.now.attempts {
		a := &p.now.attempts[k]
		if a.status == attemptOpen || a.ended != t.r.at {
			continue
		}
		if old := p.old.find(int(a.call)); old != nil && old.status != attemptOpen {
			continue
		}
		if t.skips(FactAttemptFinished) {
			continue
		}
		f := t.attemptFact(p, a)
		f.Kind = FactAttemptFinished
		f.Status, f.Code, f.Message = attemptStatuses[a.status], a.code(), a.message()
		f.Took = (a.ended.time()).Sub(a.started.time())
		t.say(f)
	}
}

// nodeEnds tells that a step or its undo has ended.
func (t *teller) nodeEnds(p pair) {
	if p.now.ended() && !p.old.ended() && !t.skips(FactStepFinished) {
		f := Fact{Kind: FactStepFinished, Step: t.name(p), Action: actionName(t.wf, p.now, callDo), Status: p.now.state.String(), Attempt: int(p.now.fwd.total)}
		if p.now.state == StepFailed || p.now.state == StepCaught {
			f.Code, f.Message = p.now.fwd.code(), p.now.fwd.message()
			f.NotRepeated = t.notRepeated(p.now)
		}
		began := p.now.fwd.began
		if p.now.expanded { // a for_each step makes no call itself
			began = p.now.fwd.ready
		}
		f.Took = since(began, p.now.fwd.ended)
		t.say(f)
	}
	if t.undoEnds(p) && !t.skips(FactUndoFinished) {
		t.undoEnd(p)
	}
}

// undoEnds reports whether the undo of a node has ended.
func (t *teller) undoEnds(p pair) bool {
	if p.now.undo == p.old.undo || p.now.expanded {
		return false
	}
	switch p.now.undo {
	case undoDone, undoFailed, undoLeft, undoDeclared:
		return true
	case undoNone: // before another attempt
		return p.now.gen > p.old.gen || p.now.ended() && p.now.und.miss != missNone && !p.now.done
	}
	return false
}

// undoEnd tells that the undo of a node has ended.
func (t *teller) undoEnd(p pair) {
	f := Fact{
		Kind: FactUndoFinished, Step: t.name(p), Undo: true, Action: actionName(t.wf, p.now, callUndo),
		Attempt: int(p.now.und.total), Took: since(p.now.und.began, p.now.und.ended),
	}
	switch {
	case p.now.undo == undoDone:
		f.Status = "undone"
	case p.now.undo == undoFailed:
		f.Status, f.Code, f.Message = "undo_failed", p.now.und.code(), p.now.und.message()
	case p.now.undo == undoLeft:
		f.Status = "left_as_is"
	case p.now.undo == undoDeclared:
		f.Status = "not_undone_by_declaration"
	case p.now.gen > p.old.gen:
		f.Status, f.Attempt, f.Took = "undone", int(p.old.und.total), since(p.old.und.began, t.r.at)
	default:
		f.Status, f.Code, f.Message = "undo_failed", p.now.und.code(), p.now.und.message()
		f.Took = since(p.old.und.began, t.r.at)
	}
	t.say(f)
}

func since(from, to instant) time.Duration {
	if from == 0 || to == 0 {
		return 0
	}
	return to.time().Sub(from.time())
}

// attemptFact is what start and end of an attempt have in common.
func (t *teller) attemptFact(p pair, a *attempt) Fact {
	f := Fact{
		Step: t.name(p), Action: actionName(t.wf, p.now, a.kind), Purpose: a.kind.told(), Undo: p.now.undoes(a),
		Attempt: int(a.number), Of: t.allowed(p.now, a.kind), CompleteBy: a.completeBy.time(), Among: t.instances(p.now),
	}
	f.deadline(p.now)
	return f
}

// deadline adds the deadline of what the fact belongs to, whichever way the run
// goes now.
func (f *Fact) deadline(n *node) {
	if f.Undo {
		f.UndoDeadline = n.und.deadline.time()
	} else {
		f.StepDeadline = n.fwd.deadline.time()
	}
}

// undoes reports whether an attempt belongs to the undo of the node. The undo
// asks what became of the node's work only when none of that is at work.
func (n *node) undoes(a *attempt) bool {
	switch a.kind {
	case callUndo, callUndoLookup, callLearn:
		return true
	case callLookup:
		return n.und.began != 0 && a.started >= n.und.began
	}
	return false
}

// told is the purpose that people see.
func (k callKind) told() Purpose {
	switch k {
	case callDo:
		return PurposeDo
	case callUndo:
		return PurposeUndo
	case callLookup, callUndoLookup:
		return PurposeLookup
	case callLearn:
		return PurposeLearn
	}
	return ""
}

// allowed returns how many attempts a round has, where that is a constant of
// the definition; else 0.
func (t *teller) allowed(n *node, kind callKind) (attempts int) {
	if t.wf == nil || int(n.step) >= len(t.wf.Steps) {
		return 0
	}
	step := t.wf.Steps[n.step]
	settings := step.Settings
	switch {
	case kind == callUndo && step.Undo != nil && step.Undo.Settings != nil:
		settings = step.Undo.Settings
	case kind != callDo:
		return 0
	}
	s, err := settings(t.scope())
	if err != nil {
		return 0
	}
	return s.Retry.MaxAttempts
}

// factCost is what the limits of a step may cost to be named in a fact, in nominal
// nanoseconds. Facts are made where runs are decided, and other runs wait for that:
// costly limits are left out.
const factCost = 1_000_000

// scope is what the limits of a step see.
func (t *teller) scope() *dsl.Scope {
	return &dsl.Scope{Vars: t.after().vars.v, Allowance: dsl.NewAllowance(factCost)}
}

// notRepeated says why a failed node was not tried again, where that is a
// constant of the definition.
func (t *teller) notRepeated(n *node) NotRepeated {
	if t.wf == nil || int(n.step) >= len(t.wf.Steps) {
		return ""
	}
	step := t.wf.Steps[n.step]
	s, err := step.Settings(t.scope())
	if err != nil {
		return ""
	}
	return notRepeated(step, s, n)
}

// turns tells that the run changed its direction.
func (t *teller) turns() {
	b, a := t.before(), t.after()
	if a.phase != b.phase && !t.skips(FactRunTurned) {
		t.say(Fact{Kind: FactRunTurned, Step: a.failure.Step, Code: a.failure.Code, Message: a.failure.Message, CompensationDeadline: a.undoDeadline.time()})
	}
	if a.lost() && !b.lost() && !b.state.NeedsHuman() && !t.skips(FactRunParked) {
		f := a.lostFailure()
		t.say(Fact{Kind: FactRunParked, Status: a.state.String(), Code: f.Code, Message: f.Message})
	}
	if a.parked && !b.parked && !b.lost() && !t.skips(FactRunParked) {
		t.say(Fact{Kind: FactRunParked, Status: RunParked.String(), Step: a.failure.Step, Code: a.failure.Code, Message: a.failure.Message})
	}
	if a.stuck && !b.stuck && !t.skips(FactRunParked) {
		f := Fact{
			Kind: FactRunParked, Status: RunCompensationFailed.String(), Step: a.failure.Step, Code: a.failure.Code, Message: a.failure.Message,
			Undone: int(a.undone), LeftAsIs: int(a.left),
		}
		f.UndoFailures, f.UndoBlocked = undoFailures(t.wf, t.nodes())
		t.say(f)
	}
	if a.overdue && !b.overdue && !a.parked && !t.skips(FactVerb) {
		t.say(Fact{Kind: FactVerb, Status: "overdue", Message: "the run's deadline has passed"})
	}
}

// nodes returns all nodes as they are after the record.
func (t *teller) nodes() []*node {
	all := slices.Clone(t.s.nodes)
	for k := range t.r.nodes {
		for len(all) <= t.r.nodes[k].node {
			all = append(all, &blank)
		}
		all[t.r.nodes[k].node] = t.o.node(&t.r, k)
	}
	return all
}

// beginnings tells what a node starts or waits for.
func (t *teller) beginnings(p pair) {
	if p.now.undo == undoActive && p.old.undo != undoActive && p.old.und.began == 0 && !p.now.expanded && !t.skips(FactUndoStarted) {
		t.say(Fact{Kind: FactUndoStarted, Step: t.name(p), Undo: true, Action: actionName(t.wf, p.now, callUndo), UndoDeadline: p.now.und.deadline.time()})
	}
	for k := range p.now.attempts {
		if a := &p.now.attempts[k]; a.started == t.r.at && p.old.find(int(a.call)) == nil && !t.skips(FactAttemptStarted) {
			f := t.attemptFact(p, a)
			f.Kind = FactAttemptStarted
			t.say(f)
		}
	}
	undo := p.now.undo != undoNone
	track := p.now.track()
	was := p.old.track()
	if p.now.queue != 0 && p.now.hold > 0 && int(p.now.hold) <= len(t.after().holds) && (p.old.queue == 0 || p.old.hold != p.now.hold) && !t.skips(FactStepHeld) {
		h := t.after().holds[p.now.hold-1]
		f := Fact{Kind: FactStepHeld, Step: t.waiting(p), Undo: undo, Agent: h.agent, Until: h.until.time(), Message: h.why, Among: t.instances(p.now)}
		f.deadline(p.now)
		t.say(f)
	}
	if track.act == backoff && (was.act != backoff || was.until != track.until) && p.now.undo != undoPending && !t.skips(FactRetryScheduled) {
		f := Fact{
			Kind: FactRetryScheduled, Step: t.name(p), Undo: undo, Purpose: track.kind.told(), Until: track.until.time(),
			Code: track.code(), Message: track.message(), CoolDown: p.now.fwd.rounds > p.old.fwd.rounds,
			Among: t.instances(p.now),
		}
		if f.Purpose != PurposeLookup {
			f.Attempt, f.Of = int(track.attempt)+1, t.allowed(p.now, track.kind)
		}
		f.deadline(p.now)
		t.say(f)
	}
}

// instances is how many instances the for_each step has that a node belongs to or
// is. The instances of a step follow each other, so the last answer is kept: to
// look for the step anew would cost the square of their number.
func (t *teller) instances(n *node) int {
	switch {
	case n.expanded:
		return n.count
	case !n.item:
		return 0
	case t.each != int(n.step)+1:
		t.each, t.among = int(n.step)+1, t.counted(int(n.step))
	}
	return t.among
}

// counted is how many instances a step has after the record.
func (t *teller) counted(step int) int {
	for k := range t.r.nodes {
		if t.r.nodes[k].node == step {
			return t.o.node(&t.r, k).count
		}
	}
	if step < len(t.s.nodes) {
		return t.s.nodes[step].count
	}
	return 0
}

// waiting names what waits for an agent. A for_each step waits on behalf of
// the instance that is to begin next.
func (t *teller) waiting(p pair) string {
	n := p.now
	if n.expanded && n.next < n.count {
		next := n.first + n.next
		for k := range t.r.nodes {
			if t.r.nodes[k].node == next {
				return nodeName(t.wf, next, t.o.node(&t.r, k))
			}
		}
		if next < len(t.s.nodes) {
			return nodeName(t.wf, next, t.s.nodes[next])
		}
	}
	return t.name(p)
}

// end tells that the run has ended.
func (t *teller) end() {
	a := t.after()
	if a.finished == 0 || t.before().finished != 0 || t.skips(FactRunFinished) {
		return
	}
	t.say(Fact{
		Kind: FactRunFinished, Status: a.state.String(), Step: a.failure.Step, Code: a.failure.Code, Message: a.failure.Message,
		Outputs: namedValues(a.outputs), Undone: int(a.undone), LeftAsIs: int(a.left), Undeclared: int(a.undeclared),
		Kept: keptByDeclaration(t.wf, a, t.nodes), Took: since(a.started, a.finished),
	})
}
