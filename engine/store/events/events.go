// Package events is the role of a store that keeps an inbox of events. A program or a person sends
// an event. Engines start a run for each event and each published workflow with an on_event block
// for the type of the event.
//
// In: sent events. Out: events for the engine that has claimed them. The package starts no run.
package events

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/saga-engine/engine/engine/store"
)

// A Store is a store with an inbox of events. The role is optional. In a store without this role no
// event can be sent.
type Store interface {
	// SendEvent stores an event. It ignores the fields Seq, At, Done and Quarantined. If an event with
	// this ID is in the inbox, SendEvent stores nothing and returns false.
	SendEvent(ctx context.Context, e Event) (sent bool, err error)
	// ClaimEvents returns events that wait, ascending by Seq, and no more of them than the parameter
	// limit says. Until the lease is over, ClaimEvents does not return these events again to any
	// caller. So engines never work on the same batch, and the events of a dead engine come back.
	ClaimEvents(ctx context.Context, limit int, lease time.Duration) ([]Event, error)
	// KeepEvent stores which workflows need the event no more (Event.Done). If why is not empty, it
	// quarantines the event: the event does not wait any more, and people see why. Otherwise the event
	// stays claimed until its lease is over.
	KeepEvent(ctx context.Context, seq int64, done []string, why string) error
	// RemoveEvents removes events from the inbox.
	RemoveEvents(ctx context.Context, seqs ...int64) error
	// ListEvents returns the events in the inbox, the oldest first. If quarantined is true, it returns
	// only quarantined events. It returns no more events than the parameter limit says.
	ListEvents(ctx context.Context, quarantined bool, limit int) ([]Event, error)
	// RetryEvent makes the event with this ID wait again, without a claim and without a quarantine.
	// It returns false if there is no such event.
	RetryEvent(ctx context.Context, id string) (found bool, err error)
}

// An Event is a fact that a program or a person has sent. It may start runs.
type Event struct {
	Seq  int64  // later events have greater numbers; the store sets it
	ID   string // id that the sender has given; no two events in the inbox have the same
	Type string
	Data []byte // any JSON value
	By   string // who sent the event; only for display
	At   time.Time
	// Done lists the workflows that need the event no more: their runs are in the store, or their
	// condition was false.
	Done        []string
	Quarantined string // why engines do not work on the event; "" = the event waits
}

// The largest sizes that a store accepts.
const (
	MaxIDBytes   = 200     // of Event.ID
	MaxDataBytes = 1 << 20 // of Event.Data
)

// typeForm is the form of the type of an event.
var typeForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$`)

// Validate returns an error if a store must refuse the event. It does not check whether Data is
// JSON.
func (e Event) Validate() error {
	switch {
	case !typeForm.MatchString(e.Type):
		return fmt.Errorf("engine: %q cannot be the type of an event: a type begins with a letter or a digit, and has at most 200 letters, digits and . _ : / -", e.Type)
	case e.ID == "":
		return errors.New("engine: the id of the event is empty")
	case len(e.ID) > MaxIDBytes:
		return fmt.Errorf("engine: the id of the event has %d bytes, more than the %d allowed", len(e.ID), MaxIDBytes)
	case !utf8.ValidString(e.ID) || strings.ContainsFunc(e.ID, unicode.IsControl):
		return fmt.Errorf("engine: the id %q of the event holds control characters", e.ID)
	case len(e.Data) > MaxDataBytes:
		return fmt.Errorf("engine: the data of the event have %d bytes, more than the %d allowed; send a reference to them", len(e.Data), MaxDataBytes)
	}
	return nil
}

// Of returns the role Store of a store. ok is false if the store does not have it.
func Of(s store.Store) (role Store, ok bool) {
	if full, complete := s.(store.Full); complete {
		s = full.Store
	}
	role, ok = s.(Store)
	return role, ok
}
