package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/replies"
)

// posts is the part of a Store that keeps replies. It implements replies.Keeper.
type posts struct{ *state }

// Replies returns the outbox.
func (s *posts) Replies() replies.Outbox { return (*outbox)(s) }

// An outbox implements replies.Outbox.
type outbox posts

// postLocked writes the replies of a transition.
func postLocked(s *state, t *store.Transition) {
	if t.Post == nil {
		return
	}
	from, _ := slices.BinarySearchFunc(s.posted, t.Run, func(p *post, run status.RunID) int { return cmp.Compare(p.Run, run+1) })
	n := int32(0)
	if from > 0 && s.posted[from-1].Run == t.Run {
		n = s.posted[from-1].N
	}
	for i, state := range t.Post.States {
		s.posted = slices.Insert(s.posted, from+i, &post{Reply: replies.Reply{
			ID: replies.ID{Run: t.Run, N: n + int32(i) + 1}, Sink: naming.CleanText(t.Post.Sink), Correlation: naming.CleanText(t.Post.Correlation),
			State: naming.CleanText(state), At: micro(t.At),
		}})
	}
}

// shownLocked returns a reply with the names of its run.
func (s *outbox) shownLocked(p *post) replies.Reply {
	r := p.Reply
	if run := s.runs[p.Run]; run != nil {
		r.Name, r.Key, r.Workflow = run.head.Name, run.key.key, s.flows[run.head.Workflow-1].name
	}
	return r
}

// nextLocked calls the function `fn` for replies to the sink. From each run it uses only the reply
// that must be delivered next. It makes at most `limit` calls. If `due` is true, it skips replies
// that no engine can claim now.
func (s *outbox) nextLocked(sink string, limit int, due bool, fn func(i int)) {
	now := s.now()
	for i, p := range s.posted {
		first := i == 0 || s.posted[i-1].Run != p.Run || s.posted[i-1].Done
		if p.Sink != sink || p.Done || !first || due && p.due.After(now) {
			continue
		}
		if limit--; limit < 0 {
			return
		}
		fn(i)
	}
}

// Take returns the next replies of runs that have a reply for the sink, one of each run and at most
// `limit` replies. It marks these replies as done.
func (s *outbox) Take(ctx context.Context, sink string, limit int) (out []replies.Reply, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var taken []*post
	s.nextLocked(sink, limit, false, func(i int) { taken = append(taken, s.posted[i]) })
	for _, p := range taken {
		p.Done = true
		out = append(out, s.shownLocked(p))
	}
	return out, nil
}

// Waiting returns replies for the sink that are not done.
func (s *outbox) Waiting(ctx context.Context, sink string, limit int) (out []replies.Reply, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, p := range s.posted {
		if p.Sink == sink && !p.Done && len(out) < limit {
			out = append(out, s.shownLocked(p))
		}
	}
	return out, nil
}

// Due returns the sinks that have a reply which an engine may claim now, sorted by name.
func (s *outbox) Due(ctx context.Context, after, before string, limit int) (out []string, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	now := s.now()
	for _, p := range s.posted {
		if !p.Done && !p.due.After(now) && p.Sink > after && p.Sink < before {
			out = append(out, p.Sink)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(limit, len(out))], nil
}

// Claim returns the next replies of runs that have a reply for the sink, one of each run and at
// most `limit` replies. It leaves out replies that no engine can claim now. Until the duration
// claimTime has passed, no engine can claim a reply of these runs again.
func (s *outbox) Claim(ctx context.Context, sink string, limit int, claimTime time.Duration) (out []replies.Reply, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	until := s.now().Add(claimTime)
	s.nextLocked(sink, limit, true, func(i int) {
		s.posted[i].Tries++
		out = append(out, s.shownLocked(s.posted[i]))
	})
	for _, r := range out {
		s.dueLocked(r.ID, until)
	}
	return out, nil
}

// dueLocked sets the time from which an engine can claim a reply. The later replies of the run get
// the same time.
func (s *outbox) dueLocked(id replies.ID, due time.Time) {
	for _, p := range s.posted {
		if p.Run == id.Run && p.N >= id.N && !p.Done {
			p.due = due
		}
	}
}

// findLocked returns a reply; nil = there is none.
func (s *outbox) findLocked(id replies.ID) *post {
	for _, p := range s.posted {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// Delivered marks replies as done.
func (s *outbox) Delivered(ctx context.Context, done ...replies.ID) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, id := range done {
		if p := s.findLocked(id); p != nil && !p.Done {
			s.dueLocked(id, time.Time{})
			p.Done, p.Why = true, ""
		}
	}
	return nil
}

// Later records why a reply was not delivered. No engine can claim the reply during the pause.
// Later does nothing if the reply is done.
func (s *outbox) Later(ctx context.Context, id replies.ID, pause time.Duration, why string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if p := s.findLocked(id); p != nil && !p.Done {
		s.dueLocked(id, s.now().Add(pause))
		p.Why = naming.CleanText(why)
	}
	return nil
}

// OfRun returns all replies of a run, ascending by number.
func (s *outbox) OfRun(ctx context.Context, run status.RunID) (out []replies.Reply, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, p := range s.posted {
		if p.Run == run {
			out = append(out, s.shownLocked(p))
		}
	}
	return out, nil
}

// Lag returns the sinks for which replies wait, sorted by name.
func (s *outbox) Lag(ctx context.Context) (out []replies.Lag, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, p := range s.posted {
		if p.Done {
			continue
		}
		i, known := slices.BinarySearchFunc(out, p.Sink, func(l replies.Lag, sink string) int { return strings.Compare(l.Sink, sink) })
		if !known {
			out = slices.Insert(out, i, replies.Lag{Sink: p.Sink, Oldest: p.At})
		}
		if l := &out[i]; l.Waiting < replies.LagLimit {
			l.Waiting++
			if p.At.Before(l.Oldest) {
				l.Oldest = p.At
			}
		}
	}
	return out[:min(len(out), replies.MaxSinks)], nil
}

// Hint does nothing: no other process can see the replies.
func (s *outbox) Hint(context.Context, ...string) error { return nil }
