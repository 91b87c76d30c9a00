package chaos

import (
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/operator"
)

// playMove lets an engine die while it moves a run to another definition. Another engine moves the run,
// and finishes it with the new definition.
func playMove(t *testing.T, w *World, point string) {
	f := slow(w.URL)
	r := w.Submit(f, 1)[0]
	a := w.StartEngine("a", kill(point))
	op := &operator.Operator{Store: w.store, Defs: w.defs}
	w.awaitCalls(1)
	w.learnKey()
	op.Defs = w.defs
	next := w.Define(strings.Replace(f.Source, "deadline = \"5m\"\n", "deadline = \"6m\"\n", 1))
	ids, err := op.Defs.Put(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	w.say(r, machine.Migrated{Workflow: int32(ids["w"]), Digest: next.Digest(), By: "test"})
	w.Await("the engine to die at "+point, time.Minute, a.Ended)
	w.Note("a is dead")
	w.StartEngine("b", "")
	w.AwaitInbox(r)
	w.AwaitRest(90 * time.Second)
	told, err := journal.Load(t.Context(), w.store, w.sealer, w.defs, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	moves := 0
	for _, rec := range told.Records {
		if e, ok := rec.Event().(machine.Migrated); ok && e.Digest == next.Digest() {
			moves++
		}
	}
	if moves != 1 {
		t.Errorf("the run was moved %d times, want once", moves)
	}
}
