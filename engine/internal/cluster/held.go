package cluster

import "math"

// roomy reports whether this engine has memory for more runs. One that has none
// works on those that it has and leaves all others where they are: queued, or to
// other engines. It says so once, and once when it takes up runs again.
func (t *Membership) roomy() bool {
	n, held := t.n, t.Runs.Held()
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

// fits returns how many runs like those in memory there is memory for, at least 1.
func (t *Membership) fits() int {
	held, runs := t.Runs.Held(), int64(t.Runs.Size())
	if held <= 0 || runs <= 0 {
		return math.MaxInt32
	}
	left := t.n.cfg.Options.MaxHeld - held
	return int(min(max(1, left*runs/held), math.MaxInt32))
}
