package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/store/events"
)

// eventbox is the part of a Store that keeps events. It implements events.Store.
type eventbox struct {
	*state
	seq     int64 // Seq of the last event
	list    []events.Event
	claimed map[int64]time.Time          // time at which the claim of an event is over, by Seq
	failed  map[int64][]events.FailedKey // failed keys, in the order of workflow and key, by Seq
}

// SendEvent stores an event.
func (s *eventbox) SendEvent(ctx context.Context, e events.Event) (bool, error) {
	if err := e.Validate(); err != nil {
		return false, err
	}
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.list, func(other events.Event) bool { return other.ID == e.ID }) {
		return false, nil
	}
	s.seq++
	e.Seq, e.At, e.Done, e.Quarantined = s.seq, s.now().Truncate(time.Microsecond), nil, ""
	e.Data = slices.Clone(e.Data)
	s.list = append(s.list, e)
	return true, nil
}

// ClaimEvents returns events that wait, and claims them.
func (s *eventbox) ClaimEvents(ctx context.Context, limit int, lease time.Duration) ([]events.Event, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	now := s.now()
	var out []events.Event
	for _, e := range s.list {
		if len(out) < limit && e.Quarantined == "" && !s.claimed[e.Seq].After(now) {
			s.claimed[e.Seq] = now.Add(lease)
			out = append(out, copied(e))
		}
	}
	return out, nil
}

// copied returns an event that shares no memory with e.
func copied(e events.Event) events.Event {
	e.Data, e.Done, e.Lists = slices.Clone(e.Data), slices.Clone(e.Done), slices.Clone(e.Lists)
	return e
}

// KeepEvent stores which workflows do not need the event any more. The parameter `why` says why the
// event is quarantined; "" = it is not.
func (s *eventbox) KeepEvent(ctx context.Context, seq int64, done []string, why string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for i := range s.list {
		if s.list[i].Seq == seq {
			s.list[i].Done, s.list[i].Quarantined = slices.Clone(done), why
		}
	}
	return nil
}

// RemoveEvents removes events from the inbox.
func (s *eventbox) RemoveEvents(ctx context.Context, seqs ...int64) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(e events.Event) bool { return slices.Contains(seqs, e.Seq) })
	for _, seq := range seqs {
		delete(s.claimed, seq)
		delete(s.failed, seq)
	}
	return nil
}

// ReleaseEvents ends the claims of events.
func (s *eventbox) ReleaseEvents(ctx context.Context, seqs ...int64) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, seq := range seqs {
		delete(s.claimed, seq)
	}
	return nil
}

// AdvanceEvent stores the progress of an event (Event.Lists) and the failed keys of one page. It
// returns false if other progress was stored meanwhile, or if there is no such event.
func (s *eventbox) AdvanceEvent(ctx context.Context, e events.Event, p events.Page) (bool, error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.list, func(other events.Event) bool { return other.Seq == e.Seq })
	if i < 0 || s.list[i].Version != e.Version {
		return false, nil
	}
	s.list[i].Version++
	s.list[i].Lists = slices.Clone(p.Lists)
	replaced := slices.Clone(p.Started)
	for _, k := range p.Failed {
		replaced = append(replaced, k.Key)
	}
	keys := slices.DeleteFunc(s.failed[e.Seq], func(k events.FailedKey) bool { return k.Workflow == p.Workflow && slices.Contains(replaced, k.Key) })
	for _, k := range p.Failed {
		keys = append(keys, events.FailedKey{Workflow: p.Workflow, Key: k.Key, Error: k.Error})
	}
	slices.SortFunc(keys, func(a, b events.FailedKey) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Key, b.Key))
	})
	s.failed[e.Seq] = keys
	return true, nil
}

// FailedKeys returns failed keys of an event.
func (s *eventbox) FailedKeys(ctx context.Context, f events.KeyFilter) ([]events.FailedKey, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []events.FailedKey
	for _, k := range s.failed[f.Seq] {
		if len(out) < f.Limit && (f.Workflow == "" || k.Workflow == f.Workflow) && (!f.Waiting || k.Waits) {
			out = append(out, k)
		}
	}
	return out, nil
}

// ListEvents returns the events in the inbox, the oldest first. If the parameter `quarantined` is
// true, it returns only quarantined events.
func (s *eventbox) ListEvents(ctx context.Context, quarantined bool, limit int) ([]events.Event, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []events.Event
	for _, e := range s.list {
		if len(out) < limit && (!quarantined || e.Quarantined != "") {
			out = append(out, copied(e))
		}
	}
	return out, nil
}

// RetryEvent makes an event wait again.
func (s *eventbox) RetryEvent(ctx context.Context, id string) (bool, error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.list, func(e events.Event) bool { return e.ID == id })
	if i < 0 {
		return false, nil
	}
	s.list[i].Quarantined = ""
	for j := range s.failed[s.list[i].Seq] {
		s.failed[s.list[i].Seq][j].Waits = true
	}
	delete(s.claimed, s.list[i].Seq)
	return true, nil
}
