// Package notice is the role of a store that keeps which states of runs have to be announced.
//
// In: the states in store.Transition.Announce. Out: a list of notices, each of which is marked when
// it is announced. The package announces nothing itself.
package notice

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A Notice says that a run has reached a state that a notify block of its workflow announces.
type Notice struct {
	Run   status.RunID
	Seq   int32  // number of the journal row with which the run reached the state
	State string // the state, such as parked
}

// A Kept is a notice as the store keeps it.
type Kept struct {
	Notice
	Done bool // true = the notice is announced: its notifications are runs in the store
}

// A Keeper is a store that keeps notices. A notice is written together with the journal row with
// which the run reaches the state, or not at all (store.Transition.Announce). So no state is lost
// that has to be announced, and no state is announced that the run never reached.
//
// The role is optional. A store without this role keeps no notices, and engines on it send no
// notifications.
type Keeper interface {
	// Open returns notices that are not announced yet, ascending by run, row and state. It returns
	// only notices that come after the parameter after in this order, and no more notices than the
	// parameter limit says.
	Open(ctx context.Context, after Notice, limit int) ([]Notice, error)
	// Announced marks notices as announced. It ignores notices that are marked already and notices
	// of removed runs.
	Announced(ctx context.Context, done ...Notice) error
	// OfRun returns all notices of a run, ascending by row and state.
	OfRun(ctx context.Context, run status.RunID) ([]Kept, error)
}

// Of returns the role Keeper of a store. ok is false if the store does not have it.
func Of(s store.Store) (role Keeper, ok bool) {
	if full, complete := s.(store.Full); complete {
		s = full.Store
	}
	role, ok = s.(Keeper)
	return role, ok
}

// Name returns the name of the k-th notification of a notice; the first has the number 0. There is
// one notification for each notify block that announces the state. The parameter run is the public
// name of the announced run. Every engine computes the same name, so a notice has no second
// notification, even if two engines announce it.
func (n Notice) Name(run string, k int) string {
	suffix := fmt.Sprintf(".notify.%s.%d", n.State, n.Seq)
	if k > 0 {
		suffix += fmt.Sprintf(".%d", k+1)
	}
	if len(run)+len(suffix) > naming.MaxNameLen {
		run = naming.RunName(n.Run)
	}
	return run + suffix
}

// A Sent is a notice of a run, with the runs that are its notifications.
type Sent struct {
	Kept
	Notifications []store.RunRow // in the order of the notify blocks; retention may have removed some
}

// Find returns the notices of a run, in the order in which the run reached the states.
func Find(ctx context.Context, st store.Full, run store.RunRow) ([]Sent, error) {
	keeper, ok := Of(st)
	if !ok {
		return nil, nil
	}
	kept, err := keeper.OfRun(ctx, run.Run)
	if err != nil {
		return nil, fmt.Errorf("list the notices of run %s: %w", run.Name, err)
	}
	out := make([]Sent, len(kept))
	for i, k := range kept {
		out[i].Kept = k
		for n := 0; ; n++ {
			row, err := st.Find(ctx, k.Name(run.Name, n))
			if errors.Is(err, store.ErrNotFound) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("find a notification of run %s: %w", run.Name, err)
			}
			out[i].Notifications = append(out[i].Notifications, row)
		}
	}
	return out, nil
}

// Announces reports whether a workflow is one of notifications. No workflow in a file has such a
// name, because a name in a file holds no dot.
func Announces(workflow string) bool { return strings.Contains(workflow, ".notify") }
