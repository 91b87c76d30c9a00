package naming

import (
	"errors"
	"fmt"
	"time"
)

// A Room is the limit that a run shares with the other runs that have the same Workflow and Key. At
// most Limit of these runs may be open and hold a place at the same time. A store keeps one row for
// each run with a Room. When the store admits a run, it locks the limit and counts the rows of the
// open runs that hold a place. A run that ends is not counted any more, so there is no counter that
// could become wrong.
type Room struct {
	Workflow string // name of the workflow
	Key      string // "" = the workflow has one limit for all its runs
	Limit    int32  // largest number of open runs that hold a place; at least 1
	// The run with the earliest Rank is the first in line. If the Ranks are equal, it is the run
	// with the smaller id.
	Rank time.Time
}

// ErrFull says that a run gets no place in its limit. Either the admitted runs use all places, or
// the run is new and another run waits in line.
var ErrFull = errors.New("engine: there is no room for another run")

// ErrInboxFull says that the inbox of a run cannot take a new message: the inbox already has as
// many messages as the sender of the new message allows, or more.
var ErrInboxFull = errors.New("engine: too many messages wait for the run already")

// ErrInboxBytes says that the inbox of a run cannot take a new message because of its size. The
// data of the new message and of all messages that wait have more bytes together than the sender of
// the new message allows. ErrInboxBytes wraps ErrInboxFull.
var ErrInboxBytes = fmt.Errorf("%w: they have too many bytes", ErrInboxFull)

// ErrFree says that a run cannot wait for its unique key, because no run holds the key or waits for
// it.
var ErrFree = errors.New("engine: the unique key is free")

// Validate returns an error if a store cannot keep the room.
func (r *Room) Validate() error {
	switch {
	case r.Workflow == "":
		return errors.New("engine: a limit names no workflow")
	case r.Workflow != CleanText(r.Workflow):
		return fmt.Errorf("engine: the workflow name %q of a limit holds bytes that are not text", r.Workflow)
	case r.Limit < 1:
		return fmt.Errorf("engine: the limit of workflow %q is %d, but it must be at least 1", r.Workflow, r.Limit)
	case r.Rank.IsZero():
		return fmt.Errorf("engine: a run of workflow %q has no rank in its limit", r.Workflow)
	case len(r.Key) > MaxKeyBytes:
		return fmt.Errorf("engine: the key of a limit of workflow %q has %d bytes, more than the %d allowed", r.Workflow, len(r.Key), MaxKeyBytes)
	case r.Key != CleanText(r.Key):
		return fmt.Errorf("engine: the key %q of a limit of workflow %q holds bytes that are not text", r.Key, r.Workflow)
	}
	return nil
}

// Places describes the open runs that share one limit.
type Places struct {
	Taken   int      // number of open runs that hold a place
	Open    []string // names of these runs, ascending by id; only as many as the caller asked for
	Waiting int      // number of open runs that wait in line
}
