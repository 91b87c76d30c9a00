package planted

var sqliteFaults = []fault{
	{
		name: "a commit of the embedded store survives the loss of power",
		in:   "engine/sqlite.(*Store).openWriter",
		old:  `"synchronous(FULL)"`, new: `"synchronous(NORMAL)"`,
		by: catches("engine/sqlite", "^TestCommitsAreFlushed$"),
	},
	{
		name: "an engine that was declared dead commits nothing to the embedded store",
		in:   "engine/sqlite.(*Writer).mayCommit",
		old:  "return engine.ErrFenced", new: "return nil",
		by: catches("engine/sqlite", "^TestStore$/^fence$"),
	},
	{
		name: "the embedded store remembers that a commit may have landed",
		in:   "engine/sqlite.(*Writer).Commit",
		old:  "doubt = true", new: "doubt = false",
		by: catches("engine/sqlite", "^TestStore$/^fence$"),
	},
	{
		name: "what landed in the embedded store before its engine was declared dead counts",
		in:   "engine/sqlite.(*Writer).once",
		old:  "errors.Is(err, engine.ErrFenced) && doubt", new: "errors.Is(err, engine.ErrFenced) && doubt && token < 0",
		by: catches("engine/sqlite", "^TestStore$/^fence$"),
	},
	{
		name: "the embedded store does not take another engine's row for its own",
		in:   "engine/sqlite.(*tx).append",
		old:  "return err == nil && writer == token, err", new: "return err == nil, err",
		by: catches("engine/sqlite", "^TestStore$/^commit$"),
	},
	{
		name: "a lease in the embedded store that has passed cannot be renewed",
		in:   "engine/sqlite.memberRenew",
		old:  "AND lease_until > ?2", new: "AND ?2 = ?2",
		by: catches("engine/sqlite", "^TestStore$/^tick$"),
	},
	{
		name: "the embedded store declares no living engine dead",
		in:   "engine/sqlite.memberBury",
		old:  "(dead OR lease_until <= ?2)", new: "(dead OR ?2 = ?2)",
		by: catches("engine/sqlite", "^TestStore$/^fence$"),
	},
	{
		name: "a dead engine loses its fence rows in the embedded store",
		in:   "engine/sqlite.fenceDrop",
		old:  "WHERE engine = ?1", new: "WHERE engine = -?1",
		by: catches("engine/sqlite", "^TestStore$/^fence$"),
	},
	{
		name: "a process next to the holder of the file owns no run",
		in:   "engine/sqlite.(*Store).mayLand",
		old:  "case t.Owner == nil || *t.Owner != 0:", new: "case t.Owner == nil:",
		by: catches("engine/sqlite", "^TestBesideOwnsNothing$"),
	},
	{
		name: "a process next to the holder of the file appends to no run",
		in:   "engine/sqlite.(*Store).mayLand",
		old:  "return errReadOnly", new: "return nil",
		by: catches("engine/sqlite", "^TestBesideOwnsNothing$"),
	},
	{
		name: "a run of the embedded store that waits for a person is not taken over",
		in:   "engine/sqlite.orphanList",
		old:  "x.state IN (6, 7)", new: "x.state IN (60, 70)",
		by: catches("engine/sqlite", "^TestStore$/^orphans$"),
	},
	{
		name: "an engine does not find its own runs overdue in the embedded store",
		in:   "engine/sqlite.runOverdue",
		old:  "m.engine <> ?1", new: "m.engine <> -?1",
		by: catches("engine/sqlite", "^TestStore$/^overdue$"),
	},
	{
		name: "another engine's run in the embedded store is left alone for the grace",
		in:   "engine/sqlite.(*Store).Overdue",
		old:  "Add(-grace)", new: "Add(0 * grace)",
		by: catches("engine/sqlite", "^TestStore$/^overdue$"),
	},
	{
		name: "a row that the embedded store refuses harms no other row",
		in:   "engine/sqlite.refuses",
		old:  "case sqlite3.SQLITE_CONSTRAINT, ", new: "case ",
		by: catches("engine/sqlite", "^TestStore$/^commit$"),
	},
	{
		name: "one engine of many makes a pass over the embedded store",
		in:   "engine/sqlite.passTake",
		old:  "WHERE not_before <= ?2", new: "WHERE ?2 = ?2",
		by: catches("engine/sqlite", "^TestStore$/^pass$"),
	},
	{
		name: "the embedded store keeps a dead engine while it owns open runs",
		in:   "engine/sqlite.memberForget",
		old:  "AND NOT EXISTS (SELECT 1 FROM run WHERE owner = ?1 AND state < 10)", new: "",
		by: catches("engine/sqlite", "^TestStore$|^TestCrashedHolderWithMessages$"),
	},
	{
		name: "a run that nobody owns wakes the engine of the embedded store",
		in:   "engine/sqlite.(*Writer).once",
		old:  "if err == nil && unowned {", new: "if err == nil && unowned && token < 0 {",
		by: catches("engine/sqlite", "^TestStore$/^wake$"),
	},
	{
		name: "opening the file ends the leases of the process that held it before",
		in:   "engine/sqlite.memberLapse",
		old:  "lease_until > ?1", new: "lease_until > ?1 AND engine < 0",
		by: catches("engine/sqlite", "^TestOpenEndsEarlierLeases$"),
	},
	{
		name: "the states of more than four instances are kept in the embedded store",
		in:   "engine/sqlite.(*tx).append",
		old:  "if wide != nil {", new: "if wide != nil && token < 0 {",
		by: catches("engine/sqlite", "^TestRetain$|^TestViewOfAWideRun$|^TestStore$/^view$"),
	},
	{
		name: "a running step without complete-by is refused beyond the fourth entry",
		in:   "engine/sqlite/migrations/00003_speed.sql",
		old:  "CREATE TRIGGER wide_steps BEFORE INSERT ON wide", new: "CREATE TRIGGER wide_steps BEFORE INSERT ON wide WHEN length(NEW.steps) > 80",
		by: catches("engine/sqlite", "^TestConstraints$"),
	},
}
