package chaos

import (
	"fmt"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/operator"
)

// T14, T15: random workflows whose calls and undos are refused, lost, delayed,
// sent twice, or end with their agent, while engines are killed and frozen. In the end
// the test helps runs that need a person (S3 S20 S24 S26 S31 S32 S60 S80, I4 to I7, I9).
func TestRandomRuns(t *testing.T) {
	t.Parallel()
	began := time.Now()
	w := newWorld(t, 1)
	n := times(16, 1000)
	for range n {
		w.Submit(NewFlow(w.Rng, w.URL), 1)
	}
	a := w.StartEngine("a", "")
	w.StartEngine("b", "")
	for round := range times(2, 20) {
		w.awaitCalls(n / 4 * (round + 1) / times(2, 20))
		w.signal(fmt.Sprint("round ", round))
		w.Freeze(a, lease*3/2)
		a.Kill()
		w.Note("a is dead")
		a = w.StartEngine(fmt.Sprintf("a%d", round), "")
	}
	w.AwaitRest(10 * time.Minute)
	v := w.Judge()
	if helped := w.help(); helped > 0 {
		w.AwaitRest(2 * time.Minute)
		v = w.Judge()
	}
	if good := v.Ends[status.RunSucceeded] + v.Ends[status.RunCompensated] + v.Ends[status.RunFailed]; good*10 < v.Runs*7 {
		t.Errorf("void: %s: fewer than 70 %% came to an end", v)
	}
	t.Log(v)
	report.count("T14, T15 random runs", 1, v, began)
}

// help sends a verb, as a person would, to every run that needs a person. It returns the
// number of these runs.
func (w *World) help() int {
	w.T.Helper()
	op := &operator.Operator{Store: w.store, Defs: w.defs}
	helped := 0
	for _, r := range w.Runs() {
		head, err := w.head(r.ID)
		if err != nil || !head.State.NeedsHuman() {
			continue
		}
		for _, e := range []machine.Event{
			machine.RetryRequested{By: "test"},
			machine.CompensateRequested{By: "test", Retry: true},
			machine.CompensateRequested{By: "test"},
		} {
			if op.Try(w.T.Context(), r.ID, e) == nil {
				w.say(r, e)
				w.AwaitInbox(r)
				helped++
				break
			}
		}
	}
	return helped
}
