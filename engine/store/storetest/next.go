package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/naming"
)

// nextRules are the rules about Tick.Next and about admissions, for runs that wait for their unique
// key.
var nextRules = []rule{
	{name: "replace/a run that has its key already is admitted again", why: "the engine may repeat an admission, and the run has what the admission gives", run: func(w *world) {
		a := w.join(w.Store, 1)
		n := under("k", naming.KeyScope{})
		first := reached(w, a, n, status.RunRunning, base) // it has the key since its submission
		w.land(a.writers[0], admit(first, 1))
		second := w.replacing(a, n)
		w.lands(a, second)
		w.land(a.writers[0], end(first, 2, status.RunCancelled))
		w.land(a.writers[0], admit(second.Run, 1))
		w.land(a.writers[0], admit(second.Run, 2))
		if out := w.commit(a.writers[0], admit(second.Run, 1)); !errors.Is(out[0].Err, store.ErrStale) {
			w.Errorf("a row that exists: %+v, want ErrStale", out)
		}
		w.wantRows(second.Run, 3)
		wantGoal(w, "k", second.Run, goals.Open)
	}},
	{name: "replace/a tick returns as many runs of each kind as the limit says", why: "runs that wait in line must not hide the runs that wait for a key", run: func(w *world) {
		a := w.join(w.Store, 1)
		var line, keyed []status.RunID
		for i := range 3 {
			t := w.limited(a, fmt.Sprint("eu", i), 1, 0, false)
			w.land(a.writers[0], t)
			n := under(fmt.Sprint("k", i), naming.KeyScope{})
			first := reached(w, a, n, status.RunRunning, base)
			second := w.replacing(a, n)
			w.lands(a, second)
			w.land(a.writers[0], end(first, 1, status.RunCancelled))
			line, keyed = append(line, t.Run), append(keyed, second.Run)
		}
		tick, err := w.Store.Tick(w.ctx, a.id, time.Hour, 2)
		if want := slices.Concat(line[:2], keyed[:2]); err != nil || !slices.Equal(tick.Next, want) {
			w.Errorf("next = %v, err = %v, want %v", tick.Next, err, want)
		}
		for i := range 2 {
			w.land(a.writers[0], admit(line[i], 1))
			w.land(a.writers[0], admit(keyed[i], 1))
		}
		w.wantNext(a, line[2], keyed[2])
	}},
}
