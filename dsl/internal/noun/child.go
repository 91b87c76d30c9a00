package noun

import "time"

// ChildAgent is the agent of a step that starts a child run. The engine itself answers the calls
// of this agent. No agent block may have this name, except in a stored definition that is older
// than this rule. A plugin may have the name.
const ChildAgent = "workflow"

// ChildTimeout is the timeout of a step that starts a child run, and of the step's undo: 10 years.
// A child run may take any time, but every attempt must have a timeout.
const ChildTimeout = 10 * 365 * 24 * time.Hour

// ChildUndo is the value of CompensatedBy in the schema that package link makes for a child run. It
// only says that the child run can be undone. The call of the undo does not have this name: it has
// the name of the child's workflow.
const ChildUndo = "undo"
