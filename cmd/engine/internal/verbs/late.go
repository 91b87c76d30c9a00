package verbs

import (
	"bytes"
	"context"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// A Settlement is the outcome of a step, as the late replies of the step prove it.
type Settlement struct {
	As     machine.Settlement
	Output dsl.Value
}

// LateSettlement returns the outcome of a step, as the late replies of the step show it. If the
// replies do not show the outcome, or contradict each other, it returns an error: then a person has
// to decide.
func LateSettlement(ctx context.Context, s *session.Session, r *history.Run, step string) (Settlement, error) {
	all, err := history.LateReplies(ctx, s, r)
	if err != nil {
		return Settlement{}, err
	}
	name := words.Quote(render.Clean(r.Row.Name))
	var of []history.Late
	nodes := map[int32]bool{}
	for _, l := range all {
		n := story.Node(r.State, r.Flow, int(l.Node))
		if n.Name == step || n.Step < len(r.Flow.Steps) && r.Flow.Steps[n.Step].Name == step {
			of = append(of, l)
			nodes[l.Node] = true
		}
	}
	switch {
	case len(of) == 0:
		return Settlement{}, cli.Failed("No late answer", "No late answer of step %q is known; the run is %s. `engine show %s` lists those there are; state what happened with --succeeded, --not-done or --undone.", step, r.Row.State, name)
	case len(nodes) > 1:
		return Settlement{}, cli.Failed("Several instances", "Late answers of several instances of %q are known. Name one, such as --step '%s'.", step, render.Clean(of[0].Step))
	}
	n := story.Node(r.State, r.Flow, int(of[0].Node))
	for _, l := range of {
		if l.Err != nil {
			return Settlement{}, s.Wrap("read the late answer", l.Err)
		}
	}
	if found, ok := undoSettlement(n, of); ok {
		return found, nil
	}
	return workSettlement(n, of)
}

// undoSettlement returns the outcome of the failed undo of a step, as the late replies show it. The
// parameter `of` holds the late replies of the step. The result is false if the undo has not
// failed, or if the replies do not show the outcome of the undo.
func undoSettlement(n story.NodeView, of []history.Late) (Settlement, bool) {
	if n.State != status.StepUndoFailed {
		return Settlement{}, false
	}
	for _, l := range of {
		switch l.Event.(type) {
		case machine.AttemptOK:
			if l.Undo {
				return Settlement{As: machine.SettleUndone}, true
			}
		case machine.AttemptNotDone:
			if l.Undo {
				return Settlement{As: machine.SettleNotDone}, true
			}
		}
	}
	if doubts(n, of, func(c story.CallView) bool { return c.Purpose == story.PurposeUndo }) == settled {
		return Settlement{As: machine.SettleNotDone}, true
	}
	return Settlement{}, false
}

// workSettlement returns the outcome of the step itself, not of its undo, as the late replies
// show it. The parameter `of` holds the late replies of the step. If the replies do not show
// the outcome, workSettlement returns an error.
func workSettlement(n story.NodeView, of []history.Late) (Settlement, error) {
	var result *dsl.Value
	for _, l := range of {
		ok, is := l.Event.(machine.AttemptOK)
		if !is || l.Undo || l.Purpose == "" {
			continue
		}
		if result != nil && !bytes.Equal(result.JSON(), ok.Output.JSON()) {
			return Settlement{}, cli.Failed("Late answers differ", "Late answers of %s gave different results. State the right one with --succeeded --output JSON.", render.Clean(n.Name))
		}
		result = &ok.Output
	}
	if result != nil {
		return Settlement{As: machine.SettleSucceeded, Output: dsl.NewValue(result.JSON(), nil, nil)}, nil
	}
	for _, l := range of {
		if _, never := l.Event.(machine.AttemptNotDone); never && !l.Undo {
			return Settlement{As: machine.SettleNotDone}, nil
		}
	}
	switch doubts(n, of, func(c story.CallView) bool { return c.Purpose == story.PurposeDo }) {
	case settled:
		return Settlement{As: machine.SettleNotDone}, nil
	case some:
		return Settlement{}, cli.Failed("Late answers are not enough", "A late answer says that one attempt of %s did nothing, but what became of another is not known. State what happened with --succeeded, --not-done or --undone.", render.Clean(n.Name))
	}
	return Settlement{}, cli.Failed("Late answers do not tell", "No late answer of %s says what happened. State it with --succeeded, --not-done or --undone.", render.Clean(n.Name))
}

// A doubt says for which attempts with an open or unknown outcome a late reply reports a definite
// failure. It ignores all attempts whose outcome is known.
type doubt int

const (
	none doubt = iota // late replies report a failure for none of these attempts
	// Late replies report a failure for some of these attempts, but not for all.
	some
	settled // late replies report a failure for each of these attempts
)

func doubts(n story.NodeView, of []history.Late, about func(story.CallView) bool) doubt {
	cleared := map[int]bool{}
	for _, l := range of {
		if _, ok := l.Event.(machine.AttemptFailed); ok {
			cleared[int(l.Call)] = true
		}
	}
	found, open := false, false
	counted := 0
	for _, c := range n.Calls {
		if !about(c) {
			continue
		}
		counted++
		if c.Status != "unknown" && c.Status != "open" {
			continue
		}
		if cleared[c.Call] {
			found = true
		} else {
			open = true
		}
	}
	total := n.Attempts
	if n.State == status.StepUndoFailed {
		total = n.UndoAttempts
	}
	switch {
	case !found:
		return none
	case open, counted < total:
		// If fewer attempts were counted than the step has made, n.Calls has only the latest ones.
		// Then the outcome of the earlier attempts is not known.
		return some
	}
	return settled
}
