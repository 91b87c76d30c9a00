package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// history reads what the store knows of runs.
type history struct{ *session }

// maxInboxShown is how many waiting messages are counted.
const maxInboxShown = 1000

// ownerOf returns the engine that owns an open run, or did until it died; nil if
// there is none, or nothing is known of it any more.
func (s history) ownerOf(ctx context.Context, row store.RunRow) (*store.Member, error) {
	if row.Owner == 0 || row.State.Final() {
		return nil, nil
	}
	m, err := s.store.Member(ctx, row.Owner)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, s.wrap("look for the run's engine", err)
	}
	return &m, nil
}

// alive reports whether the run's owner lives.
func (r runTables) alive() bool { return r.owner != nil && r.owner.Left > 0 }

// goneText says since when an engine is gone; nil = that is not known.
func goneText(m *store.Member) string {
	switch {
	case m == nil:
		return "gone"
	case m.Left > 0: // see vanished
		return fmt.Sprintf("gone: process %s has ended", m.Address)
	}
	return fmt.Sprintf("gone since %s, %s ago", stamp(m.LeaseUntil), render.Span((-m.Left).Truncate(time.Second)))
}

// missing is what was told of an open run whose agents no engine has.
func missing(alerts []store.AlertRow, row store.RunRow) (store.AlertRow, bool) {
	if row.State.Final() || row.OwnerAlive {
		return store.AlertRow{}, false
	}
	for _, al := range alerts { // newest first
		if al.Code == engine.AlertAgentMissing {
			return al, true
		}
	}
	return store.AlertRow{}, false
}

// ownerText says who works on a run that has not ended.
func (r runTables) ownerText() string {
	switch {
	case r.alive():
		return fmt.Sprintf("engine %d, %s, alive", r.owner.Engine, r.owner.Address)
	case r.row.Owner == 0:
		return "nobody yet"
	case r.owner != nil:
		return fmt.Sprintf("engine %d, %s, %s", r.owner.Engine, r.owner.Address, goneText(r.owner))
	}
	return fmt.Sprintf("engine %d, which is gone", r.row.Owner)
}

// inboxLines tell of the messages that wait for the run's owner.
func (r runTables) inboxLines() []string {
	const most = 5
	var out []string
	for i, m := range r.inbox {
		if i == most {
			out = append(out, fmt.Sprintf("and %d more", len(r.inbox)-most))
			break
		}
		out = append(out, messageText(m))
	}
	return out
}

func messageText(m store.Message) string {
	if m.Kind == store.MessageReply {
		return stamp(m.At) + " an agent's answer"
	}
	return stamp(m.At) + " a request of " + m.By
}

// messageKind is the kind of a message for programs.
func messageKind(m store.Message) string {
	if m.Kind == store.MessageReply {
		return "reply"
	}
	return "verb"
}

// lateText tells of a late answer.
func (l late) text() string {
	s := fmt.Sprintf("%s %s: %s", stamp(l.At), l.Step, l.outcomeText())
	if l.purpose != "" && l.purpose != story.PurposeDo {
		s += " (" + string(l.purpose) + ")"
	}
	return s
}

func (l late) outcomeText() string {
	message := ""
	switch e := l.event.(type) {
	case machine.AttemptFailed:
		message = e.Message
	case machine.AttemptUnknown:
		message = e.Message
	}
	what := map[string]string{"ok": "it had succeeded", "failed": "it had failed", "unknown": "the agent does not know", "not_done": "it never took effect"}[l.Outcome]
	if what == "" {
		what = l.Outcome
	}
	if why := join(": ", l.Code, message); why != "" {
		what += ": " + why
	}
	return what
}

// json is a late answer as programs see it. What it brought is shown where it
// can be read; the values of sensitive outputs are not known to be such, so
// none is.
func (l late) json() map[string]any {
	m := map[string]any{"at": l.At, "step": l.Step, "call": l.Call, "outcome": l.Outcome, "readable": l.err == nil}
	for name, s := range map[string]string{"code": l.Code, "purpose": string(l.purpose)} {
		if s != "" {
			m[name] = s
		}
	}
	return m
}

// addStore adds what only the store knows: who owns the run, what waits, what
// came too late.
func (r runTables) addStore(m map[string]any) {
	if !r.row.State.Final() {
		owner := map[string]any{"engine": int32(r.row.Owner), "alive": r.alive()}
		if r.owner != nil {
			owner["address"], owner["since"], owner["lease_until"] = r.owner.Address, r.owner.JoinedAt.UTC(), r.owner.LeaseUntil.UTC()
		}
		m["owner"] = owner
		if al, ok := missing(r.alerts, r.row); ok {
			m["agents_missing"] = alertJSON(al)
		}
	}
	if !r.row.NextCheck.IsZero() && r.row.NextCheck.Before(store.Never) && !r.row.State.Final() {
		m["next_check"] = r.row.NextCheck.UTC()
	}
	waiting := []map[string]any{}
	for _, msg := range r.inbox {
		waiting = append(waiting, map[string]any{"message": int64(msg.ID), "at": msg.At.UTC(), "kind": messageKind(msg), "by": msg.By})
	}
	m["messages_waiting"] = waiting
	replies := []map[string]any{}
	for _, l := range r.late {
		replies = append(replies, l.json())
	}
	m["late_replies"] = replies
}
