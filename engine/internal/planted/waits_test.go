package planted

// waitsFaults are faults around steps that wait for a signal or a time.
var waitsFaults = []fault{
	{
		name: "a signal that comes early is kept",
		in:   "engine/machine.(*signals).landed",
		old:  "s.list = append(slices.Clip(s.list), x)", new: "_ = slices.Clip(s.list)",
		by: catches("engine/machine", "^TestEarlySignal"),
	},
	{
		name: "an early signal stays beside one that is taken",
		in:   "engine/machine.(*signals).take",
		old:  "if k < 0 {", new: "if k < 0 && len(s.list) > 0 {\n\t\ts.list = s.list[:0]\n\t}\n\tif k < 0 {",
		by: catches("engine/machine", "^TestEarlySignalStaysBesideOneThatIsTaken$"),
	},
	{
		name: "a signal that has ended a wait is gone",
		in:   "engine/machine.(*signals).take",
		old:  "s.list = slices.Delete(slices.Clone(s.list), k, k+1)", new: "",
		by: catches("engine/machine", "^TestTakenSignalIsGone$"),
	},
	{
		name: "a signal ends one wait in a decision",
		in:   "engine/machine.waits.takes",
		old:  "d.taken = append(d.taken, s.Number)", new: "",
		by: catches("engine/machine", "^TestOneSignalEndsOneOfTwoWaitsInARow$"),
	},
	{
		name: "a wait looks for early signals",
		in:   "engine/machine.waits.listen",
		old:  "for _, s := range d.early() {", new: "for _, s := range d.early()[:0] {",
		by: catches("engine/machine", "^TestEarlySignalIsKept$"),
	},
	{
		name: "a signal with an id counts once",
		in:   "engine/machine.(*signals).landed",
		old:  "s.ids[ev.ID] = true", new: "s.ids[ev.ID] = false",
		by: catches("engine/machine", "^TestSignalWithTheSameIDCountsOnce$"),
	},
	{
		name: "the payload of a signal is checked before a step takes it",
		in:   "engine/machine.waits.takes",
		old:  "d.step(n).Wait.Payload(s.Payload.JSON()); err != nil {", new: "d.step(n).Wait.Payload(s.Payload.JSON()); err != nil && d.at == 0 {",
		by: catches("engine/machine", "^TestPayloadChoosesTheWait$"),
	},
	{
		name: "a signal that no step can take is refused",
		in:   "engine/machine.waits.signalReceived",
		old:  `if why := d.unwanted(ev); why != "" {`, new: `if why := d.unwanted(ev); why == "-" {`,
		by: catches("engine/machine", "^TestSignalsThatNoStepTakesAreRefused$"),
	},
	{
		name: "early signals have a ceiling",
		in:   "engine/machine.waits.signalReceived",
		old:  "len(d.s.signals.list) >= maxSignals", new: "len(d.s.signals.list) > maxSignals",
		by: catches("engine/machine", "^TestTooManyEarlySignalsAreRefused$"),
	},
	{
		name: "a signal with an error code lets its step fail",
		in:   "engine/machine.waits.takes",
		old:  "if s.Fail != \"\" {\n\t\tn.Fwd.Act = model.Idle", new: "if s.Fail == \"-\" {\n\t\tn.Fwd.Act = model.Idle",
		by: catches("engine/machine", "^TestSignalThatFailsTheWait$"),
	},
	{
		name: "a timer does not end early",
		in:   "engine/machine.waits.setTimer",
		old:  "until := model.ToInstant(at); until > d.at {", new: "until := d.at + (model.ToInstant(at)-d.at)/2; until > d.at {",
		by: catches("engine/machine", "^TestTimer$"),
	},
	{
		name: "a timer counts from when its step could start",
		in:   "engine/machine.waits.setTimer",
		old:  "limit.From(from.Time())", new: "limit.From(min(from, d.run.Started).Time())",
		by: catches("engine/machine", "^TestTimerCountsFromWhenItsStepIsReady$"),
	},
	{
		name: "on_timeout lets the run go on",
		in:   "engine/machine.waits.timedOut",
		old:  "if !w.Continue {", new: "if !w.Continue || n != nil {",
		by: catches("engine/machine", "^TestDeadlineOfAWait$"),
	},
	{
		name: "without on_timeout a passed deadline lets the wait fail",
		in:   "engine/machine.waits.timedOut",
		old:  "if !w.Continue {", new: "if !w.Continue && n == nil {",
		by: catches("engine/machine", "^TestDeadlineOfAWait$"),
	},
	{
		name: "a run that waits for a signal takes no memory",
		in:   "engine/internal/owner.(*ownedRun).atRest",
		old:  "s == status.RunWaiting || s == status.RunPaused", new: "s == status.RunPaused",
		by: catches("engine", "^TestWaitingRunsTakeNoMemory$"),
	},
	{
		name: "an early signal is in the journal with its payload",
		in:   "engine/internal/wire.(*encoder).verb",
		old:  "e.value(ev.Payload)\n\t\te.string(ev.Fail)", new: "e.value(dsl.Value{})\n\t\te.string(ev.Fail)",
		by: catches("engine", "^TestEarlySignalsOutliveTheEngine$"),
	},
	{
		name: "the id of a signal is in the journal",
		in:   "engine/internal/wire.(*encoder).verb",
		old:  "e.string(ev.Name)\n\t\te.string(ev.ID)", new: "e.string(ev.Name)\n\t\te.string(ev.ID[:0])",
		by: catches("engine", "^TestEarlySignalsOutliveTheEngine$"),
	},
	{
		name: "the payload of a signal has the declared type",
		in:   "dsl/internal/link.payloadFunc",
		old:  "if v, err = conformPayload(v, ty, defaults); err != nil {", new: "if _, err = conformPayload(v, ty, defaults); err != nil {",
		by: catches("dsl", "^TestWaits$"),
	},
	{
		name: "the shortest interval of a workflow counts its timers",
		in:   "dsl/internal/link.stepLinker.timer",
		old:  "ls.timer = span", new: "_ = span",
		by: catches("dsl", "^TestTimers$"),
	},
}
