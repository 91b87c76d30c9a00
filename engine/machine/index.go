package machine

import (
	"container/heap"
	"slices"
)

// A lazyHeap orders nodes by a key, smallest first, then by number. Entries
// of nodes whose key has changed stay until they reach the top: whoever reads
// compares the entry with the node's present key.
type lazyHeap struct {
	items []entry
	valid int // nodes with a key
}

type entry struct {
	key  instant
	node int
}

func (a entry) less(b entry) bool {
	if a.key != b.key {
		return a.key < b.key
	}
	return a.node < b.node
}

func (h *lazyHeap) Len() int           { return len(h.items) }
func (h *lazyHeap) Less(i, j int) bool { return h.items[i].less(h.items[j]) }
func (h *lazyHeap) Swap(i, j int)      { h.items[i], h.items[j] = h.items[j], h.items[i] }

// Push appends x; it belongs to container/heap.
func (h *lazyHeap) Push(x any) { h.items = append(h.items, x.(entry)) }

// Pop removes the last item; it belongs to container/heap.
func (h *lazyHeap) Pop() any {
	last := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	return last
}

func (h *lazyHeap) clone() lazyHeap {
	return lazyHeap{items: slices.Clone(h.items), valid: h.valid}
}

// change tells the heap that a node's key was old and is now new; 0 = none.
func (h *lazyHeap) change(node int, old, key instant) {
	if old == key {
		return
	}
	if old != 0 {
		h.valid--
	}
	if key != 0 {
		h.valid++
		heap.Push(h, entry{key, node})
	}
}

// prune drops stale entries from the top, and all of them once they outnumber
// the valid ones, so that the heap stays as small as what it indexes.
func (h *lazyHeap) prune(key func(node int) instant) {
	if len(h.items) > 2*h.valid+32 {
		kept := h.items[:0]
		for _, e := range h.items {
			if key(e.node) == e.key {
				kept = append(kept, e)
			}
		}
		h.items = kept
		heap.Init(h)
		return
	}
	for len(h.items) > 0 && key(h.items[0].node) != h.items[0].key {
		heap.Pop(h)
	}
}

// top returns the smallest key; 0 = none. It is exact after prune.
func (h *lazyHeap) top() instant {
	if len(h.items) == 0 {
		return 0
	}
	return h.items[0].key
}

// upTo appends the nodes of all entries whose key is at most limit, stale
// ones included, in no order. It costs what it finds.
func (h *lazyHeap) upTo(limit instant, found []int) []int {
	var visit func(i int)
	visit = func(i int) {
		if i >= len(h.items) || h.items[i].key > limit {
			return
		}
		found = append(found, h.items[i].node)
		visit(2*i + 1)
		visit(2*i + 2)
	}
	visit(0)
	return found
}

// inOrder yields entries smallest first, stale ones included, without changing
// the heap. Each step costs the logarithm of what was yielded before.
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

// A frontier is the set of heap positions whose parents were yielded.
type frontier struct {
	h  *lazyHeap
	at []int
}

func (f *frontier) Len() int           { return len(f.at) }
func (f *frontier) Less(i, j int) bool { return f.h.items[f.at[i]].less(f.h.items[f.at[j]]) }
func (f *frontier) Swap(i, j int)      { f.at[i], f.at[j] = f.at[j], f.at[i] }

// Push appends x; it belongs to container/heap.
func (f *frontier) Push(x any) { f.at = append(f.at, x.(int)) }

// Pop removes the last item; it belongs to container/heap.
func (f *frontier) Pop() any {
	last := f.at[len(f.at)-1]
	f.at = f.at[:len(f.at)-1]
	return last
}
