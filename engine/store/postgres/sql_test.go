package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
)

// queries are all SQL constants of the package by name; TestEveryQueryIsListed
// keeps the list complete.
var queries = map[string]string{
	"migrateAcquire": migrateAcquire, "schemaCreate": schemaCreate, "schemaThere": schemaThere, "schemaStrange": schemaStrange, "sessionApply": sessionApply, "schemaVersions": schemaVersions,
	"journalPlain": journalPlain, "journalBegin": journalBegin, "journalAppend": journalAppend, "journalHeard": journalHeard, "journalCreate": journalCreate, "journalNamed": journalNamed, "journalKeyed": journalKeyed, "journalSide": journalSide,
	"journalCreateIfNone": journalCreateIfNone, "journalKeyedIfNone": journalKeyedIfNone, "journalSideIfNone": journalSideIfNone,
	"journalWriters": journalWriters, "fenceOpen": fenceOpen, "runNameClaim": runNameClaim, "runNameHolder": runNameHolder, "checkLock": checkLock, "submissionsMet": submissionsMet,
	"contextClaim": contextClaim, "contextHolder": contextHolder, "contextReplace": contextReplace,
	"keyAwait": keyAwait, "keyCancel": keyCancel, "keyOf": keyOf, "keyLock": keyLock, "keyTake": keyTake, "keyNext": keyNext,
	"trialJournal": trialJournal, "trialRun": trialRun, "trialMove": trialMove,
	"memberJoin": memberJoin, "memberTick": memberTick, "memberBury": memberBury, "memberAlive": memberAlive, "memberLeave": memberLeave,
	"handPut": handPut, "handDrop": handDrop, "suspectList": suspectList, "suspectAbsolve": suspectAbsolve,
	"memberForget": memberForget, "memberCount": memberCount, "orphanList": orphanList,
	"settingGet": settingGet, "settingPin": settingPin, "definitionPut": definitionPut, "workflowPut": workflowPut, "workflowSteps": workflowSteps, "workflowIDs": workflowIDs,
	"workflowGet": workflowGet, "stepsByDigest": stepsByDigest,
	"runLoad": runLoad, "rowList": rowList, "runList": runList, "runListByKey": runListByKey, "runListOpen": runListOpen, "runFindByName": runFindByName, "runFindByID": runFindByID, "runListByIDs": runListByIDs, "runChildren": runChildren,
	"journalConsume": journalConsume, "journalConsumeIfNone": journalConsumeIfNone,
	"messagePost": messagePost, "messageRun": messageRun, "messageList": messageList, "messageDiscard": messageDiscard, "transactionStatus": transactionStatus,
	"lateKeep": lateKeep, "lateList": lateList, "logKeep": logKeep, "logList": logList,
	"alertUndelivered": alertUndelivered, "alertDelivered": alertDelivered,
	"passTake": passTake, "runOverdue": runOverdue, "memberList": memberList, "orphanCheck": orphanCheck, "inboxAddressed": inboxAddressed, "runLoadMany": runLoadMany,
	"memberTickLine": memberTickLine, "serverIdentity": serverIdentity, "serverIdentityPooled": serverIdentityPooled, "journalWriter": journalWriter,
	"backendPID": backendPID, "serverCondition": serverCondition,
	"retainNote": retainNote, "retainOwn": retainOwn, "retainTold": retainTold, "retainGoals": retainGoals, "retainWindow": retainWindow, "retainLock": retainLock, "retainRemove": retainRemove,
	"retainSteps": retainSteps, "retainMoved": retainMoved, "retainAlerts": retainAlerts, "retainNotices": retainNotices, "retainReplies": retainReplies, "noticeOpen": noticeOpen, "noticeDone": noticeDone, "noticeOfRun": noticeOfRun, "retainLate": retainLate, "retainLogs": retainLogs, "retainPlaces": retainPlaces,
	"placeLock": placeLock, "placeOf": placeOf, "placeHeld": placeHeld, "placeAsk": placeAsk, "placeSweep": placeSweep, "placeAdd": placeAdd, "placeAdmit": placeAdmit,
	"heirClaim": heirClaim, "heirOf": heirOf, "retainHeirs": retainHeirs, "retainNext": retainNext,
	"placeNext": placeNext, "placeHolders": placeHolders, "placeCounts": placeCounts,
	"partitionList": partitionList, "partitionLock": partitionLock, "partitionNoVacuum": partitionNoVacuum, "partitionLimit": partitionLimit, "partitionTrust": partitionTrust, "partitionFree": partitionFree,
	"partitionLimited": partitionLimited, "partitionCut": partitionCut, "partitionGather": partitionGather, "partitionDrop": partitionDrop,
	"partitionLastRun": partitionLastRun, "partitionLeftRuns": partitionLeftRuns, "partitionLeftRows": partitionLeftRows,
	"settingMove": settingMove, "definitionList": definitionList, "definitionReseal": definitionReseal, "messagesOfRuns": messagesOfRuns, "lateOfRuns": lateOfRuns,
	"resealLock": resealLock, "resealRun": resealRun, "resealNext": resealNext, "resealRows": resealRows, "resealMessages": resealMessages, "resealLate": resealLate,
	"snapshotKeep": snapshotKeep, "snapshotDrop": snapshotDrop, "snapshotRuns": snapshotRuns, "runLoadShort": runLoadShort, "retainSnapshots": retainSnapshots,
	"stepSource": stepSource, "alertList": alertList, "alertListOfRun": alertListOfRun,
}

// pieces are constants that are part of queries, or many statements at once.
var pieces = []string{"writerSession", "commitOwn", "commitInto", "commitRows", "commitLanded", "commitOnConflict", "commitReturning",
	"commitNamed", "commitKeyed", "commitTake", "commitLandedNamed", "commitLandedKeyed", "commitFresh", "commitLandedFresh", "commitCreated", "commitChanged", "changesBeside", "changesAlone", "changesEnd", "changesHeard", "changesHeardAlone", "changesHeardBeside", "createdLanded", "changedLanded", "commitRuns", "commitRunsLanded", "commitRunsHeard", "commitRunsHeardLanded",
	"commitSide", "noticeKind", "replyKind", "movedKind", "commitConsumed", "commitAnswer", "commitAnswerOnly", "commitAnswerBeside", "commitCounts", "commitAnswerSome", "createdEnd", "changedEnd", "runShown", "runMovedDigest", "runJoins", "runColumns", "alertColumns", "alertJoins",
	"poolerBegin", "lookBegin", "memberColumns", "sessionSettings", "transactionDurable", "transactionPath", "transactionSettings", "migratePatience", "wakeNotify", "wakeListen"}

var sqlStart = regexp.MustCompile(`^\s*(WITH|SELECT|INSERT|UPDATE|DELETE|CREATE|SET|,|ON CONFLICT|RETURNING)\b`)

func sources(t *testing.T) []*ast.File {
	t.Helper()
	names, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), ".go") || strings.HasSuffix(n.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), n.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// Every constant that looks like SQL is prepared by the next test.
func TestEveryQueryIsListed(t *testing.T) {
	known := make(map[string]bool)
	for name := range queries {
		known[name] = true
	}
	for _, name := range pieces {
		known[name] = true
	}
	for _, f := range sources(t) {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				for i, name := range v.Names {
					if i < len(v.Values) && mentionsSQL(v.Values[i]) && !known[name.Name] {
						t.Errorf("constant %s holds SQL and is not in the list of queries", name.Name)
					}
				}
			}
		}
	}
}

func mentionsSQL(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			found = found || sqlStart.MatchString(strings.Trim(l.Value, "`\""))
		}
		if i, ok := n.(*ast.Ident); ok {
			found = found || strings.HasPrefix(i.Name, "commit") || i.Name == "memberTick" || i.Name == "runColumns" || i.Name == "runShown" || i.Name == "alertColumns"
		}
		return true
	})
	return found
}

// Every query is valid against the schema.
func TestEveryQueryPrepares(t *testing.T) {
	db := raw(t, migrated(t))
	for name, q := range queries {
		st, err := db.PrepareContext(t.Context(), q)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := st.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No SQL is built from data: what is sent is a constant, or a variable that only
// constants are assigned to, and nothing concatenates or formats SQL at run
// time (T20, security.md).
func TestNoQueryIsBuilt(t *testing.T) {
	calls := map[string]int{"QueryContext": 1, "QueryRowContext": 1, "ExecContext": 1, "PrepareContext": 1, "queryRow": 1, "look": 1, "lookOne": 2, "Query": 0, "Exec": 0, "Prepare": 0, "QueryRow": 0}
	checked := 0
	for _, f := range sources(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if sel, ok := c.Fun.(*ast.SelectorExpr); ok {
				if at, ok := calls[sel.Sel.Name]; ok && len(c.Args) > at && !isStatement(sel) {
					checked++
					switch arg := c.Args[at].(type) {
					case *ast.Ident, *ast.BasicLit:
					case *ast.CallExpr: // batch.shape picks one of the constants
						if s, ok := arg.Fun.(*ast.SelectorExpr); !ok || s.Sel.Name != "shape" {
							t.Errorf("%s: query is the result of a call", sel.Sel.Name)
						}
					default:
						t.Errorf("%s: query is %T, want a constant", sel.Sel.Name, arg)
					}
				}
				if strings.HasPrefix(sel.Sel.Name, "Sprint") || strings.HasPrefix(sel.Sel.Name, "Append") {
					for _, a := range c.Args {
						if l, ok := a.(*ast.BasicLit); ok && sqlStart.MatchString(strings.Trim(l.Value, "`\"")) {
							t.Errorf("SQL is formatted: %s", l.Value)
						}
					}
				}
			}
			return true
		})
	}
	if checked < 25 {
		t.Errorf("%d calls checked: the test looks for the wrong names", checked)
	}
}

// isStatement reports a call of a prepared statement, whose arguments are data.
func isStatement(sel *ast.SelectorExpr) bool {
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == "stmt"
}

// fill makes a database with enough rows that the planner's choice means
// something: 20,000 ended runs and 2,000 open ones of ten engines.
func fill(t *testing.T) *sql.DB {
	t.Helper()
	db := raw(t, migrated(t))
	must(t, db, `INSERT INTO engine.definition (digest, data) VALUES ('d', 'x')`)
	must(t, db, `INSERT INTO engine.workflow (digest, name) VALUES ('d', 'w')`)
	must(t, db, `INSERT INTO engine.workflow_step SELECT workflow_id, n, 's' || n FROM engine.workflow, generate_series(0, 4) n`)
	must(t, db, `INSERT INTO engine.member (address, lease_until, dead) SELECT 'a', now() + interval '1 hour', n = 3 FROM generate_series(1, 10) n`)
	must(t, db, `INSERT INTO engine.fence SELECT engine, w FROM engine.member, generate_series(0, 1) w`)
	must(t, db, `INSERT INTO engine.run SELECT n, 1, CASE WHEN n % 11 = 0 THEN 2 ELSE 10 END, 1 + n % 10, 0, now() + (n % 1000) * interval '1 second', now(), CASE WHEN n % 11 <> 0 THEN now() END FROM generate_series(1, 22000) n`)
	must(t, db, `INSERT INTO engine.journal (run_id, seq, at, owner, run_state, writer, steps, data)
		SELECT n, s, now(), 1, 2, 1, decode('00000000060000010000000000000000', 'hex'), 'x' FROM generate_series(1, 22000) n, generate_series(0, 5) s`)
	must(t, db, `INSERT INTO engine.run_name SELECT n, 'name' || n, CASE WHEN n % 3 = 0 THEN 'key' || n END FROM generate_series(1, 22000) n`)
	must(t, db, `INSERT INTO engine.context SELECT 'w', 'key' || n, n FROM generate_series(3, 22000, 3) n`)
	must(t, db, `INSERT INTO engine.alert (run_id, at, kind, step, code, message) SELECT n, now(), 'k', 's', 'c', 'm' FROM generate_series(1, 22000) n`)
	must(t, db, `INSERT INTO engine.alert (run_id, at, kind, step, code, message, delivered_at) SELECT n, now(), 'k', 's', 'c', 'm', now() FROM generate_series(1, 22000) n`)
	must(t, db, `INSERT INTO engine.inbox (run_id, at, kind, by, dedup) SELECT n, now(), 1, 'x', 'd' FROM generate_series(1, 22000, 7) n`)
	must(t, db, `INSERT INTO engine.suspect SELECT n, 1 + n % 5 FROM generate_series(1, 22000, 3) n`)
	must(t, db, `INSERT INTO engine.snapshot SELECT n, 1, 'x' FROM generate_series(1, 22000) n`)
	must(t, db, `INSERT INTO engine.place SELECT n, 'w', 'k' || n % 500, 3, now(), n % 5 < 2 FROM generate_series(1, 22000) n`)
	must(t, db, `INSERT INTO engine.notice SELECT n, 5, 'succeeded', n % 1000 <> 0 FROM generate_series(1, 22000) n`)
	must(t, db, `INSERT INTO engine.run_moved SELECT n, 1 FROM generate_series(1, 22000, 5) n`)
	must(t, db, `INSERT INTO engine.late_reply SELECT n, 1, 1, 'ok', now(), 's', 'c' FROM generate_series(1, 22000) n`)
	must(t, db, `INSERT INTO engine.log (run_id, at, step, attempt, level, message) SELECT n, now(), 's', 1, 'info', 'm' FROM generate_series(1, 22000) n, generate_series(1, 3)`)
	must(t, db, `VACUUM ANALYZE`)
	return db
}

// The hot queries use the index they were laid out for, and read no table from
// end to end, whatever the arguments (a generic plan).
func TestPlans(t *testing.T) {
	db := fill(t)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	null := func(n int) []string {
		args := make([]string, n)
		for i := range args {
			args[i] = "NULL"
		}
		return args
	}
	for _, c := range []struct {
		name   string
		writer bool // planned as in a writer's session
		args   int
		want   []string
		may    string // a table so small that reading it whole is right
	}{
		{"journalPlain", true, 10, []string{"fence_pkey"}, ""},
		{"journalBegin", true, 16, []string{"fence_pkey"}, ""},
		{"journalAppend", true, 16, []string{"fence_pkey", "run_pkey"}, ""},
		{"journalHeard", true, 17, []string{"fence_pkey", "run_pkey", "inbox_run_id_dedup_key"}, ""},
		{"journalCreate", true, 22, []string{"fence_pkey", "run_pkey"}, ""},
		{"journalNamed", true, 26, []string{"fence_pkey", "run_pkey"}, ""},
		{"journalKeyed", true, 30, []string{"fence_pkey", "run_pkey", "Conflict Arbiter Indexes: context_pkey"}, ""},
		{"journalSide", true, 40, []string{"fence_pkey", "run_pkey", "Conflict Arbiter Indexes: context_pkey"}, ""},
		{"journalCreateIfNone", true, 22, []string{"fence_pkey", "run_pkey", "Conflict Arbiter Indexes: journal_pkey"}, ""},
		{"journalKeyedIfNone", true, 30, []string{"fence_pkey", "run_pkey", "run_name_name_key", "context_pkey", "Conflict Arbiter Indexes: journal_pkey"}, ""},
		{"journalSideIfNone", true, 40, []string{"fence_pkey", "run_pkey", "run_name_name_key", "context_pkey", "Conflict Arbiter Indexes: journal_pkey"}, ""},
		{"journalWriters", true, 2, []string{"journal_first_pkey"}, ""},
		{"runNameHolder", true, 1, []string{"run_name_name_key"}, ""},
		{"submissionsMet", true, 4, []string{"run_name_name_key", "context_pkey", "run_pkey"}, ""},
		{"contextHolder", true, 2, []string{"context_pkey", "run_pkey", "run_name_pkey"}, ""},
		{"keyAwait", true, 6, []string{"context_pkey", "run_pkey"}, ""},
		{"keyCancel", true, 6, []string{"run_pkey"}, ""},
		{"keyOf", true, 1, []string{"run_pkey", "run_name_pkey"}, "workflow"},
		{"keyTake", true, 2, []string{"context_pkey"}, ""},
		{"keyNext", false, 2, []string{"context_next", "run_pkey", "place_pkey"}, ""},
		{"memberTick", false, 6, []string{"run_active", "Index Cond: ((owner = $1) AND (next_check > COALESCE($5, ", "Index Cond: ((owner = 0) AND (next_check > COALESCE($6, "}, "member inbox submission events firing schedule reply"},
		{"orphanList", false, 3, []string{"run_active"}, "member inbox suspect"},
		{"orphanCheck", false, 2, []string{"run_pkey", "inbox_run_id_dedup_key"}, "member"},
		{"inboxAddressed", false, 1, []string{"run_pkey"}, "member inbox"},
		{"runOverdue", false, 3, []string{"run_active", "Index Cond: ((owner = m.engine) AND (next_check < $"}, "member"},
		{"journalConsume", true, 43, []string{"fence_pkey", "run_pkey", "inbox_pkey"}, ""},
		{"journalConsumeIfNone", true, 43, []string{"fence_pkey", "run_pkey", "inbox_pkey", "Conflict Arbiter Indexes: journal_pkey"}, ""},
		{"suspectList", false, 2, []string{"suspect_pkey"}, "hand"},
		{"suspectAbsolve", false, 1, []string{"suspect_pkey"}, ""},
		{"memberBury", false, 1, []string{"run_pkey", "Conflict Arbiter Indexes: suspect_pkey"}, "member hand fence"},
		{"placeAsk", true, 3, []string{"place_pkey", "place_held", "place_line", "run_pkey"}, ""},
		{"placeSweep", true, 2, []string{"place_pkey", "place_held", "place_line", "run_pkey"}, ""},
		{"placeAdmit", true, 1, []string{"place_pkey"}, ""},
		{"placeNext", false, 2, []string{"place_held", "place_line", "run_pkey"}, "member"},
		{"placeHolders", false, 3, []string{"place_held", "run_pkey"}, ""},
		{"placeCounts", false, 2, []string{"place_held", "place_line", "run_pkey"}, ""},
		{"messagePost", false, 8, []string{"run_pkey", "Conflict Arbiter Indexes: inbox_run_id_dedup_key"}, ""},
		{"messageRun", false, 2, []string{"run_pkey", "inbox_run_id_dedup_key"}, ""},
		{"retainLock", false, 3, []string{"run_pkey", "run_moved_pkey"}, "workflow"},
		{"messageList", false, 3, []string{"inbox_run_id_dedup_key"}, ""},
		{"messageDiscard", false, 2, []string{"inbox_run_id_dedup_key", "run_pkey"}, ""},
		{"lateKeep", false, 12, []string{"run_pkey"}, ""},
		{"lateList", false, 2, []string{"late_reply_pkey"}, ""},
		{"logKeep", false, 7, []string{"run_pkey", "log_run"}, ""},
		{"logList", false, 3, []string{"log_run"}, ""},
		{"alertUndelivered", false, 1, []string{"alert_undelivered", "run_pkey", "run_name_pkey"}, "workflow"},
		{"alertDelivered", false, 1, []string{"alert_undelivered"}, ""},
		{"noticeOpen", false, 4, []string{"notice_open"}, ""},
		{"noticeDone", false, 3, []string{"notice_"}, ""},
		{"noticeOfRun", false, 1, []string{"notice_pkey", "run_pkey"}, ""},
		{"runLoadMany", false, 1, []string{"run_pkey", "journal_first_pkey", "run_name_pkey"}, ""},
		{"memberForget", false, 1, []string{"run_active"}, "member"},
		{"runLoad", false, 1, []string{"run_pkey", "journal_first_pkey", "run_name_pkey"}, ""},
		{"snapshotKeep", false, 5, []string{"run_pkey", "Index Cond: ((run_id = $2) AND (seq = ($3 - 1)))", "Conflict Arbiter Indexes: snapshot_pkey"}, "fence"},
		{"snapshotRuns", false, 1, []string{"snapshot_pkey"}, ""},
		{"runLoadShort", false, 1, []string{"run_pkey", "run_name_pkey", "snapshot_pkey", "Index Cond: ((run_id = $1) AND (seq >= COALESCE("}, ""},
		{"rowList", false, 3, []string{"journal_first_pkey"}, ""},
		{"runList", false, 7, []string{"run_moved_pkey", "run_pkey"}, "member workflow"},
		{"runListOpen", false, 7, []string{"run_moved_pkey", "run_active", "run_name_pkey"}, "member workflow"},
		{"runListByKey", false, 8, []string{"run_moved_pkey", "run_name_key"}, "member workflow"},
		{"runFindByName", false, 1, []string{"run_moved_pkey", "run_name_name_key", "run_pkey"}, "member workflow"},
		{"runFindByID", false, 1, []string{"run_moved_pkey", "run_pkey"}, "member workflow"},
		{"runListByIDs", false, 1, []string{"run_moved_pkey", "run_pkey"}, "member workflow"},
		{"runChildren", false, 3, []string{"run_moved_pkey", "run_name_parent", "run_pkey"}, "member workflow"},
		{"stepSource", false, 1, []string{"run_pkey", "journal_first_pkey"}, "workflow_step run_step"},
		{"alertList", false, 1, []string{"alert_at", "run_pkey", "run_name_pkey"}, "workflow"},
		{"alertListOfRun", false, 2, []string{"alert_run", "run_pkey", "run_name_pkey"}, "workflow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			mustConn(t, conn, "RESET ALL")
			if c.writer {
				mustConn(t, conn, writerSession)
			}
			mustConn(t, conn, "SET plan_cache_mode = force_generic_plan")
			mustConn(t, conn, "PREPARE q AS "+queries[c.name])
			defer mustConn(t, conn, "DEALLOCATE q")
			plan := explain(t, conn, fmt.Sprintf("EXPLAIN EXECUTE q (%s)", strings.Join(null(c.args), ", ")))
			for _, want := range c.want {
				if !strings.Contains(plan, want) {
					t.Errorf("plan does not use %q:\n%s", want, plan)
				}
			}
			for _, m := range regexp.MustCompile(`Seq Scan on (\w+)`).FindAllStringSubmatch(plan, -1) {
				if !strings.Contains(" "+c.may+" ", " "+m[1]+" ") {
					t.Errorf("plan reads all of %s:\n%s", m[1], plan)
				}
			}
		})
	}
}

// A writer plans its statements once, maybe while the tables are still small. The plan
// must find each row by its key even so: the same plan serves until the server's
// statistics change, and by then the tables may hold many rows.
func TestPlansOfSmallTables(t *testing.T) {
	db := raw(t, migrated(t))
	must(t, db, `INSERT INTO engine.definition (digest, data) VALUES ('d', 'x')`)
	must(t, db, `INSERT INTO engine.workflow (digest, name) VALUES ('d', 'w')`)
	must(t, db, `INSERT INTO engine.run SELECT 1, 1, 2, 1, 0, now(), now(), NULL`)
	must(t, db, `INSERT INTO engine.journal (run_id, seq, at, owner, run_state, writer, steps, data) VALUES (1, 0, now(), 1, 2, 1, NULL, 'x')`)
	must(t, db, `INSERT INTO engine.run_name VALUES (1, 'name', 'key')`)
	must(t, db, `INSERT INTO engine.context VALUES ('w', 'key', 1)`)
	must(t, db, `INSERT INTO engine.inbox (run_id, at, kind, by, dedup) VALUES (1, now(), 1, 'x', 'd')`)
	must(t, db, `VACUUM ANALYZE`)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	mustConn(t, conn, writerSession)
	scan := regexp.MustCompile(`(Index Scan|Index Only Scan|Seq Scan|Bitmap Index Scan)( using \w+)? on \w+`)
	byKey := regexp.MustCompile(`Index Cond: .*\b(run_id|id|name|key|engine) = `)
	checked := 0
	for name, query := range queries {
		if !strings.HasPrefix(name, "journal") {
			continue
		}
		checked++
		mustConn(t, conn, "PREPARE q AS "+query)
		args := 0
		for strings.Contains(query, fmt.Sprintf("$%d", args+1)) {
			args++
		}
		plan := strings.Split(explain(t, conn, fmt.Sprintf("EXPLAIN EXECUTE q (%s)", strings.TrimSuffix(strings.Repeat("NULL, ", args), ", "))), "\n")
		for i, line := range plan {
			if scan.MatchString(line) && !byKey.MatchString(plan[i+1]) {
				t.Errorf("%s reads a table from end to end:\n%s", name, strings.Join(plan[max(0, i-6):min(len(plan), i+4)], "\n"))
			}
		}
		mustConn(t, conn, "DEALLOCATE q")
	}
	if checked < 14 {
		t.Errorf("%d statements checked: the test looks for the wrong names", checked)
	}
}

func mustConn(t *testing.T, conn *sql.Conn, q string) {
	t.Helper()
	if _, err := conn.ExecContext(context.WithoutCancel(t.Context()), q); err != nil {
		t.Fatalf("%.60s: %v", q, err)
	}
}

func explain(t *testing.T, conn *sql.Conn, q string) string {
	t.Helper()
	rows, err := conn.QueryContext(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var b strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// S53 S10: the constraints forbid illegal rows by themselves, whoever writes
// them.
func TestConstraints(t *testing.T) {
	db := raw(t, migrated(t))
	const run = `INSERT INTO engine.run VALUES ($1, 1, $2, $3, 0, now(), now(), $4)`
	must(t, db, run, 1, 2, 1, nil)
	must(t, db, run, 2, 10, 1, "2026-01-01")
	const row = `INSERT INTO engine.journal (run_id, seq, at, owner, run_state, writer, steps, data)
		VALUES ($1, $2, now(), $3, 2, 1, decode($4, 'hex'), decode($5, 'hex'))`
	must(t, db, row, 1, 0, 1, "00000001020000010000000000000001", "01")
	must(t, db, `INSERT INTO engine.definition (digest, data) VALUES ('d', 'x')`)
	must(t, db, `INSERT INTO engine.workflow (digest, name) VALUES ('d', 'x')`)
	const (
		check   = "23514 "
		unique  = "23505 "
		foreign = "23503 "
		notNull = "23502 "
	)
	for name, c := range map[string]struct {
		query string
		args  []any
		want  string // SQLSTATE, and which constraint
	}{
		"state outside the set":        {run, []any{3, 9, 1, nil}, check + "run_state_check"},
		"state zero":                   {run, []any{3, 0, 1, nil}, check + "run_state_check"},
		"negative owner":               {run, []any{3, 2, -1, nil}, check + "run_owner_check"},
		"run id zero":                  {run, []any{0, 2, 1, nil}, check + "run_run_id_check"},
		"second run of an id":          {run, []any{1, 2, 1, nil}, unique + "run_pkey"},
		"finished but open":            {run, []any{3, 2, 1, "2026-01-01"}, check + "run_check"},
		"final but not finished":       {run, []any{3, 10, 1, nil}, check + "run_check"},
		"final to running":             {`UPDATE engine.run SET state = 2, finished_at = NULL WHERE run_id = 2`, nil, check + "run 2: state 10 cannot become 2"},
		"back to the queue":            {`UPDATE engine.run SET state = 1 WHERE run_id = 1`, nil, check + "run 1: state 2 cannot become 1"},
		"negative seq":                 {row, []any{1, -1, 1, nil, "01"}, check + "journal_seq_check"},
		"first row without owner":      {row, []any{3, 0, nil, nil, "01"}, check + "journal_check"},
		"row without data":             {row, []any{1, 1, 1, nil, ""}, check + "journal_data_check"},
		"step entry cut short":         {row, []any{1, 1, 1, "0000", "01"}, check + "step_changes_check"},
		"step state zero":              {row, []any{1, 1, 1, "00000001000000010000000000000001", "01"}, check + "step_changes_check"},
		"step state too large":         {row, []any{1, 1, 1, "000000010e0000010000000000000001", "01"}, check + "step_changes_check"},
		"running without complete-by":  {row, []any{1, 1, 1, "00000001020000010000000000000000", "01"}, check + "step_changes_check"},
		"second one without":           {row, []any{1, 1, 1, "0000000102000001000000000000000100000002020000010000000000000000", "01"}, check + "step_changes_check"},
		"duplicate seq":                {row, []any{1, 0, 1, nil, "01"}, unique + "journal_first_pkey"},
		"name too long":                {`INSERT INTO engine.run_name VALUES (1, repeat('x', 101))`, nil, check + "run_name_name_check"},
		"name empty":                   {`INSERT INTO engine.run_name VALUES (1, '')`, nil, check + "run_name_name_check"},
		"next_check missing":           {`UPDATE engine.run SET next_check = NULL WHERE run_id = 1`, nil, notNull + "next_check"},
		"workflow of no definition":    {`INSERT INTO engine.workflow (digest, name) VALUES ('none', 'x')`, nil, foreign + "workflow_digest_fkey"},
		"moved to no workflow":         {`INSERT INTO engine.run_moved VALUES (1, 99)`, nil, foreign + "run_moved_workflow_id_fkey"},
		"two workflows of one name":    {`INSERT INTO engine.workflow (digest, name) VALUES ('d', 'x')`, nil, unique + "workflow_digest_name_key"},
		"engine number given by hand":  {`INSERT INTO engine.member (engine, address, lease_until) VALUES (1, 'a', now())`, nil, `428C9 cannot insert a non-DEFAULT value into column "engine"`},
		"unique key longer than index": {`INSERT INTO engine.run_name VALUES (1, 'n', repeat('k', 1025))`, nil, check + "run_name_key_check"},
	} {
		_, err := db.ExecContext(t.Context(), c.query, c.args...)
		if got := brokenRule(err); got != c.want {
			t.Errorf("%s: refused with %q, want %q (%v)", name, got, c.want, err)
		}
	}
}

// brokenRule tells which rule an error speaks of: SQLSTATE, and the name of the
// constraint, else of the column, else what a trigger says; "" = none.
func brokenRule(err error) string {
	var e *pq.Error
	if !errors.As(err, &e) {
		return ""
	}
	what := e.Constraint
	if what == "" {
		what = e.Column
	}
	if what == "" {
		what = e.Message
	}
	return string(e.Code) + " " + what
}

// A run without a name of its own has the same one in the views as everywhere.
func TestNamesThatFollowFromIDs(t *testing.T) {
	db := raw(t, migrated(t))
	for _, id := range []status.RunID{1, 35, 36, 1295, 1296, 1 << 40, 909_090_909_090_909, 1<<63 - 1} {
		var name string
		if err := db.QueryRowContext(t.Context(), `SELECT engine.run_public($1)`, int64(id)).Scan(&name); err != nil || name != naming.RunName(id) {
			t.Errorf("run %d is %q in the views, %q elsewhere, err = %v", id, name, naming.RunName(id), err)
		}
	}
}

// The names of states in the views are those of engine/machine.
func TestStateNames(t *testing.T) {
	db := raw(t, migrated(t))
	for i := range 20 {
		var run, step sql.NullString
		if err := db.QueryRowContext(t.Context(), `SELECT engine.run_state($1::int2), engine.step_state($1)`, i).Scan(&run, &step); err != nil {
			t.Fatal(err)
		}
		if st, ok := status.ParseRunState(status.RunState(i).String()); ok != run.Valid || ok && run.String != st.String() {
			t.Errorf("run state %d is %q in the view, %v in the machine", i, run.String, status.RunState(i))
		}
		if s := status.StepState(i); step.Valid != !strings.HasPrefix(s.String(), "StepState(") || step.Valid && step.String != s.String() {
			t.Errorf("step state %d is %q in the view, %v in the machine", i, step.String, s)
		}
	}
}
