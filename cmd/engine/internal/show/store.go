package show

import (
	"fmt"

	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
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

// waitingLines returns lines about the messages that wait for the run's owner, and about the
// signals that wait for a step.
func (r runTables) waitingLines() []string {
	return append(few(r.Inbox, history.MessageText), few(story.EarlySignals(r.State), signalText)...)
}

// few returns a text for each of the first elements, and one line about the others.
func few[T any](all []T, text func(T) string) (out []string) {
	const most = 5
	for i, x := range all {
		if i == most {
			return append(out, fmt.Sprintf("and %d more", len(all)-most))
		}
		out = append(out, text(x))
	}
	return out
}

// signalText returns a text about a signal that the run keeps.
func signalText(x story.EarlySignal) string {
	text := "signal " + x.Name
	if x.Code != "" {
		text += " with the error code " + x.Code
	}
	if x.By != "" {
		text += " from " + x.By
	}
	return text + ", until a step takes it"
}

// signalsJSON returns the signals that the run keeps until a step or a group takes them.
func (r runTables) signalsJSON() []map[string]any {
	out := []map[string]any{}
	for _, x := range story.EarlySignals(r.State) {
		m := map[string]any{"signal": x.Name, "by": x.By, "payload_bytes": x.Bytes}
		if x.Code != "" {
			m["code"] = x.Code
		}
		out = append(out, m)
	}
	return out
}

// addStore adds to m the run's owner, the messages in its inbox, its late replies, and the signals
// that wait for a step. If an alert says that no engine has the agents of the run, addStore adds
// this alert, too. For an open run it also adds the time of the next check, if there is one.
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
	m["signals_waiting"] = r.signalsJSON()
	replies := []map[string]any{}
	for _, l := range r.Late {
		replies = append(replies, l.JSON())
	}
	m["late_replies"] = replies
}
