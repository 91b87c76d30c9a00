package noun

// ChildAgent returns the agent of those calls that start and undo child runs. The engine itself
// answers them. The result is the same for every workflow.
func (*Workflow) ChildAgent() string { return ChildAgent }

// StartsChildren reports whether a step of the workflow starts child runs.
func (w *Workflow) StartsChildren() bool {
	for _, s := range w.Steps {
		if s.Child != nil {
			return true
		}
	}
	return false
}
