package planted

// selectsFaults are faults around the runs that rows of business tables start.
var selectsFaults = []fault{
	{
		name: "progress is stored only with the version that was read",
		in:   "engine/store/postgres/firing.(*Store).advance",
		old:  "f.Version - 1, f.Watermark", new: "f.Version, f.Watermark",
		by: catches("engine/internal/selects", "^TestManyRows$"),
	},
	{
		name: "a strategy with several passes ends only after a pass without a new row",
		in:   "engine/store/postgres/firing.(*Store).conclude",
		old:  "if q.Repeats && f.Fresh {", new: "if q.Repeats && f.Fresh && f.Pass < 0 {",
		by: catches("engine/internal/selects", "^TestT28RowsChange$"),
	},
	{
		name: "the row after a page belongs to the next page",
		in:   "engine/store/postgres/firing.(*Store).next",
		old:  "rows = rows[:last]", new: "rows = rows[:last+1]",
		by: catches("engine/internal/selects", "^TestT28EngineDiesInAPage$"),
	},
	{
		name: "rows with one key are not started",
		in:   "engine/internal/selects.(*plan).run",
		old:  "case r.Copies > 1:", new: "case r.Copies > 1000:",
		by: catches("engine/internal/selects", "^TestS103BadRows$"),
	},
	{
		name: "a row whose unique key another run has is refused",
		in:   "engine/internal/selects.(*plan).page",
		old:  "case res.Err == nil && res.Name == runs[i].Name:", new: "case res.Err == nil:",
		by: catches("engine/internal/selects", "^TestS103BadRows$"),
	},
	{
		name: "a page whose runs could not be submitted is read again",
		in:   "engine/internal/selects.(*plan).page",
		old:  "case res.Lasting:", new: "case res.Err != nil:",
		by: catches("engine/internal/selects", "^TestT28EngineDiesInAPage$"),
	},
	{
		name: "keys of in_memory are capped",
		in:   "engine/internal/selects.(*Worker).keys",
		old:  "if len(keys) > most {", new: "if len(keys) > 2*most {",
		by: catches("engine/internal/selects", "^TestS109TooManyKeys$"),
	},
	{
		name: "keys without a row have vanished",
		in:   "engine/store/postgres/firing.(*Store).named",
		old:  "Selected: gone, Vanished: gone", new: "Selected: gone, Vanished: gone - gone",
		by: catches("engine/internal/selects", "^TestT28RowsChange$"),
	},
	{
		name: "an interval that was covered opens no firing",
		in:   "engine/store/postgres/firing.(*Store).Fire",
		old:  "if err != nil || over > 0 {", new: "if err != nil || over > 100 {",
		by: catches("engine/internal/selects", "^TestS104Windows$"),
	},
	{
		name: "a firing stays while one of its runs exists",
		in:   "engine/internal/selects.Begin",
		old:  "return begin(f.Workflow, f.Schedule, f.Tick)", new: "return begin(f.Workflow, f.Schedule, f.Tick) + \"x\"",
		by: catches("engine/internal/selects", "^TestRetainFirings$"),
	},
	{
		name: "the rows of an event have its trigger",
		in:   "engine/internal/selects.(*plan).block",
		old:  "p.trigger = inbox.Trigger(on.Type, p.f.Event)", new: "p.trigger = inbox.Trigger(on.Name, p.f.Event)",
		by: catches("engine/internal/selects", "^TestEventFiring$"),
	},
	{
		name: "locked rows stay locked until their progress is stored",
		in:   "engine/store/postgres/firing.(*Store).Hand",
		old:  "if q.Lock {", new: "if q.Lock && q.Keys != nil {",
		by: catches("engine/internal/selects", "^TestS108LockedRows$"),
	},
	{
		name: "a quote hides the parameters in it",
		in:   "dsl/selection.(*parser).run",
		old:  "case c == '\"':", new: "case c == 0x01:",
		by: catches("dsl/selection", "^TestParse$"),
	},
}
