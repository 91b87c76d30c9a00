package planted

// childrenFaults break promises about child runs.
var childrenFaults = []fault{
	{
		name: "the end of a child run in another engine is found by asking the store",
		in:   "engine/internal/children.(*Room).ask",
		old:  "if row.State.Final() || w.undoes() || w.stop || w.strayLocked(row.State) {", new: "if false {",
		by: catches("engine", "^TestParentAndChildInTwoEngines$"),
	},
	{
		name: "an engine does not read a child run that has ended in it",
		in:   "engine/internal/children.(*Room).Ended",
		old:  "w.end = e", new: "_ = w",
		by: catches("engine/internal/children", "^TestCallSubmitsItsChild$"),
	},
	{
		name: "how a child run has ended is used once: it may have been undone since",
		in:   "engine/internal/children.(*waiter).take",
		old:  "w.end = nil", new: "_ = w",
		by: catches("engine/internal/children", "^TestUndoOfAChildThatIsUndoneElsewhere$"),
	},
	{
		name: "a run that has another parent is no child of the call",
		in:   "engine/internal/children.(*waiter).attach",
		old:  "!ok || started.Parent != w.Run", new: "!ok || started.Parent < 0",
		by: catches("engine/internal/children", "^TestNameOfAnotherRun$"),
	},
	{
		name: "an undo that finds no child leaves a run that begins nothing",
		in:   "engine/internal/children.(*waiter).begin",
		old:  "Void: stop || w.undoes()", new: "Void: stop",
		by: catches("engine/internal/children", "^TestUndoOfAChildThatWasNeverStarted$"),
	},
	{
		name: "an ended child run is read again when its parent asks for its undo",
		in:   "engine/internal/owner.(*shard).clear",
		old:  "return l.Err == nil && reopens(state, l.event)", new: "return false",
		by: catches("engine", "^TestChildIsUndone$"),
	},
	{
		name: "an engine takes over an ended child run whose owner has died, to undo it",
		in:   "engine/internal/owner.(*shard).takeOver",
		old:  "case reopens(r.state, d.Event):", new: "case false:",
		by: catches("engine", "^TestParentAndChildInTwoEngines$"),
	},
	{
		name: "a cancel without compensation goes down to open child runs as such",
		in:   "engine/machine.caller.stopping",
		old:  "r.NoUndo", new: "r.NoUndo && r.Owner < 0",
		by: catches("engine", "^TestCancelWithoutCompensationGoesDown$"),
	},
	{
		name: "a child run keeps its effects when its parent was cancelled without compensation",
		in:   "engine/internal/children.(*waiter).cancel",
		old:  "NoCompensate: true, ", new: "",
		by: catches("engine", "^TestCancelWithoutCompensationOfAGroup$"),
	},
	{
		name: "a cancel without compensation is posted also after a cancel that the child has refused",
		in:   "engine/internal/children.(*waiter).cancel",
		old:  "if w.left {", new: "if w.left || w.cancelled {",
		by: catches("engine", "^TestCancelWithoutCompensationAfterThePivotOfAChild$"),
	},
	{
		name: "a parent counts the effects that an open child run keeps",
		in:   "engine/internal/children.(*waiter).closeWith",
		old:  "if e.left &&", new: "if e.left && w.left && w.undoes() &&",
		by: catches("engine", "^TestCancelWithoutCompensationOfAGroup$"),
	},
	{
		name: "the pause of a run goes down to its groups",
		in:   "engine/machine.verbs.pauseRequested",
		old:  "d.caller().pauseGroups(true, ev.Reason)", new: "",
		by: catches("engine", "^TestPauseHoldsTheGroupsOfARun$"),
	},
	{
		name: "the next engine knows that a group must stay paused",
		in:   "engine/machine.caller.attach",
		old:  "d.run.Paused && d.step(n).Child.Group", new: "false",
		by: catches("engine", "^TestPauseHoldsTheGroupsOfARun$"),
	},
	{
		name: "the next engine resumes a group whose run was resumed before",
		in:   "engine/internal/children.(*waiter).strayLocked",
		old:  "return paused != (w.pause != nil)", new: "return !paused && w.pause != nil",
		by: catches("engine", "^TestPauseHoldsTheGroupsOfARun$"),
	},
	{
		name: "a pause by a person outlasts the pause of the run around the group",
		in:   "engine/internal/children.(*waiter).followPause",
		old:  "run.State.Run().PausedBy != w.Name", new: "false",
		by: catches("engine", "^TestPauseOfAGroupByAPerson$"),
	},
	{
		name: "a parent ends only its own pause of a child run",
		in:   "engine/machine.verbs.resumeRequested",
		old:  "&& r.PausedBy != ev.By:", new: `&& r.PausedBy == "":`,
		by: catches("engine/machine", "^TestParentEndsOnlyItsOwnPause$"),
	},
	{
		name: "child runs that are no groups are not paused with their parent",
		in:   "engine/machine.caller.pauseGroups",
		old:  "c == nil || !c.Group", new: "c == nil",
		by: catches("engine/machine", "^TestPauseGoesDownToGroups$"),
	},
	{
		name: "an engine that stops does not wait for child runs",
		in:   "engine/internal/call.(*Caller).startChild",
		old:  "w.kids[c.id()] = c", new: "w.calls[c.id()] = c",
		by: catches("engine", "^TestStoppingDoesNotWaitForChildren$"),
	},
	{
		name: "a parent that only waits for its child takes no memory",
		in:   "engine/internal/owner.(*ownedRun).calling",
		old:  "a.Agent != r.wf.ChildAgent()", new: "a.Agent != \"\"",
		by: catches("engine", "^TestStoppingDoesNotWaitForChildren$"),
	},
	{
		name: "an engine takes a parent only if it has the agents of the children",
		in:   "engine/internal/owner.agentNames",
		old:  "visit(step.Child.Workflow)", new: "_ = step",
		by: catches("engine", "^TestAgentsOfChildrenAreAgentsOfTheParent$"),
	},
}
