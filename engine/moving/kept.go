package moving

import (
	"slices"

	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// Remains returns which effects of a run that has ended remain. Effects that the run can still undo
// for its parent do not count. The result is needed for a restart of the parent: the effects that
// remain of child runs count there, and not only the effects of the parent's own steps.
func Remains(r *model.Run, nodes []*model.Node) status.Kept {
	kept := status.Kept(0)
	if r.Left > 0 {
		kept |= status.KeptLeft
	}
	if r.Undeclared > 0 {
		kept |= status.KeptDeclared
	}
	if kept != 0 && inDoubt(nodes, r.State == status.RunSucceeded) {
		kept |= status.KeptInDoubt
	}
	if r.Passed && r.State != status.RunSucceeded {
		kept |= status.KeptPivot
	}
	if kept != 0 && r.Undone > 0 {
		kept |= status.KeptUndone
	}
	return kept
}

// inDoubt reports whether there is a node that may or may not have an effect. The parameter
// `succeeded` is true if the run of the nodes has succeeded. Such a run has undone nothing yet. So
// only the effects that its child runs keep can be in doubt.
func inDoubt(nodes []*model.Node, succeeded bool) bool {
	return slices.ContainsFunc(nodes, func(n *model.Node) bool {
		return n.Kept.Has(status.KeptInDoubt) || !succeeded && !n.Expanded && remainsOf(n) == effectInDoubt
	})
}
