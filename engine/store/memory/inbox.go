package memory

import (
	"context"
	"slices"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// inboxRole is the part of a Store that keeps messages. It keeps a message until a row of the
// message's run consumes it, or until Discard removes it.
type inboxRole struct {
	*state
	*hands
	*hints
	messages store.MessageID   // the last id that was used for a message
	turns    storekit.Rotation // for each engine, where its next page of Tick.Inbox begins
}

// Post puts a message into its run's inbox and sends a hint. If the inbox has a message with the
// same Dedup already, Post only returns the id of that message. For the errors, see store.Inbox.
func (s *inboxRole) Post(ctx context.Context, m store.Message) (store.MessageID, error) {
	if err := m.Validate(); err != nil {
		return 0, err
	}
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	if s.runs[m.Run] == nil {
		return 0, store.ErrNotFound
	}
	if err := s.fullLocked(m); err != nil {
		return 0, err
	}
	return s.postLocked(m), nil
}

// fullLocked returns the error of Post if the inbox of the message's run cannot take the message.
// It returns nil if the inbox can take the message, or has this message already.
func (s *inboxRole) fullLocked(m store.Message) error {
	waiting, size := s.inbox[m.Run], int64(len(m.Data))
	for _, old := range waiting {
		if m.Dedup != "" && old.Dedup == m.Dedup {
			return nil
		}
		size += int64(len(old.Data))
	}
	switch {
	case m.Most > 0 && len(waiting) >= m.Most:
		return naming.ErrInboxFull
	case m.MostBytes > 0 && size > m.MostBytes:
		return naming.ErrInboxBytes
	}
	return nil
}

// postLocked puts a message into the inbox of a run that exists, and sends a hint. If the inbox has
// a message with the same Dedup already, postLocked only returns the id of that message.
func (s *inboxRole) postLocked(m store.Message) store.MessageID {
	for _, old := range s.inbox[m.Run] {
		if m.Dedup != "" && old.Dedup == m.Dedup {
			return old.ID
		}
	}
	if m.At.IsZero() {
		m.At = s.now()
	}
	s.messages++
	m.ID, m.At, m.By, m.Data = s.messages, micro(m.At), naming.CleanText(m.By), slices.Clone(m.Data)
	s.inbox[m.Run] = append(s.inbox[m.Run], m)
	s.hintLocked()
	return m.ID
}

// Messages returns messages of a run, in the order of their ids. It returns only messages
// with an id greater than the parameter `after`. The parameter `limit` is the largest number of
// messages.
func (s *inboxRole) Messages(ctx context.Context, run status.RunID, after store.MessageID, limit int) ([]store.Message, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	all := s.inbox[run]
	for len(all) > 0 && all[0].ID <= after {
		all = all[1:]
	}
	out := slices.Clone(all[:min(len(all), limit)])
	for i := range out {
		out[i].Data = slices.Clone(out[i].Data)
	}
	return out, nil
}

// Discard removes messages of a run that has ended. It removes nothing if the run is open.
func (s *inboxRole) Discard(ctx context.Context, run status.RunID, ids []store.MessageID) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if r := s.runs[run]; r != nil && r.head.State.Final() {
		s.consumeLocked(run, ids)
	}
	return nil
}

// consumeLocked removes messages of a run. It ignores the ids of messages that are not in the inbox
// of this run.
func (s *inboxRole) consumeLocked(run status.RunID, ids []store.MessageID) {
	if len(ids) == 0 {
		return
	}
	left := slices.DeleteFunc(s.inbox[run], func(m store.Message) bool { return slices.Contains(ids, m.ID) })
	if s.inbox[run] = left; len(left) == 0 {
		delete(s.inbox, run)
	}
}

// waitingLocked returns an engine's next page of runs with waiting messages. The parameter `limit`
// is the largest number of runs in a page. The page has runs of the engine, runs without an owner,
// and ended runs whose owner is not alive. It leaves out runs that engines ignore until a person
// decides about them (shunnedLocked).
func (s *inboxRole) waitingLocked(id store.EngineID, limit int) []status.RunID {
	var runs []status.RunID
	after := s.turns.After(id)
	for run := range s.inbox {
		if run <= after {
			continue
		}
		h := s.runs[run].head
		if s.shunnedLocked(s.runs[run]) {
			continue
		}
		if h.Owner == id || h.Owner == 0 || h.State.Final() && !s.aliveLocked(h.Owner) {
			runs = append(runs, run)
		}
	}
	slices.Sort(runs)
	runs = runs[:min(len(runs), limit)]
	s.turns.Shown(id, runs, limit)
	return runs
}

// hints is the part of a Store that notifies engines when work may wait for them.
type hints struct {
	*state
	wakes []chan struct{}
}

// Wakes returns a channel. It receives a hint in these cases: a message arrives; a run without an
// owner is submitted; a run that waits in line is submitted; a run gives up a place or a key
// (Transition.Frees); an engine leaves. The channel is closed when ctx ends.
func (s *hints) Wakes(ctx context.Context) <-chan struct{} {
	hints := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakes = append(s.wakes, hints)
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wakes = slices.DeleteFunc(s.wakes, func(c chan struct{}) bool { return c == hints })
		close(hints)
	})
	return hints
}

func (s *hints) hintLocked() {
	for _, c := range s.wakes {
		select {
		case c <- struct{}{}:
		default: // the channel has a hint already
		}
	}
}
