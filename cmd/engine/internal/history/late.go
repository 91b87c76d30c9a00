package history

import (
	"context"
	"fmt"

	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// A Late is a late reply of a run, with its decoded content.
type Late struct {
	store.LateReply
	Event machine.Event // the decoded reply; nil = it cannot be read
	Err   error         // why the reply cannot be read
	// Purpose is the purpose of the call; "" = not known any more. If the state has forgotten the
	// call, and the step has no undo attempts, it is PurposeDo.
	Purpose story.Purpose
	// If Undo is true, the call was an undo, or a lookup that asked whether an undo took effect.
	Undo bool
}

// LateReplies reads a run's late replies, oldest first. If a reply cannot be read, its Event
// is nil.
func LateReplies(ctx context.Context, s *session.Session, r *Run) ([]Late, error) {
	rows, err := s.Store.LateReplies(ctx, r.Row.Run)
	if err != nil {
		return nil, s.Wrap("read late answers", err)
	}
	out := make([]Late, len(rows))
	for i, row := range rows {
		out[i] = Late{LateReply: row}
		out[i].Event, out[i].Err = journal.DecodeLate(s.Sealer, row)
		n := story.Node(r.State, r.Flow, int(row.Node))
		if n.UndoAttempts == 0 {
			out[i].Purpose = story.PurposeDo
		}
		for _, c := range n.Calls {
			if c.Call == int(row.Call) {
				out[i].Purpose = c.Purpose
				out[i].Undo = c.Purpose == story.PurposeUndo || c.Purpose == story.PurposeLookup && c.Key != "" && c.Key == n.UndoKey
			}
		}
	}
	return out, nil
}

// Text returns one line about a late reply.
func (l Late) Text() string {
	s := fmt.Sprintf("%s %s: %s", words.Stamp(l.At), l.Step, l.OutcomeText())
	if l.Purpose != "" && l.Purpose != story.PurposeDo {
		s += " (" + string(l.Purpose) + ")"
	}
	return s
}

// OutcomeText returns what the late reply reports, without time and step.
func (l Late) OutcomeText() string {
	message := ""
	switch e := l.Event.(type) {
	case machine.AttemptFailed:
		message = e.Message
	case machine.AttemptUnknown:
		message = e.Message
	}
	what := map[string]string{"ok": "it had succeeded", "failed": "it had failed", "unknown": "the agent does not know", "not_done": "it never took effect"}[l.Outcome]
	if what == "" {
		what = l.Outcome
	}
	if why := words.Join(": ", l.Code, message); why != "" {
		what += ": " + why
	}
	return what
}

// JSON returns a late reply for --json. It leaves out the output, because it is not known which
// values of the output are sensitive.
func (l Late) JSON() map[string]any {
	m := map[string]any{"at": l.At, "step": l.Step, "call": l.Call, "outcome": l.Outcome, "readable": l.Err == nil}
	for name, s := range map[string]string{"code": l.Code, "purpose": string(l.Purpose)} {
		if s != "" {
			m[name] = s
		}
	}
	return m
}
