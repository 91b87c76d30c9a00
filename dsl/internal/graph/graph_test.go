package graph

import (
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// draw returns a random graph, and its dependencies as sets. Some of the graphs have cycles.
func draw(r *rand.Rand) (Graph, []map[int]bool) {
	after := make([]map[int]bool, 1+r.IntN(9))
	for i := range after {
		after[i] = map[int]bool{}
		for on := range after {
			if on != i && r.IntN(len(after)) == 0 {
				after[i][on] = true
			}
		}
	}
	return Graph{len(after), func(i int) iter.Seq[int] { return maps.Keys(after[i]) }}, after
}

// reach returns, for each node, the nodes for which it waits, directly or not. It adds the
// dependencies of dependencies until nothing changes.
func reach(after []map[int]bool) []map[int]bool {
	out := make([]map[int]bool, len(after))
	for i := range after {
		out[i] = maps.Clone(after[i])
	}
	for changed := true; changed; {
		changed = false
		for i := range out {
			n := len(out[i])
			for on := range maps.Clone(out[i]) {
				maps.Copy(out[i], out[on])
			}
			changed = changed || len(out[i]) > n
		}
	}
	return out
}

// In the order of Sort, a node comes as soon as no smaller node may come. If there is a cycle, the
// list of its nodes is a closed walk along dependencies.
func TestRandomGraphs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	cycles := 0
	for range 2000 {
		g, after := draw(r)
		all := reach(after)
		cyclic := false
		for i := range all {
			cyclic = cyclic || all[i][i]
			if got := g.Upstream(i); !maps.Equal(got, all[i]) {
				t.Fatalf("%v: Upstream(%d) = %v, want %v", after, i, got, all[i])
			}
		}
		order, cycle := g.Sort()
		if cyclic != (cycle != nil) || cyclic != (order == nil) {
			t.Fatalf("%v: order %v, cycle %v", after, order, cycle)
		}
		if cyclic {
			cycles++
			if cycle[0] != cycle[len(cycle)-1] || len(cycle) < 3 {
				t.Fatalf("%v: the cycle %v is not closed", after, cycle)
			}
			for k := 1; k < len(cycle); k++ {
				if !after[cycle[k-1]][cycle[k]] {
					t.Fatalf("%v: in the cycle %v, %d does not wait for %d", after, cycle, cycle[k-1], cycle[k])
				}
			}
			continue
		}
		done := map[int]bool{}
		for k, i := range order {
			for j := range after {
				ready := !done[j]
				for on := range after[j] {
					ready = ready && done[on]
				}
				if ready && j < i || !ready && j == i {
					t.Fatalf("%v: order %v, wrong at place %d", after, order, k)
				}
			}
			done[i] = true
			later := map[int]bool{}
			for j := range all {
				if all[j][i] {
					later[j] = true
				}
			}
			if got := g.Downstream(order, i); !maps.Equal(got, later) {
				t.Fatalf("%v: Downstream(%d) = %v, want %v", after, i, got, later)
			}
		}
		if len(done) != g.Nodes {
			t.Fatalf("%v: order %v lacks nodes", after, order)
		}
	}
	if cycles < 100 || cycles > 1900 {
		t.Errorf("%d of 2000 graphs have a cycle", cycles)
	}
}

// The smallest number leaves the heap first. The order in which the numbers came does not matter.
func TestHeapIsSorted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 40 {
		var h heap
		want := r.Perm(n)
		for _, x := range want {
			h.push(x)
		}
		slices.Sort(want)
		var got []int
		for len(h) > 0 {
			got = append(got, h.pop())
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}
