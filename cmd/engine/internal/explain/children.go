package explain

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// maxChildren is the largest number of child runs whose status the command shows. It is also the
// largest number of sentences about signals for which steps in groups wait.
const maxChildren = 5

// children adds sentences about the child runs for which the run waits: their status, and which
// child run at any depth needs a person. For a run that has ended it does nothing.
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
	if err := history.ReadGroups(ctx, s, r); err != nil {
		return err
	}
	x.signals(r, maxChildren)
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

// signals adds a sentence for each step in a group, at any depth, that waits for a signal. It adds
// at most `left` sentences, and returns how many more it may add. The command in the sentence names
// the run of the group. A signal to the parent of this run could go to another step: to the first
// step that waits for the signal.
func (x *explained) signals(r *history.Run, left int) int {
	for _, node := range slices.Sorted(maps.Keys(r.Groups)) {
		group := r.Groups[node].Run
		if group == nil || group.Row.State.Final() {
			continue
		}
		name := story.Node(r.State, r.Flow, node).Name
		for n := range story.Nodes(group.State, group.Flow) {
			if len(n.Awaits) == 0 || n.Each && n.Count >= 0 {
				continue
			}
			if left--; left < 0 {
				return 0
			}
			x.say("Step %s in group %s waits for signal %s: engine signal %s %s --data JSON.",
				n.Name, name, strings.Join(n.Awaits, " or "), words.Quote(group.Row.Name), words.Quote(n.Awaits[0]))
		}
		left = x.signals(group, left)
	}
	return left
}
