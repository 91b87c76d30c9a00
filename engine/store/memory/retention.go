package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/notice"
	"github.com/saga-engine/engine/engine/store/replies"
)

// retention is the part of a Store that removes old runs.
type retention struct {
	*state
	*evidence
	examined status.RunID // id of the last run that Retain has examined; 0 = Retain begins with the oldest run
	removed  status.RunID // greatest id of a removed run; 0 = no run was removed
}

// Retained returns the greatest id of a run that was removed; 0 = no run was removed.
func (s *retention) Retained(ctx context.Context) (status.RunID, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	return s.removed, nil
}

// Retain removes runs that finished before the given time, and everything that the store has about
// these runs. If the workflow of a run has its own retention, the store uses this retention instead
// of the given time. If a run was moved to another definition, the store uses the workflow of its
// last definition. Some runs stay, and the row of a unique key may stay: see store.Retainer. One
// call examines no more runs than the parameter `limit` says.
func (s *retention) Retain(ctx context.Context, before time.Time, limit int) (stats store.RetainStats, err error) {
	if err := s.lock(ctx); err != nil {
		return stats, err
	}
	defer s.mu.Unlock()
	gone, now := make(map[status.RunID]bool), s.now()
	latest := before
	for _, f := range s.flows {
		if own := now.Add(-f.retention); f.retention > 0 && own.After(latest) {
			latest = own
		}
	}
	if latest.IsZero() {
		return stats, nil
	}
	waiting := waitingLocked(s.state, now)
	i, _ := slices.BinarySearch(s.order, s.examined+1)
	for ; i < len(s.order) && stats.Runs+stats.Kept < limit; i++ {
		r := s.runs[s.order[i]]
		s.examined = r.head.Run
		end := before
		if own := s.flows[cmp.Or(r.moved, r.head.Workflow)-1].retention; own > 0 {
			end = now.Add(-own)
		}
		switch {
		case !r.head.CreatedAt.Before(latest):
		case r.head.FinishedAt.IsZero() || !r.head.FinishedAt.Before(end) || len(s.inbox[r.head.Run]) > 0 || s.runs[r.parent] != nil || waiting[r.head.Run]:
			stats.Kept++
		default:
			gone[r.head.Run] = true
			stats.Runs++
			stats.Rows += len(r.rows) + len(r.nodes) + len(r.late) + len(r.logs)
			if r.short != nil {
				stats.Rows++
			}
			if r.moved != 0 {
				stats.Rows++
			}
		}
	}
	if stats.More = i < len(s.order); !stats.More {
		s.examined = 0
	}
	for id := range gone {
		s.removeLocked(s.runs[id])
	}
	for k, h := range s.keys { // remove the entries of free keys whose last run was removed
		if !stats.More && h.gone && !h.holdsAt(s.now()) && !h.waits() {
			delete(s.keys, k)
			stats.Rows++
		}
	}
	if len(gone) > 0 {
		rows := len(s.alerts)
		rows += len(s.notices) + len(s.posted)
		s.posted = slices.DeleteFunc(s.posted, func(p *post) bool { return gone[p.Run] })
		s.alerts = slices.DeleteFunc(s.alerts, func(a alert) bool { return gone[a.Run] })
		s.notices = slices.DeleteFunc(s.notices, func(k notice.Kept) bool { return gone[k.Run] })
		s.order = slices.DeleteFunc(s.order, func(id status.RunID) bool { return gone[id] })
		s.delivered = 0
		stats.Rows += rows - len(s.alerts) - len(s.notices) - len(s.posted)
	}
	return stats, nil
}

// waitingLocked returns the runs that Retain must keep, because one of their replies waits for its
// sink and is younger than replies.KeepFor.
func waitingLocked(s *state, now time.Time) map[status.RunID]bool {
	waiting := map[status.RunID]bool{}
	for _, p := range s.posted {
		if !p.Done && p.At.After(now.Add(-replies.KeepFor)) {
			waiting[p.Run] = true
		}
	}
	return waiting
}

// removeLocked removes a run that has ended, and its public name. It also removes the entry of the
// unique key that the run took last, unless the run still holds the key or another run waits for
// it.
func (s *retention) removeLocked(r *run) {
	delete(s.runs, r.head.Run)
	delete(s.sharing, r.head.Run)
	s.removed = max(s.removed, r.head.Run)
	if s.names[r.head.Name] == r.head.Run {
		delete(s.names, r.head.Name)
	}
	if h := s.keys[r.key]; h != nil && h.run == r {
		if h.gone = h.holdsAt(s.now()) || h.waits(); !h.gone {
			delete(s.keys, r.key)
		}
	}
}
