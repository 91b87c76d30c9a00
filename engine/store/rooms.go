package store

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/store/naming"
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

// valid reports whether a store can keep the room.
func (r *Room) valid() bool {
	return r.Limit > 0 && !r.Rank.IsZero() && r.Workflow != "" && len(r.Key) <= naming.MaxKeyBytes &&
		r.Workflow == naming.CleanText(r.Workflow) && r.Key == naming.CleanText(r.Key)
}

// Rooms shows people which runs hold the places of a limit. The role is optional. In a store
// without this role no places are shown.
type Rooms interface {
	// Places returns which open runs hold a place in the limit with this workflow and key, and
	// how many runs wait in line. It lists the first runs, ascending by id, and no more than the
	// parameter limit says.
	Places(ctx context.Context, workflow, key string, limit int) (Places, error)
}

// Places are the runs that share one limit.
type Places struct {
	Taken   int // number of open runs that hold a place
	Holders []Submitted
	Waiting int // number of open runs that wait in line
}

// Places implements Rooms for a store without this role.
func (fallback) Places(context.Context, string, string, int) (Places, error) { return Places{}, nil }

// sharing returns the Rooms of a store, or the fallback if it does not have this role.
func sharing(s Store) Rooms {
	if role, ok := s.(Rooms); ok {
		return role
	}
	return fallback{}
}
