package noun

import "time"

// ChildAgent is the agent of a step that starts a child run. The engine itself answers the calls
// of this agent: no plugin has this name, and no agent block may use it.
const ChildAgent = "workflow"

// ChildTimeout is the timeout of a step that starts a child run, and of the step's undo: 10 years.
// A child run may take any time, but every attempt must have a timeout.
const ChildTimeout = 10 * 365 * 24 * time.Hour

// ChildUndo is the name of the action of ChildAgent that undoes a child run.
const ChildUndo = "undo"
