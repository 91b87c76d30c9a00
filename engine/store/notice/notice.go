// Package notice is the role of a store that keeps notices: the states of runs that engines have to
// announce.
//
// In: the states in store.Transition.Announce. Out: a list of notices. An engine marks a notice
// when the engine has announced it. The package announces nothing itself.
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

// A Keeper is a store that keeps notices. The store writes a notice in the same commit as the
// journal row with which the run reaches the state (store.Transition.Announce). So the store loses
// no notice, and engines announce no state that the run never reached.
//
// The role is optional. A store without this role keeps no notices, and engines on it send no
// notifications.
type Keeper interface {
	// Open returns notices that are not announced yet, ascending by run, row and state. It returns
	// only notices that come after the parameter `after` in this order, and no more notices than
	// the parameter `limit` says.
	Open(ctx context.Context, after Notice, limit int) ([]Notice, error)
	// Announced marks notices as announced. It ignores notices that are marked already and notices
	// that do not exist, such as notices of removed runs.
	Announced(ctx context.Context, done ...Notice) error
	// OfRun returns all notices of a run, ascending by row and state.
	OfRun(ctx context.Context, run status.RunID) ([]Kept, error)
}

// Of returns the optional role Keeper of the store s. If s does not have this role, `ok` is false.
func Of(s store.Store) (role Keeper, ok bool) {
	if full, complete := s.(store.Full); complete {
		s = full.Store
	}
	role, ok = s.(Keeper)
	return role, ok
}

// Name returns the name of a notification of a notice. If several notify blocks announce the state,
// each of them has its own notification. The parameter `k` is the number of the notification, from
// 0 on. The parameter `run` is the public name of the announced run. The first notification has the
// name RUN.notify.STATE.SEQ, and the second one has the name RUN.notify.STATE.SEQ.2. Usually RUN is
// the public name of the announced run. If this makes the name of the notification too long, RUN is
// the name that naming.RunName computes from the id of the announced run.
//
// Every engine computes the same names. So a notify block has only one notification, even if two
// engines announce the notice.
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
	// Notifications in the order of the notify blocks. Notifications that retention has removed
	// are missing.
	Notifications []store.RunRow
}

// Find returns the notices of a run, ascending by row and state, with their notifications. The
// function `blocks` returns the number n of notify blocks that announce a state. Find looks for the
// first n notifications, even if some of them are missing, because retention may have removed them.
// Then it looks for further notifications until one is missing, because the run may have been moved
// to a definition with fewer blocks. If `blocks` is nil, n is 0. If the store has no role Keeper,
// Find returns no notices.
func Find(ctx context.Context, st store.Full, run store.RunRow, blocks func(state string) int) ([]Sent, error) {
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
		least := 0
		if blocks != nil {
			least = blocks(k.State)
		}
		for n := 0; ; n++ {
			row, err := st.Find(ctx, k.Name(run.Name, n))
			if errors.Is(err, store.ErrNotFound) {
				if n < least {
					continue
				}
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

// Announces reports whether the runs of the workflow with this name are notifications: the name is
// WORKFLOW.notify or WORKFLOW.notify.N. The engine makes such names. A person cannot give such a
// name, because the name of a workflow in a file contains no dot, and no group has the name
// "notify".
func Announces(workflow string) bool {
	if before, number, ok := cutLast(workflow); ok && strings.Trim(number, "0123456789") == "" {
		workflow = before
	}
	return strings.HasSuffix(workflow, ".notify")
}

// cutLast cuts a text at its last dot.
func cutLast(text string) (before, after string, ok bool) {
	i := strings.LastIndexByte(text, '.')
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}
