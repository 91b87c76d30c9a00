package owner

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

// Held returns about how many bytes the runs in memory take.
func (s *Scheduler) Held() int64 {
	sum := int64(0)
	for _, sh := range s.shards {
		sum += sh.held.Load()
	}
	return sum
}
