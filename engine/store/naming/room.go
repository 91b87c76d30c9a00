package naming

import (
	"errors"
	"fmt"
	"time"
)

// A Room is the limit that a run shares with other runs: of the runs with the same Workflow and
// Key, at most Limit may be admitted and open. A store keeps one row for each run with a Room. It
// counts these rows when it admits a run, under a lock of the key. There is no counter, so a run
// that has ended in any way frees its place.
type Room struct {
	Workflow string // name of the workflow
	Key      string // "" = the workflow has one limit for all its runs
	Limit    int32
	Rank     time.Time // the run with the earliest Rank is the first in line; then the smallest id
}

// ErrFull says that as many runs are admitted as the limit of a run allows.
var ErrFull = errors.New("engine: there is no room for another run")

// Validate returns an error if a store cannot keep the room.
func (r *Room) Validate() error {
	switch {
	case r.Limit < 1 || r.Rank.IsZero() || r.Workflow == "":
		return fmt.Errorf("engine: a limit of %d of workflow %q is not valid", r.Limit, r.Workflow)
	case len(r.Key) > MaxKeyBytes || r.Workflow != CleanText(r.Workflow) || r.Key != CleanText(r.Key):
		return fmt.Errorf("engine: the key of a limit of workflow %q is too long, or is no text", r.Workflow)
	}
	return nil
}

// Places are the runs that share one limit.
type Places struct {
	Taken   int      // number of open runs that hold a place
	Open    []string // names of these runs, ascending by id; only the first, if there are many
	Waiting int      // number of open runs that wait in line
}
