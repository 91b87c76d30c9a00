package planted

// viewFaults are faults in what people see of runs, and in the commands that refusals name.
var viewFaults = []fault{
	{
		name: "an address without the mark of this machine names no process that has ended",
		in:   "cmd/engine/internal/process.Ended",
		old:  `if !marked || m == "" || m != mark() {`, new: `if !marked && m == "" && m != mark() && address == "" {`,
		by: catches("cmd/engine/internal/process", "^TestEnded$"),
	},
	{
		name: "a container of the same host name has another mark",
		in:   "cmd/engine/internal/process.Ended",
		old:  "m != mark()", new: "len(m) != len(mark())",
		by: catches("cmd/engine/internal/process", "^TestEnded$"),
	},
	{
		name: "the undo before another attempt is not shown with the key of a later undo",
		in:   "engine/story.(*NodeView).keyOf",
		old:  `case a.Gen != n.Gen && n.BizKey == "":`, new: `case a.Gen != n.Gen && n.BizKey == "" && a.Kind == model.CallDo:`,
		by: catches("engine/machine", "^TestViewOfAnUndoBeforeAnotherAttempt$"),
	},
	{
		name: "the view of an instance shows the deadline of its step",
		in:   "engine/story.stepDeadline",
		old:  "if n.Item {", new: "if n.Item && n.Expanded {",
		by: catches("engine/machine", "^TestInstancesShowTheDeadlineOfTheirStep$"),
	},
	{
		name: "a fact about an instance has the deadline of its step",
		in:   "engine/story.(*factWriter).deadline",
		old:  "f.StepDeadline = t.limit.Time()", new: "f.StepDeadline = n.Fwd.Deadline.Time()",
		by: catches("engine/machine", "^TestInstancesShowTheDeadlineOfTheirStep$"),
	},
	{
		name: "a verb that leaves a run parked does not hide that it needs a person",
		in:   "cmd/engine/render.(*board).apply",
		old:  "b.status = f.Rest", new: `b.status = ""`,
		by: catches("cmd/engine/render", "^TestTerminalStaysParked$"),
	},
	{
		name: "a fact about a refused verb says that the run is still parked",
		in:   "engine/story.(*factWriter).rest",
		old:  "s.NeedsHuman() || s.Final()", new: "s.Final()",
		by: catches("engine/machine", "^TestFactsSayThatARunRests$"),
	},
	{
		name: "the list of runs that need a person has only runs of the triggers that the user named",
		in:   "cmd/engine/internal/history.Selection.has",
		old:  "case len(x.Triggers) > 0 && !", new: "case len(x.Triggers) > 100 && !",
		by: catches("cmd/engine/internal/history", "^TestAttentionFitsTheFilter$"),
	},
	{
		name: "the list of runs that need a person leaves out overdue notifications",
		in:   "cmd/engine/internal/history.Selection.has",
		old:  "case notice.Announces(r.WorkflowName) && !x.withNotifications():", new: "case notice.Announces(r.WorkflowName) && x.Limit < 0:",
		by: catches("cmd/engine/internal/history", "^TestAttentionFitsTheFilter$"),
	},
	{
		name: "the refusal of a step of a group names the flags that the user gave",
		in:   "cmd/engine/internal/verbs.Given",
		old:  "case !f.Changed || ", new: "case f.Changed || ",
		by: catches("cmd/engine/internal/verbs", "^TestGiven$"),
	},
	{
		name: "a dry restart is refused if another run holds the unique key",
		in:   "engine/internal/submit.Preview",
		old:  "if err := keyTaken(ctx, s, wf.Name, st.Names.Key); err != nil {", new: "if err := keyTaken(ctx, s, wf.Name, st.Names.Key); err != nil && ctx.Err() != nil {",
		by: catches("cmd/engine", "^TestScriptSQLite$/^restart-key$"),
	},
	{
		name: "a move lists the variables whose values it changes",
		in:   "cmd/engine/internal/migrate.changed",
		old:  "if !equal(before[name], after[name]) {", new: "if before[name] == nil {",
		by: catches("cmd/engine/internal/migrate", "^TestChangedVariables$"),
	},
	{
		name: "a move shows no sensitive variable",
		in:   "cmd/engine/internal/migrate.changed",
		old:  "attributes(render.Redact(is))", new: "attributes(is.JSON())",
		by: catches("cmd/engine/internal/migrate", "^TestChangedVariables$"),
	},
}
