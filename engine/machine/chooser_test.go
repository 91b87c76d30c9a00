package machine_test

import (
	"math/rand/v2"
)

// A chooser makes all decisions of a simulated world. It records them, so that
// a failing world can be replayed and shrunk: 0 is always the simplest choice,
// and a replay that runs out of choices goes on with 0.
type chooser struct {
	rng    *rand.Rand // nil = replay
	replay []uint16
	made   []uint16
	calm   bool // the world has healed: only 0 from now on, unrecorded
}

func newChooser(seed uint64) *chooser {
	return &chooser{rng: rand.New(rand.NewPCG(seed, 0x5a6a))}
}

// n returns a number from 0 to k-1.
func (c *chooser) n(k int) int {
	if c.calm || k <= 1 {
		return 0
	}
	v := 0
	switch {
	case c.rng != nil:
		v = c.rng.IntN(k)
	case len(c.made) < len(c.replay):
		v = int(c.replay[len(c.made)]) % k
	}
	c.made = append(c.made, uint16(v))
	return v
}

// chance is true in p of 100 cases.
func (c *chooser) chance(p int) bool {
	v := c.n(100)
	return v != 0 && v <= p
}

// pick returns an index by weight; the first weight belongs to the simplest.
func (c *chooser) pick(weights ...int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	v := c.n(sum)
	for i, w := range weights {
		if v < w {
			return i
		}
		v -= w
	}
	return 0
}

// shrink looks for a shorter and simpler list of choices that still fails.
func shrink(choices []uint16, fails func([]uint16) bool) []uint16 {
	for size := max(1, len(choices)/2); size >= 1; size /= 2 {
		for from := 0; from+size <= len(choices); {
			shorter := append(append([]uint16{}, choices[:from]...), choices[from+size:]...)
			if fails(shorter) {
				choices = shorter
			} else {
				from += size
			}
		}
	}
	for i := range choices {
		for _, v := range []uint16{0, choices[i] / 2, choices[i] - 1} {
			if choices[i] == 0 || v >= choices[i] {
				continue
			}
			simpler := append([]uint16{}, choices...)
			simpler[i] = v
			if fails(simpler) {
				choices = simpler
			}
		}
	}
	return choices
}
