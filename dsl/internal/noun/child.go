package noun

// ChildAgent is the agent of a step that starts a child run. The engine itself answers the calls
// of this agent: no plugin has this name, and no agent block may use it.
const ChildAgent = "workflow"

// A Child says which workflow a step starts as a child run. The workflow is part of the same
// definition. The values of its variables are the arguments in the input block of the step.
type Child struct {
	Workflow *Workflow // workflow of the child run; never nil
}
