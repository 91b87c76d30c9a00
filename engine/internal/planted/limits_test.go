package planted

// limitFaults are faults around the limits that engines share.
var limitFaults = []fault{
	{
		name: "an engine has no more calls in flight than its part of the slots",
		in:   "engine/internal/limits.(*slots).free",
		old:  "max(0, s.limit-s.used)", new: "max(0, 1000-s.used)",
		by: catches("engine", "^TestMaxConcurrencyOverEngines$"),
	},
	{
		name: "the slots of all engines are no more than the limit",
		in:   "engine/store/quota.Slots",
		old:  "free := max(0, most-taken-reserve)", new: "free := max(0, most-reserve)",
		by: catches("engine/store/quota", "^TestSlotsOfManyEngines$"),
	},
	{
		name: "the smallest max_concurrency counts",
		in:   "engine/store/quota.Slots",
		old:  "most = min(most, r.Most)", new: "_ = r.Most",
		by: catches("engine/store/quota", "^TestSmallestLimitCounts$"),
	},
	{
		name: "a row whose time has passed gives no right to its slots",
		in:   "engine/store/quota.Slots",
		old:  "reserve := max(0, min(ask.Reserve, former))", new: "reserve := max(0, ask.Reserve)",
		by: catches("engine/store/quota", "^TestSlotsOfManyEngines$"),
	},
	{
		name: "the wishes of a dead engine take no turn",
		in:   "engine/store/quota.Slots",
		old:  "r.Want = min(r.Want, r.Slots)", new: "_ = r.Want",
		by: catches("engine/store/quota", "^TestSlotsIgnoreTheWishesOfTheDead$"),
	},
	{
		name: "engines take turns where there are fewer slots than engines",
		in:   "engine/store/quota.Slots",
		old:  "row.Since = now", new: "_ = former",
		by: catches("engine/store/quota", "^TestSlotsAreDividedEqually$"),
	},
	{
		name: "a call that may outlive the engine's row does not start",
		in:   "engine/internal/limits.(*slots).covers",
		old:  "if left > s.granted {", new: "if left < 0 {",
		by: catches("engine", "^TestSlotsOfADeadEngineComeBack$"),
	},
	{
		name: "a call counts for a period after the last moment at which it may start",
		in:   "engine/store/quota.Calls",
		old:  "now.Add(ask.Valid+ask.Per)", new: "now.Add(ask.Per)",
		by: catches("engine/store/quota", "^TestCallsOfManyEngines$"),
	},
	{
		name: "calls that were not used are given back once",
		in:   "engine/store/quota.Calls",
		old:  "counted[s.Until.UnixMicro()] >= s.Calls", new: "true",
		by: catches("engine/store/memory", "^TestStore$"),
	},
	{
		name: "a run that must wait long for its rate_limit gets a time",
		in:   "engine/internal/limits.(*Limits).askCalls",
		old:  "l.notify(a, l.cfg.Later)", new: "_ = later",
		by: catches("engine/internal/limits", "^TestRunsInLineLearnWhenTheNextCallMayStart$"),
	},
	{
		name: "an engine starts no more calls than the store has granted",
		in:   "engine/internal/limits.(*calls).start",
		old:  "c.used++", new: "_ = c.used",
		by: catches("engine", "^TestRateLimitOverEngines$"),
	},
	{
		name: "an engine whose agent does not work leaves its runs to others",
		in:   "engine/internal/owner.leave",
		old:  "case !sh.gate.down(r):", new: "case true:",
		by: catches("engine", "^TestRunIsLeftToAnEngineWhoseAgentWorks$"),
	},
}
