package planted

// capacityFaults break promises about open runs: the limits of workflows and groups, priorities, child
// runs that end, and how long runs are kept. Some concern agents: lookups of declared actions, and the
// source of an agent.
var capacityFaults = []fault{
	{
		name: "a submitted run takes its place in the limit",
		in:   "engine/internal/owner.SetRoom",
		old:  "t.Admit = !e.Waits", new: "t.Admit = false",
		by: catches("engine", "^TestConcurrencyOfTwoEngines$"),
	},
	{
		name: "a run that was in line takes its place when it is admitted",
		in:   "engine/internal/owner.noteRoom",
		old:  "if rec.Admits() {", new: "if false {",
		by: catches("engine", "^TestGroupInLineIsCancelled$"),
	},
	{
		name: "a full limit with when_full = reject refuses the submission",
		in:   "engine/internal/submit.(*Submitter).Submit",
		old:  "!st.Flow.Concurrency.Reject && !waits", new: "!waits",
		by: catches("engine", "^TestConcurrencyRejects$"),
	},
	{
		name: "a refused group fails with the code no_room",
		in:   "engine/internal/submit.(*Submitter).Child",
		old:  "case errors.Is(err, naming.ErrFull):", new: "case false:",
		by: catches("engine", "^TestConcurrencyOfGroupsRejects$"),
	},
	{
		name: "the limit of a group uses no step of the group",
		in:   "dsl/internal/decl.graphDecoder.resolveConcurrency",
		old:  "a |= allowEach | allowAround", new: "a |= allowEach | allowStep",
		by: catches("dsl", "^TestGolden$"),
	},
	{
		name: "a new run does not overtake the runs in line",
		in:   "engine/store/memory.(*state).roomLocked",
		old:  "t.Seq == 0 && len(line) > 0", new: "t.Seq < 0 && len(line) > 0",
		by: catches("engine/store/memory", "^TestStore$"),
	},
	{
		name: "each run in line has its own limit, in memory",
		in:   "engine/store/memory.(*state).nextLocked",
		old:  "taken >= int(r.share.Limit)", new: "taken >= int(line[0].share.Limit)",
		by: catches("engine/store/memory", "^TestStore$"),
	},
	{
		name: "a run without room stops the runs behind it, on SQLite",
		in:   "engine/store/sqlite.nextOf",
		old:  "stopped = stopped || taken >= slots", new: "stopped = taken >= slots",
		by: catches("engine/store/sqlite", "^TestStore$"),
	},
	{
		name: "a run with a higher priority comes first",
		in:   "engine/machine/line.Line.Rank",
		old:  "accepted.Add(-time.Duration(l.Priority())", new: "accepted.Add(time.Duration(l.Priority())",
		by: catches("engine/machine/line", "^TestS71RankBoundsHowLongARunIsOvertaken$"),
	},
	{
		name: "a free slot goes to the step with the highest priority",
		in:   "engine/internal/owner.(*gate).wait",
		old:  "urgency{h.Rank, ", new: "urgency{now, ",
		by: catches("engine", "^TestStepWithAHigherPriorityStartsFirst$"),
	},
	{
		name: "a run leaves its slot to a step with a higher priority",
		in:   "engine/machine.slots.yields",
		old:  "return d.priority(d.get(i)) < slot.Yield", new: "return d.priority(d.get(i)) < 0",
		by: catches("engine", "^TestRunLeavesItsSlotToAHigherPriority$"),
	},
	{
		name: "the lookup of a declared action changes nothing",
		in:   "dsl/internal/link.lookupLinker.lookup",
		old:  "case !other.schema.ReadOnly:", new: "case false:",
		by: catches("dsl", "^TestGolden$"),
	},
	{
		name: "only not_found says that a call had no effect",
		in:   "engine/internal/call.(*Spec).askedFailed",
		old:  "if reply.Code == codeNotFound {", new: "if reply.Code != \"\" {",
		by: catches("engine/internal/call", "^TestAnswersOfALookup$"),
	},
	{
		name: "a lookup has another idempotency key than the call that it asks about",
		in:   "engine/internal/call.(*Spec).asAgentSees",
		old:  "inv.IdempotencyKey + \":lookup\"", new: "inv.IdempotencyKey",
		by: catches("engine/internal/call", "^TestAgentSeesAnOrdinaryCall$"),
	},
	{
		name: "engine init takes the binary of an agent from its source",
		in:   "cmd/engine/internal/module.sourceOf",
		old:  "return u.Source", new: "return \"\"",
		by: catches("cmd/engine", "^TestScript$/^init-source$"),
	},
	{
		name: "another binary in the place of an installed agent is not used",
		in:   "engine/agents.(*Catalog).Install",
		old:  "sum != b.Checksum:", new: "sum == \"\":",
		by: catches("cmd/engine", "^TestScript$/^init-source$"),
	},
	{
		name: "a workflow keeps its runs for its own retention",
		in:   "engine/store/memory.(*retention).Retain",
		old:  "end = now.Add(-own)", new: "end = before",
		by: catches("engine", "^TestWorkflowKeepsItsRuns$"),
	},
	{
		name: "the retention of a moved run is that of its last definition, in memory",
		in:   "engine/store/memory.(*retention).Retain",
		old:  "cmp.Or(r.moved, r.head.Workflow)", new: "cmp.Or(r.head.Workflow, r.moved)",
		by: catches("engine/store/memory", "^TestStore$/^moves$"),
	},
	{
		name: "the retention of a moved run is that of its last definition, in the embedded store",
		in:   "engine/store/sqlite.retainRuns",
		old:  "coalesce(d.workflow_id, r.workflow_id)", new: "r.workflow_id",
		by: catches("engine/store/sqlite", "^TestStore$/^moves$"),
	},
	{
		name: "the embedded store checks the retention of a moved run again before it removes the run",
		in:   "engine/store/sqlite.retainStays",
		old:  "coalesce(d.workflow_id, r.workflow_id)", new: "r.workflow_id",
		by: catches("engine/store/sqlite", "^TestStore$/^moves$"),
	},
	{
		name: "the retention of a moved run is that of its last definition, in PostgreSQL",
		in:   "engine/store/postgres.retainLock",
		old:  "coalesce((SELECT d.workflow_id FROM engine.run_moved d WHERE d.run_id = r.run_id), r.workflow_id)", new: "r.workflow_id",
		by: catches("engine/store/postgres", "^TestStore$/^moves$"),
	},
	{
		name: "a retention that is too short for clients is refused",
		in:   "dsl/internal/decl.readRetention",
		old:  "w.Retention < leastRetention", new: "w.Retention < 0",
		by: catches("dsl", "^TestGolden$"),
	},
	{
		name: "a succeeded child without anything to undo may end as failed",
		in:   "engine/store/storekit.CanBecome",
		old:  "status.RunFailed, status.RunCompensated:", new: "status.RunCompensated:",
		by: catches("engine", "^TestChildWithNothingToUndo$"),
	},
	{
		name: "a parent at any height is listed if a child run needs a person",
		in:   "cmd/engine/internal/history.above",
		old:  "level < maxLevels", new: "level < 1",
		by: catches("cmd/engine", "^TestScriptSQLite$/^child-parked$"),
	},
	{
		name: "a removed notification hides no other one",
		in:   "engine/store/notice.Find",
		old:  "if n < least {", new: "if n < min(least, 0) {",
		by: catches("engine/store/notice", "^TestFindLooksPastRemovedNotifications$"),
	},
}
