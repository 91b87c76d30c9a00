package planted

// startsFaults are faults around runs that schedules or other programs start.
var startsFaults = []fault{
	{
		name: "a time that the clock skips runs after the gap",
		in:   "dsl/cron.(*Timetable).at",
		old:  "return end.UTC()", new: "return end.Add(-time.Hour).UTC()",
		also: []edit{{"dsl/cron.(*Timetable).at", "return start.UTC()", "return start.Add(-time.Hour).UTC()"}},
		by:   catches("dsl/cron", "^TestTicks"),
	},
	{
		name: "of a time that comes twice the first counts",
		in:   "dsl/cron.(*Timetable).at",
		old:  "return first.UTC()", new: "return guess.UTC()",
		by: catches("dsl/cron", "^TestTicks"),
	},
	{
		name: "an expression that never ticks is refused",
		in:   "dsl/cron.Parse",
		old:  ".IsZero() {", new: ".IsZero() && zone == \"-\" {",
		by: catches("dsl/cron", "^TestWhatIsRefused$"),
	},
	{
		name: "a tick that is queued waits for the end of the run before",
		in:   "engine/internal/ticks.Decide",
		old:  "return Step{Wait: true}", new: "return Step{Next: after}",
		by: catches("engine/internal/ticks", "^TestDecide$"),
	},
	{
		name: "only a run that has not ended is cancelled",
		in:   "engine/internal/ticks.Decide",
		old:  "Cancel: open && s.Overlap", new: "Cancel: s.Overlap",
		by: catches("engine/internal/ticks", "^TestDecide$"),
	},
	{
		name: "all missed ticks start runs, one after the other",
		in:   "engine/internal/ticks.Decide",
		old:  "after = s.Timetable.Next(tick)", new: "_ = tick",
		by: catches("engine/internal/ticks", "^TestDecide$"),
	},
	{
		name: "names of runs differ between schedules with long names",
		in:   "engine/internal/ticks.RunName",
		old:  `name[:most-len(hash)-1] + "." + hash`, new: "name[:most-len(hash)-1]",
		by: catches("engine/internal/ticks", "^TestRunName$"),
	},
	{
		name: "a schedule that cannot start a run is left alone for a while",
		in:   "engine/internal/ticks.(*Firer).some",
		old:  "f.failedUntil[name] = now.Add(afterFault)", new: "",
		by: catches("engine/internal/ticks", "^TestScheduleWithAFault$"),
	},
	{
		name: "a schedule changes only if nobody has changed it since",
		in:   "engine/store/memory.(*published).Move",
		old:  "!ok || old.Version != r.Version", new: "!ok",
		by: catches("engine/store/memory", "^TestStore$/^schedules"),
	},
	{
		name: "a submission is removed only when its run is in the store",
		in:   "engine/internal/intake.(*Intake).submit",
		old:  "case err == nil:", new: "case err == nil || !refused:",
		by: catches("engine/internal/intake", "^TestSubmissionThatFails$"),
	},
	{
		name: "a rule is made only for texts of ASCII",
		in:   "dsl/internal/rule.printable",
		old:  "c < ' ' || c > '~'", new: "c < ' '",
		by: catches("dsl/internal/rule", "^TestNotTranslated$"),
	},
	{
		name: "a pattern matches the same in PostgreSQL",
		in:   "dsl/internal/rule.class",
		old:  "to := max(ranges[i], ' '), min(ranges[i+1], '~')", new: "to := max(ranges[i], '0'), min(ranges[i+1], '~')",
		by: catches("engine/store/postgres", "^TestRulesAgree$"),
	},
	{
		name: "PostgreSQL leaves texts outside of ASCII to the engine",
		in:   "engine/store/postgres/migrations/00031_rules.sql",
		old:  "OR kind = 'string' AND x ~ '[^\\u0020-\\u007e]' ", new: "",
		by: catches("engine/store/postgres", "^TestRulesAgree$"),
	},
	{
		name: "submissions with one unique key become runs in their order",
		in:   "engine/internal/intake.(*Intake).prepareAll",
		old:  "at = i", new: "_ = i",
		by: catches("engine/internal/intake", "^TestSubmissionsOfOneKeyKeepTheirOrder$"),
	},
	{
		name: "a submission waits while an earlier one with its unique key waits",
		in:   "engine/internal/intake.(*Intake).submit",
		old:  "out.leave(p.key)\n\t\t\treturn", new: "out.leave(p.key)",
		by: catches("engine/internal/intake", "^TestSubmissionsOfOneKeyKeepTheirOrder$"),
	},
	{
		name: "a submission waits while an earlier one of its workflow has a unique key that is not known",
		in:   "engine/internal/intake.(*Intake).prepareAll",
		old:  "x.left[uniqueKey{workflow: s.Workflow}] = true", new: "_ = s",
		by: catches("engine/internal/intake", "^TestSubmissionThatCannotBePreparedKeepsItsTurn$"),
	},
	{
		name: "a submission also waits for an earlier one of an earlier page",
		in:   "engine/internal/intake.(*Intake).submit",
		old:  "out.leave(p.key)", new: "",
		by: catches("engine/internal/intake", "^TestSubmissionsOfOneKeyKeepTheirOrderOverPages$"),
	},
	{
		name: "an engine leaves a submission alone that was refused and submitted again",
		in:   "engine/store/postgres/migrations/00031_rules.sql",
		old:  "DO UPDATE SET submission_id = DEFAULT, workflow", new: "DO UPDATE SET workflow",
		by: catches("engine/store/postgres", "^TestSubmitTwice$"),
	},
	{
		name: "the journal stores the time by which a run must begin as the record has it",
		in:   "engine/machine.normal",
		old:  "model.ToInstant(ev.StartBy).Time()", new: "ev.StartBy",
		by: catches("engine/machine", "^TestCodecEventsWithNanoseconds$"),
	},
	{
		name: "values are checked by the workflow before a run starts",
		in:   "engine/internal/intake.(*Intake).prepare",
		old:  "if diags.HasErrors() {", new: "if diags.HasErrors() && s.ID < 0 {",
		by: catches("engine/internal/intake", "^TestSubmissionsBecomeRuns$"),
	},
	{
		name: "variables of a published workflow are sealed",
		in:   "engine/journal.EncodeGiven",
		old:  "plain, sealer != nil)", new: "plain, false)",
		by: catches("engine/journal", "^TestGiven$"),
	},
	{
		name: "a rotation seals the variables of published workflows again",
		in:   "engine/journal.(*resealing).given",
		old:  "if !r.old(w.Given) {", new: "if r.old(w.Given) {",
		by: catches("engine/journal", "^TestResealGiven$"),
	},
	{
		name: "a run that is recorded beside a new engine waits for its key",
		in:   "cmd/engine/internal/session.OpenJoining",
		old:  "if s.Sealer != nil || len(ids) > 0 {", new: "if s.Sealer != nil || len(ids) >= 0 {",
		by: catches("cmd/engine/internal/session", "^TestJoiningWaitsForTheKey$"),
	},
}
