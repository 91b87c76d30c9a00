package metered

// An Allowance bounds what the expressions evaluated for one decision may cost
// together. Each expression has a limit of its own besides; a decision may
// evaluate thousands of them. The cost is counted in nominal nanoseconds of
// one core, from the sizes of values and without a clock, so that the same
// expressions over the same values cost the same on every engine.
//
// An Allowance serves one goroutine at a time. The nil Allowance bounds
// nothing.
type Allowance struct {
	limit, spent int64
	over         bool
}

// NewAllowance returns an Allowance of a cost in nominal nanoseconds.
func NewAllowance(cost int64) *Allowance { return &Allowance{limit: cost} }

// Over reports whether an evaluation was refused because of the Allowance.
func (a *Allowance) Over() bool { return a != nil && a.over }

// Spent returns the cost of what was evaluated so far, in nominal nanoseconds.
func (a *Allowance) Spent() int64 {
	if a == nil {
		return 0
	}
	return a.spent
}

// pay takes a cost off the Allowance; false means that it is used up.
func (a *Allowance) pay(cost int64) bool {
	if a == nil {
		return true
	}
	if cost > a.limit-a.spent {
		a.over = true
		return false
	}
	a.spent += cost
	return true
}
