package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// MaxGroups is the highest number of child runs of groups that ReadGroups reads. A run may have
// 10,000 of them, and each has a journal of its own.
const MaxGroups = 100

// A Group is the child run of a group, or of one key of a group with for_each.
type Group struct {
	Name string
	Run  *Run  // nil = the child run cannot be read
	Err  error // why it cannot be read; nil if Run is set
}

// unread is a child run of a group that ReadGroups has not read yet.
type unread struct {
	parent *Run
	node   int
	name   string
	done   bool // the group, or its instance, has succeeded
}

// ReadGroups reads the child runs of the groups of a run, and the child runs of the groups inside
// of these groups. It sets the fields Groups and Omitted. It leaves out a child run that does not
// exist, because it was not submitted yet or because retention has removed it. ReadGroups reads the
// groups of the run before the groups inside of them. If there are more child runs than MaxGroups,
// it reads on each level first the child runs that have not succeeded.
func ReadGroups(ctx context.Context, s *session.Session, r *Run) error {
	left := MaxGroups
	for level := []*Run{r}; len(level) > 0; {
		var all []unread
		for _, parent := range level {
			all = append(all, groupsOf(parent)...)
		}
		slices.SortStableFunc(all, func(x, y unread) int { return cmp.Compare(rank(x), rank(y)) })
		n := min(left, len(all))
		left -= n
		r.Omitted += len(all) - n
		level = nil
		for _, u := range all[:n] {
			child, err := readGroup(ctx, s, u)
			if err != nil {
				return err
			}
			if child != nil {
				level = append(level, child)
			}
		}
	}
	return nil
}

func rank(u unread) int {
	if u.done {
		return 1
	}
	return 0
}

// groupsOf returns the child runs of a run's groups: first the groups without for_each, in the
// order of the steps, and then the instances of the groups with for_each.
func groupsOf(r *Run) []unread {
	var all []unread
	for n := range story.Nodes(r.State, r.Flow) {
		if n.Child != "" && r.Flow.Steps[n.Step].Child.Group {
			all = append(all, unread{parent: r, node: n.Node, name: n.Child, done: n.State == status.StepSucceeded})
		}
	}
	return all
}

// readGroup reads a child run and adds it to the field Groups of its parent. If the child run does
// not exist, or its journal is damaged, readGroup returns nil and no error, because the parent can
// still be shown.
func readGroup(ctx context.Context, s *session.Session, u unread) (*Run, error) {
	row, err := s.Store.Find(ctx, u.name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, s.Wrap("find the run of a group", err)
	}
	child, err := Read(ctx, s, row)
	var damaged *journal.RunError
	switch {
	case errors.Is(err, store.ErrNotFound): // retention has just removed the run
		return nil, nil
	case err != nil && !errors.As(err, &damaged):
		return nil, err
	case err != nil:
		err = damaged
	}
	if u.parent.Groups == nil {
		u.parent.Groups = map[int]Group{}
	}
	u.parent.Groups[u.node] = Group{Name: u.name, Run: child, Err: err}
	return child, nil
}

// A Kin says to which other runs a child run belongs.
type Kin struct {
	// A description of the child run with the name of its parent, such as "the run of group box of
	// run r".
	What  string
	Group bool // the child run is the run of a group
	// Movable is the nearest run that `engine migrate` can move: the parent, or else the parent of
	// the parent, and so on. It is no run of a group, and no run of a library's workflow.
	Movable store.RunRow
	Top     store.RunRow // the outermost run: no other run has started it
}

// KinOf returns the Kin of a run, or nil if the run is no child run. It also returns nil if
// retention has already removed its parent, or the parent of its parent, and so on: retention
// removes a parent before its child runs.
func KinOf(ctx context.Context, s *session.Session, r *Run) (*Kin, error) {
	parent := r.State.Run().Parent
	if parent.Run == 0 {
		return nil, nil
	}
	k := &Kin{}
	for id := parent.Run; id != 0; {
		rows, err := s.Store.Runs(ctx, store.RunFilter{IDs: []status.RunID{id}})
		if err != nil {
			return nil, s.Wrap("find the parent of the run", err)
		}
		if len(rows) == 0 {
			return nil, nil
		}
		row := rows[0]
		if k.Movable.Run == 0 {
			wf, err := s.Defs.Workflow(ctx, row.Workflow)
			if err != nil {
				return nil, s.Wrap("read the definition of the parent", err)
			}
			if !wf.Inner {
				k.Movable = row
			}
		}
		k.Top, id = row, row.Parent
	}
	var err error
	if k.Group, err = isGroup(ctx, s, r); err != nil {
		return nil, err
	}
	if k.What = "a child of run " + render.Clean(parent.Name); k.Group {
		k.What = fmt.Sprintf("the run of group %s of run %s", render.Clean(parent.Step), render.Clean(parent.Name))
	}
	return k, nil
}

// isGroup reports whether a child run is the run of a group. It looks into the definition of the
// child run, because the parent may have been moved to another definition since it started the
// child run.
func isGroup(ctx context.Context, s *session.Session, r *Run) (bool, error) {
	def, err := s.Defs.Definition(ctx, r.Workflow())
	if err != nil {
		return false, s.Wrap("read the definition of the run", err)
	}
	for _, name := range def.All() {
		for _, step := range def.Workflow(name).Steps {
			if step.Child != nil && step.Child.Group && step.Child.Workflow.Name == r.Flow.Name {
				return true, nil
			}
		}
	}
	return false, nil
}

// AllGroups returns the child runs of the groups of a run, at any depth, as far as ReadGroups has
// read them.
func AllGroups(r *Run) []*Run {
	var all []*Run
	for _, node := range slices.Sorted(maps.Keys(r.Groups)) {
		if group := r.Groups[node].Run; group != nil {
			all = append(append(all, group), AllGroups(group)...)
		}
	}
	return all
}

// NoticesOfGroups adds the notices of groups to the notices of their run. It knows only the groups
// that ReadGroups has read. A notice of a group says that the group's run needs a person.
func NoticesOfGroups(ctx context.Context, s *session.Session, r *Run) error {
	for _, group := range AllGroups(r) {
		if !group.Flow.Announces() {
			continue
		}
		sent, err := notices(ctx, s, group)
		if err != nil {
			return err
		}
		r.Notices = append(r.Notices, sent...)
	}
	return nil
}

// mostRuns is the highest number of runs of groups that an error names.
const mostRuns = 3

// KnowsStep returns an error if the run has no step with that name. If the run of a group has such
// a step, the error names that run and the whole command line for it. The parameter `command` is
// the name of the command, such as settle. The parameter `flags` has its other flags, as they follow
// --step on the command line.
func KnowsStep(ctx context.Context, s *session.Session, r *Run, step, command, flags string) error {
	unknown := r.Knows(step)
	if unknown == nil || !r.Flow.StartsChildren() {
		return unknown
	}
	if err := ReadGroups(ctx, s, r); err != nil {
		return err
	}
	var lines []string
	for _, group := range AllGroups(r) {
		if group.Knows(step) == nil {
			lines = append(lines, fmt.Sprintf("`%s`", words.Join(" ", "engine", command, Arg(group.Row), "--step", words.Quote(step), flags)))
		}
	}
	if len(lines) == 0 {
		return unknown
	}
	list := strings.Join(lines[:min(len(lines), mostRuns)], " or ")
	if more := len(lines) - mostRuns; more > 0 {
		list += fmt.Sprintf(" (`engine show %s` names %s more)", Arg(r.Row), render.Count(more, "run"))
	}
	return cli.Failed("Step of a group", "Step %q belongs to a group, and a group has a run of its own. Use the run of the group: %s.", render.Clean(step), list)
}

// GroupRows returns the rows of the runs of a run's groups, at any depth, but at most MaxGroups. It
// reads no journal. It finds the runs of groups by the names of their workflows, because the
// workflow of a group has the name WORKFLOW.GROUP. The result `more` is true if there are further
// groups.
func GroupRows(ctx context.Context, s *session.Session, run store.RunRow) (rows []store.RunRow, more bool, err error) {
	level := []store.RunRow{run}
	for len(level) > 0 {
		parent := level[0]
		level = level[1:]
		for after := status.RunID(0); ; {
			page, err := s.Store.Runs(ctx, store.RunFilter{Parent: parent.Run, After: after, Limit: maxIDs})
			if err != nil {
				return nil, false, s.Wrap("list the runs of groups", err)
			}
			for _, child := range page {
				after = child.Run
				if !strings.HasPrefix(child.WorkflowName, parent.WorkflowName+".") {
					continue
				}
				if len(rows) == MaxGroups {
					return rows, true, nil
				}
				rows, level = append(rows, child), append(level, child)
			}
			if len(page) < maxIDs {
				break
			}
		}
	}
	return rows, false, nil
}
