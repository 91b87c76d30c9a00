package planted

// childrenFaults break promises about child runs.
var childrenFaults = []fault{
	{
		name: "the end of a child run in another engine is found by asking the store",
		in:   "engine/internal/children.(*Room).ask",
		old:  "if row.State.Final() || w.undoes() || w.stop {", new: "if false {",
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
	{
		name: "a child run that a moved run starts has the new definition of the run",
		in:   "engine.(*Node).parentWorkflow",
		old:  "if wf, err := defs.Workflow(ctx, row.Workflow); err != nil || wf.Digest == digest {", new: "if wf, err := defs.Workflow(ctx, row.Workflow); err != nil || wf != nil {",
		by: catches("engine", "^TestChildrenAfterAMigration$"),
	},
	{
		name: "a child run has the definition with which its call began",
		in:   "engine.(*Node).parentWorkflow",
		old:  "err != nil || wf.Digest == digest { return id, err", new: "err != nil || m.Workflow == told.State.Run().Moves[len(told.State.Run().Moves)-1].Workflow || wf == nil { return id, err",
		by: catches("engine", "^TestChildOfACallBeforeAMigration$"),
	},
	{
		name: "a group that only has another name has not changed",
		in:   "dsl/internal/link.actionText",
		old:  "a.child.decl.Outer != nil", new: "a.child.decl == nil",
		by: catches("engine", "^TestRenamedGroupIsMoved$"),
	},
	{
		name: "the refusal about an open child run does not advise to wait for a call",
		in:   "engine/moving.(*comparison).inFlight",
		old:  "c.now.Steps[s.Node].Child != nil", new: "c.now.Steps[s.Node].Child != nil && why == \"\"",
		by: catches("engine", "^TestGroupInFlightIsEnded$"),
	},
	{
		name: "the ids of a definition are not those of another one",
		in:   "engine/journal.(*Definitions).Family",
		old:  "def.Digest() != digest", new: "def == nil",
		by: catches("engine/journal", "^TestFamilyOfAnotherDefinition$"),
	},
}
