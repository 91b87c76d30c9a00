package engine

import (
	"context"
	"fmt"

	"github.com/saga-engine/engine/engine/machine"
)

// MaxDeaths is how many engines may end with a run in hand. Then no engine touches
// the run until a person says how it goes on.
const MaxDeaths = 3

// Hands keeps which runs engines have in hand: those that an engine is about to
// read or to decide, and of which it cannot be sure that it outlives that. It is
// written before the run is touched. Without it the next engine could not know why
// the last one ended, and would end the same way.
type Hands interface {
	// Hold replaces the list of runs that an engine has in hand. Returns ErrFenced
	// if the engine was declared dead.
	Hold(ctx context.Context, engine EngineID, runs []machine.RunID) error
	// Suspects returns those of the given runs that engines had in hand when they
	// were declared dead (Fence), with how many engines did.
	Suspects(ctx context.Context, runs []machine.RunID) (map[machine.RunID]int, error)
	// Absolve forgets what is known against runs: they got on, or a person has said
	// how they go on. It is harmless for any run.
	Absolve(ctx context.Context, runs ...machine.RunID) error
}

// lostWhy says for people why a run is parked with which engines died.
func lostWhy(deaths int) string {
	return fmt.Sprintf("%d engines ended one after the other while they had this run in hand: look at their logs for what ended them", deaths)
}
