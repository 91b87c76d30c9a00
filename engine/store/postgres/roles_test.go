package postgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/internal/pgtest"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storetest"
)

// roles are DSNs of one database for the three roles of docs/postgres-roles.md, and
// for a superuser.
type roles struct {
	admin, migrate, work, read string
	name                       func(role string) string // as it is called in this test
}

// blocks returns the SQL of docs/postgres-roles.md, block by block.
func blocks(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/postgres-roles.md")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		out = append(out, m[1])
	}
	if len(out) != 6 { // the third and fifth are about tables of applications and about readers
		t.Fatalf("%d blocks of SQL in the page about roles, want 6", len(out))
	}
	return []string{out[0], out[1], out[5], out[3]}
}

// newRoles makes an empty database, does there what the page says is done once, and
// migrates. The roles go after their database.
func newRoles(t *testing.T) roles {
	t.Helper()
	suffix := "_" + strings.ToLower(rand.Text())
	names := []string{"engine_migrate", "engine_work", "engine_read"}
	server, err := sql.Open("postgres", os.Getenv(pgtest.EnvDSN))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer server.Close()
		for _, n := range names {
			if _, err := server.Exec(`DROP ROLE IF EXISTS ` + n + suffix); err != nil {
				t.Errorf("drop role: %v", err)
			}
		}
	})
	r := roles{admin: pgtest.DSN(t), name: func(role string) string { return role + suffix }}
	local := func(text string) string {
		return regexp.MustCompile(`\bengine_(migrate|work|read)\b`).ReplaceAllStringFunc(text, r.name)
	}
	as := func(role, password string) string {
		u, err := url.Parse(r.admin)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(r.name(role), password)
		return u.String()
	}
	r.migrate, r.work, r.read = as("engine_migrate", "change-me-1"), as("engine_work", "change-me-2"), as("engine_read", "change-me-3")
	page := blocks(t)
	must(t, raw(t, r.admin), local(page[0]))
	if _, to, err := Migrate(t.Context(), r.migrate); err != nil || to != schemaVersion {
		t.Fatalf("migrate as engine_migrate: to %d, err = %v", to, err)
	}
	for range 2 { // the page says that this can be repeated
		must(t, raw(t, r.migrate), local(page[1]))
	}
	must(t, raw(t, r.admin), local(page[2]))
	return r
}

// Every rule holds for the role engine_work too, and for an engine behind a pooler. So what
// docs/postgres-roles.md grants to that role is enough for everything that an engine does
// with its store.
func TestStoreAsWorkRoleBehindPooler(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	u := &suite{limited: true, db: raw(t, r.admin), role: r.work, other: openPooled(t, newPooler(t, r.work))}
	storetest.Run(t, u.harness)
}

// Retention cuts and drops partitions for a role that may not change the schema.
func TestRetentionAsWorkRole(t *testing.T) {
	r := newRoles(t)
	y := yardIn(t, r.work)
	now := time.Now()
	gone, held := y.begin(now.Add(-48*time.Hour), 3), y.begin(now.Add(-47*time.Hour), 2)
	y.end(gone, 3, now.Add(-40*time.Hour))
	if s := y.retain(now.Add(-24 * time.Hour)); s.Runs != 1 || y.names() != "first " {
		t.Errorf("the first walk: %+v, partitions = %q, want one run to go and a partition ahead", s, y.names())
	}
	later := now.Add(400 * 24 * time.Hour) // as if years had passed
	y.begin(later.Add(-time.Hour), 1)
	if s := y.retain(later.Add(-24 * time.Hour)); s.Partitions != 1 || !strings.HasPrefix(y.names(), "rest ") {
		t.Errorf("the walk years later: %+v, partitions = %q, want one to go and what is left in one of its own", s, y.names())
	}
	y.wantRows(held, 2)
	y.commit(store.Transition{Run: held, Seq: 2, At: later, Data: []byte{2}})
}

// engine_work may neither change the schema nor the past, and engine_read may write
// nothing. With reading each of them gets by.
func TestRolesAreLimited(t *testing.T) {
	r := newRoles(t)
	s := open(t, r.work)
	b := benchOn(t, s)
	run := status.RunID(7)
	if _, err := storetest.Submit(t.Context(), b.w, b.create(run), naming.Names{Name: "n", Workflow: "w", Key: "k"}); err != nil {
		t.Fatal(err)
	}
	for name, query := range map[string]string{
		"a table":                  `CREATE TABLE engine.more (x int)`,
		"a column":                 `ALTER TABLE engine.run ADD COLUMN x int`,
		"a function":               `CREATE FUNCTION engine.more() RETURNS int LANGUAGE sql RETURN 1`,
		"the body of a function":   `CREATE OR REPLACE FUNCTION engine.journal_alone() RETURNS boolean LANGUAGE sql RETURN true`,
		"a trigger":                `CREATE TRIGGER t BEFORE UPDATE ON engine.run FOR EACH ROW EXECUTE FUNCTION engine.refuse_run_change()`,
		"a table less":             `DROP TABLE engine.journal`,
		"another row":              `UPDATE engine.journal SET data = 'x'`,
		"a row less":               `DELETE FROM engine.journal`,
		"no rows":                  `TRUNCATE engine.journal`,
		"a partition's row":        `UPDATE engine.journal_first SET data = 'x'`,
		"another definition":       `UPDATE engine.definition SET data = 'x'`,
		"another workflow":         `UPDATE engine.workflow SET name = 'x'`,
		"another version":          `INSERT INTO engine.schema_version (version_id, is_applied) VALUES (99, true)`,
		"an object in public":      `CREATE TABLE public.more (x int)`,
		"a schema":                 `CREATE SCHEMA more`,
		"another owner of a table": `ALTER TABLE engine.run OWNER TO CURRENT_USER`,
	} {
		if _, err := raw(t, r.work).ExecContext(t.Context(), query); sqlstate(err) != "42501" {
			t.Errorf("engine_work makes %s: err = %v, want 42501", name, err)
		}
	}

	reader := open(t, r.read)
	if rows, err := reader.Runs(t.Context(), store.RunFilter{}); err != nil || len(rows) != 1 {
		t.Errorf("list: %d runs, err = %v", len(rows), err)
	}
	if row, err := store.Complete(reader).Find(t.Context(), "n"); err != nil || row.Run != run {
		t.Errorf("find: %+v, err = %v", row, err)
	}
	if _, rows, err := store.LoadRun(t.Context(), reader, run); err != nil || len(rows) != 1 {
		t.Errorf("load: %d rows, err = %v", len(rows), err)
	}
	for what, err := range map[string]error{
		"rows":           second(reader.Rows(t.Context(), run, 0, 10)),
		"many":           second(reader.Load(t.Context(), run)),
		"steps":          second(reader.StepRows(t.Context(), run)),
		"alerts":         second(reader.Alerts(t.Context(), run, 10)),
		"all alerts":     second(reader.Alerts(t.Context(), 0, 10)),
		"undelivered":    second(reader.Undelivered(t.Context(), 10)),
		"logs":           second(reader.Logs(t.Context(), run, 0, 10)),
		"late":           second(reader.LateReplies(t.Context(), run)),
		"messages":       second(reader.Messages(t.Context(), run, 0, 10)),
		"waits":          second(store.Complete(reader).Waits(t.Context(), run, 1)),
		"engines":        second(store.Complete(reader).Live(t.Context())),
		"live":           second(store.Complete(reader).Live(t.Context())),
		"key":            second(reader.Pin(t.Context(), journal.SettingKey, "")),
		"retained":       second(reader.Retained(t.Context())),
		"examine":        second(reader.Examine(t.Context())),
		"schema version": second(Status(t.Context(), r.read)),
	} {
		if err != nil {
			t.Errorf("engine_read asks for %s: %v", what, err)
		}
	}
	if _, _, err := reader.Definition(t.Context(), b.flow); err != nil {
		t.Errorf("engine_read asks for a definition: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	hints := reader.Wakes(ctx)
	if _, ok := <-hints; !ok { // the first one comes when the session listens
		t.Error("engine_read hears no hints")
	}
	cancel()
	for range hints {
	}

	db := raw(t, r.read)
	tables, err := db.Query(`SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'engine'::regnamespace AND c.relkind IN ('r', 'p')`)
	if err != nil {
		t.Fatal(err)
	}
	defer tables.Close()
	checked := 0
	for tables.Next() {
		var table string
		if err := tables.Scan(&table); err != nil {
			t.Fatal(err)
		}
		checked++
		for _, privilege := range []string{"INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"} {
			var can bool
			if err := db.QueryRow(`SELECT has_table_privilege($1, $2)`, "engine."+table, privilege).Scan(&can); err != nil || can {
				t.Errorf("engine_read may %s %s: %v, err = %v", privilege, table, can, err)
			}
		}
	}
	if checked < 18 {
		t.Errorf("%d tables checked", checked)
	}
	if _, err := db.Exec(`SELECT engine.journal_cut(5)`); sqlstate(err) != "42501" {
		t.Errorf("engine_read cuts the journal: err = %v", err)
	}
	if err := open(t, r.read).KeepLate(t.Context(), store.LateReply{Run: run, Outcome: "ok"}); err == nil {
		t.Error("engine_read keeps a late answer")
	}
}

// An application needs only the rights that the page gives to its role.
func TestRoleOfAnApplication(t *testing.T) {
	app := newRole(t)
	r := newRoles(t)
	publishedWorkflow(t, r.work)
	must(t, raw(t, r.migrate), regexp.MustCompile(`\bshop\b`).ReplaceAllString(blocks(t)[3], app))
	c, err := raw(t, r.admin).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mustConn(t, c, `SET ROLE `+app)
	for _, q := range []string{
		`SELECT engine.submit('w', '{"n":1}', 'order-1', reply_to => 'table:shop', priority => 90)`, `SELECT engine.emit('order.placed', '{"n":1}')`,
		`SELECT * FROM engine.take_replies('shop')`, `SELECT status, refused FROM engine.submissions`, `SELECT run, state FROM engine.runs`,
	} {
		mustConn(t, c, q)
	}
	for _, q := range []string{`SELECT 1 FROM engine.submission`, `SELECT 1 FROM engine.run`, `SELECT 1 FROM engine.reply`, `DELETE FROM engine.events`, `SELECT engine.journal_cut(5)`} {
		if _, err := c.ExecContext(t.Context(), q); sqlstate(err) != "42501" {
			t.Errorf("an application runs %s: %v, want 42501", q, err)
		}
	}
}

// second returns the error of a call with one result.
func second[T any](_ T, err error) error { return err }

// db migrate touches nothing where another role owns the schema or something in it,
// runs nothing of that role's, and says who owns what and what to do.
func TestMigrateRefusesOthersObjects(t *testing.T) {
	const trap = `CREATE TABLE public.trapped (by text); GRANT INSERT ON public.trapped TO PUBLIC;`
	for name, c := range map[string]struct {
		prepare string // by a superuser; MALLORY is the other role
		want    []string
	}{
		"the schema": {
			`CREATE SCHEMA engine AUTHORIZATION MALLORY`,
			[]string{`role "MALLORY" owns schema engine`, `run engine db migrate as "MALLORY"`, `ALTER SCHEMA engine OWNER TO pgtest;`},
		},
		"a view in the place of a table": {
			`CREATE SCHEMA engine; GRANT ALL ON SCHEMA engine TO MALLORY; SET ROLE MALLORY;
			CREATE FUNCTION engine.spring() RETURNS int8 LANGUAGE sql SECURITY INVOKER AS $$ INSERT INTO public.trapped VALUES (current_user) RETURNING 0::int8 $$;
			CREATE VIEW engine.schema_version AS SELECT engine.spring() AS version_id, true AS is_applied; RESET ROLE`,
			[]string{`role "MALLORY" owns view engine.schema_version`, `routine engine.spring()`},
		},
		"a table": {
			`CREATE SCHEMA engine; GRANT ALL ON SCHEMA engine TO MALLORY; SET ROLE MALLORY; CREATE TABLE engine."Odd; name" (x int); RESET ROLE`,
			[]string{`role "MALLORY" owns table engine."Odd; name"`, `ALTER TABLE engine."Odd; name" OWNER TO pgtest;`},
		},
		"a function of a later migration": {
			`CREATE SCHEMA engine; GRANT ALL ON SCHEMA engine TO MALLORY; SET ROLE MALLORY; CREATE FUNCTION engine.journal_options() RETURNS text LANGUAGE sql AS $$ SELECT '' $$; RESET ROLE`,
			[]string{`role "MALLORY" owns routine engine.journal_options()`, `ALTER ROUTINE engine.journal_options() OWNER TO pgtest;`},
		},
		"a type": {
			`CREATE SCHEMA engine; GRANT ALL ON SCHEMA engine TO MALLORY; SET ROLE MALLORY; CREATE DOMAIN engine.step_changes AS text; RESET ROLE`,
			[]string{`role "MALLORY" owns domain engine.step_changes`},
		},
		"the function of a trigger": {
			`CREATE SCHEMA engine; CREATE TABLE engine.run (x int); CREATE SCHEMA other AUTHORIZATION MALLORY; SET ROLE MALLORY;
			CREATE FUNCTION other.spring() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$; RESET ROLE;
			CREATE TRIGGER t AFTER INSERT ON engine.run FOR EACH ROW EXECUTE FUNCTION other.spring()`,
			[]string{`role "MALLORY" owns routine other.spring()`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			role := newRole(t)
			dsn := pgtest.DSN(t)
			db := raw(t, dsn)
			must(t, db, trap)
			must(t, db, strings.ReplaceAll(c.prepare, "MALLORY", role))
			before := objects(t, db)
			_, _, err := Migrate(t.Context(), dsn)
			for _, want := range c.want {
				if want = strings.ReplaceAll(want, "MALLORY", role); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("err = %v, want it to say %q", err, want)
				}
			}
			if after := objects(t, db); after != before {
				t.Errorf("the schema was changed: %s, was %s", after, before)
			}
			var sprung int
			if err := db.QueryRow(`SELECT count(*) FROM public.trapped`).Scan(&sprung); err != nil || sprung != 0 {
				t.Errorf("code of another role ran %d times, err = %v", sprung, err)
			}
		})
	}
}

// A role may migrate what belongs to a group that it is a member of, and a schema
// that was made for it without the right to make one.
func TestMigrateAsMember(t *testing.T) {
	group, member := newRole(t), newRole(t)
	dsn := pgtest.DSN(t)
	db := raw(t, dsn)
	must(t, db, fmt.Sprintf(`CREATE SCHEMA engine AUTHORIZATION %s; GRANT %s TO %s; ALTER ROLE %s LOGIN PASSWORD 'x'`, group, group, member, member))
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(member, "x")
	for range 2 {
		if _, to, err := Migrate(t.Context(), u.String()); err != nil || to != schemaVersion {
			t.Fatalf("migrate: to %d, err = %v", to, err)
		}
	}
}

// newRole makes a role that goes after the databases made later.
func newRole(t *testing.T) string {
	t.Helper()
	server, err := sql.Open("postgres", os.Getenv(pgtest.EnvDSN))
	if err != nil {
		t.Fatal(err)
	}
	name := "r_" + strings.ToLower(rand.Text())
	must(t, server, `CREATE ROLE `+name)
	t.Cleanup(func() {
		defer server.Close()
		if _, err := server.Exec(`DROP ROLE ` + name); err != nil {
			t.Errorf("drop role: %v", err)
		}
	})
	return name
}

// objects counts what is in the schema.
func objects(t *testing.T, db *sql.DB) string {
	t.Helper()
	var out string
	if err := db.QueryRow(`SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = n.oid) || ' relations, ' || (SELECT count(*) FROM pg_proc WHERE pronamespace = n.oid) || ' functions'
		FROM pg_namespace n WHERE nspname = 'engine'`).Scan(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Functions and operators that another role puts into a schema of the default search
// path are not run, by no session of a store, nor by db migrate.
func TestSearchPath(t *testing.T) {
	role := newRole(t)
	dsn := pgtest.DSN(t)
	db := raw(t, dsn)
	// Each fits its arguments better than the server's own, which takes any array.
	must(t, db, `GRANT CREATE, USAGE ON SCHEMA public TO `+role+`; SET ROLE `+role+`;
		CREATE FUNCTION public.unnest(int8[]) RETURNS SETOF int8 LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
		CREATE FUNCTION public.unnest(text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
		CREATE FUNCTION public.unnest(bytea[]) RETURNS SETOF bytea LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
		CREATE FUNCTION public.cardinality(int8[]) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
		CREATE FUNCTION public.cardinality(int2[]) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
		CREATE FUNCTION public.pg_column_size(bytea) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
		CREATE FUNCTION public.format(text, regclass) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
		CREATE FUNCTION public.format(text, regclass, int8) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
		CREATE FUNCTION public.age(xid, int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
		CREATE FUNCTION public.join_text(text, bigint) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
		CREATE OPERATOR public.|| (LEFTARG = text, RIGHTARG = bigint, FUNCTION = public.join_text);
		RESET ROLE`)
	if _, _, err := Migrate(t.Context(), dsn); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	must(t, db, `SELECT engine.journal_cut(100); SELECT engine.journal_quiet(100)`)
	s := open(t, dsn)
	b := benchOn(t, s)
	for run := status.RunID(1); run <= 3; run++ {
		if _, err := storetest.Submit(t.Context(), b.w, b.create(run), naming.Names{Workflow: "w", Key: fmt.Sprint(run)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := storetest.Submit(t.Context(), b.w, b.create(4), naming.Names{}); err != nil { // its name follows from its id
		t.Fatal(err)
	}
	var batch []store.Transition
	for run := status.RunID(1); run <= 3; run++ {
		batch = append(batch, store.Transition{Run: run, Seq: 1, At: at, Data: []byte("1")})
	}
	if out, err := b.w.Commit(t.Context(), batch); err != nil || !out[0].Landed {
		t.Errorf("commit: %+v, err = %v", out, err)
	}
	if _, err := s.Load(t.Context(), 1, 2, 3); err != nil {
		t.Errorf("load: %v", err)
	}
	if rows, err := s.Runs(t.Context(), store.RunFilter{}); err != nil || len(rows) != 4 {
		t.Errorf("list: %d runs, err = %v", len(rows), err)
	}
	var shown int
	if err := db.QueryRow(`SELECT count(run) FROM engine.runs`).Scan(&shown); err != nil || shown != 4 {
		t.Errorf("the view shows %d runs, err = %v", shown, err)
	}
	if _, err := s.Retain(t.Context(), time.Now().Add(-time.Hour), 10); err != nil {
		t.Errorf("retain: %v", err)
	}

	// Sessions of every kind: of the pools, and of a writer.
	for name, ask := range map[string]func() (string, error){
		"work":  func() (p string, err error) { err = s.db.QueryRow(`SHOW search_path`).Scan(&p); return p, err },
		"reads": func() (p string, err error) { err = s.reads.QueryRow(`SHOW search_path`).Scan(&p); return p, err },
		"a writer": func() (p string, err error) {
			err = b.w.(*Writer).conn.QueryRowContext(t.Context(), `SHOW search_path`).Scan(&p)
			return p, err
		},
	} {
		if path, err := ask(); err != nil || path != "pg_catalog, pg_temp" {
			t.Errorf("the search path of %s is %q, err = %v", name, path, err)
		}
	}
	conns := make([]*sql.Conn, 3) // the first two of a store were made before the pooler was looked for
	for i := range conns {
		var err error
		if conns[i], err = s.db.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
		var path string
		if err := conns[i].QueryRowContext(t.Context(), `SHOW search_path`).Scan(&path); err != nil || path != "pg_catalog, pg_temp" {
			t.Errorf("the search path of session %d is %q, err = %v", i, path, err)
		}
	}
}

// Behind a pooler in transaction mode no session keeps a search path, which another
// client would meet.
func TestPoolerKeepsNoSearchPath(t *testing.T) {
	dsn := migrated(t)
	through := newPooler(t, dsn)
	s := openPooled(t, through)
	if _, err := s.Runs(t.Context(), store.RunFilter{}); err != nil {
		t.Fatal(err)
	}
	b := benchOn(t, s)
	if _, err := storetest.Submit(t.Context(), b.w, b.create(7), naming.Names{}); err != nil {
		t.Fatal(err)
	}
	client := raw(t, through)
	client.SetMaxOpenConns(poolSize)
	for range 2 * poolSize {
		var path string
		if err := client.QueryRow(`SHOW search_path`).Scan(&path); err != nil || strings.Contains(path, "pg_catalog") {
			t.Errorf("another client's search path is %q, err = %v", path, err)
		}
	}
}

// Every function in a statement is named with its schema.
func TestFunctionsAreQualified(t *testing.T) {
	call := regexp.MustCompile(`([\w.]*)\b(\w+)\(`)
	// With several arrays unnest is part of the language: it stands for as many calls
	// of pg_catalog.unnest, and cannot be named with its schema.
	several := regexp.MustCompile(`\bunnest\(\$\d+::\w+\[\], `)
	// What is no function of a schema but part of the language, and names of what
	// functions in FROM return.
	plain := map[string]bool{"coalesce": true, "nullif": true, "greatest": true, "least": true, "extract": true, "array": true, "ARRAY": true, "bit": true,
		"v": true, "s": true, "k": true, "a": true, "m": true, "c": true}
	seen := 0
	for name, q := range queries {
		for _, m := range call.FindAllStringSubmatch(several.ReplaceAllString(q, "ARRAYS("), -1) {
			full := m[1] + m[2]
			if strings.HasPrefix(full, "pg_catalog.") || strings.HasPrefix(full, "engine.") {
				seen++
			} else if !plain[full] && full != strings.ToUpper(full) {
				t.Errorf("%s calls %s without a schema", name, full)
			}
		}
	}
	if seen < 100 {
		t.Errorf("%d calls seen", seen)
	}
}
