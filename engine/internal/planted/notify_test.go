package planted

// notifyFaults are faults around the states of runs that notify blocks announce.
var notifyFaults = []fault{
	{
		name: "a run that parks is announced",
		in:   "engine/machine.Record.Reached",
		old:  "has(model.RunParkedBit) && to.Parked", new: "has(model.RunParkedBit) && !to.Parked",
		by: catches("engine/machine", "^TestReached$"),
	},
	{
		name: "a run whose undo failed is announced",
		in:   "engine/machine.Record.Reached",
		old:  "has(model.RunStuckBit) && to.Stuck", new: "has(model.RunStuckBit) && to.Parked",
		by: catches("engine", "^TestNotifyStates$"),
	},
	{
		name: "a run that is overdue is announced",
		in:   "engine/machine.Record.Reached",
		old:  "has(model.RunOverdueBit) && to.Overdue", new: "has(model.RunOverdueBit) && !to.Overdue",
		by: catches("engine", "^TestNotifyStates$"),
	},
	{
		name: "a notification that fails raises an alert",
		in:   "engine/machine.ending.finish",
		old:  `d.wf.Notifies != "" && state`, new: `d.wf.Notifies == "-" && state`,
		by: catches("engine", "^TestNotifyCannotChangeTheOutcome$"),
	},
	{
		name: "only a state that a block announces makes a notice",
		in:   "engine/internal/owner.announce",
		old:  "len(flow.Notifications(state)) > 0 &&", new: "",
		by: catches("engine", "^TestNotifyStates$"),
	},
	{
		name: "the row of the journal carries the notice",
		in:   "engine/internal/owner.announce",
		old:  "t.Announce = append(t.Announce, state)", new: "_ = append(t.Announce, state)",
		by: catches("engine", "^TestNotifyStates$"),
	},
	{
		name: "a notice whose notification is made is marked",
		in:   "engine/internal/notify.(*Announcer).batch",
		old:  "done = append(done, n)", new: "_ = append(done, n)",
		by: catches("engine", "^TestNotifyStates$"),
	},
	{
		name: "a living engine announces what a dead one left",
		in:   "engine/internal/cluster.(*scanner).wakeAnnouncer",
		old:  "wait.Wake(p.n.shared.Notices)", new: "",
		by: catches("engine", "^TestNotifyByAnotherEngine$"),
	},
	{
		name: "a notification without an agent here is left to others",
		in:   "engine/internal/notify.(*Announcer).submit",
		old:  "mine = false", new: "mine = mine && true",
		by: catches("engine", "^TestNotifyWithoutItsAgent$"),
	},
	{
		name: "a notification tells the state of that time",
		in:   "engine/journal.Reader.LoadAt",
		old:  "if row.Seq > seq {", new: "if row.Seq < 0 {",
		by: catches("engine", "^TestNotifyEveryTime$"),
	},
	{
		name: "a notification has the definition that the run had in the state",
		in:   "engine/internal/notify.(*Announcer).announce",
		old:  "run.Workflow()", new: "run.Head.Workflow",
		by: catches("engine", "^TestNotifyAfterAMigration$"),
	},
	{
		name: "a row that announces a state does not move the run",
		in:   "engine/internal/owner.(*decision).one",
		old:  "moves && len(x.f.Transition.Announce) > 0", new: "moves && x.f == nil",
		by: catches("engine", "^TestNotifyBeforeAMigration$"),
	},
	{
		name: "variables that are too large do not keep a notification from being made",
		in:   "engine/internal/notify.announced",
		old:  "len(vars.JSON()) > most", new: "most < 0",
		by: catches("engine", "^TestNotifyVariables$"),
	},
	{
		name: "only an engine starts a notification",
		in:   "engine/internal/submit.(*Maker).prepare",
		old:  `wf == nil || wf.Notifies != ""`, new: "wf == nil",
		by: catches("engine", "^TestNotifyCannotBeSubmitted$"),
	},
	{
		name: "the names of notifications are reserved",
		in:   "engine/store/naming.Names.Validate",
		old:  "case strings.Contains(n.Name, notification) &&", new: `case n.Name == "-" && strings.Contains(n.Name, notification) &&`,
		by: catches("engine", "^TestNotifyCannotBeSubmitted$"),
	},
	{
		name: "a run that cannot be read is not read again at once to announce it",
		in:   "engine/internal/notify.(*Announcer).batch",
		old:  "if a.waits(n) {", new: "if a.waits(n) && ctx == nil {",
		by: catches("engine", "^TestNotifyOfAnUnreadableRun$"),
	},
	{
		name: "a notification that may hold secrets needs a key before the run is accepted",
		in:   "engine/internal/submit.(*Maker).prepare",
		old:  "hidden = hidden || confidential(block.Flow, s.Vars, own)", new: "_ = own",
		by: catches("engine", "^TestNotifyNeedsAKey$"),
	},
	{
		name: "a notification gives up after a day",
		in:   "dsl/internal/link.defaultsOf",
		old:  "out.Deadline = noun.Limit{After: notifyDeadline}", new: "",
		by: catches("engine", "^TestNotifyGivesUp$"),
	},
	{
		name: "an argument that cannot be evaluated gets the engine's own text",
		in:   "dsl/internal/argument.(*List).Build",
		old:  "err != nil && a.Instead != nil", new: "err != nil && a == nil",
		by: catches("dsl", "^TestNotifyOwnText$"),
	},
	{
		name: "the expressions of a notify block read the announced run",
		in:   "dsl/internal/noun.Announced",
		old:  "out := *s", new: "out := *s\n\tif n.Run != \"\" {\n\t\treturn s\n\t}",
		by: catches("dsl", "^TestNotifyReferences$"),
	},
	{
		name: "a notify block uses no local that uses a step",
		in:   "dsl/internal/decl.referenceDecoder.refLocal",
		old:  "len(lc.Steps) > 0 && ns.inNotify", new: "len(lc.Steps) < 0 && ns.inNotify",
		by: catches("dsl", "^TestGolden$"),
	},
	{
		name: "marking a notice leaves the others of the run",
		in:   "engine/store/sqlite.noticeDone",
		old:  "run_id = ?1 AND seq = ?2 AND state = ?3", new: "run_id = ?1 AND state = ?3 AND ?2 IS NOT NULL",
		by: catches("engine/store/sqlite", "^TestStore$/^notices$"),
	},
	{
		name: "the notices of a removed run are removed",
		in:   "engine/store/memory.(*retention).Retain",
		old:  "s.notices = slices.DeleteFunc(s.notices, func(k notice.Kept) bool { return gone[k.Run] })", new: "_ = notice.Kept{}",
		by: catches("engine/store/memory", "^TestStore$/^notices$"),
	},
}
