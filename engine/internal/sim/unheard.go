package sim

import (
	"context"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// waiting finds the transitions in a batch that give a run a new owner. For each of these runs, it
// returns the ids of the verbs that wait in the run's inbox.
func (w registry) waiting(ctx context.Context, batch []store.Transition) map[status.RunID][]int64 {
	said := map[status.RunID][]int64{}
	for _, t := range batch {
		if t.Owner == nil || *t.Owner == 0 || t.Seq == 0 {
			continue
		}
		messages, err := w.store.Messages(context.WithoutCancel(ctx), t.Run, 0, 1000)
		if err != nil {
			w.fault("read the inbox of run %d: %v", t.Run, err)
		}
		for _, m := range messages {
			if m.Kind == store.MessageVerb {
				said[t.Run] = append(said[t.Run], int64(m.ID))
			}
		}
	}
	return said
}

// claimed records the verbs that waited in the inbox of a run when the run got its owner. No
// attempt may start before all these verbs are answered (decision 19).
func (w registry) claimed(t store.Transition, verbs []int64) {
	if t.Owner == nil || *t.Owner == 0 || t.Seq == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.storyLocked(t.Run)
	s.unheard = map[int64]bool{}
	for _, id := range verbs {
		s.unheard[id] = true
	}
	if len(verbs) > 0 {
		w.obeyed++
	}
}
