// Package starts finds the submissions and events that wait for an engine.
package starts

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/events"
	"github.com/saga-engine/engine/engine/store/intake"
)

// Values of the field Kind of a Waiting.
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

// maxEventsRead is the largest number of events that Oldest reads. It reads more than one event,
// because the oldest ones may be quarantined, and a quarantined event does not wait.
const maxEventsRead = 1000

// Oldest returns the oldest submission and the oldest event that wait. It leaves out the submission
// if none waits, or if this kind of store keeps no submissions. The same holds for the event.
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
		found, err := role.ListEvents(ctx, false, maxEventsRead)
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
