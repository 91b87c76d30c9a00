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
		in:   "engine/internal/outbox.(*Postman).send",
		old:  "case errs[i] == nil:", new: "case errs[i] == nil, ctx.Err() == nil:",
		by: catches("engine/internal/outbox", "^TestTwoEnginesKeepTheOrder$"),
	},
	{
		name: "a sink that fails gets one reply at a time",
		in:   "engine/internal/outbox.(*Postman).serve",
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
		name: "a reply waits for the one before it",
		in:   "engine/store/memory.(*outbox).nextLocked",
		old:  "|| !first ||", new: "|| !first && false ||",
		by: catches("engine/store/memory", "^TestStore$"),
	},
}
