package metered

// An Allowance limits the cost of all expressions that are evaluated for one
// decision. Each expression has its own limit, too, but a decision may evaluate
// thousands of expressions. The cost is counted in nominal nanoseconds of one
// core. It is computed from the sizes of values, without a clock. So the same
// expressions with the same values cost the same on every engine.
//
// Only one goroutine at a time may use an Allowance. The nil Allowance sets no
// limit.
type Allowance struct {
	limit, spent int64
	over         bool
}

// NewAllowance returns an Allowance with a limit of cost, in nominal nanoseconds.
func NewAllowance(cost int64) *Allowance { return &Allowance{limit: cost} }

// Over reports whether an evaluation was refused because of the Allowance.
func (a *Allowance) Over() bool { return a != nil && a.over }

// Spent returns the cost of all evaluations so far, in nominal nanoseconds.
func (a *Allowance) Spent() int64 {
	if a == nil {
		return 0
	}
	return a.spent
}

// pay adds a cost to what was spent. If the limit would be exceeded, it adds
// nothing and returns false.
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
