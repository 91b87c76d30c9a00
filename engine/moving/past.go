package moving

import (
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A From says from which ended run a new run takes over results. The zero From belongs to a run
// that takes over nothing.
type From struct {
	Run    status.RunID // internal id of the ended run; 0 = the new run takes over nothing
	Step   string       // step from which the new run starts
	Reason string       // why a person restarts the run; "" = no reason was given
	// Again is true if steps may run although their effects in the ended run stay.
	Again bool
}

// A Past is an ended run from which a new run takes over results. The state of an ended run does
// not change any more, so every decision that uses it gives the same result.
type Past struct {
	Run   *model.Run
	Nodes []*model.Node
	Flow  *dsl.Workflow // workflow that the run had at its end
}

// Succession says what a new run of the workflow `next` takes over from the ended run.
func (p *Past) Succession(next *dsl.Workflow, from From) Succession {
	return Restart(p.Flow, next, p.Run, p.Nodes, from.Step, from.Again)
}

// Ancestors returns the list model.Run.Ancestors for a new run. The last entry of the list is the
// ended run itself. The entries before it are ancestors of the ended run: each of them made the
// calls of a step that is taken over.
func (p *Past) Ancestors(from From, plan Succession) []model.Ancestor {
	own := model.Ancestor{
		Run: p.Run.ID, Name: p.Run.Name, Key: p.Run.Key, Trigger: p.Run.Trigger, Started: p.Run.Started, From: from.Step, Reason: from.Reason,
	}
	older := slices.Clone(p.Run.Ancestors)
	for i := range older {
		older[i].Steps = nil
	}
	for _, h := range plan.Steps {
		if !h.Taken {
			continue
		}
		at, name := &own, p.Flow.Steps[h.Node].KeyName()
		if was, key := p.Run.Legacy(int32(h.Node)); was != nil {
			k := slices.IndexFunc(older, func(a model.Ancestor) bool { return a.Run == was.Run })
			at, name = &older[k], key
		}
		at.Steps = append(at.Steps, model.Legacy{Step: int32(h.Step), KeyName: name})
	}
	all := append(older, own)
	for i := range all {
		slices.SortFunc(all[i].Steps, func(a, b model.Legacy) int { return int(a.Step) - int(b.Step) })
	}
	return slices.DeleteFunc(all, func(a model.Ancestor) bool { return len(a.Steps) == 0 && a.Run != p.Run.ID })
}

// Take copies the result, the effect and the counts of attempts of the node `was` of the ended run
// into the node n of the new run. It does not copy data that only the ended run needs: pauses,
// deadlines, the number of calls and the state of the undo. It does not copy doubts about an
// attempt either, because a node is taken over only if its effect is certain.
func Take(n, was *model.Node) {
	n.State, n.Fwd = was.State, was.Fwd
	n.Fwd.Act, n.Fwd.Until, n.Fwd.Rest, n.Fwd.Deadline = model.Idle, 0, 0, 0
	n.MayWorkUntil, n.Gen, n.Kept = was.MayWorkUntil, was.Gen, was.Kept
	n.Prepared, n.Known, n.Done, n.TimedOut = was.Prepared, was.Known, was.Done, was.TimedOut
	n.Input, n.Output = model.StoredValue{V: was.Input.V}, model.StoredValue{V: was.Output.V}
	n.Expanded, n.Count, n.Next, n.Over, n.Bad = was.Expanded, was.Count, was.Next, was.Over, was.Bad
	n.Data, n.Caught, n.Last = model.StoredValue{V: was.Data.V}, model.StoredValue{V: was.Caught.V}, model.StoredValue{V: was.Last.V}
	n.BizKey, n.Manual, n.Loop, n.Given = was.BizKey, was.Manual, was.Loop, model.StoredValue{V: was.Given.V}
	// The new run counts only its own calls.
	n.Loop.Calls = 0
	// The number of the signal has a meaning only in the old run.
	n.Signal = model.Reception{Awaits: was.Signal.Awaits, Name: was.Signal.Name}
	n.Point, n.Blob = was.Point, slices.Clone(was.Blob)
	n.Collected = nil
	for _, v := range was.Collected.Tail(was.Collected.Len()) {
		n.Collected = n.Collected.Append(v, 0)
	}
}
