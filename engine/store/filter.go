package store

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
)

// defaultRunLimit is the largest number of runs that the method Runs returns if the filter
// has neither a limit nor IDs.
const defaultRunLimit = 100

// A RunFilter selects runs. A field that is zero does not limit the selection. There are seven
// kinds of filters. Each kind has its own order and index. A store refuses all other combinations
// (storekit.KindOf).
//
//   - Name is set: the run with that name.
//   - IDs is set: the runs with these ids that exist, ascending by id.
//   - Parent is set: the child runs of one run, ascending by id, page by page with After.
//   - Name, IDs, Parent and Owners are not set: a list for people, newest run first, page by page
//     with Before.
//   - Owners contains OwnerDead: open runs of dead members, and with OwnerNone also runs without
//     an owner, ascending by id, page by page with After. Runs at rest (Head.AtRest) are left out,
//     unless a message waits for the run and fewer than MaxDeaths engines died while they had the
//     run in hand.
//   - Owners is OwnerDead, and Waiting is true: runs of dead members with waiting messages; the run
//     with the oldest message is first. Runs at rest are left out if MaxDeaths engines died with
//     the run in hand. There is only one page: after a takeover a run does not match the filter any
//     more.
//   - Owners is OwnerOther: overdue runs of other live members, most overdue first. There is only
//     one page.
//
// If Owners is set, only the id of each run is returned, because the engine loads the run anyway.
type RunFilter struct {
	// Name is the public name of a run. If no run has this name, the store reads Name as an
	// internal id: in decimal, or in the form of naming.RunName. If Name is set, only Limit may be
	// set, too.
	Name string

	IDs    []status.RunID // internal ids of runs, at most 1000; if IDs is set, no other field may be set
	Parent status.RunID   // internal id of a parent; if Parent is set, only After and Limit may be set, too

	// A list for people uses the next seven fields.
	States   []status.RunState
	Workflow string
	Key      string
	Digest   string           // only runs that have this definition now (RunRow.Digest)
	Triggers []naming.Trigger // only runs that were started by one of these
	Since    time.Time        // only runs that were created at this time or later
	Before   status.RunID     // only runs with a smaller id, to read a list page by page; 0 = all

	// An engine that searches for runs to take over uses the next five fields. Owners
	// selects open runs by the kind of their owner.
	Owners  Owners
	After   status.RunID  // with OwnerDead, OwnerNone or Parent: only runs with a greater id, to read page by page
	Waiting bool          // with OwnerDead: only runs with waiting messages
	Asking  EngineID      // with OwnerOther: the engine that asks; its own runs are left out
	Overdue time.Duration // with OwnerOther: only runs whose next_check passed more than this duration ago

	Limit int // largest number of runs; 0 = 100, or as many as IDs has
}

// Owners is a set of kinds of owners.
type Owners uint8

// The kinds of owners that an engine can ask for. OwnerNone is allowed only together with
// OwnerDead: Tick already returns the runs without an owner.
const (
	OwnerNone  Owners = 1 << iota // no engine owns the run
	OwnerDead                     // the owner was declared dead (Fence)
	OwnerOther                    // the owner is a live member other than RunFilter.Asking
)

// Max returns the largest number of runs that a store returns for the filter.
func (f RunFilter) Max() int {
	if len(f.IDs) > 0 {
		return len(f.IDs)
	}
	if f.Limit == 0 {
		return defaultRunLimit
	}
	return f.Limit
}

// LoadRun returns the head and all rows of one run, or ErrNotFound.
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

// Find returns the run with this public name. If no run has this name, Find returns the run with
// this internal id, in decimal or in the form of naming.RunName. If there is no such run either,
// Find returns ErrNotFound.
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

// Run returns the run with an internal id, or ErrNotFound.
func (s Full) Run(ctx context.Context, run status.RunID) (RunRow, error) {
	return s.Find(ctx, strconv.FormatInt(int64(run), 10))
}

// Live returns the members whose lease has not expired, in the order of their numbers.
func (s Full) Live(ctx context.Context) ([]Member, error) {
	all, err := s.Members(ctx)
	return slices.DeleteFunc(all, func(m Member) bool { return m.Left <= 0 }), err
}

// Member returns the member with this number. It returns ErrNotFound if there is no such
// member. A store removes a dead member that owns no open runs.
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

// Waits reports whether a message is still in the inbox of the run.
func (s Full) Waits(ctx context.Context, run status.RunID, id MessageID) (bool, error) {
	m, err := s.Messages(ctx, run, id-1, 1)
	return len(m) > 0 && m[0].ID == id, err
}
