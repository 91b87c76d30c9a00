package verbs

import (
	"context"
	"fmt"

	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// afterCancel returns a text for a run that has accepted a cancel but does not turn back yet. The
// text says what happens next. It is "" if the status of the run says enough, or if the run cannot
// be read.
func (y *sentVerb) afterCancel(ctx context.Context, s *session.Session) string {
	if y.now.Final() || y.now == status.RunCompensating || y.now.NeedsHuman() {
		return ""
	}
	r, err := history.Read(ctx, s, y.row)
	if err != nil {
		return ""
	}
	run := r.State.Run()
	switch {
	case run.Turning:
		name, passed := openPivot(ctx, s, r)
		if passed {
			return fmt.Sprintf("Group %s has passed its pivot, so the run will probably finish.", render.Clean(name))
		}
		return fmt.Sprintf("Whether the run turns back is decided when the outcome of its pivot %s is known.", render.Clean(name))
	case run.State == status.RunPaused:
		return fmt.Sprintf("Its undo starts when the run is resumed: `engine resume %s`.", history.Arg(y.row))
	}
	return ""
}

// openPivot returns the name of the pivot of a run. If the pivot is a group, the result `passed`
// says whether the run of this group has passed its own pivot. The pivot in the group may be a
// group, too. Then `passed` is also true if the run of that inner group has passed its pivot.
func openPivot(ctx context.Context, s *session.Session, r *history.Run) (name string, passed bool) {
	if r.Flow.Pivot < 0 {
		return "", false
	}
	step := r.Flow.Steps[r.Flow.Pivot]
	if step.Child == nil || !step.Child.Group {
		return step.Name, false
	}
	for n := range story.Nodes(r.State, r.Flow) {
		if n.Step != r.Flow.Pivot || n.Child == "" {
			continue
		}
		row, err := s.Store.Find(ctx, n.Child)
		if err != nil {
			continue // the group has no run yet
		}
		if group, err := history.Read(ctx, s, row); err == nil {
			_, inner := openPivot(ctx, s, group)
			passed = passed || inner || group.State.Run().Passed
		}
	}
	return step.Name, passed
}
