package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/story"
)

// A Receiver is the run that takes a signal: the run that the sender names, or the run of one of
// its groups.
type Receiver struct {
	Run  status.RunID
	Name string
	// Known is true if the run has accepted a signal with this id before. In this case the signal
	// changes nothing, and there is nothing to send.
	Known bool
	// Again is true if groups may wait for the signal, so that another run may take the signal if
	// this run refuses it. In this case the caller asks for the Receiver again after a refusal.
	Again bool
}

// Receiver returns the run that takes the signal ev, which a person or a program sends to the
// parameter `run`. For people, the steps of a group belong to the run around the group. But a group
// is a run of its own. So Receiver looks for the run that takes the signal:
//
//   - If a step of the run itself takes the signal, now or later, the run is the Receiver.
//   - If no step of the run itself takes it, the Receiver is the first run of a group, at any
//     depth, in which a step waits for the signal now. If there is no such run, it is the first run
//     of a group that keeps the signal for a later step of its own.
//   - If there is no such run either, it is the first run of a group that keeps the signal for a
//     group in it that has not started. If there is none, it is the run in the parameter `run`,
//     which keeps the signal for a group that has not started. Groups that have started come first,
//     because groups that have not started may wait for their end.
//   - One rule comes before all others: if the signal has an id, and the run or the run of a group
//     knows the id, the run that knows the id is the Receiver.
//
// If none of these runs takes the signal, Receiver returns a *RefusedError that says why. Receiver
// sends nothing, and runs may change before the signal reaches them. So the caller must ask again
// if the Receiver refuses the signal: a group may have started or ended. Receiver also returns the
// errors of Try.
func (o *Operator) Receiver(ctx context.Context, run status.RunID, ev machine.SignalReceived) (Receiver, error) {
	top, err := journal.LoadState(ctx, store.Complete(o.Store), o.Sealer, o.Defs, run)
	if err != nil {
		return Receiver{}, err
	}
	own := Receiver{Run: run, Name: top.Head.Name, Known: story.KnowsSignal(top.State, ev.ID)}
	if own.Known || !slices.ContainsFunc(top.Flow.Steps, func(s *dsl.Step) bool { return s.AwaitsInside(ev.Name) }) {
		return own, nil
	}
	own.Again = true
	if ev.ID != "" {
		w := &groupWalk{Operator: o, ev: ev}
		w.visit = w.knows
		if err := w.inside(ctx, top); err != nil || w.found {
			return w.to, err
		}
	}
	err = o.Try(ctx, run, ev) // also nil if only a group that has not started can take the signal
	var refused *RefusedError
	r := top.State.Run()
	if err != nil && !errors.As(err, &refused) || r.State.Final() || r.UndoStarted != 0 {
		return own, err
	}
	w := &groupWalk{Operator: o, ev: ev}
	if err == nil && new(machine.Scratch).Takes(top.Flow, top.State, ev) {
		return own, nil
	}
	w.visit = w.takes
	if err := w.inside(ctx, top); err != nil || w.found {
		return w.to, err
	}
	switch {
	case w.keeper.Run != 0:
		return w.keeper, nil
	case w.around.Run != 0:
		return w.around, nil
	case err == nil: // the run keeps the signal for a group in it
		return own, nil
	}
	refused.Reason = strings.Join(append([]string{refused.Reason}, w.reasons()...), "; ")
	return Receiver{}, refused
}

// A groupWalk visits the runs of groups, at any depth: the groups of a run in the order of their
// steps and keys, and after each of them the groups in it. It visits only groups in which a step
// may wait for the signal.
type groupWalk struct {
	*Operator
	ev machine.SignalReceived
	// The walk calls this function for each run of a group.
	visit func(ctx context.Context, group string, r journal.Run) error

	to    Receiver // the run that takes the signal, or knows its id
	found bool     // the field `to` is set; the walk ends
	// The first run that would keep the signal for a later step of its own; Run 0 = none.
	keeper Receiver
	// The first run of a group that would keep the signal for a group in it that has not started;
	// Run 0 = none.
	around  Receiver
	refused []string // why runs of groups refuse the signal
	begins  []string // groups that have started, but whose run is not in the store yet
	ended   []string // groups that have ended
}

// inside visits the groups of the run r.
func (w *groupWalk) inside(ctx context.Context, r journal.Run) error {
	for n := range story.Nodes(r.State, r.Flow) {
		if w.found || n.Each && n.Count >= 0 || n.Step >= len(r.Flow.Steps) || !r.Flow.Steps[n.Step].AwaitsInside(w.ev.Name) {
			continue
		}
		if err := w.group(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// group visits the run of a group, and the groups in it. The parameter n is the node of the group,
// or of one instance of the group.
func (w *groupWalk) group(ctx context.Context, n story.NodeView) error {
	if n.Child == "" { // the run around the group keeps the signal, if the group has not ended
		if !n.FinishedAt.IsZero() {
			w.ended = append(w.ended, n.Name)
		}
		return nil
	}
	row, err := store.Complete(w.Store).Find(ctx, n.Child)
	if errors.Is(err, store.ErrNotFound) { // no engine has submitted the run yet
		w.begins = append(w.begins, n.Name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the run of group %s: %w", n.Name, err)
	}
	if row.State.Final() && w.ev.ID == "" {
		w.ended = append(w.ended, n.Name)
		return nil
	}
	r, err := journal.LoadState(ctx, store.Complete(w.Store), w.Sealer, w.Defs, row.Run)
	if err != nil {
		return err
	}
	if err := w.visit(ctx, n.Name, r); err != nil || w.found {
		return err
	}
	return w.inside(ctx, r)
}

// knows ends the walk at a run that knows the id of the signal, or in whose inbox a signal with
// this id waits.
func (w *groupWalk) knows(ctx context.Context, _ string, r journal.Run) error {
	known := story.KnowsSignal(r.State, w.ev.ID)
	if !known {
		if r.Head.State.Final() {
			return nil
		}
		if waits, err := w.waits(ctx, r.Head.Run); err != nil || !waits {
			return err
		}
	}
	w.to, w.found = Receiver{Run: r.Head.Run, Name: r.Head.Name, Known: known}, true
	return nil
}

// waits reports whether a signal with the id of the walk waits in the inbox of a run.
func (w *groupWalk) waits(ctx context.Context, run status.RunID) (bool, error) {
	const page = 1000
	for after := store.MessageID(0); ; {
		list, err := w.Store.Messages(ctx, run, after, page)
		if err != nil {
			return false, fmt.Errorf("read the inbox of run %s: %w", naming.RunName(run), err)
		}
		for _, m := range list {
			after = m.ID
			if m.Kind != store.MessageVerb {
				continue
			}
			e, err := journal.DecodeMessage(w.Sealer, run, m.Data)
			if err != nil {
				return false, err
			}
			if s, ok := e.(machine.SignalReceived); ok && s.ID == w.ev.ID {
				return true, nil
			}
		}
		if len(list) < page {
			return false, nil
		}
	}
}

// takes ends the walk at a run in which a step waits for the signal now. It sets the fields
// `keeper` and `around` to the first runs that would keep the signal.
func (w *groupWalk) takes(ctx context.Context, group string, r journal.Run) error {
	if r.Head.State.Final() {
		w.ended = append(w.ended, group)
		return nil
	}
	err := w.Try(ctx, r.Head.Run, w.ev)
	var refused *RefusedError
	switch {
	case errors.As(err, &refused):
		if !slices.ContainsFunc(r.Flow.Steps, func(s *dsl.Step) bool { return s.Awaits(w.ev.Name) }) {
			return nil // only a group in this group waits for the signal
		}
		w.refused = append(w.refused, fmt.Sprintf("run %s of group %s: %s", r.Head.Name, group, refused.Reason))
		return nil
	case err != nil:
		return err
	}
	to := Receiver{Run: r.Head.Run, Name: r.Head.Name, Again: true}
	for n := range story.Nodes(r.State, r.Flow) {
		if slices.Contains(n.Awaits, w.ev.Name) {
			w.to, w.found = to, true
			return nil
		}
	}
	switch own := new(machine.Scratch).Takes(r.Flow, r.State, w.ev); {
	case own && w.keeper.Run == 0:
		w.keeper = to
	case !own && w.around.Run == 0:
		w.around = to
	}
	return nil
}

// mostReasons is the highest number of groups that a refusal names.
const mostReasons = 3

// reasons returns why no run of a group takes the signal.
func (w *groupWalk) reasons() []string {
	out := w.refused[:min(len(w.refused), mostReasons)]
	switch {
	case len(w.begins) == 1:
		out = append(out, named(w.begins)+" is starting at this moment: send the signal again")
	case len(w.begins) > 0:
		out = append(out, named(w.begins)+" are starting at this moment: send the signal again")
	case len(out) == 0 && len(w.ended) == 1:
		out = append(out, named(w.ended)+" has ended")
	case len(out) == 0 && len(w.ended) > 0:
		out = append(out, named(w.ended)+" have ended")
	}
	return out
}

// named returns a text with the names of groups.
func named(groups []string) string {
	switch n := len(groups); {
	case n == 1:
		return "group " + groups[0]
	case n > mostReasons:
		return fmt.Sprintf("groups %s and %d more", strings.Join(groups[:mostReasons], ", "), n-mostReasons)
	}
	return "groups " + strings.Join(groups, ", ")
}
