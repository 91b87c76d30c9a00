package machine

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/saga-engine/engine/engine/internal/model"
)

// The lazy heap against a dumb twin: a plain list of keys.
func TestLazyHeapAgainstATwin(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var h lazyHeap
		keys := make([]model.Instant, 40)
		now := func(i int) model.Instant { return keys[i] }
		for step := range 400 {
			i := rng.IntN(len(keys))
			old := keys[i]
			keys[i] = 0
			if rng.IntN(3) > 0 {
				keys[i] = model.Instant(1 + rng.IntN(30))
			}
			h.change(i, old, keys[i])
			h.prune(now)
			var twin []entry
			for node, key := range keys {
				if key != 0 {
					twin = append(twin, entry{key, node})
				}
			}
			slices.SortFunc(twin, func(a, b entry) int {
				if a.less(b) {
					return -1
				}
				return 1
			})
			want := model.Instant(0)
			if len(twin) > 0 {
				want = twin[0].key
			}
			if got := h.top(); got != want {
				t.Fatalf("seed %d step %d: top %d, want %d", seed, step, got, want)
			}
			var ordered []entry
			for e := range h.inOrder {
				if keys[e.node] == e.key && !slices.Contains(ordered, e) {
					ordered = append(ordered, e)
				}
			}
			if !slices.Equal(ordered, twin) {
				t.Fatalf("seed %d step %d: order %v, want %v", seed, step, ordered, twin)
			}
			var upTo []int
			for _, i := range ascending(h.upTo(15, nil)) {
				if keys[i] != 0 && keys[i] <= 15 {
					upTo = append(upTo, i)
				}
			}
			var wantUpTo []int
			for i, key := range keys {
				if key != 0 && key <= 15 {
					wantUpTo = append(wantUpTo, i)
				}
			}
			if !slices.Equal(upTo, wantUpTo) {
				t.Fatalf("seed %d step %d: up to 15 %v, want %v", seed, step, upTo, wantUpTo)
			}
			if len(h.items) > 2*h.valid+33 {
				t.Fatalf("seed %d step %d: %d entries for %d nodes", seed, step, len(h.items), h.valid)
			}
		}
	}
}
