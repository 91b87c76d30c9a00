package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/notice"
)

// notices is the part of a Store that keeps the states of runs that have to be announced.
type notices struct{ *state }

// announceLocked writes the notices of a transition.
func (s *state) announceLocked(t *store.Transition) {
	for _, state := range t.Announce {
		n := notice.Notice{Run: t.Run, Seq: t.Seq, State: naming.CleanText(state)}
		if i, known := s.findNoticeLocked(n); !known {
			s.notices = slices.Insert(s.notices, i, notice.Kept{Notice: n})
		}
	}
}

// findNoticeLocked returns the index of a notice in the sorted list of all notices, or the index
// at which it would be.
func (s *state) findNoticeLocked(n notice.Notice) (int, bool) {
	return slices.BinarySearchFunc(s.notices, n, func(k notice.Kept, n notice.Notice) int {
		return cmp.Or(cmp.Compare(k.Run, n.Run), cmp.Compare(k.Seq, n.Seq), cmp.Compare(k.State, n.State))
	})
}

// Open returns notices that are not announced yet, ascending. It returns only notices that come
// after the parameter after, and no more notices than the parameter limit says.
func (s *notices) Open(ctx context.Context, after notice.Notice, limit int) ([]notice.Notice, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	from, known := s.findNoticeLocked(after)
	if known {
		from++
	}
	var out []notice.Notice
	for _, k := range s.state.notices[from:] {
		if len(out) == limit {
			break
		}
		if !k.Done {
			out = append(out, k.Notice)
		}
	}
	return out, nil
}

// Announced marks notices as announced.
func (s *notices) Announced(ctx context.Context, done ...notice.Notice) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, n := range done {
		if i, known := s.findNoticeLocked(n); known {
			s.state.notices[i].Done = true
		}
	}
	return nil
}

// OfRun returns all notices of a run, ascending by row and state.
func (s *notices) OfRun(ctx context.Context, run status.RunID) ([]notice.Kept, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []notice.Kept
	for _, k := range s.state.notices {
		if k.Run == run {
			out = append(out, k)
		}
	}
	return out, nil
}
