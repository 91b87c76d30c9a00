package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/store"
)

// OwnerOf returns the engine that owns an open run; it may be dead. The result is nil if
// there is no owner, or if the store does not know the engine any more.
func OwnerOf(ctx context.Context, s *session.Session, row store.RunRow) (*store.Member, error) {
	if row.Owner == 0 || row.State.Final() {
		return nil, nil
	}
	m, err := s.Store.Member(ctx, row.Owner)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, s.Wrap("look for the run's engine", err)
	}
	return &m, nil
}

// MemberText returns the id and the address of an engine as one text.
func MemberText(m store.Member) string { return fmt.Sprintf("%d at %s", m.Engine, m.Address) }

// GoneText returns a text that says since when an engine is gone. The parameter `m` is nil if the
// store does not know the engine any more.
func GoneText(m *store.Member) string {
	switch {
	case m == nil:
		return "gone"
	// The process of the engine has ended, although its lease has not: see process.Ended.
	case m.Left > 0:
		return fmt.Sprintf("gone: process %s has ended", m.Address)
	}
	return fmt.Sprintf("gone since %s, %s ago", words.Stamp(m.LeaseUntil), render.Span((-m.Left).Truncate(time.Second)))
}

// Missing returns the newest alert that says: no engine has the agents of this open run. It
// returns false if there is no such alert, or if a living engine owns the run.
func Missing(alerts []store.AlertRow, row store.RunRow) (store.AlertRow, bool) {
	if row.State.Final() || row.OwnerAlive {
		return store.AlertRow{}, false
	}
	for _, al := range alerts { // the newest alert comes first
		if al.Code == engine.AlertAgentMissing {
			return al, true
		}
	}
	return store.AlertRow{}, false
}

// MessageText returns one line about a message that waits in the inbox.
func MessageText(m store.Message) string {
	if m.Kind == store.MessageReply {
		return words.Stamp(m.At) + " an agent's answer"
	}
	return words.Stamp(m.At) + " a request of " + m.By
}
