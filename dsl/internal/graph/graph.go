package graph

import "iter"

// A Graph has the nodes 0 to Nodes-1.
type Graph struct {
	Nodes int
	After func(i int) iter.Seq[int] // nodes for which node i waits, each one once
}

// Sort returns the nodes in an order in which each node comes after the nodes for which it waits.
// Of all nodes that may come next, Sort always takes the smallest. If the graph has a cycle, `order`
// is nil, and `cycle` is one of the cycles: each node waits for the next node of the list, and the
// first node is also the last one.
func (g Graph) Sort() (order, cycle []int) {
	open := make([]int, g.Nodes) // how many of the nodes for which node i waits are not in `order` yet
	before := make([][]int, g.Nodes)
	var ready heap
	for i := range g.Nodes {
		for on := range g.After(i) {
			open[i]++
			before[on] = append(before[on], i)
		}
		if open[i] == 0 {
			ready.push(i)
		}
	}
	order = make([]int, 0, g.Nodes)
	for len(ready) > 0 {
		i := ready.pop()
		order = append(order, i)
		for _, j := range before[i] {
			if open[j]--; open[j] == 0 {
				ready.push(j)
			}
		}
	}
	if len(order) < g.Nodes {
		return nil, g.cycle(open)
	}
	return order, nil
}

// cycle returns one cycle. It begins at the first node that Sort could not order, and follows the
// dependencies until it comes to a node for the second time. For each node i that Sort could not
// order, open[i] is greater than 0.
func (g Graph) cycle(open []int) []int {
	cur := 0
	for open[cur] == 0 {
		cur++
	}
	back := func(i int) int { // returns the first dependency of node i that Sort could not order
		best := -1
		for on := range g.After(i) {
			if open[on] > 0 && (best < 0 || on < best) {
				best = on
			}
		}
		return best
	}
	// After as many iterations as there are nodes, `cur` is certainly a node of the cycle.
	for range g.Nodes {
		cur = back(cur)
	}
	path := []int{cur}
	for next := back(cur); ; next = back(next) {
		path = append(path, next)
		if next == cur {
			return path
		}
	}
}

// Downstream returns the nodes that wait for node i, directly or through other nodes. The parameter
// `order` is the result of Sort.
func (g Graph) Downstream(order []int, i int) map[int]bool {
	out := map[int]bool{}
	for _, k := range order {
		for on := range g.After(k) {
			if on == i || out[on] {
				out[k] = true
				break
			}
		}
	}
	return out
}

// Upstream returns the nodes for which node i waits, directly or through other nodes. If node i is
// part of a cycle, the result contains i.
func (g Graph) Upstream(i int) map[int]bool {
	seen := map[int]bool{}
	stack := []int{i}
	for len(stack) > 0 {
		cur := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for on := range g.After(cur) {
			if !seen[on] {
				seen[on] = true
				stack = append(stack, on)
			}
		}
	}
	return seen
}

// heap is a min-heap. The method `pop` returns the smallest number first.
type heap []int

func (h *heap) push(x int) {
	a := append(*h, x)
	for i := len(a) - 1; i > 0 && a[(i-1)/2] > a[i]; i = (i - 1) / 2 {
		a[i], a[(i-1)/2] = a[(i-1)/2], a[i]
	}
	*h = a
}

func (h *heap) pop() int {
	a := *h
	top, last := a[0], len(a)-1
	a[0] = a[last]
	a = a[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c >= len(a) {
			break
		}
		if c+1 < len(a) && a[c+1] < a[c] {
			c++
		}
		if a[i] <= a[c] {
			break
		}
		a[i], a[c] = a[c], a[i]
		i = c
	}
	*h = a
	return top
}
