package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// sharersLocked returns the open runs that share the limit of the given workflow and key. The
// result `holders` has the runs that hold a place, ascending by id. The result `line` has the runs
// that wait, in the order of rank and id.
func (s *state) sharersLocked(workflow, key string) (holders, line []*run) {
	for _, r := range s.sharing {
		if p := r.share; p.Workflow != workflow || p.Key != key || r.head.State.Final() {
			continue
		} else if p.admitted {
			holders = append(holders, r)
		} else {
			line = append(line, r)
		}
	}
	slices.SortFunc(holders, func(a, b *run) int { return cmp.Compare(a.head.Run, b.head.Run) })
	slices.SortFunc(line, func(a, b *run) int {
		return cmp.Or(a.share.Rank.Compare(b.share.Rank), cmp.Compare(a.head.Run, b.head.Run))
	})
	return holders, line
}

// keyLocked looks for the unique key that the transition gives to the run `r`. The result `keyed` is
// true if the run gets the key now, or has it already. If the run gets the key now, the result
// `takes` is the entry of the key; otherwise nil. If the transition does not admit the run, or the
// run has no key, the results are nil and false. keyLocked returns naming.ErrFull if the key is not
// free, or if a newer run waits for the key.
func (s *state) keyLocked(r *run, t store.Transition) (takes *holder, keyed bool, err error) {
	if r == nil || !t.Admit || r.key.key == "" {
		return nil, false, nil
	}
	switch h := s.keys[r.key]; {
	case h == nil:
		return nil, false, nil
	case h.run == r:
		return nil, true, nil
	case h.next != r || h.holdsAt(s.now()):
		return nil, false, naming.ErrFull
	default:
		return h, true, nil
	}
}

// waitingKeysLocked returns two lists of runs that belong to the engine and wait for a unique key.
// The result `next` has the runs whose key is free now, without runs that also wait for a place.
// The result `beaten` has the runs that cannot get their key, because the run that holds the key
// has ended and still holds it.
func (s *state) waitingKeysLocked(engine store.EngineID, limit int) (next []status.RunID, beaten []naming.Beaten) {
	for _, h := range s.keys {
		switch held := h.holdsAt(s.now()); {
		case !h.waits() || h.next.head.Owner != engine || held && !h.run.head.State.Final():
		case held:
			beaten = append(beaten, naming.Beaten{Run: h.next.head.Run, By: h.run.head.Run})
		case h.next.share == nil || h.next.share.admitted:
			next = append(next, h.next.head.Run)
		}
	}
	slices.Sort(next)
	slices.SortFunc(beaten, func(a, b naming.Beaten) int { return cmp.Compare(a.Run, b.Run) })
	return next[:min(len(next), limit)], beaten[:min(len(beaten), limit)]
}

// keylessLocked reports whether a run waits for a unique key that is not free.
func (s *state) keylessLocked(r *run) bool {
	h := s.keys[r.key]
	return h != nil && h.next == r && h.holdsAt(s.now())
}

// roomLocked returns the value that the field `share` of the transition's run gets; nil = the run
// has no limit. It returns naming.ErrFull if the transition must give a place to the run, and no
// place is free, or the run is new and another run waits in line. It returns another error if the
// transition admits a run that has no limit, and the run neither gets a key nor has one (`keyed` is
// false).
func (s *state) roomLocked(r *run, t store.Transition, keyed bool) (*share, error) {
	var p share
	switch {
	case t.Room != nil:
		p.Room = *t.Room
		p.Rank = micro(p.Rank)
	case r == nil || r.share == nil:
		if t.Admit && !keyed {
			return nil, fmt.Errorf("memory: run %d has no limit", t.Run)
		}
		return nil, nil
	default:
		p = *r.share
	}
	if !t.Admit || p.admitted {
		return &p, nil
	}
	holders, line := s.sharersLocked(p.Workflow, p.Key)
	if len(holders) >= int(p.Limit) || t.Seq == 0 && len(line) > 0 {
		return nil, naming.ErrFull
	}
	p.admitted = true
	return &p, nil
}

// nextLocked returns runs of the engine in the parameter `engine` that can get a place now: the
// runs that are the next in line for a free place. A run whose owner is not alive gets no place,
// and neither does a run whose unique key is not free. Such runs do not stop the runs behind them
// in the line. The result has no more runs than the parameter `limit` says.
func (s *state) nextLocked(engine store.EngineID, limit int) []status.RunID {
	type shared struct{ workflow, key string }
	seen := map[shared]bool{}
	var next []status.RunID
	for _, id := range slices.Sorted(maps.Keys(s.sharing)) {
		p := s.sharing[id].share
		if p.admitted || s.sharing[id].head.State.Final() || seen[shared{p.Workflow, p.Key}] {
			continue
		}
		seen[shared{p.Workflow, p.Key}] = true
		holders, line := s.sharersLocked(p.Workflow, p.Key)
		taken := len(holders)
		for _, r := range line {
			if !s.aliveLocked(r.head.Owner) || s.keylessLocked(r) {
				continue
			}
			if taken >= int(r.share.Limit) {
				break
			}
			taken++
			if r.head.Owner == engine && len(next) < limit {
				next = append(next, r.head.Run)
			}
		}
	}
	return next
}

// Heir returns the run that has taken over the results of the given run; 0 = there is none.
func (s *views) Heir(ctx context.Context, run status.RunID) (status.RunID, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	if r := s.runs[run]; r != nil {
		return r.heir, nil
	}
	return 0, nil
}

// Places counts the open runs that hold a place, and those that wait in line. It also returns the
// names of runs that hold a place, at most as many names as the parameter `limit` says.
func (s *views) Places(ctx context.Context, workflow, key string, limit int) (naming.Places, error) {
	if err := s.lock(ctx); err != nil {
		return naming.Places{}, err
	}
	defer s.mu.Unlock()
	holders, line := s.sharersLocked(workflow, key)
	p := naming.Places{Taken: len(holders), Waiting: len(line)}
	for _, r := range holders[:min(len(holders), limit)] {
		p.Open = append(p.Open, r.head.Name)
	}
	return p, nil
}
