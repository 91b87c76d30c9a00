package dsl

// passOn calls the short methods of Value that other packages call in every decision. The
// compiler can put the body of such a method into code of engine/machine only if this
// package does the same somewhere: only then is the body in this package's export data.
// Without it each call of JSON on a null value takes memory (engine/machine,
// TestEventsCostTheSameInLargeRuns).
func passOn(v Value, a *Allowance) int64 {
	if v.IsNull() {
		return a.Spent()
	}
	return int64(len(v.JSON()) + len(v.Sensitive()) + len(v.Secrets()))
}

var _ = passOn
