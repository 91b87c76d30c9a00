package planted

// eventFaults are faults around events, and around runs that start by a list of keys.
var eventFaults = []fault{
	{
		name: "an event whose condition is false starts no run",
		in:   "dsl/internal/noun.(*OnEvent).Given",
		old:  "err != nil || !starts", new: "err != nil",
		by: catches("dsl", "^TestOnEvent$"),
	},
	{
		name: "an event that was used for one workflow is still needed by another",
		in:   "engine/internal/inbox.(*Inbox).one",
		old:  "if len(errs) == 0 && len(faults) == 0 {", new: "if len(errs) == 0 && len(done) > 0 {",
		by: catches("engine/internal/inbox", "^TestEventsBecomeRuns$"),
	},
	{
		name: "an event is quarantined only when every workflow has been asked",
		in:   "engine/internal/inbox.(*Inbox).one",
		old:  "if len(errs) == 0 {\n\t\twhy", new: "if len(errs) >= 0 {\n\t\twhy",
		by: catches("engine/internal/inbox", "^TestEventWithTwoKindsOfErrors$"),
	},
	{
		name: "a retry starts no run that the event has started already",
		in:   "engine/internal/inbox.(*Inbox).one",
		old:  "if slices.Contains(e.Done, f.Name) {", new: "if slices.Contains(e.Done, \"\") {",
		by: catches("engine/internal/inbox", "^TestRetriedEvent$"),
	},
	{
		name: "a sensitive variable gets no value from an event",
		in:   "engine/internal/inbox.(*Inbox).bind",
		old:  "v.Name == a.Name && v.Sensitive", new: "v.Name == a.Name && v.Sensitive && v.Deployment",
		by: catches("engine/internal/inbox", "^TestEventsBecomeRuns$"),
	},
	{
		name: "values of an event are checked by the workflow before a run starts",
		in:   "engine/internal/inbox.(*Inbox).bind",
		old:  "if diags.HasErrors() {", new: "if diags.HasErrors() && f.ID == 0 {",
		by: catches("engine/internal/inbox", "^TestEventsBecomeRuns$"),
	},
	{
		name: "long ids of events differ in the names of runs",
		in:   "engine/internal/inbox.RunName",
		old:  "sha256.Sum256([]byte(name))", new: "sha256.Sum256([]byte(name[:min(len(name), 150)]))",
		by: catches("engine/internal/inbox", "^TestRunName$"),
	},
	{
		name: "a claimed event belongs to one engine",
		in:   "engine/store/memory.(*eventbox).ClaimEvents",
		old:  `e.Quarantined == "" && !s.claimed[e.Seq].After(now)`, new: `e.Quarantined == ""`,
		by: catches("engine/store/memory", "^TestStore$/^events"),
	},
	{
		name: "an event is kept once",
		in:   "engine/store/memory.(*eventbox).SendEvent",
		old:  "return other.ID == e.ID", new: "return other.ID == e.ID && other.Type == e.Type",
		by: catches("engine/store/memory", "^TestStore$/^events"),
	},
}
