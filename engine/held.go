package engine

import "math"

// DefaultMaxHeld is how many bytes the runs in an engine's memory may take before
// it takes up no more: about what an engine has left of 512 MiB.
const DefaultMaxHeld = 256 << 20

// weigh notes how much memory a run takes, after its state has changed or the run
// has gone.
func (sh *shard) weigh(r *ownedRun) {
	weight := int64(0)
	if sh.runs[r.id] == r && r.state != nil {
		weight = r.state.Weight()
	}
	sh.held.Add(weight - r.weight)
	r.weight = weight
}

// held returns about how many bytes the runs in memory take.
func (s *scheduler) held() int64 {
	sum := int64(0)
	for _, sh := range s.shards {
		sum += sh.held.Load()
	}
	return sum
}

// roomy reports whether this engine has memory for more runs. One that has none
// works on those that it has and leaves all others where they are: queued, or to
// other engines. It says so once, and once when it takes up runs again.
func (t *membership) roomy() bool {
	n, held := t.n, t.scheduler.held()
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
func (t *membership) fits() int {
	held, runs := t.scheduler.held(), int64(t.scheduler.size())
	if held <= 0 || runs <= 0 {
		return math.MaxInt32
	}
	left := t.n.cfg.Options.MaxHeld - held
	return int(min(max(1, left*runs/held), math.MaxInt32))
}
