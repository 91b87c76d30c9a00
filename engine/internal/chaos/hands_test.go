package chaos

import (
	"fmt"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// dieInHand has engines die one after the other while they take over the runs of
// the one before. The first one dies without having anything in hand.
func (w *World) dieInHand(deaths int) {
	w.T.Helper()
	x := w.StartEngine("x0", "")
	w.awaitCalls(2)
	w.Await("the first engine to have nothing in hand", time.Minute, func() bool {
		known, err := w.store.Suspects(w.T.Context(), 0, []status.RunID{w.Runs()[0].ID})
		return err == nil && len(known) == 0
	})
	x.Kill()
	w.Note("x0 is dead")
	for i := range deaths {
		x := w.StartEngine(fmt.Sprintf("x%d", i+1), kill("store.PutInHand.after"))
		w.Await("the engine to die with a run in hand", time.Minute, x.Ended)
		w.Note("%s is dead", x.Name)
	}
}

// playHands has an engine die while it writes down what it has in hand.
func playHands(t *testing.T, w *World, point string) {
	w.Submit(everything(w.URL), 1)
	w.dieInHand(0)
	rescue(w, w.StartEngine("a", kill(point)), point)
}

// playAbsolve has an engine die while it forgets a death, because the run got on.
func playAbsolve(t *testing.T, w *World, point string) {
	w.Submit(everything(w.URL), 1)
	w.dieInHand(1)
	rescue(w, w.StartEngine("a", kill(point)), point)
}

// playLost has an engine die while it parks a run with which three engines died.
func playLost(t *testing.T, w *World, point string) {
	w.Submit(everything(w.URL), 1)
	w.dieInHand(store.MaxDeaths)
	rescue(w, w.StartEngine("a", kill(point)), point)
}
