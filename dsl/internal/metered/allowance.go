package metered

// An Allowance limits the total cost of all expressions that are evaluated for one
// decision. Each expression has its own limit, too, but a decision may evaluate
// thousands of expressions. The unit of cost is an estimated nanosecond of one
// core. The estimate uses the sizes of values and no clock. So the same
// expressions with the same values have the same cost on every engine.
//
// Only one goroutine at a time may use an Allowance. The nil Allowance sets no
// limit.
type Allowance struct {
	limit, spent int64 // estimated nanoseconds
	over         bool  // true = an evaluation was refused because of the limit
}

// NewAllowance returns an Allowance that permits this cost, in estimated nanoseconds.
func NewAllowance(cost int64) *Allowance { return &Allowance{limit: cost} }

// Over reports whether an evaluation was refused because of the Allowance.
func (a *Allowance) Over() bool { return a != nil && a.over }

// Spent returns the cost of all evaluations so far, in estimated nanoseconds.
func (a *Allowance) Spent() int64 {
	if a == nil {
		return 0
	}
	return a.spent
}

// pay adds a cost to a.spent and returns true. If a.spent would exceed the limit,
// pay adds nothing and returns false.
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
