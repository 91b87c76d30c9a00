package postgres

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/saga-engine/engine/engine/store/naming"
)

// With many partitions a commit opens and locks only the one it writes to, in a
// generic plan, and who reads a run or appends to it looks into one of them.
func TestPlansBesidePartitions(t *testing.T) {
	y := newYard(t)
	for n := 1; n <= 20; n++ {
		must(t, y.db, `SELECT engine.journal_cut($1)`, n*100)
	}
	for run := 50; run < 2000; run += 50 {
		for seq := range 4 {
			must(t, y.db, `INSERT INTO engine.journal (run_id, seq, at, owner, run_state, writer, data) VALUES ($1, $2, now(), 1, 2, 1, 'x')`, run, seq)
		}
	}
	must(t, y.db, `INSERT INTO engine.run (run_id, workflow_id, state, owner, fence, next_check, created_at) SELECT r, 1, 2, 1, 0, now(), now() FROM unnest('{50,1650}'::int8[]) r`)
	must(t, y.db, `ANALYZE`)
	conn, err := y.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	mustConn(t, conn, writerSession)
	for name, want := range map[string][]string{
		"journalAppend":       {"fence_pkey", "run_pkey"},
		"journalCreate":       {"fence_pkey", "run_pkey"},
		"journalKeyed":        {"fence_pkey", "run_pkey"},
		"journalCreateIfNone": {"fence_pkey", "run_pkey", "Conflict Arbiter Indexes: journal_pkey"},
	} {
		args := map[string]int{"journalAppend": 16, "journalCreate": 22, "journalKeyed": 30, "journalCreateIfNone": 22}[name]
		mustConn(t, conn, "PREPARE q AS "+queries[name])
		plan := explain(t, conn, "EXPLAIN EXECUTE q ("+strings.TrimSuffix(strings.Repeat("NULL, ", args), ", ")+")")
		mustConn(t, conn, "DEALLOCATE q")
		for _, w := range want {
			if !strings.Contains(plan, w) {
				t.Errorf("%s does not use %q:\n%s", name, w, plan)
			}
		}
		if parts := partsIn(plan); len(parts) > 0 {
			t.Errorf("the plan of %s names partitions: %v", name, parts)
		}
	}

	mustConn(t, conn, "BEGIN")
	mustConn(t, conn, "PREPARE q AS "+journalAppend)
	mustConn(t, conn, fmt.Sprintf(`EXECUTE q (%d, 0, 5, '{50,1650}', '{4,4}', '{2026-01-01,2026-01-01}', '{NULL,NULL}', '{NULL,NULL}', '{NULL,NULL}', '{x,x}',
		'{50,1650}', '{2026-01-01,2026-01-01}', '{4,4}', '{NULL,NULL}', '{NULL,NULL}', '{2026-01-01,2026-01-01}')`, y.id))
	var locked, rows int
	if err := conn.QueryRowContext(t.Context(), `SELECT count(*) FILTER (WHERE c.relkind = 'r'), (SELECT count(*) FROM engine.journal WHERE writer = 5)
		FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE l.pid = pg_backend_pid() AND c.relname ~ '^journal_(first|[0-9]+)$' AND l.mode = 'RowExclusiveLock'`).Scan(&locked, &rows); err != nil || locked != 2 || rows != 2 {
		t.Errorf("%d rows in two partitions lock %d of them, err = %v", rows, locked, err)
	}
	mustConn(t, conn, "ROLLBACK")

	mustConn(t, conn, "RESET ALL")
	for name, args := range map[string]string{"runLoad": "1650", "rowList": "1650, 0, 10", "stepSource": "1650"} {
		mustConn(t, conn, "PREPARE "+name+" AS "+queries[name])
		plan := explain(t, conn, fmt.Sprintf("EXPLAIN EXECUTE %s (%s)", name, args))
		if parts := partsIn(plan); len(parts) != 1 || parts["journal_1600"] == 0 {
			t.Errorf("%s looks into %v, want journal_1600:\n%s", name, parts, plan)
		}
	}
	if got := naming.FirstRunOf(naming.TimeOfRun(1 << 50)); got != 1<<50 {
		t.Errorf("the first run of run 2^50's time is %d", got)
	}
}

// partsIn returns how often a plan names each partition as a table.
func partsIn(plan string) map[string]int {
	parts := make(map[string]int)
	for _, m := range regexp.MustCompile(`on (journal_(?:first|rest_\d+|\d+))\b`).FindAllStringSubmatch(plan, -1) {
		parts[m[1]]++
	}
	return parts
}
