package planted

// admitFaults are faults around the checks of business rows.
var admitFaults = []fault{
	{
		name: "a submission with checks is not committed without them",
		in:   "engine/store/postgres.needsTransaction",
		old:  "len(t.Checks) > 0 || ", new: "",
		by: catches("engine/store/postgres", "^TestChecks$"),
	},
	{
		name: "a run that was accepted is not checked again",
		in:   "engine/store/postgres.(*submission).checked",
		old:  "case token == s.token:", new: "case token == s.token && token < 0:",
		by: catches("engine/store/postgres", "^TestCheckOfAnAcceptedRun$"),
	},
	{
		name: "the same row of another batch is not checked again",
		in:   "engine/store/postgres.(*submission).checked",
		old:  "case token != 0:", new: "case token < 0:",
		by: catches("engine/store/postgres", "^TestCheckOfAnAcceptedRun$"),
	},
	{
		name: "false refuses a run",
		in:   "engine/store/postgres/admission.(*checkRun).ask",
		old:  "refused || !answer.Valid || !answer.Bool", new: "refused || !answer.Valid",
		by: catches("engine/store/postgres", "^TestChecks$"),
	},
	{
		name: "no row refuses a run",
		in:   "engine/store/postgres/admission.(*checkRun).ask",
		old:  "case found == 0:", new: "case found < 0:",
		by: catches("engine/store/postgres", "^TestChecks$"),
	},
	{
		name: "a SELECT that changes rows is refused",
		in:   "engine/store/postgres/admission.counts.since",
		old:  "n.all > before[oid].all", new: "n.all < before[oid].all",
		by: catches("engine/store/postgres", "^TestChecks$"),
	},
	{
		name: "a table that is read without a lock is found",
		in:   "engine/store/postgres/admission.(*checkRun).covered",
		old:  "own.reads || !former.reads", new: "own.reads || former.reads",
		by: catches("engine/store/postgres", "^TestChecks$"),
	},
	{
		name: "a table that is read without a lock is found, also if an earlier check has read it",
		in:   "engine/store/postgres/admission.(*checkRun).covered",
		old:  "own.reads || !former.reads", new: "!former.reads",
		by: catches("engine/store/postgres", "^TestSeveralChecks$"),
	},
	{
		name: "a check does not answer for the tables of an earlier check",
		in:   "engine/store/postgres/admission.(*checkRun).covered",
		old:  "u.locked && (own.locked || !former.locked)", new: "u.locked",
		by: catches("engine/store/postgres", "^TestSeveralChecks$"),
	},
	{
		name: "a check answers for a table that an earlier check has locked, too",
		in:   "engine/store/postgres/admission.(*checkRun).covered",
		old:  "own.locked || !former.locked", new: "!former.locked",
		by: catches("engine/store/postgres", "^TestSeveralChecks$"),
	},
	{
		name: "the tables of each check are read separately",
		in:   "engine/store/postgres/admission.savepointBack",
		old:  "ROLLBACK TO SAVEPOINT usages", new: "SAVEPOINT usages",
		by: catches("engine/store/postgres", "^TestSeveralChecks$"),
	},
	{
		name: "each checked row gets another version",
		in:   "engine/store/postgres/admission.(*checkRun).bump",
		old:  "n < int64(found)", new: "n < 0",
		by: catches("engine/store/postgres", "^TestChecks$"),
	},
	{
		name: "each checked table gets other versions",
		in:   "engine/store/postgres/admission.(*checkRun).bump",
		old:  "now[oid].updated == before[oid].updated", new: "now[oid].updated < before[oid].updated",
		by: catches("engine/store/postgres", "^TestChecks$"),
	},
	{
		name: "lock = share keeps other transactions from changing the row",
		in:   "engine/store/admission.Lock.Clause",
		old:  `"FOR SHARE", `, new: `"FOR KEY SHARE", `,
		by: catches("engine/store/postgres", "^TestWriteSkew$"),
	},
	{
		name: "a check changes the version of the row",
		in:   "engine/store/postgres/admission.(*checkRun).do",
		old:  "x.check.Lock != admission.LockVersion", new: "x.check.Lock >= admission.LockShare",
		by: catches("engine/store/postgres", "^TestWriteSkew$"),
	},
	{
		name: "an embedded store leaves no check out",
		in:   "engine/store/sqlite.validate",
		old:  "if len(t.Checks) > 0 {", new: "if len(t.Checks) > 1 {",
		by: catches("engine/store/sqlite", "^TestStore$/^admit$"),
	},
	{
		name: "a submission whose rows are locked waits, and is not refused",
		in:   "engine/internal/submit.Refused",
		old:  "!busy(err) && ", new: "",
		by: catches("engine/internal/submit", "^TestBusyCheckIsTriedAgain$"),
	},
}
