package machine

import (
	"cmp"
	"slices"

	"github.com/saga-engine/engine/engine/internal/model"
)

// keptScratch is the largest capacity of a list, in items, that a Scratch keeps for the next
// decision. A Scratch drops larger lists. If a record changes more nodes than this number, a Loader
// drops its memory after the record.
const keptScratch = 256

// A draft holds the nodes that a decision has changed or added.
type draft struct {
	list []edited
	// Position of each node in the field `list`, by node number; nil = the list has at most
	// shortDraft nodes.
	index map[int]int
	mores []*model.More // memory for the More of each node of the draft; reused by later decisions
	given int           // number of entries of the field `mores` that this decision uses
}

type edited struct {
	i        int
	old, now *model.Node
}

// shortDraft is the largest number of nodes for which a draft has no index.
const shortDraft = 12

func (t *draft) reset() {
	if cap(t.list) > keptScratch {
		*t = draft{}
		return
	}
	for _, m := range t.mores[:t.given] {
		*m = model.More{}
	}
	clear(t.list)
	t.list, t.index, t.given = t.list[:0], nil, 0
}

// find returns the draft's copy of node i; nil if the draft does not have the node.
func (t *draft) find(i int) *model.Node {
	if t.index != nil {
		if k, ok := t.index[i]; ok {
			return t.list[k].now
		}
		return nil
	}
	for k := range t.list {
		if t.list[k].i == i {
			return t.list[k].now
		}
	}
	return nil
}

// add copies the node in the parameter `old` into the draft, as node i. It returns the copy, which
// the caller may change.
func (t *draft) add(i int, old *model.Node) *model.Node {
	now := old.Box()
	if t.given == len(t.mores) {
		chunk := make([]model.More, min(2+len(t.mores), 64))
		for k := range chunk {
			t.mores = append(t.mores, &chunk[k])
		}
	}
	now.More = t.mores[t.given]
	*now.More = *old.More
	t.given++
	if t.list == nil {
		t.list = make([]edited, 0, 4)
	}
	t.list = append(t.list, edited{i, old, now})
	switch {
	case t.index != nil:
		t.index[i] = len(t.list) - 1
	case len(t.list) > shortDraft:
		t.index = make(map[int]int, 2*shortDraft)
		for k := range t.list {
			t.index[t.list[k].i] = k
		}
	}
	return now
}

// A sheet is the memory for a record of typical size. One allocation is enough for all of it.
type sheet struct {
	run      model.RunPatch
	commands [1]Command
	attempts [2]model.AttemptPatch
	nodes    [2]model.NodePatch
}

// patches returns a patch for each node that the decision has changed, sorted by node number. It
// uses the memory in the parameter `paper` if this memory is large enough. The patches and the
// state share the data that the decision did not change.
func (t *draft) patches(paper *sheet) []model.NodePatch {
	if len(t.list) == 0 {
		return nil
	}
	nodes, attempts := paper.nodes[:0], paper.attempts[:0]
	if many := len(t.list); many > len(paper.nodes) {
		slices.SortFunc(t.list, func(a, b edited) int { return cmp.Compare(a.i, b.i) })
		nodes, attempts = make([]model.NodePatch, 0, many), make([]model.AttemptPatch, 0, many)
	} else if many == 2 && t.list[0].i > t.list[1].i {
		t.list[0], t.list[1] = t.list[1], t.list[0]
	}
	for k := range t.list {
		old, now := t.list[k].old, t.list[k].now
		p := model.NodePatch{Node: t.list[k].i, Mask: model.DiffNode(old, now), To: now}
		first := len(attempts)
		attempts = model.DiffAttempts(attempts, old.Attempts, now.Attempts)
		p.Attempts = attempts[first:len(attempts):len(attempts)]
		if p.Mask == 0 && len(p.Attempts) == 0 {
			continue
		}
		now.Share(old, p.Mask)
		nodes = append(nodes, p)
	}
	return nodes
}

// A queue holds numbers of nodes. The method `next` returns them in the order in which they were
// added, unless slots.order has sorted them by priority.
type queue struct {
	items   []int
	first   int
	ordered int // number of items when they were last put in order (slots.order)
}

func (q *queue) len() int { return len(q.items) - q.first }

func (q *queue) push(i int) { q.items = append(q.items, i) }

func (q *queue) next() int {
	i := q.items[q.first]
	if q.first++; q.first == len(q.items) {
		q.items, q.first, q.ordered = q.items[:0], 0, 0
	}
	return i
}

// last returns the number that was pushed last; -1 if the queue is empty.
func (q *queue) last() int {
	if q.len() == 0 {
		return -1
	}
	return q.items[len(q.items)-1]
}

func (q *queue) reset() {
	if q.first, q.ordered = 0, 0; cap(q.items) > keptScratch {
		q.items = nil
	}
	q.items = q.items[:0]
}
