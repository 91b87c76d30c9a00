package history

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

const (
	// maxNeedy is the largest number of runs whose parents a command looks for.
	maxNeedy = 10000
	// maxLevels is the largest number of levels of parents that a command reads. The language
	// allows only 8 levels.
	maxLevels = 16
	// maxIDs is the highest number of ids in one query to the store.
	maxIDs = 1000
)

// A Through says which open runs need a person because one of their child runs, at any depth,
// needs a person. The key of the map is the id of such an open run. The value has the names of
// its child runs that need the person, newest first.
type Through map[status.RunID][]string

// Text names one child run because of which a run needs a person, and says how many more such child
// runs there are; "" = no child run needs a person.
func (t Through) Text(run status.RunID) string {
	names := t[run]
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "needs a person through its child " + names[0]
	}
	return fmt.Sprintf("needs a person through its children %s and %d more", names[0], len(names)-1)
}

// JSON returns the row of a run for --json, with the names of its child runs that need a
// person.
func (t Through) JSON(r store.RunRow) map[string]any {
	m := RowJSON(r)
	if names := t[r.Run]; len(names) > 0 {
		m["needs_person_through"] = names
	}
	return m
}

// Status returns a run's status as text. If the run needs a person because of its child runs,
// Status adds the result of Text. Otherwise it returns the same as StatusText.
func (t Through) Status(r store.RunRow) string {
	if text := t.Text(r.Run); text != "" {
		return r.State.String() + " (" + text + ")"
	}
	return StatusText(r)
}

// ThroughChildren finds the open runs that need a person because one of their child runs, at any
// depth, needs a person. It also returns the rows of these runs. It begins with the runs that need
// a person themselves, and then reads the parents of these runs, level by level. So it reads no
// journal, and many other runs do not make it slower.
func ThroughChildren(ctx context.Context, s *session.Session) (Through, []store.RunRow, error) {
	x := Selection{RunFilter: store.RunFilter{States: AttentionStates(), Limit: maxNeedy}, Notifications: true}
	needy, err := Listed(ctx, s, x)
	if err != nil {
		return nil, nil, s.Wrap("list runs that need a person", err)
	}
	if needy, err = WithOverdue(ctx, s, x, needy); err != nil {
		return nil, nil, err
	}
	return above(ctx, s, needy)
}

// above finds the open parents of the given runs, then the open parents of these parents, and so
// on.
func above(ctx context.Context, s *session.Session, needy []store.RunRow) (Through, []store.RunRow, error) {
	through, known := Through{}, map[status.RunID]store.RunRow{}
	// The keys of the map `below` are the parents on the present level. Each value has the names of
	// the child runs, at any depth, that need a person.
	below := map[status.RunID][]string{}
	for _, r := range needy {
		if r.Parent != 0 {
			below[r.Parent] = append(below[r.Parent], r.Name)
		}
	}
	for level := 0; level < maxLevels && len(below) > 0; level++ {
		if err := rowsOf(ctx, s, below, known); err != nil {
			return nil, nil, err
		}
		next := map[status.RunID][]string{}
		for id, names := range below {
			r, found := known[id]
			if !found || r.State.Final() {
				continue
			}
			through[id] = append(through[id], names...)
			if r.Parent != 0 {
				next[r.Parent] = append(next[r.Parent], names...)
			}
		}
		below = next
	}
	order := map[string]int{}
	for i, r := range needy {
		order[r.Name] = i
	}
	var rows []store.RunRow
	for id, names := range through {
		slices.SortFunc(names, func(x, y string) int { return order[x] - order[y] })
		rows = append(rows, known[id])
	}
	slices.SortFunc(rows, func(x, y store.RunRow) int { return strings.Compare(y.Name, x.Name) })
	return through, rows, nil
}

// rowsOf reads the rows of the runs in the map `below`, and adds them to the map `known`. It
// reads no row twice.
func rowsOf(ctx context.Context, s *session.Session, below map[status.RunID][]string, known map[status.RunID]store.RunRow) error {
	var ids []status.RunID
	for id := range below {
		if _, ok := known[id]; !ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for page := range slices.Chunk(ids, maxIDs) {
		rows, err := s.Store.Runs(ctx, store.RunFilter{IDs: page})
		if err != nil {
			return s.Wrap("list parents of runs", err)
		}
		for _, r := range rows {
			known[r.Run] = r
		}
	}
	return nil
}

// WithParents returns the given runs. It adds the runs that need a person because of a child run,
// if the Selection has them. The result has at most x.Limit runs, newest first.
func WithParents(ctx context.Context, s *session.Session, x Selection, runs []store.RunRow) ([]store.RunRow, Through, error) {
	through, parents, err := ThroughChildren(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	listed := map[status.RunID]bool{}
	for _, r := range runs {
		listed[r.Run] = true
	}
	for _, r := range parents {
		if !listed[r.Run] && x.has(r) {
			runs = append(runs, r)
		}
	}
	slices.SortStableFunc(runs, func(a, b store.RunRow) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return runs[:min(len(runs), x.Limit)], through, nil
}
