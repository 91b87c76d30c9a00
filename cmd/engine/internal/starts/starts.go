// Package starts finds the submissions and events that wait for an engine.
package starts

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/events"
	"github.com/saga-engine/engine/engine/store/intake"
)

// The kinds of Waiting.
const (
	Submission = "submission"
	Event      = "event"
)

// A Waiting is the oldest submission or event that still waits for an engine.
type Waiting struct {
	Kind string
	Name string    // id of the submitted run, or id of the event
	At   time.Time // when it was submitted or sent, by the store's clock
}

// looked is the largest number of events that Oldest reads. It reads more than one event, because
// the oldest ones may be quarantined, and a quarantined event does not wait.
const looked = 1000

// Oldest returns the oldest submission and the oldest event that wait; none of a kind = none waits,
// or this kind of store has none.
func Oldest(ctx context.Context, s store.Store) (list []Waiting, err error) {
	if role, ok := intake.Of(s); ok {
		found, err := role.Submissions(ctx, 0, 1)
		if err != nil {
			return nil, err
		}
		for _, x := range found {
			list = append(list, Waiting{Submission, x.Run, x.At})
		}
	}
	if role, ok := events.Of(s); ok {
		found, err := role.ListEvents(ctx, false, looked)
		if err != nil {
			return nil, err
		}
		for _, e := range found {
			if e.Quarantined == "" {
				return append(list, Waiting{Event, e.ID, e.At}), nil
			}
		}
	}
	return list, nil
}
