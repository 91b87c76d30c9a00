package engine_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A name that engines give tells the run, and no other text does.
func TestRunName(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		id := status.RunID(rnd.Int64()>>rnd.IntN(62) | 1)
		if got, ok := naming.ParseRunName(naming.RunName(id)); !ok || got != id {
			t.Fatalf("%s is run %d, %v, want %d", naming.RunName(id), got, ok, id)
		}
		text := []byte(naming.RunName(id))
		text[rnd.IntN(len(text))] = "0123456789abyzAZ+-_."[rnd.IntN(20)]
		if got, ok := naming.ParseRunName(string(text)); ok && naming.RunName(got) != string(text) {
			t.Fatalf("%q is run %d, whose name is %s", text, got, naming.RunName(got))
		}
	}
	for _, text := range []string{"", "r-", "r-0", "r-01", "r-A", "r--1", "r-+1", "x-1", "r-1y2p0ij32e8e8", "r-1 "} {
		if got, ok := naming.ParseRunName(text); ok {
			t.Errorf("%q is run %d, want none", text, got)
		}
	}
}

// A name that engines give is the run that has it: submitting under one finds
// that run or is refused, for every caller. Other submissions go on.
func TestSubmitUnderAGivenName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		n := w.start()
		run := w.submit(n, "order", nil)
		w.wait(n, run, status.RunSucceeded)
		ask := func(name string) engine.Submission {
			return engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil), Name: name}
		}
		want := store.Submitted{Run: run, Name: naming.RunName(run), Exists: true}
		if got, err := n.Submit(t.Context(), ask(want.Name)); err != nil || got != want {
			t.Errorf("Submit = %+v, %v, want %+v", got, err, want)
		}
		if got, err := n.Submit(t.Context(), ask("r-1z")); err == nil || !strings.Contains(err.Error(), "given by engines") {
			t.Errorf("Submit = %+v, %v, want it refused", got, err)
		}
		cfg := engine.Config{Store: w.mem}
		got, err := engine.EnqueueAll(t.Context(), cfg, []engine.Submission{ask("a"), ask(want.Name), ask(""), ask("b")})
		if err != nil || len(got) != 4 || got[1].Submitted != want || got[0].Exists || got[2].Exists || got[3].Name != "b" || got[2].Name != naming.RunName(got[2].Run) {
			t.Errorf("EnqueueAll = %+v, %v", got, err)
		}
		if got, err := engine.EnqueueAll(t.Context(), cfg, []engine.Submission{ask("c"), ask("r-1z"), ask("d")}); err == nil || len(got) != 3 || got[0].Name != "c" || got[0].Err != nil ||
			got[1].Err != err || got[1].Run != 0 || got[2].Name != "d" || got[2].Err != nil {
			t.Errorf("EnqueueAll = %+v, %v, want the second one refused", got, err)
		}
		n.drain(t)
	})
}
