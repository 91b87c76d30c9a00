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
		old:  "if len(errs) == 0 && len(faults) == 0 && !more {", new: "if len(errs) == 0 && len(done) > 0 {",
		by: catches("engine/internal/inbox", "^TestEventsBecomeRuns$"),
	},
	{
		name: "an event is quarantined only when every workflow has been asked",
		in:   "engine/internal/inbox.(*Inbox).one",
		old:  "if len(errs) == 0 && !more {\n\t\twhy", new: "if len(errs) >= 0 {\n\t\twhy",
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
		in:   "engine/internal/inbox.(*binder).bind",
		old:  "v.Name == a.Name && v.Sensitive", new: "v.Name == a.Name && v.Sensitive && v.Deployment",
		by: catches("engine/internal/inbox", "^TestEventsBecomeRuns$"),
	},
	{
		name: "values of an event are checked by the workflow before a run starts",
		in:   "engine/internal/inbox.(*binder).bind",
		old:  "if diags.HasErrors() {", new: "if diags.HasErrors() && len(given) > 100 {",
		by: catches("engine/internal/inbox", "^TestEventsBecomeRuns$"),
	},
	{
		name: "long ids of events differ in the names of runs",
		in:   "engine/internal/inbox.hash",
		old:  "sha256.Sum256([]byte(text))", new: "sha256.Sum256([]byte(text[:min(len(text), 150)]))",
		by: catches("engine/internal/inbox", "^TestRunName$"),
	},
	{
		name: "a list continues after its last key",
		in:   "engine/internal/inbox.(*lister).work",
		old:  "own.After = all.Keys[end-1]", new: "own.After = all.Keys[end-1][:3]",
		by: catches("engine/internal/inbox", "^TestLongList$"),
	},
	{
		name: "a page of keys is stored only after its runs",
		in:   "engine/internal/inbox.(*lister).start",
		old:  "case res.Lasting:", new: "case res.Err != nil:",
		by: catches("engine/internal/inbox", "^TestKeysThatCannotBeToldNow$"),
	},
	{
		name: "an event with failed keys waits for a person",
		in:   "engine/internal/inbox.(*lister).finish",
		old:  "if own.Failed == 0 {", new: "if own.Failed >= 0 {",
		by: catches("engine/internal/inbox", "^TestKeysBecomeRuns$"),
	},
	{
		name: "a retry tries only keys that have failed",
		in:   "engine/internal/inbox.(*lister).finish",
		old:  "own.Failed -= int64(len(started))", new: "own.Failed, own.After = own.Failed-int64(len(started)), \"\"",
		by: catches("engine/internal/inbox", "^TestRetriedKeys$"),
	},
	{
		name: "a list that is not finished keeps its event",
		in:   "engine/internal/inbox.(*Inbox).one",
		old:  "if len(errs) == 0 && len(faults) == 0 && !more {", new: "if len(errs) == 0 && len(faults) == 0 {",
		by: catches("engine/internal/inbox", "^TestLongList$"),
	},
	{
		name: "a key and an event do not share the name of a run",
		in:   "engine/internal/inbox.KeysOf",
		old:  "strings.Contains(\":\"+event+\":\", between)", new: "strings.Contains(event, between)",
		by: catches("engine/internal/inbox", "^TestKeyRunName$"),
	},
	{
		name: "the progress of a list needs the version that was read",
		in:   "engine/store/memory.(*eventbox).AdvanceEvent",
		old:  "i < 0 || s.list[i].Version != e.Version", new: "i < 0",
		by: catches("engine/store/memory", "^TestStore$/^events"),
	},
	{
		name: "a key that is there twice starts one run",
		in:   "dsl/internal/link.keysOf",
		old:  "keys[text.AsString()] = true", new: "keys[text.AsString()+strings.Repeat(\" \", len(keys))] = true",
		by: catches("dsl", "^TestOnEventForEach$"),
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
