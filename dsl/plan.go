package dsl

import "time"

// Waves groups the steps by the longest chain of dependencies before them: a
// step is in the first wave after those of all steps it waits for. Inside a
// wave steps are in order of declaration.
func (w *Workflow) Waves() [][]int {
	level := make([]int, len(w.Steps))
	var out [][]int
	for _, i := range w.Order {
		for _, on := range w.Steps[i].After {
			level[i] = max(level[i], level[on]+1)
		}
		for len(out) <= level[i] {
			out = append(out, nil)
		}
	}
	for i := range w.Steps {
		out[level[i]] = append(out[level[i]], i)
	}
	return out
}

// StaticSettings returns the step's settings if they do not depend on the run,
// else nil.
func (s *Step) StaticSettings() *Settings { return s.static }

// WorstCase returns the longest time the step can take with the given number
// of instances (1 without for_each): every attempt running into its timeout,
// every pause at its longest. ok is false if there is no bound, or if settings
// depend on the run. Time spent held or queued for a slot is not counted.
func (s *Step) WorstCase(instances int) (d time.Duration, ok bool) {
	st := s.static
	if st == nil {
		return 0, false
	}
	d, ok = st.worstCase(instances)
	if limit := st.Deadline.After; limit > 0 && (!ok || d > limit) {
		return limit, true
	}
	return d, ok
}

func (st *Settings) worstCase(instances int) (time.Duration, bool) {
	r := st.Retry
	if r.MaxAttempts == Unbounded {
		return 0, false
	}
	round := saturate(float64(st.Timeout) * float64(r.MaxAttempts))
	for k := 1; k < r.MaxAttempts; k++ {
		pause := r.backoff(k)
		if pause == r.MaxInterval || r.Strategy == Constant { // from here on all are the same
			round = saturate(float64(round) + float64(pause)*float64(r.MaxAttempts-k))
			break
		}
		round = saturate(float64(round) + float64(pause))
	}
	total := round
	if r.OnExhausted == ExhaustedCoolDown {
		total = saturate(float64(round)*float64(1+r.CoolDowns) + float64(r.CoolDown)*float64(r.CoolDowns))
	}
	batches := 1
	if st.MaxParallel > 0 && instances > 0 {
		batches = (instances + st.MaxParallel - 1) / st.MaxParallel
	}
	return saturate(float64(total) * float64(batches)), true
}

// saturate keeps sums of durations from overflowing.
func saturate(ns float64) time.Duration {
	if ns > float64(maxSpan) {
		return maxSpan
	}
	return time.Duration(ns)
}

// WorstCase returns the longest time the forward run can take: the longest
// chain of steps. instances gives the number of instances of a step that has
// for_each. ok is false if there is no bound; the workflow's own deadline is
// not considered.
func (w *Workflow) WorstCase(instances func(step int) int) (d time.Duration, ok bool) {
	end := make([]time.Duration, len(w.Steps))
	for _, i := range w.Order {
		n := 1
		if w.Steps[i].ForEach != nil && instances != nil {
			n = instances(i)
		}
		own, bounded := w.Steps[i].WorstCase(n)
		if !bounded {
			return 0, false
		}
		for _, on := range w.Steps[i].After {
			end[i] = max(end[i], end[on])
		}
		end[i] = saturate(float64(end[i]) + float64(own))
		d = max(d, end[i])
	}
	return d, true
}

// UndoText says for people how the step is undone, such as "payment.refund"
// or "none (stated)".
func (s *Step) UndoText() string {
	switch {
	case s.Undo != nil && s.Undo.Declared:
		return s.Undo.Do.Name + " (declared by agent)"
	case s.Undo != nil:
		return s.Undo.Do.Agent + "." + s.Undo.Do.Name
	case s.Do.ReadOnly:
		return "none (read-only)"
	case s.impliedNoUndo:
		return "none (only step)"
	case s.NoUndo:
		return "none (stated)"
	}
	return "none (after the pivot)"
}
