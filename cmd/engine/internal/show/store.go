package show

import (
	"fmt"

	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/engine/store"
)

// alive reports whether the run's owner is alive.
func (r runTables) alive() bool { return r.Owner != nil && r.Owner.Left > 0 }

// ownerText returns a text about the engine that owns a run that has not ended.
func (r runTables) ownerText() string {
	switch {
	case r.alive():
		return fmt.Sprintf("engine %d, %s, alive", r.Owner.Engine, r.Owner.Address)
	case r.Row.Owner == 0:
		return "no engine yet"
	case r.Owner != nil:
		return fmt.Sprintf("engine %d, %s, %s", r.Owner.Engine, r.Owner.Address, history.GoneText(r.Owner))
	}
	return fmt.Sprintf("engine %d, which is gone", r.Row.Owner)
}

// inboxLines returns lines about the messages that wait for the run's owner.
func (r runTables) inboxLines() []string {
	const most = 5
	var out []string
	for i, m := range r.Inbox {
		if i == most {
			out = append(out, fmt.Sprintf("and %d more", len(r.Inbox)-most))
			break
		}
		out = append(out, history.MessageText(m))
	}
	return out
}

// addStore adds to m what only the store knows: the run's owner, the messages in its inbox and its
// late replies.
func (r runTables) addStore(m map[string]any) {
	if !r.Row.State.Final() {
		owner := map[string]any{"engine": int32(r.Row.Owner), "alive": r.alive()}
		if r.Owner != nil {
			owner["address"], owner["since"], owner["lease_until"] = r.Owner.Address, r.Owner.JoinedAt.UTC(), r.Owner.LeaseUntil.UTC()
		}
		m["owner"] = owner
		if al, ok := history.Missing(r.Alerts, r.Row); ok {
			m["agents_missing"] = history.AlertJSON(al)
		}
	}
	if !r.Row.NextCheck.IsZero() && r.Row.NextCheck.Before(store.Never) && !r.Row.State.Final() {
		m["next_check"] = r.Row.DueSince().UTC()
	}
	waiting := []map[string]any{}
	for _, msg := range r.Inbox {
		waiting = append(waiting, map[string]any{"message": int64(msg.ID), "at": msg.At.UTC(), "kind": messageKind(msg), "by": msg.By})
	}
	m["messages_waiting"] = waiting
	replies := []map[string]any{}
	for _, l := range r.Late {
		replies = append(replies, l.JSON())
	}
	m["late_replies"] = replies
}
