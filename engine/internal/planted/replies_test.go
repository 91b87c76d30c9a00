package planted

// replyFaults are faults around the replies of runs.
var replyFaults = []fault{
	{
		name: "the first record says that the run is accepted",
		in:   "engine/machine.Record.Replies",
		old:  `out = append(out, "accepted")`, new: `_ = append(out, "accepted")`,
		by: catches("engine/machine", "^TestReplies$"),
	},
	{
		name: "a run that waits for room has not started",
		in:   "engine/machine.Record.Replies",
		old:  "r.run.Mask&model.RunBegunBit != 0 && after.Begun", new: "r.run.Mask != 0",
		by: catches("engine/machine", "^TestReplies$"),
	},
	{
		name: "the row of the journal carries the replies",
		in:   "engine/internal/owner.post",
		old:  "t.Post.States = append(t.Post.States, states...)", new: "_ = states",
		by: catches("engine", "^TestReplies"),
	},
	{
		name: "a reply whose delivery failed stays",
		in:   "engine/internal/outbox.(*Sender).send",
		old:  "case errs[i] == nil:", new: "case errs[i] == nil, ctx.Err() == nil:",
		by: catches("engine/internal/outbox", "^TestTwoEnginesKeepTheOrder$"),
	},
	{
		name: "a sink that fails gets one reply at a time",
		in:   "engine/internal/outbox.(*Sender).serve",
		old:  "limit = 1", new: "limit = batch",
		by: catches("engine/internal/outbox", "^TestSlowSinkHoldsUpNoOther$"),
	},
	{
		name: "no redirect is followed",
		in:   "engine/webhook.New",
		old:  "return http.ErrUseLastResponse", new: "return nil",
		by: catches("engine/webhook", "^TestRedirectsAndRefusals$"),
	},
	{
		name: "a private address is refused at the connection",
		in:   "engine/webhook.(*Sender).control",
		old:  "!public(at.Addr())", new: "false && !public(at.Addr())",
		by: catches("engine/webhook", "^TestPrivateAddresses$"),
	},
	{
		name: "a host that is not configured is refused",
		in:   "engine/webhook.(*Sender).find",
		old:  "case !known:", new: "case !known && u.Host == \"\":",
		by: catches("engine/webhook", "^TestWhatIsAllowed$"),
	},
	{
		name: "an engine without work does not look for replies all the time",
		in:   "engine/internal/outbox.(*Sender).pause",
		old:  "!s.busy && left > -p.cfg.First", new: "!s.busy",
		by: catches("engine/internal/outbox", "^TestNothingToDoCostsLittle$"),
	},
	{
		name: "an engine without the agent leaves its sink to others for a while",
		in:   "engine/internal/outbox.(*Sender).judge",
		old:  "next.After(p.sinks[to].next)", new: "next.Before(p.sinks[to].next)",
		by: catches("engine/internal/outbox", "^TestAnotherEngineDelivers$"),
	},
	{
		name: "an engine without the agent does not fail its replies",
		in:   "engine/internal/replyto.(*Caller).Send",
		old:  "return elsewhere(\"this engine cannot call agent %q: %v\", spec.Name, err)", new: "return nil",
		by: catches("engine", "^TestAgentOfAnotherEngineTakesReplies$"),
	},
	{
		name: "all calls for a reply have one idempotency key",
		in:   "engine/internal/replyto.Key",
		old:  "\"reply %d %d\", id.Run, id.N", new: "\"reply %d %d\", id.Run, id.Run",
		by: catches("engine", "^TestAgentTakesReplies$"),
	},
	{
		name: "an answer that is no result does not count",
		in:   "engine/internal/replyto.(*Caller).call",
		old:  "case reply.Outcome == sdk.OutcomeResult:", new: "case true:",
		by: catches("engine", "^TestAgentTakesReplies$"),
	},
	{
		name: "only an action that was made for replies takes them",
		in:   "dsl/internal/link.(*linkedAction).takesReplies",
		old:  "if a.in[name] == nil {", new: "if false {",
		by: catches("dsl", "^TestActionsThatTakeReplies$"),
	},
	{
		name: "an action with another required argument takes no replies",
		in:   "dsl/internal/link.(*linkedAction).takesReplies",
		old:  "if spec.Required() {", new: "if false {",
		by: catches("dsl", "^TestActionsThatTakeReplies$"),
	},
	{
		name: "a submission with an unknown agent is refused",
		in:   "engine/internal/submit.(*Maker).replyable",
		old:  "if _, err := wf.ReplySinks.Find(action); err != nil {", new: "if _, err := wf.ReplySinks.Find(action); false {",
		by: catches("engine", "^TestActionsThatTakeNoReplies$"),
	},
	{
		name: "a reply that waits keeps its run, in memory",
		in:   "engine/store/memory.waitingLocked",
		old:  "!p.Done && p.At.After(now.Add(-replies.KeepFor))", new: "!p.Done && p.At.After(now.Add(replies.KeepFor))",
		by: catches("engine/store/memory", "^TestStore$"),
	},
	{
		name: "a reply does not keep its run for ever, in memory",
		in:   "engine/store/memory.waitingLocked",
		old:  "!p.Done && p.At.After(now.Add(-replies.KeepFor))", new: "!p.Done && p.At.After(now.Add(-1000*replies.KeepFor))",
		by: catches("engine/store/memory", "^TestStore$"),
	},
	{
		name: "a submission may set the priority",
		in:   "engine/internal/submit.lineOf",
		old:  "l.Lift = int32(*given - line.DefaultPriority)", new: "_ = line.DefaultPriority",
		by: catches("engine", "^TestPriorityOfASubmission$"),
	},
	{
		name: "a reply waits for the one before it",
		in:   "engine/store/memory.(*outbox).nextLocked",
		old:  "|| !first ||", new: "|| !first && false ||",
		by: catches("engine/store/memory", "^TestStore$"),
	},
}
