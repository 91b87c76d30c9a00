package main

import (
	"bytes"
	"context"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// A late is an answer that came too late to count, read.
type late struct {
	store.LateReply
	event   machine.Event // nil = it cannot be read
	err     error         // why not
	purpose story.Purpose // "" = not known any more
	undo    bool          // the call was the undo, or asked about it
}

// lateReplies reads a run's late answers, oldest first. Those that cannot be
// read are there without their event.
func (s history) lateReplies(ctx context.Context, r *shownRun) ([]late, error) {
	rows, err := s.store.LateReplies(ctx, r.row.Run)
	if err != nil {
		return nil, s.wrap("read late answers", err)
	}
	out := make([]late, len(rows))
	for i, row := range rows {
		out[i] = late{LateReply: row}
		out[i].event, out[i].err = journal.DecodeLate(s.sealer, row)
		n := story.Node(r.state, r.wf, int(row.Node))
		if n.UndoAttempts == 0 {
			out[i].purpose = story.PurposeDo
		}
		for _, c := range n.Calls {
			if c.Call == int(row.Call) {
				out[i].purpose = c.Purpose
				out[i].undo = c.Purpose == story.PurposeUndo || c.Purpose == story.PurposeLookup && c.Key != "" && c.Key == n.UndoKey
			}
		}
	}
	return out, nil
}

// A settlement is what late answers say about a step.
type settlement struct {
	As     machine.Settlement
	Output dsl.Value
}

// lateSettlement makes a settlement of a step out of its late answers. It makes none where
// an answer says *unknown*, or where two answers contradict each other: then a person has
// to judge.
func (a speaker) lateSettlement(ctx context.Context, s *session, r *shownRun, step string) (settlement, error) {
	all, err := s.history().lateReplies(ctx, r)
	if err != nil {
		return settlement{}, err
	}
	name := quoteArg(render.Clean(r.row.Name))
	var of []late
	nodes := map[int32]bool{}
	for _, l := range all {
		n := story.Node(r.state, r.wf, int(l.Node))
		if n.Name == step || n.Step < len(r.wf.Steps) && r.wf.Steps[n.Step].Name == step {
			of = append(of, l)
			nodes[l.Node] = true
		}
	}
	switch {
	case len(of) == 0:
		return settlement{}, failed("No late answer", "No late answer of step %q is known; the run is %s. `engine show %s` lists those there are; state what happened with --succeeded, --not-done or --undone.", step, r.row.State, name)
	case len(nodes) > 1:
		return settlement{}, failed("Several instances", "Late answers of several instances of %q are known. Name one, such as --step '%s'.", step, render.Clean(of[0].Step))
	}
	n := story.Node(r.state, r.wf, int(of[0].Node))
	for _, l := range of {
		if l.err != nil {
			return settlement{}, s.wrap("read the late answer", l.err)
		}
	}
	if found, ok := undoSettlement(n, of); ok {
		return found, nil
	}
	return workSettlement(n, of)
}

// undoSettlement judges late answers of a failed undo.
func undoSettlement(n story.NodeView, of []late) (settlement, bool) {
	if n.State != status.StepUndoFailed {
		return settlement{}, false
	}
	for _, l := range of {
		switch l.event.(type) {
		case machine.AttemptOK:
			if l.undo {
				return settlement{As: machine.SettleUndone}, true
			}
		case machine.AttemptNotDone:
			if l.undo {
				return settlement{As: machine.SettleNotDone}, true
			}
		}
	}
	if doubts(n, of, func(c story.CallView) bool { return c.Purpose == story.PurposeUndo }) == settled {
		return settlement{As: machine.SettleNotDone}, true
	}
	return settlement{}, false
}

// workSettlement judges late answers of a step's work.
func workSettlement(n story.NodeView, of []late) (settlement, error) {
	var result *dsl.Value
	for _, l := range of {
		ok, is := l.event.(machine.AttemptOK)
		if !is || l.undo || l.purpose == "" {
			continue
		}
		if result != nil && !bytes.Equal(result.JSON(), ok.Output.JSON()) {
			return settlement{}, failed("Late answers differ", "Late answers of %s gave different results. State the right one with --succeeded --output JSON.", render.Clean(n.Name))
		}
		result = &ok.Output
	}
	if result != nil {
		return settlement{As: machine.SettleSucceeded, Output: dsl.NewValue(result.JSON(), nil, nil)}, nil
	}
	for _, l := range of {
		if _, never := l.event.(machine.AttemptNotDone); never && !l.undo {
			return settlement{As: machine.SettleNotDone}, nil
		}
	}
	switch doubts(n, of, func(c story.CallView) bool { return c.Purpose == story.PurposeDo }) {
	case settled:
		return settlement{As: machine.SettleNotDone}, nil
	case some:
		return settlement{}, failed("Late answers are not enough", "A late answer says that one attempt of %s did nothing, but what became of another is not known. State what happened with --succeeded, --not-done or --undone.", render.Clean(n.Name))
	}
	return settlement{}, failed("Late answers do not tell", "No late answer of %s says what happened. State it with --succeeded, --not-done or --undone.", render.Clean(n.Name))
}

// A doubt says how many of the attempts of unknown outcome late answers have
// cleared: definite failures, for each of them.
type doubt int

const (
	none    doubt = iota // no late answer is a definite failure
	some                 // others are unknown still
	settled              // every one
)

func doubts(n story.NodeView, of []late, about func(story.CallView) bool) doubt {
	cleared := map[int]bool{}
	for _, l := range of {
		if _, ok := l.event.(machine.AttemptFailed); ok {
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
	case open, counted < total: // earlier ones are not remembered one by one
		return some
	}
	return settled
}
