package cluster

import "math"

// roomy reports whether this engine has memory for more runs. An engine without memory
// works on the runs that it has, and leaves the other runs queued or to other engines. It
// logs that once, and logs once when it has memory again.
func (t *taker) roomy() bool {
	n, held := t.n, t.runs.Held()
	full := held >= n.cfg.Options.MaxHeld
	if n.full.Swap(full) != full {
		if full {
			n.cfg.Logger.Warn("the runs in memory take as much as they may; no more are taken up", "bytes", held, "ceiling", n.cfg.Options.MaxHeld)
		} else {
			n.cfg.Logger.Info("there is memory for more runs again", "bytes", held, "ceiling", n.cfg.Options.MaxHeld)
		}
	}
	return !full
}

// fits returns how many more runs fit into memory, if they are as large as the present
// ones; at least 1.
func (t *taker) fits() int {
	held, runs := t.runs.Held(), int64(t.runs.Size())
	if held <= 0 || runs <= 0 {
		return math.MaxInt32
	}
	left := t.n.cfg.Options.MaxHeld - held
	return int(min(max(1, left*runs/held), math.MaxInt32))
}
