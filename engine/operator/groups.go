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
	"github.com/saga-engine/engine/engine/story"
)

// A Receiver is the run that takes a signal: the run that the sender names, or the run of one of
// its groups. If the sender names the run of a group, the Receiver may also be the parent of that
// run, or the parent of the parent, and so on.
type Receiver struct {
	Run  status.RunID
	Name string
	// Known is true if the run has accepted a signal with this id before. In this case the signal
	// changes nothing, and there is nothing to send.
	Known bool
	// Again is true if groups may wait for the signal, and no run was found that knows the id of
	// the signal. Then another run may take the signal if this run refuses it. So after a refusal,
	// the caller calls Operator.Receiver again.
	Again bool
}

// Receiver returns the run that takes the signal `ev`, which a person or a program sends to the
// parameter `run`. For people, the steps of a group belong to the run that has the group. But a
// group is a run of its own. So Receiver selects one of these runs: the run in the parameter `run`,
// and the runs of its groups at any depth. It uses the first of these rules that finds a run:
//
//   - If the signal has an id, and one of these runs knows the id already, the Receiver is that
//     run. If `run` is the run of a group, Receiver also looks for the id in its parent, in the
//     parent of the parent, and so on.
//   - The Receiver is the first run in which a step waits for the signal now. Here a run comes
//     before its groups.
//   - The Receiver is the first run in which a step lacks a signal with this name, which the step
//     takes later. If the run keeps an early signal for the step already, the step lacks none. This
//     rule ignores a step that depends on an open group, if a step in the group awaits the name:
//     the group may need the signal to end.
//   - The Receiver is the first run that keeps the signal for a step which the rule before has
//     ignored, or for a group that has not started. Here a group comes before the run that has the
//     group, because that run may wait for the end of the group.
//   - No step lacks a signal. Then the Receiver is the first run that keeps the signal.
//
// If none of these runs takes the signal, Receiver returns a *RefusedError that says why. But if no
// step in a group of `run` awaits the name of the signal, and no run knows the id, Receiver returns
// `run` without a check.
//
// Receiver sends nothing, and runs may change before the signal reaches them. So if the Receiver
// refuses the signal, the caller must call the method Receiver again: a group may have started or
// ended. Receiver also returns the errors of Try.
func (o *Operator) Receiver(ctx context.Context, run status.RunID, ev machine.SignalReceived) (Receiver, error) {
	top, err := journal.LoadState(ctx, store.Complete(o.Store), o.Sealer, o.Defs, run)
	if err != nil {
		return Receiver{}, err
	}
	own := Receiver{Run: run, Name: top.Head.Name, Known: story.KnowsSignal(top.State, ev.ID)}
	if ev.ID != "" && !own.Known {
		if to, found, err := o.knownAround(ctx, top, ev.ID); err != nil || found {
			return to, err
		}
	}
	if own.Known || !slices.ContainsFunc(top.Flow.Steps, func(s *dsl.Step) bool { return s.AwaitsInside(ev.Name) }) {
		return own, nil
	}
	own.Again = true
	if ev.ID != "" {
		if to, found, err := o.known(ctx, top, ev.ID, ev.Name); err != nil || found {
			return to, err
		}
	}
	err = o.Try(ctx, run, ev) // also nil if only a group that has not started can take the signal
	var refused *RefusedError
	r := top.State.Run()
	if err != nil && !errors.As(err, &refused) || r.State.Final() || r.UndoStarted != 0 {
		return own, err
	}
	w := &groupWalk{Operator: o, ev: ev}
	if err := w.offer(ctx, own, top, err == nil); err != nil {
		return Receiver{}, err
	}
	for need := status.NeedNow; ; need-- {
		switch {
		case w.best[need].Run != 0:
			return w.best[need], nil
		case need == status.NeedNone:
			refused.Reason = strings.Join(append([]string{refused.Reason}, w.reasons()...), "; ")
			return Receiver{}, refused
		}
	}
}

// A groupWalk visits a run and the runs of its groups, at any depth. First it visits the groups of
// a run without for_each, in the order of their steps. Then it visits the instances of the groups
// with for_each. Before it visits the next group, it visits all groups inside of the present one.
// It visits only groups in which a step may wait for the signal.
type groupWalk struct {
	*Operator
	ev machine.SignalReceived

	best    [status.NeedNow + 1]Receiver // for each Need, the first run that has it; Run 0 = none
	refused []string                     // why runs of groups refuse the signal
	begins  []string                     // groups that have started, but whose run is not in the store yet
	ended   []string                     // groups that have ended
}

// offer records how much the run r needs the signal (status.Need), and visits the groups of r. The
// parameter `accepts` is true if the run would accept the signal.
func (w *groupWalk) offer(ctx context.Context, to Receiver, r journal.Run, accepts bool) error {
	need := status.NeedNone
	if accepts {
		need = new(machine.Scratch).Need(r.Flow, r.State, w.ev)
	}
	note := func() {
		if accepts && w.best[need].Run == 0 {
			w.best[need] = to
		}
	}
	if need != status.NeedLater {
		note()
	}
	for n := range story.Nodes(r.State, r.Flow) {
		if w.best[status.NeedNow].Run != 0 {
			return nil
		}
		if n.Each && n.Count >= 0 || n.Step >= len(r.Flow.Steps) || !r.Flow.Steps[n.Step].AwaitsInside(w.ev.Name) {
			continue
		}
		if err := w.group(ctx, n); err != nil {
			return err
		}
	}
	note()
	return nil
}

// group visits the run of a group, and the groups in it. The parameter n is the node of the group,
// or of one instance of the group.
func (w *groupWalk) group(ctx context.Context, n story.NodeView) error {
	// The group has started no run. Unless the group has ended, the run that has the group can keep
	// the signal for it.
	if n.Child == "" {
		if !n.FinishedAt.IsZero() {
			w.ended = append(w.ended, n.Name)
		}
		return nil
	}
	row, err := store.Complete(w.Store).Find(ctx, n.Child)
	switch {
	case errors.Is(err, store.ErrNotFound) && !n.FinishedAt.IsZero(): // the run was removed
		w.ended = append(w.ended, n.Name)
		return nil
	case errors.Is(err, store.ErrNotFound): // no engine has submitted the run yet
		w.begins = append(w.begins, n.Name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the run of group %s: %w", n.Name, err)
	}
	if row.State.Final() {
		w.ended = append(w.ended, n.Name)
		return nil
	}
	r, err := journal.LoadState(ctx, store.Complete(w.Store), w.Sealer, w.Defs, row.Run)
	if err != nil {
		return err
	}
	err = w.Try(ctx, r.Head.Run, w.ev)
	var refused *RefusedError
	switch {
	case r.Head.State.Final():
		w.ended = append(w.ended, n.Name)
		return nil
	case err != nil && !errors.As(err, &refused):
		return err
	case err != nil && slices.ContainsFunc(r.Flow.Steps, func(s *dsl.Step) bool { return s.Awaits(w.ev.Name) }):
		w.refused = append(w.refused, fmt.Sprintf("run %s of group %s: %s", r.Head.Name, n.Name, refused.Reason))
	}
	return w.offer(ctx, Receiver{Run: r.Head.Run, Name: r.Head.Name, Again: true}, r, err == nil)
}

// mostReasons is the highest number of groups of one kind that a refusal names. The kinds are:
// groups whose run refuses the signal, groups that are starting, and groups that have ended.
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
