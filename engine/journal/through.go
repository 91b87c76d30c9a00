package journal

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

const (
	// throughEvery is the shortest pause between two questions whether a child run needs a person.
	throughEvery = time.Second
	// throughShare limits the cost for a run with many child runs: the pause is at least this many
	// times as long as the last question took.
	throughShare = 20
	// throughPage is the largest number of child runs in one answer of the store.
	throughPage = 1000
)

// A childWatch asks the store from time to time whether a child run needs a person.
type childWatch struct {
	next  time.Time    // earliest time of the next question; zero = `ask` was not called yet
	found store.RunRow // the child run that needed a person at the last question; Run 0 = none
}

// ask returns a child run, at any depth, because of which the run needs a person. It returns false
// if there is none, if the pause is not over, or if the store does not answer. A child run counts
// only if two questions in a row find it. The reason is that a parent that turns back may be about
// to cancel the child run.
func (w *childWatch) ask(ctx context.Context, st store.Journal, run status.RunID) (store.RunRow, bool) {
	begin := time.Now()
	if w.next.IsZero() {
		w.next = begin.Add(throughEvery)
	}
	if begin.Before(w.next) {
		return store.RunRow{}, false
	}
	found, err := needyChild(ctx, st, run)
	w.next = time.Now().Add(max(throughEvery, throughShare*time.Since(begin)))
	if err != nil {
		return store.RunRow{}, false
	}
	again := found.Run != 0 && found.Run == w.found.Run && found.State == w.found.State
	w.found = found
	return found, again
}

// needyChild returns an open child run, at any depth, that needs a person. The result has the id 0
// if there is none. A child run with messages in its inbox does not count, because a message may be
// the decision of a person. needyChild starts at the given run and reads only the child runs below
// it. So it takes no more time if many other runs of the store need a person.
func needyChild(ctx context.Context, st store.Journal, run status.RunID) (store.RunRow, error) {
	for level := []status.RunID{run}; len(level) > 0; {
		var below []status.RunID
		for _, parent := range level {
			for after := status.RunID(0); ; {
				rows, err := st.Runs(ctx, store.RunFilter{Parent: parent, After: after, Limit: throughPage})
				if err != nil {
					return store.RunRow{}, err
				}
				for _, r := range rows {
					after = r.Run
					if r.State.Final() {
						continue
					}
					below = append(below, r.Run)
					if !r.State.NeedsHuman() {
						continue
					}
					if asked, err := hasMessages(ctx, st, r.Run); err != nil || !asked {
						return r, err
					}
				}
				if len(rows) < throughPage {
					break
				}
			}
		}
		level = below
	}
	return store.RunRow{}, nil
}

// hasMessages reports whether messages wait in the inbox of a run.
func hasMessages(ctx context.Context, st store.Journal, run status.RunID) (bool, error) {
	inbox, ok := st.(store.Inbox)
	if !ok {
		return false, nil
	}
	list, err := inbox.Messages(ctx, run, 0, 1)
	return len(list) > 0, err
}
