package store

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// defaultRunLimit is how many runs Runs returns if its filter does not say.
const defaultRunLimit = 100

// A RunFilter selects runs. Fields that are zero select everything. There are five
// kinds of filters. Each has an order, and an index that serves it; a store refuses
// everything else (storekit.KindOf).
//
//   - Name is set: that one run.
//   - Owners is not set: a list for people, newest first, page by page with Before.
//   - OwnerDead, with or without OwnerNone: ascending by id, page by page with After.
//     Runs at rest (Head.AtRest) are left out, unless a message waits for them and fewer
//     than MaxDeaths engines died of them.
//   - OwnerDead and Waiting: runs of the oldest messages first. Runs at rest are left out
//     after MaxDeaths. There are no further pages: a run that was taken over does not
//     show again.
//   - OwnerOther: most overdue first. There are no further pages.
//
// Of a run that Owners has selected only the id is set: the engine loads it anyway.
type RunFilter struct {
	// Name is a public name, or the internal id in decimal where no run has that
	// name. No other field may be set with it.
	Name string

	// What people ask for.
	States   []status.RunState
	Workflow string
	Key      string
	Digest   string
	Since    time.Time    // created at or after
	Before   status.RunID // with a smaller id, so that a list is read page by page; 0 = any

	// What an engine asks for, to take runs over. Owners selects open runs by their
	// owner.
	Owners  Owners
	After   status.RunID  // OwnerDead, OwnerNone: with a greater id, to read page by page
	Waiting bool          // OwnerDead: messages wait for the run
	Asking  EngineID      // OwnerOther: the engine that asks, whose own runs are left out
	Overdue time.Duration // OwnerOther: the next check passed more than this ago

	Limit int // 0 = 100
}

// Owners is a set of owners of open runs.
type Owners uint8

// The owners that an engine asks for. OwnerNone comes only together with OwnerDead:
// a Tick shows runs without an owner.
const (
	OwnerNone  Owners = 1 << iota // no engine owns the run
	OwnerDead                     // a member that was declared dead (Fence)
	OwnerOther                    // a live member other than RunFilter.Asking
)

// Max returns how many runs a store returns at most for the filter.
func (f RunFilter) Max() int {
	if f.Limit == 0 {
		return defaultRunLimit
	}
	return f.Limit
}

// LoadRun returns the head and all rows of one run. Returns ErrNotFound.
func LoadRun(ctx context.Context, j Journal, run status.RunID) (Head, []Row, error) {
	loaded, err := j.Load(ctx, run)
	switch {
	case err != nil:
		return Head{}, nil, err
	case len(loaded) == 0:
		return Head{}, nil, ErrNotFound
	}
	return loaded[0].Head, loaded[0].Rows, nil
}

// Find returns the run with this public name, or internal id in decimal. Returns
// ErrNotFound.
func (s Full) Find(ctx context.Context, name string) (RunRow, error) {
	if name == "" {
		return RunRow{}, ErrNotFound
	}
	rows, err := s.Runs(ctx, RunFilter{Name: name})
	switch {
	case err != nil:
		return RunRow{}, err
	case len(rows) == 0:
		return RunRow{}, ErrNotFound
	}
	return rows[0], nil
}

// Run returns the run with an internal id. Returns ErrNotFound.
func (s Full) Run(ctx context.Context, run status.RunID) (RunRow, error) {
	return s.Find(ctx, strconv.FormatInt(int64(run), 10))
}

// Live returns the members whose lease has not passed, by number.
func (s Full) Live(ctx context.Context) ([]Member, error) {
	all, err := s.Members(ctx)
	return slices.DeleteFunc(all, func(m Member) bool { return m.Left <= 0 }), err
}

// Member returns a member that lives, or that is dead and still owns open runs.
// Returns ErrNotFound.
func (s Full) Member(ctx context.Context, engine EngineID) (Member, error) {
	all, err := s.Members(ctx)
	if err != nil {
		return Member{}, err
	}
	for _, m := range all {
		if m.Engine == engine {
			return m, nil
		}
	}
	return Member{}, ErrNotFound
}

// Waits reports whether a message of a run is still in its inbox.
func (s Full) Waits(ctx context.Context, run status.RunID, id MessageID) (bool, error) {
	m, err := s.Messages(ctx, run, id-1, 1)
	return len(m) > 0 && m[0].ID == id, err
}
