package explain

import (
	"context"
	"errors"

	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// maxChildren is the highest number of child runs of which `explain` names the status.
const maxChildren = 5

// children adds sentences about the child runs for which the run waits: their status, and which child
// run at any depth needs a person. For a run that has ended it does nothing.
func (x *explained) children(ctx context.Context, s *session.Session, r *history.Run) error {
	if x.row.State.Final() {
		return nil
	}
	told := 0
	for v := range story.Nodes(r.State, r.Flow) {
		if v.Child == "" || v.CompleteBy.IsZero() {
			continue
		}
		if told++; told > maxChildren {
			break
		}
		child, err := s.Store.Find(ctx, v.Child)
		if errors.Is(err, store.ErrNotFound) {
			x.say("Child run %s of %s is not submitted yet.", v.Child, v.Name)
			continue
		}
		if err != nil {
			return s.Wrap("find a child run", err)
		}
		x.say("Child run %s of %s is %s.", v.Child, v.Name, history.StatusText(child))
	}
	if !r.Flow.StartsChildren() {
		return nil
	}
	through, _, err := history.ThroughChildren(ctx, s)
	if err != nil {
		return err
	}
	if x.through = through[x.row.Run]; len(x.through) == 0 {
		return nil
	}
	x.say("It %s.", through.Text(x.row.Run))
	x.Remedies = append(x.Remedies, "engine explain "+words.Quote(x.through[0]))
	return nil
}
