// Package events is the role of a store that keeps an inbox of events. A program or a person sends
// an event. Engines start a run for each event and each published workflow with an on_event block
// for the type of the event.
//
// In: sent events. Out: events for the engine that has claimed them. The package starts no run.
package events

import (
	"context"
	"encoding/json"
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
	// SendEvent stores an event. It ignores the fields that engines change, and Seq and At. If an
	// event with this ID is in the inbox, SendEvent stores nothing and returns false.
	SendEvent(ctx context.Context, e Event) (sent bool, err error)
	// ClaimEvents returns events that wait, ascending by Seq, and no more of them than the
	// parameter `limit` says. Until the lease is over, ClaimEvents does not return these events
	// again to any caller, unless ReleaseEvents or RetryEvent ends the claim earlier. After the
	// lease, it returns them again, so the events of a dead engine come back.
	ClaimEvents(ctx context.Context, limit int, lease time.Duration) ([]Event, error)
	// KeepEvent stores which workflows do not need the event any more (Event.Done). If `why` is not
	// empty, KeepEvent also quarantines the event: the event does not wait any more, and people see
	// the reason `why`. If `why` is empty, the claim of the event stays until its lease is over.
	KeepEvent(ctx context.Context, seq int64, done []string, why string) error
	// RemoveEvents removes events from the inbox.
	RemoveEvents(ctx context.Context, seqs ...int64) error
	// ListEvents returns the events in the inbox, the oldest first. If `quarantined` is true, it
	// returns only quarantined events. It returns no more events than the parameter `limit` says.
	ListEvents(ctx context.Context, quarantined bool, limit int) ([]Event, error)
	// RetryEvent makes the event with this ID wait again. Afterwards no engine has claimed the
	// event, and it is not quarantined. Its failed keys wait again, too. RetryEvent returns false
	// if there is no such event.
	RetryEvent(ctx context.Context, id string) (found bool, err error)
	// AdvanceEvent stores the result of a page of keys of the event `e`, and increases the version
	// of the stored event. But if the stored event has another Version than `e`, AdvanceEvent
	// changes nothing and returns false.
	AdvanceEvent(ctx context.Context, e Event, p Page) (bool, error)
	// ReleaseEvents ends the claims of events, so that any engine can claim them.
	ReleaseEvents(ctx context.Context, seqs ...int64) error
	// FailedKeys returns the failed keys that the filter selects, in the order of workflow and key.
	FailedKeys(ctx context.Context, f KeyFilter) ([]FailedKey, error)
}

// An Event is a fact that a program or a person has sent. It may start runs.
type Event struct {
	Seq  int64  // later events have greater numbers; the store sets it
	ID   string // id that the sender has given; no two events in the inbox have the same id
	Type string
	Data []byte // any JSON value
	By   string // who sent the event; only for display
	At   time.Time
	// Done lists the workflows that do not need the event any more: their runs are in the store,
	// or their condition was false.
	Done    []string
	Lists   []List // how far engines have come with the keys of the event; one List for each workflow
	Version int64  // number of calls of AdvanceEvent that have changed the event
	// Quarantined says why engines do not work on the event; "" = the event waits.
	Quarantined string
}

// A List is how far engines have come with the keys that an event gives to a workflow. Each key
// starts one run. Engines work on the keys in the order of their bytes.
type List struct {
	Workflow string `json:"workflow"`
	After    string `json:"after"`   // engines have worked on all keys up to this one
	Started  int64  `json:"started"` // number of keys whose runs are in the store
	Failed   int64  `json:"failed"`  // number of keys that could start no run
}

// A Page says which keys of an event have started runs, and which have failed.
type Page struct {
	Lists    []List // new content of Event.Lists
	Workflow string // workflow whose keys these are
	// Started lists keys that had failed before, and whose runs are in the store now.
	Started []string
	Failed  []FailedKey // keys that failed now; only the fields Key and Error are used; these keys do not wait
}

// A FailedKey is a key of an event that could start no run.
type FailedKey struct {
	Workflow string
	Key      string
	Error    string
	Waits    bool // true = a person has retried the event, and engines have not tried the key again yet
}

// A KeyFilter selects failed keys of an event.
type KeyFilter struct {
	Seq      int64  // number of the event: Event.Seq
	Workflow string // "" = all workflows
	Waiting  bool   // true = only keys that wait
	Limit    int    // largest number of keys
}

// The largest sizes that a store accepts.
const (
	MaxIDBytes   = 200     // largest size of Event.ID, in bytes
	MaxDataBytes = 1 << 20 // largest size of Event.Data, in bytes
)

// typeForm matches every text that can be the type of an event.
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

// EncodeLists returns the stored form of Event.Lists: JSON.
func EncodeLists(lists []List) ([]byte, error) {
	data, err := json.Marshal(append([]List{}, lists...))
	if err != nil {
		return nil, fmt.Errorf("encode the lists of an event: %w", err)
	}
	return data, nil
}

// DecodeLists decodes data that EncodeLists has returned, and stores the lists in e.Lists.
func (e *Event) DecodeLists(data []byte) error {
	if err := json.Unmarshal(data, &e.Lists); err != nil {
		return fmt.Errorf("decode the lists of event %s: %w", e.ID, err)
	}
	if len(e.Lists) == 0 {
		e.Lists = nil
	}
	return nil
}

// Of returns the optional role Store of the store s. If s does not have this role, `ok` is false.
func Of(s store.Store) (role Store, ok bool) {
	if full, complete := s.(store.Full); complete {
		s = full.Store
	}
	role, ok = s.(Store)
	return role, ok
}
