package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/saga-engine/engine/dsl"
	codec "github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// judge compares the journal of every accepted run with the ledger of the remote service.
func (w judges) judge(ctx context.Context, accepted map[string]status.RunID) {
	names := map[string]bool{}
	for _, s := range w.order {
		if names[s.name] {
			w.fault("%s is the name of two runs (I1, I11)", s.name)
		}
		names[s.name] = true
	}
	w.judgePoison(ctx)
	defs := definitions(w.world)
	if w.kin != nil {
		accepted = w.kin.all(accepted)
		w.judgeFamilies(ctx)
	}
	for _, name := range slices.Sorted(maps.Keys(accepted)) {
		run := accepted[name]
		loaded, err := journal.Load(ctx, w.store, nil, defs, run)
		if err != nil {
			w.fault("%s: an accepted run is lost: %v (I1)", name, err)
			continue
		}
		state := loaded.State
		ended := state.Status()
		if !ended.Final() && !ended.NeedsHuman() {
			w.fault("%s is %v after everything healed: stuck (I8)", name, ended)
		}
		w.judgeStory(name, run, state, len(loaded.Records))
		w.judgeWaits(name, run, state, loaded.Flow)
		for _, key := range slices.Sorted(maps.Keys(w.remote.keys)) {
			if e := w.remote.keys[key]; e.run == name {
				w.judgeEffect(name, run, ended, e, state, loaded.Flow)
			}
		}
		if ended == status.RunCompensated && w.kin == nil {
			w.judgeOrder(name)
		}
		w.judgeAnswers(ctx, w.stories[run])
		w.judgeAlerts(ctx, w.stories[run])
	}
}

// judgePoison checks that the poisonous run was parked, that only a limited number of engines
// decided it, and that no agent was called for it.
func (w judges) judgePoison(ctx context.Context) {
	if w.conditions.venom == harmless {
		return
	}
	loaded, err := journal.Load(ctx, w.store, nil, definitions(w.world), w.poisonous)
	state := loaded.State
	switch {
	case err != nil:
		w.fault("%s: it is lost: %v (I1)", poisonName, err)
		return
	case state.Status() != status.RunParked || !state.Run().Lost() || state.Failure().Code != machine.CodeEngineLost:
		w.fault("%s is %v after %d engines were bitten, want parked with code %s", poisonName, state.Status(), w.bites, machine.CodeEngineLost)
	}
	// Each engine may decide the run once more than the limit for deaths allows. The reason is that
	// another engine may take over the run before the death of the former owner is counted.
	if most := store.MaxDeaths + len(w.nodes); w.bites > most {
		w.fault("%s bit %d times, want at most %d", poisonName, w.bites, most)
	}
	w.judgeAlerts(ctx, w.stories[w.poisonous])
	for _, e := range w.remote.keys {
		if e.run == poisonName {
			w.fault("%s called %s", poisonName, e.name)
		}
	}
}

// judgeWaits checks that no signal has ended two wait steps. For this, it compares two numbers: at
// most as many wait steps may have ended with a signal as the run has received different signals.
func (w judges) judgeWaits(name string, run status.RunID, state *machine.State, wf *dsl.Workflow) {
	ended := 0
	for v := range story.Nodes(state, wf) {
		if v.Signal != "" {
			ended++
		}
	}
	if ended == 0 {
		return
	}
	sent := map[string]bool{}
	for _, rec := range w.stories[run].records {
		if e, ok := rec.Event().(machine.SignalReceived); ok {
			sent[cmp.Or(e.ID, fmt.Sprint("message ", e.Ask))] = true
		}
		if e, ok := rec.Event().(machine.Started); ok {
			for _, s := range e.Signals {
				sent[fmt.Sprint("signal ", s.Number, " of the run around the group")] = true
			}
		}
	}
	if len(sent) < ended {
		w.fault("%s: signals have ended %d waits, but only %d were received", name, ended, len(sent))
	}
}

// judgeAlerts checks that the store has one alert for each time that the run began to need a
// person (I9, S59).
func (w judges) judgeAlerts(ctx context.Context, s *runLog) {
	if s == nil {
		return
	}
	alerts, err := w.store.Alerts(ctx, s.id, 1000)
	if err != nil {
		w.fault("%s: alerts: %v", s.name, err)
		return
	}
	got := map[string]int{}
	for _, a := range alerts {
		got[a.Kind]++
	}
	for _, kind := range []string{status.RunParked.String(), status.RunCompensationFailed.String()} {
		// A run that needs a person may have a second problem after a verb of the person. Then its
		// status stays the same, but the store has one more alert. So each accepted verb allows one
		// more alert.
		if n := s.turns[kind]; got[kind] < n || got[kind] > n+s.accepted {
			w.fault("%s: %d alerts say %s, which it became %d times (I9)", s.name, got[kind], kind, s.turns[kind])
		}
	}
}

// judgeAnswers checks that the journal has one answer to each verb, with the name of the person
// who sent the verb. It also checks that each answer belongs to a verb.
func (w judges) judgeAnswers(ctx context.Context, s *runLog) {
	if s == nil {
		return
	}
	asked := map[int64]bool{}
	for _, q := range w.questions {
		if q.run != s.id {
			continue
		}
		asked[int64(q.id)] = true
		got := s.answers[int64(q.id)]
		switch {
		case len(got) > 1:
			w.fault("%s: %s (message %d) was answered %d times", s.name, q.verb, q.id, len(got))
		case len(got) == 0 && !s.state.Status().Final():
			w.fault("%s: %s (message %d) was never answered (I8)", s.name, q.verb, q.id)
		case len(got) == 1 && got[0].By != q.by:
			w.fault("%s: %s asked for %s (message %d), the journal says %q", s.name, q.by, q.verb, q.id, got[0].By)
		}
	}
	for _, ask := range slices.Sorted(maps.Keys(s.answers)) {
		if !asked[ask] {
			w.fault("%s: message %d was answered, which nobody wrote", s.name, ask)
		}
	}
	if s.state.Status() == status.RunCancelled && len(s.answers) == 0 && !s.kin.void {
		w.fault("%s was cancelled, which nobody asked for (S68)", s.name)
	}
	left, err := w.store.Messages(ctx, s.id, 0, 10)
	if err != nil || len(left) > 0 {
		w.fault("%s: %d messages are left in its inbox: %v (I8)", s.name, len(left), err)
	}
}

// judgeStory compares two states of a run. The first was computed at the end, from the whole
// journal. The second was updated after each commit of a row. Both must have the same status and
// the same number of records (I10).
func (w judges) judgeStory(name string, run status.RunID, state *machine.State, records int) {
	s := w.stories[run]
	switch {
	case s == nil:
		w.fault("%s: no row of it has landed, and yet it is there (I1)", name)
	case s.state.Status() != state.Status() || len(s.records) != records:
		w.fault("%s: %d records say %v, but %d said %v as they landed (I10)", name, records, state.Status(), len(s.records), s.state.Status())
	}
}

// judgeEffect checks that the effects with one idempotency key fit the final status of the run.
// The parameter `e` is the entry of the remote service's ledger for this key.
func (w judges) judgeEffect(name string, run status.RunID, ended status.RunState, e *effect, state *machine.State, wf *dsl.Workflow) {
	s := w.stories[run]
	i, ok := state.FindNode(wf, s.kin.now(e.name))
	if !ok {
		if s.kin.removed(wf, s.kin.now(e.name)) {
			w.judgeRemoved(name, e)
			return
		}
		w.fault("%s: the remote service knows a step %s that the run does not have", name, e.name)
		return
	}
	view := story.Node(state, wf, i)
	if w.kin != nil && !w.judgeKinEffect(name, e, wf.Steps[view.Step]) {
		return
	}
	if e.applied > 1 {
		w.fault("%s: %s took effect %d times (I4)", name, e.name, e.applied)
	}
	standing := e.applied > 0 && e.undone == 0
	switch ended {
	case status.RunSucceeded:
		if s.kin.again(e.key, view.IdempotencyKey) {
			w.judgeAgain(name, e, s)
			return
		}
		if e.applied > 0 && e.undone > 0 {
			w.fault("%s succeeded, but %s was undone (I5)", name, e.name)
		}
		if view.Forward == status.StepSucceeded && view.Action != "" && e.applied == 0 && e.calls > 0 && !isUndoKey(e) {
			w.fault("%s succeeded, but %s took no effect (I5)", name, e.name)
		}
	case status.RunCompensated, status.RunFailed, status.RunCancelled:
		if standing && !w.keeps(e.name) && !wf.Steps[view.Step].NoUndo && !s.stopped && !s.skipped[s.kin.first(e.name)] {
			w.fault("%s is %v, but the effect of %s stands (I6)", name, ended, e.name)
		}
	}
}

// judgeRemoved checks an effect of a step that a migration has removed: the effect must not stay.
func (w judges) judgeRemoved(name string, e *effect) {
	if e.applied > 0 && e.undone == 0 {
		w.fault("%s: step %s was removed by a migration, although it has an effect", name, e.name)
	}
}

// judgeAgain checks an effect of a moved run that has succeeded, if the effect has another
// idempotency key than the step has now. The move has let the step start again with its present
// key, so the earlier effect must not stay. Loops are not checked, because each iteration of a loop
// has its own key.
func (w judges) judgeAgain(name string, e *effect, s *runLog) {
	if st := w.kin.flowOf(s).Step(s.kin.now(e.name)); e.applied > 0 && e.undone == 0 && (st == nil || !st.Loops) {
		w.fault("%s: %s has an effect under another key than its present one", name, e.name)
	}
}

// isUndoKey reports whether the entry is for the key of an undo or a lookup. The ledger records
// no effect under such keys.
func isUndoKey(e *effect) bool { return e.when == 0 && e.undone == 0 }

// keeps reports whether the workflow declares that the effect of this step is never undone.
func (w judges) keeps(step string) bool {
	for _, s := range w.plan.steps {
		if s.none && (s.name == step || len(step) > len(s.name) && step[:len(s.name)+1] == s.name+"[") {
			return true
		}
	}
	return false
}

// judgeOrder checks the order of the undos of a run. If step b depends on step a, b must be
// undone before a (I6).
func (w judges) judgeOrder(name string) {
	effects := map[string]*effect{}
	for _, e := range w.remote.keys {
		if e.run == name && e.applied > 0 && e.undone > 0 {
			effects[e.name] = e
		}
	}
	for _, s := range w.plan.steps {
		for _, j := range s.after {
			for _, later := range names(s) {
				for _, earlier := range names(w.plan.steps[j]) {
					a, b := effects[earlier], effects[later]
					if a != nil && b != nil && a.undone < b.undone {
						w.fault("%s: %s was undone before %s, which depends on it (I6)", name, earlier, later)
					}
				}
			}
		}
	}
}

// names returns the names that agents see for a step: one name, or one for each instance.
func names(s planStep) []string {
	if s.keys == nil {
		return []string{s.name}
	}
	var all []string
	for _, k := range s.keys {
		all = append(all, fmt.Sprintf("%s[%q]", s.name, k))
	}
	return all
}

// sameState checks that both ways to compute the state of a run give the same state: from its
// snapshot and the rows after it, and from the whole journal.
func (w judges) sameState(ctx context.Context, run status.RunID) {
	ctx = context.WithoutCancel(ctx)
	defs := definitions(w.world)
	for range 10 { // read again if a row was committed between the two reads
		whole, err := journal.Load(ctx, w.store, nil, defs, run)
		if err != nil {
			w.fault("run %d: %v", run, err)
			return
		}
		short, err := journal.LoadState(ctx, store.Complete(w.store), nil, defs, run)
		switch {
		case err != nil:
			w.fault("run %d from its snapshot: %v", run, err)
		case short.Refused != nil:
			w.fault("run %d: %v", run, short.Refused)
		case short.Rows() != whole.Rows():
			continue
		case short.Facts != whole.Facts || !codec.SameState(short.State, whole.State):
			w.fault("run %d has another state from its snapshot than from its journal (promise 10): %d facts, not %d", run, short.Facts, whole.Facts)
		}
		return
	}
}
