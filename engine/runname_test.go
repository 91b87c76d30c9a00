package engine_test

import (
	"math/rand/v2"
	"testing"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
)

// A name that engines give tells the run, and no other text does.
func TestRunName(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		id := machine.RunID(rnd.Int64()>>rnd.IntN(62) | 1)
		if got, ok := engine.ParseRunName(engine.RunName(id)); !ok || got != id {
			t.Fatalf("%s is run %d, %v, want %d", engine.RunName(id), got, ok, id)
		}
		text := []byte(engine.RunName(id))
		text[rnd.IntN(len(text))] = "0123456789abyzAZ+-_."[rnd.IntN(20)]
		if got, ok := engine.ParseRunName(string(text)); ok && engine.RunName(got) != string(text) {
			t.Fatalf("%q is run %d, whose name is %s", text, got, engine.RunName(got))
		}
	}
	for _, text := range []string{"", "r-", "r-0", "r-01", "r-A", "r--1", "r-+1", "x-1", "r-1y2p0ij32e8e8", "r-1 "} {
		if got, ok := engine.ParseRunName(text); ok {
			t.Errorf("%q is run %d, want none", text, got)
		}
	}
}
