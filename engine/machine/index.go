package machine

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// A lazyHeap orders nodes by a key, smallest key first. Nodes with the same key are ordered by
// number. When the key of a node changes, the old entry stays in the heap until the method `prune`
// removes it. Such an entry is stale. A reader finds stale entries by comparing the key in the
// entry with the present key of the node.
type lazyHeap struct {
	items []entry
	valid int // number of nodes that have a key
}

type entry struct {
	key  model.Instant
	node int
}

func (a entry) less(b entry) bool {
	if a.key != b.key {
		return a.key < b.key
	}
	return a.node < b.node
}

// push adds an entry.
func (h *lazyHeap) push(e entry) {
	h.items = append(h.items, e)
	i := len(h.items) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !h.items[i].less(h.items[up]) {
			return
		}
		h.items[i], h.items[up] = h.items[up], h.items[i]
		i = up
	}
}

// pop removes the entry with the smallest key.
func (h *lazyHeap) pop() {
	last := len(h.items) - 1
	h.items[0] = h.items[last]
	h.items = h.items[:last]
	h.sink(0)
}

// sink moves the entry at position i down, until no entry below it is smaller.
func (h *lazyHeap) sink(i int) {
	for {
		least := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < len(h.items) && h.items[c].less(h.items[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		h.items[i], h.items[least] = h.items[least], h.items[i]
		i = least
	}
}

func (h *lazyHeap) clone() lazyHeap {
	return lazyHeap{items: slices.Clone(h.items), valid: h.valid}
}

// change updates the heap after the key of a node has changed from the parameter `old` to the
// parameter `key`. In both parameters, 0 means that there is no key.
func (h *lazyHeap) change(node int, old, key model.Instant) {
	if old == key {
		return
	}
	if old != 0 {
		h.valid--
	}
	if key != 0 {
		h.valid++
		h.push(entry{key, node})
	}
}

// prune removes stale entries from the top. The function in the parameter `key` returns the present
// key of a node. If more than half of all entries are stale, and the heap is not very small, prune
// removes all stale entries. So after prune, the heap usually has at most twice as many entries as
// there are nodes with a key, plus 32.
func (h *lazyHeap) prune(key func(node int) model.Instant) {
	if len(h.items) > 2*h.valid+32 {
		kept := h.items[:0]
		for _, e := range h.items {
			if key(e.node) == e.key {
				kept = append(kept, e)
			}
		}
		h.items = kept
		for i := len(kept)/2 - 1; i >= 0; i-- {
			h.sink(i)
		}
		return
	}
	for len(h.items) > h.valid && key(h.items[0].node) != h.items[0].key {
		h.pop()
	}
}

// top returns the smallest key; 0 if the heap is empty. The result is exact only directly
// after prune.
func (h *lazyHeap) top() model.Instant {
	if len(h.items) == 0 {
		return 0
	}
	return h.items[0].key
}

// upTo finds all entries whose key is not later than the parameter `limit`. It appends their nodes
// to the parameter `found`, in no particular order, and returns the longer list. It includes stale
// entries. The cost grows with the number of nodes found, not with the size of the heap.
func (h *lazyHeap) upTo(limit model.Instant, found []int) []int {
	if top := h.top(); top == 0 || top > limit {
		return found
	}
	return h.visit(0, limit, found)
}

// visit does the work of upTo for the entry at position i and the entries below that position.
func (h *lazyHeap) visit(i int, limit model.Instant, found []int) []int {
	if i >= len(h.items) || h.items[i].key > limit {
		return found
	}
	found = append(found, h.items[i].node)
	return h.visit(2*i+2, limit, h.visit(2*i+1, limit, found))
}

// inOrder passes each entry, smallest first, to the function in the parameter `yield`, until this
// function returns false. It does not change the heap, and it includes stale entries. The cost of
// an entry grows with the logarithm of the number of earlier entries.
func (h *lazyHeap) inOrder(yield func(entry) bool) {
	if len(h.items) == 0 {
		return
	}
	f := frontier{h: h, at: []int{0}}
	for len(f.at) > 0 {
		i := heap.Pop(&f).(int)
		if !yield(h.items[i]) {
			return
		}
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < len(h.items) {
				heap.Push(&f, c)
			}
		}
	}
}

// A frontier holds the heap positions from which inOrder takes its next entry. At first that
// is only the top. Later these are the positions directly below the entries that were already
// yielded.
type frontier struct {
	h  *lazyHeap
	at []int
}

func (f *frontier) Len() int           { return len(f.at) }
func (f *frontier) Less(i, j int) bool { return f.h.items[f.at[i]].less(f.h.items[f.at[j]]) }
func (f *frontier) Swap(i, j int)      { f.at[i], f.at[j] = f.at[j], f.at[i] }

// Push appends x. container/heap calls it.
func (f *frontier) Push(x any) { f.at = append(f.at, x.(int)) }

// Pop removes the last item. container/heap calls it.
func (f *frontier) Pop() any {
	last := f.at[len(f.at)-1]
	f.at = f.at[:len(f.at)-1]
	return last
}

func ascending(nodes []int) []int {
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// The type known is an index of the values in a state. It maps the hash of a value to its Origin,
// which says where in the state the value is. If two values have the same hash, the later one
// counts. An Origin has at most one entry, for its latest value. If entries for earlier values
// stayed, the index of a long loop would grow with each iteration. Up to fewValues entries are in
// the field `list`, because a list is faster for them. More entries are in the maps `more` and
// `hashes`.
type known struct {
	list []knownValue
	more map[uint64]model.Origin
	// Hash of the value at each Origin in `more`; nil as long as `more` is nil.
	hashes map[model.Origin]uint64
	bytes  int64 // total size of the values and the last checkpoints of all nodes, in bytes
}

type knownValue struct {
	hash uint64
	from model.Origin
}

// fewValues is the largest number of entries in known.list.
const fewValues = 32

func (k *known) get(hash uint64) (model.Origin, bool) {
	if k.more != nil {
		o, ok := k.more[hash]
		return o, ok
	}
	for i := range k.list {
		if k.list[i].hash == hash {
			return k.list[i].from, true
		}
	}
	return model.Origin{}, false
}

func (k *known) put(hash uint64, from model.Origin) {
	if k.more != nil {
		if old, ok := k.hashes[from]; ok && k.more[old] == from {
			delete(k.more, old)
		}
		k.more[hash], k.hashes[from] = from, hash
		return
	}
	k.list = slices.DeleteFunc(k.list, func(v knownValue) bool { return v.from == from || v.hash == hash })
	if len(k.list) < fewValues {
		if k.list == nil {
			k.list = make([]knownValue, 0, 4)
		}
		k.list = append(k.list, knownValue{hash, from})
		return
	}
	k.more, k.hashes = make(map[uint64]model.Origin, 2*fewValues), make(map[model.Origin]uint64, 2*fewValues)
	for _, v := range append(k.list, knownValue{hash, from}) {
		k.more[v.hash], k.hashes[v.from] = v.from, v.hash
	}
	k.list = nil
}

func (k *known) clone() known {
	return known{list: slices.Clone(k.list), more: maps.Clone(k.more), hashes: maps.Clone(k.hashes), bytes: k.bytes}
}

// remember adds a value to the index, so that later records can refer to the value. It ignores
// values that are too short, and references to other values.
func (k *known) remember(h model.StoredValue, o model.Origin) {
	if h.From.Kind != model.OriginInline || len(h.V.JSON()) < model.WorthSharing {
		return
	}
	k.put(model.HashValue(h.V), o)
}

// origins returns the Origins in the index, in ascending order. It leaves out an Origin if the
// value there has changed since it was put into the index. The function in the parameter `at`
// returns the value at an Origin.
func (k *known) origins(at func(model.Origin) dsl.Value) []model.Origin {
	var all []model.Origin
	add := func(hash uint64, from model.Origin) {
		if model.HashValue(at(from)) == hash {
			all = append(all, from)
		}
	}
	for _, v := range k.list {
		add(v.hash, v.from)
	}
	for hash, from := range k.more {
		add(hash, from)
	}
	slices.SortFunc(all, func(a, b model.Origin) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}
