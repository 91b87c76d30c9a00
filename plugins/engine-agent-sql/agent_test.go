package main

import (
	"context"
	"database/sql"
	"encoding/json"

	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/plugin"
	"github.com/saga-engine/engine/sdk/sdktest"
)

const envDSN = "ENGINE_TEST_DSN"

// TestMain runs the tests with a PostgreSQL server: the one ENGINE_TEST_DSN
// names, or else a private one that lives as long as they do.
func TestMain(m *testing.M) {
	if os.Getenv(envDSN) != "" {
		os.Exit(m.Run())
	}
	cmd := exec.Command("go", append([]string{"run", "github.com/saga-engine/engine/engine/internal/pgtest/cmd/pgtest", "run", "--"}, os.Args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "tests with PostgreSQL:", err)
		os.Exit(1)
	}
}

// schema makes a schema of its own for a test and returns its DSN.
func schema(t *testing.T) (*sql.DB, string) {
	t.Helper()
	admin, err := sql.Open("postgres", os.Getenv(envDSN))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() }) //nolint:errcheck // the test's own
	name := fmt.Sprintf("agent_%d_%d", os.Getpid(), time.Now().UnixNano())
	if _, err := admin.Exec("CREATE SCHEMA " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.Exec("DROP SCHEMA " + name + " CASCADE"); err != nil {
			t.Error(err)
		}
	})
	dsn := os.Getenv(envDSN)
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		q := u.Query()
		q.Set("search_path", name)
		u.RawQuery = q.Encode()
		dsn = u.String()
	} else {
		dsn += " search_path=" + name
	}
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() }) //nolint:errcheck // the test's own
	mustExec(t, db, "CREATE TABLE account (name text PRIMARY KEY, cents bigint NOT NULL CHECK (cents >= 0))")
	mustExec(t, db, "INSERT INTO account VALUES ('a', 100), ('b', 0)")
	return db, dsn
}

func mustExec(t *testing.T, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.Exec(text, args...); err != nil {
		t.Fatal(err)
	}
}

func mustScan[T any](t *testing.T, db *sql.DB, text string) (v T) {
	t.Helper()
	if err := db.QueryRow(text).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func open(t *testing.T, config map[string]any) *sdk.Agent {
	t.Helper()
	a := newAgent()
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Configure(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	return a
}

func invoke(t *testing.T, a *sdk.Agent, action string, input any, change ...func(*sdk.Request)) sdk.Reply {
	t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	req := sdk.Request{Action: action, Purpose: sdk.PurposeDo, Input: raw, IdempotencyKey: "k1", CompleteBy: time.Now().Add(time.Minute)}
	for _, c := range change {
		c(&req)
	}
	reply, ok := a.Invoke(t.Context(), req, sdk.InvokeOptions{})
	if !ok {
		t.Fatalf("%s: no reply in time", action)
	}
	return reply
}

type in = map[string]any

func key(k string) func(*sdk.Request) { return func(r *sdk.Request) { r.IdempotencyKey = k } }

func lookup(r *sdk.Request) { r.Purpose = sdk.PurposeLookup }

func TestQueryTypes(t *testing.T) {
	_, dsn := schema(t)
	a := open(t, in{"dsn": dsn})
	for name, tc := range map[string]struct{ expr, want string }{
		"null":        {"null", `null`},
		"bool":        {"true", `true`},
		"int8":        {"9223372036854775807::int8", `9223372036854775807`},
		"int2":        {"(-7)::int2", `-7`},
		"numeric":     {"12345678901234567890.123456789012345678901234567890::numeric", `12345678901234567890.123456789012345678901234567890`},
		"numeric NaN": {"'NaN'::numeric", `"NaN"`},
		"float8":      {"0.1::float8", `0.1`},
		"float4":      {"0.1::float4", `0.1`},
		"float NaN":   {"'NaN'::float8", `"NaN"`},
		"text":        {"'ä \"q\" \\ <&>'", `"ä \"q\" \\ <&>"`},
		"bytea":       {`'\x00ff'::bytea`, `"AP8="`},
		"json":        {`'{"n": 1.50, "big": 123456789012345678901, "l": [null, true]}'::json`, `{"big":123456789012345678901,"l":[null,true],"n":1.50}`},
		"jsonb":       {`'[1, 2]'::jsonb`, `[1,2]`},
		"timestamptz": {"'2024-02-29 12:00:00.123456+02'::timestamptz", `"2024-02-29T10:00:00.123456Z"`},
		"timestamp":   {"'2024-02-29 12:00:00'::timestamp", `"2024-02-29T12:00:00Z"`},
		"date":        {"'2024-02-29'::date", `"2024-02-29"`},
		"time":        {"'12:34:56.5'::time", `"12:34:56.5"`},
		"uuid":        {"'9a3c1d2e-0000-4000-8000-000000000001'::uuid", `"9a3c1d2e-0000-4000-8000-000000000001"`},
		"interval":    {"'1 day 2 hours'::interval", `"1 day 02:00:00"`},
		"array":       {"array[1,2]", `"{1,2}"`},
	} {
		t.Run(name, func(t *testing.T) {
			reply := invoke(t, a, "query", in{"sql": "select " + tc.expr + " as v"})
			want := `{"rows":[{"v":` + tc.want + `}],"rows_affected":1}`
			if reply.Outcome != sdk.OutcomeResult || string(reply.Output) != want {
				t.Errorf("got  %s %+v\nwant %s", reply.Output, reply, want)
			}
		})
	}
}

func TestQuery(t *testing.T) {
	db, dsn := schema(t)
	a := open(t, in{"dsn": dsn, "max_rows": 5})
	for name, tc := range map[string]struct {
		input in
		want  string // output, or code: message
	}{
		"parameters":     {in{"sql": "select name from account where cents >= $1 and name <> $2", "args": []any{50, "x'; drop table account; --"}}, `{"rows":[{"name":"a"}],"rows_affected":1}`},
		"no rows":        {in{"sql": "select 1 as x where false"}, `{"rows":[],"rows_affected":0}`},
		"with":           {in{"sql": "/* /* c */ */ -- d\n with x as (select 1 as y) select y from x"}, `{"rows":[{"y":1}],"rows_affected":1}`},
		"json argument":  {in{"sql": "select $1::jsonb -> 'a' as v, $2::numeric as n, $3::bool as b, $4::text as t", "args": []any{in{"a": []any{1}}, json.Number("12345678901234567890.5"), true, nil}}, `{"rows":[{"b":true,"n":12345678901234567890.5,"t":null,"v":[1]}],"rows_affected":1}`},
		"writes":         {in{"sql": "update account set cents = 0"}, "invalid: cannot execute UPDATE in a read-only transaction"},
		"hidden write":   {in{"sql": "with x as (delete from account returning name) select * from x"}, "invalid: cannot execute SELECT in a read-only transaction"},
		"two statements": {in{"sql": "select 1; drop table account"}, "invalid: cannot insert multiple commands"},
		"commit":         {in{"sql": "/**/ CoMMit"}, "invalid: sql: COMMIT is not allowed"},
		"copy":           {in{"sql": "copy account to stdout"}, "invalid: sql: COPY"},
		"empty":          {in{"sql": " -- nothing"}, "invalid: sql: is empty"},
		"syntax":         {in{"sql": "selct 1"}, "invalid: syntax error"},
		"no such table":  {in{"sql": "select * from nothing"}, "invalid: relation \"nothing\" does not exist"},
		"args no list":   {in{"sql": "select 1", "args": "x"}, "invalid: args: must be a list"},
		"too few args":   {in{"sql": "select $1::int"}, "invalid: "},
		"same name":      {in{"sql": "select 1 as a, 2 as a"}, "invalid: sql: two columns are named \"a\""},
		"too many":       {in{"sql": "select generate_series(1, 6) as n"}, "too_many_rows: the statement returns more than 5 rows"},
		"too large":      {in{"sql": "select repeat('x', 600000) as n"}, "too_many_rows: "},
		"division":       {in{"sql": "select 1/0 as x"}, "invalid: division by zero"},
		"mapped":         {in{"sql": "select 1/0 as x", "errors": in{"22": "bad_data", "22012": "by_zero"}}, "by_zero: division by zero"},
		"mapped class":   {in{"sql": "select 'x'::int as x", "errors": in{"22": "bad_data", "22012": "by_zero"}}, "bad_data: "},
		"bad map":        {in{"sql": "select 1", "errors": in{"2": "x"}}, "invalid: input: errors: \"2\" does not match"},
		"reserved code":  {in{"sql": "select 1", "errors": in{"22": "timeout"}}, "invalid: input: errors: \"timeout\" cannot be"},
	} {
		t.Run(name, func(t *testing.T) {
			reply := invoke(t, a, "query", tc.input)
			got := string(reply.Output)
			if reply.Outcome != sdk.OutcomeResult {
				got = reply.Code + ": " + reply.Message
				if reply.Outcome != sdk.OutcomeFailed {
					t.Errorf("outcome=%d, want a definite failure", reply.Outcome)
				}
			}
			if !strings.HasPrefix(got, tc.want) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	if n := mustScan[int](t, db, "select count(*) from account where cents = 100"); n != 1 {
		t.Errorf("%d accounts with 100, want 1: a query changed something", n)
	}
}

const move = "update account set cents = cents + $1 where name = $2"

func transfer(cents int) in {
	return in{"statements": []any{
		in{"sql": move, "args": []any{-cents, "a"}},
		in{"sql": move + " returning name, cents", "args": []any{cents, "b"}},
	}}
}

// TestExecOnce: the statements of a key take effect once, whether it comes again
// or at the same time; a failure takes everything back, and the key with it.
func TestExecOnce(t *testing.T) {
	db, dsn := schema(t)
	a := open(t, in{"dsn": dsn})
	want := `{"rows":[{"cents":30,"name":"b"}],"rows_affected":2}`
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if reply := invoke(t, a, "exec", transfer(30)); string(reply.Output) != want {
				t.Errorf("got %s %+v, want %s", reply.Output, reply, want)
			}
		})
	}
	wg.Wait()
	if n := mustScan[int](t, db, "select cents from account where name = 'a'"); n != 70 {
		t.Errorf("a has %d, want 70: one effect", n)
	}
	// Another process finds it, too.
	other := open(t, in{"dsn": dsn})
	if reply := invoke(t, other, "exec", transfer(30)); string(reply.Output) != want {
		t.Errorf("other process: got %+v", reply)
	}
	if reply := invoke(t, a, "exec", transfer(31)); reply.Code != codeKeyReused || !reply.Permanent {
		t.Errorf("other statements under the key: %+v, want %s", reply, codeKeyReused)
	}
	if reply := invoke(t, a, "exec", transfer(1000), key("k2")); reply.Outcome != sdk.OutcomeFailed || reply.Code != codeConflict || !strings.Contains(reply.Message, "SQLSTATE 23514") {
		t.Errorf("too much: %+v, want %s", reply, codeConflict)
	}
	if reply := invoke(t, a, "exec", transfer(1000), key("k2"), lookup); reply.Outcome != sdk.OutcomeNotDone {
		t.Errorf("lookup after a failure: %+v, want not done", reply)
	}
	if reply := invoke(t, a, "exec", transfer(10), key("k2")); reply.Outcome != sdk.OutcomeResult {
		t.Errorf("after the failure the key is free: %+v", reply)
	}
	if reply := invoke(t, a, "exec", transfer(30), lookup); reply.Outcome != sdk.OutcomeResult || string(reply.Output) != want {
		t.Errorf("lookup: %+v, want the result", reply)
	}
	if reply := invoke(t, a, "exec", in{"sql": move, "args": []any{1, "b"}}, key("")); reply.Code != sdk.CodeInvalid {
		t.Errorf("without a key: %+v", reply)
	}
	if reply := invoke(t, a, "exec_plain", in{"sql": move, "args": []any{1, "b"}}); reply.Outcome != sdk.OutcomeResult || string(reply.Output) != `{"rows":[],"rows_affected":1}` {
		t.Errorf("exec_plain: %s %+v", reply.Output, reply)
	}
}

// TestLookupWaits: a lookup does not say "not done" while the call is at work.
func TestLookupWaits(t *testing.T) {
	db, dsn := schema(t)
	a := open(t, in{"dsn": dsn})
	if reply := invoke(t, a, "exec", transfer(1), key("first")); reply.Outcome != sdk.OutcomeResult {
		t.Fatalf("%+v", reply)
	}
	if reply := invoke(t, open(t, in{"dsn": dsn, "dedupe_table": "fresh"}), "exec", transfer(1), lookup); reply.Outcome != sdk.OutcomeNotDone {
		t.Errorf("without a table: %+v, want not done", reply)
	}
	blocker, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer blocker.Rollback() //nolint:errcheck // committed below
	if _, err := blocker.Exec("select * from account where name = 'a' for update"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if reply := invoke(t, a, "exec", transfer(5)); reply.Outcome != sdk.OutcomeResult {
			t.Errorf("exec: %+v", reply)
		}
	})
	waiting := func(n int) {
		t.Helper()
		for limit := time.Now().Add(20 * time.Second); ; {
			if got := mustScan[int](t, db, "select count(*) from pg_locks where not granted and pid in (select pid from pg_stat_activity where application_name = 'engine-agent-sql')"); got >= n {
				return
			}
			if time.Now().After(limit) {
				t.Fatalf("no %d statements are waiting", n)
			}
			mustExec(t, db, "select pg_sleep(0.01)")
		}
	}
	waiting(1)
	wg.Go(func() {
		if reply := invoke(t, a, "exec", transfer(5), lookup); reply.Outcome != sdk.OutcomeResult {
			t.Errorf("lookup: %+v, want the result", reply)
		}
	})
	waiting(2)
	if err := blocker.Commit(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

// TestTransientFaults: what may go away is told from what will not (S77).
func TestTransientFaults(t *testing.T) {
	db, dsn := schema(t)
	a := open(t, in{"dsn": dsn})
	t.Run("lock not available", func(t *testing.T) {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback() //nolint:errcheck // nothing to keep
		if _, err := tx.Exec("lock table account"); err != nil {
			t.Fatal(err)
		}
		reply := invoke(t, a, "exec_plain", in{"statements": []any{in{"sql": "set local lock_timeout = '10ms'"}, in{"sql": move, "args": []any{1, "b"}}}})
		if reply.Outcome != sdk.OutcomeFailed || reply.Code != sdk.CodeAborted || reply.Permanent {
			t.Errorf("%+v, want aborted", reply)
		}
	})
	t.Run("denied", func(t *testing.T) {
		reply := invoke(t, a, "exec_plain", in{"statements": []any{in{"sql": "set local role pg_monitor"}, in{"sql": "delete from pg_authid"}}})
		if reply.Code != sdk.CodeDenied || !reply.Permanent {
			t.Errorf("%+v, want denied", reply)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		gone := open(t, in{"dsn": "postgres://u:secret-pw@" + addr + "/db"})
		for _, action := range []string{"query", "exec", "exec_plain"} {
			reply := invoke(t, gone, action, in{"sql": "select 1 as x"})
			if reply.Outcome != sdk.OutcomeFailed || reply.Code != sdk.CodeUnavailable || strings.Contains(reply.Message, "secret-pw") {
				t.Errorf("%s: %+v, want the definite failure unavailable", action, reply)
			}
		}
		if reply := invoke(t, gone, "exec", in{"sql": "select 1"}, lookup); reply.Outcome != sdk.OutcomeUnknown {
			t.Errorf("lookup: %+v, want unknown", reply)
		}
	})
}

// TestS28Deadline: past complete-by nothing is said (S28), and nothing committed.
func TestS28Deadline(t *testing.T) {
	db, dsn := schema(t)
	a := open(t, in{"dsn": dsn})
	raw, err := json.Marshal(in{"statements": []any{in{"sql": move, "args": []any{1, "b"}}, in{"sql": "select pg_sleep(30)"}}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	_, ok := a.Invoke(t.Context(), sdk.Request{
		Action: "exec_plain", Purpose: sdk.PurposeDo, Input: raw, CompleteBy: time.Now().Add(300 * time.Millisecond),
	}, sdk.InvokeOptions{Ended: func() { close(ended) }})
	if ok {
		t.Error("a reply after complete-by")
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the action goes on after complete-by")
	}
	if n := mustScan[int](t, db, "select cents from account where name = 'b'"); n != 0 {
		t.Errorf("b has %d, want 0", n)
	}
}

// TestCommitUnknown: when the connection is cut while COMMIT is out, the outcome
// is not known; cut before, nothing was done. The key finds out which.
func TestCommitUnknown(t *testing.T) {
	db, dsn := schema(t)
	for name, tc := range map[string]struct {
		cutAt   string // the message to the server that is held back and lost
		passOn  bool   // it still reaches the server, only the answer is lost
		outcome sdk.Outcome
		done    bool
	}{
		"before commit":         {"RETURNING", false, sdk.OutcomeFailed, false},
		"commit lost":           {"COMMIT", false, sdk.OutcomeUnknown, false},
		"answer of commit lost": {"COMMIT", true, sdk.OutcomeUnknown, true},
	} {
		t.Run(name, func(t *testing.T) {
			mustExec(t, db, "update account set cents = 50")
			if reply := invoke(t, open(t, in{"dsn": dsn}), "exec", transfer(0), key("prepare "+name)); reply.Outcome != sdk.OutcomeResult {
				t.Fatalf("%+v", reply)
			}
			a := open(t, in{"dsn": cutter(t, dsn, tc.cutAt, tc.passOn)})
			input := in{"sql": "update account set cents = 51 where name = 'b' RETURNING cents"}
			reply := invoke(t, a, "exec", input, key(name))
			if reply.Outcome != tc.outcome || reply.Code != sdk.CodeUnavailable {
				t.Errorf("%+v, want outcome %d, unavailable", reply, tc.outcome)
			}
			again := invoke(t, open(t, in{"dsn": dsn}), "exec", input, key(name), lookup)
			if want := map[bool]sdk.Outcome{true: sdk.OutcomeResult, false: sdk.OutcomeNotDone}[tc.done]; again.Outcome != want {
				t.Errorf("lookup: %+v, want outcome %d", again, want)
			}
			if reply := invoke(t, open(t, in{"dsn": dsn}), "exec", input, key(name)); reply.Outcome != sdk.OutcomeResult {
				t.Errorf("again: %+v", reply)
			}
		})
	}
}

// cutter is a proxy that cuts a connection at the first message to the server
// that contains text. It returns the DSN to use.
func cutter(t *testing.T, dsn, text string, passOn bool) string {
	t.Helper()
	cfg, err := pq.NewConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	network, address := "tcp", net.JoinHostPort(cfg.Host, fmt.Sprint(cfg.Port))
	if strings.HasPrefix(cfg.Host, "/") {
		network, address = "unix", filepath.Join(cfg.Host, fmt.Sprintf(".s.PGSQL.%d", cfg.Port))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) //nolint:errcheck // the test's own
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial(network, address)
			if err != nil {
				client.Close() //nolint:errcheck // the test's own
				return
			}
			go relay(client, server, text, passOn)
		}
	}()
	parts := []string{
		"host=127.0.0.1", fmt.Sprintf("port=%d", l.Addr().(*net.TCPAddr).Port), "sslmode=disable",
		"dbname='" + cfg.Database + "'", "user='" + cfg.User + "'", "search_path=" + cfg.Runtime["search_path"],
	}
	if cfg.Password != "" {
		parts = append(parts, "password='"+cfg.Password+"'")
	}
	return strings.Join(parts, " ")
}

func relay(client, server net.Conn, text string, passOn bool) {
	defer client.Close() //nolint:errcheck // the test's own
	defer server.Close() //nolint:errcheck // the test's own
	answers := make(chan struct{})
	var muted atomic.Bool
	go func() {
		defer close(answers)
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			if muted.Load() {
				continue
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if !strings.Contains(string(buf[:n]), text) {
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
			continue
		}
		muted.Store(true)
		if passOn {
			// The server closes the connection after Terminate ('X'), so its
			// end says that the commit is done.
			if _, err := server.Write(append(buf[:n], 'X', 0, 0, 0, 4)); err == nil {
				<-answers
			}
		}
		return
	}
}

func TestConfigure(t *testing.T) {
	for name, tc := range map[string]struct {
		config in
		want   string
	}{
		"no dsn":        {in{}, "dsn: is required"},
		"nonsense":      {in{"dsn": "postgres://u:canary@h:port/db"}, "dsn: is not understood"},
		"table":         {in{"dsn": "host=x", "dedupe_table": `a"; drop table b`}, "dedupe_table: "},
		"rows":          {in{"dsn": "host=x", "max_rows": 0}, "max_rows: "},
		"connections":   {in{"dsn": "host=x", "max_connections": 0}, "max_connections: "},
		"not an option": {in{"dsn": "host=x", "timeout": 3}, "timeout: is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(tc.config)
			if err != nil {
				t.Fatal(err)
			}
			err = newAgent().Configure(t.Context(), raw)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("error=%v, want %q and no password", err, tc.want)
			}
		})
	}
}

func TestSSLMode(t *testing.T) {
	for dsn, want := range map[string]pq.SSLMode{
		"postgres://u@db.example.com/x":                 "verify-full",
		"postgres://u@db.example.com/x?sslmode=require": "require",
		"host=db.example.com":                           "verify-full",
		"host=db.example.com sslmode=disable":           "disable",
		"host=db.example.com,localhost":                 "verify-full",
		"postgres://u@localhost/x":                      "disable",
		"postgres://u@127.0.0.1:5433/x":                 "disable",
		"host=::1":                                      "disable",
		"host=/run/postgresql":                          "disable",
		"postgres://u@localhost/x?sslmode=verify-ca":    "verify-ca",
	} {
		cfg, err := connection(dsn)
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
		} else if cfg.SSLMode != want {
			t.Errorf("%s: sslmode=%s, want %s", dsn, cfg.SSLMode, want)
		}
	}
}

// TestRules checks the promises of the agent: S26, S28 and S32 among others, in
// this process and through a real one.
func TestRules(t *testing.T) {
	db, dsn := schema(t)
	mustExec(t, db, "CREATE TABLE moved (id serial)")
	cases := []sdktest.Case{
		{Name: "query", Action: "query", Input: `{"sql":"select cents from account where name = $1","args":["a"]}`},
		{
			Name: "exec", Action: "exec", Input: `{"sql":"insert into moved default values"}`,
			Effects: func() int { return mustScan[int](t, db, "select count(*) from moved") },
		},
		{Name: "refused", Action: "exec", Input: `{"sql":"insert into account values ('a', 1)"}`, Code: codeConflict},
		{Name: "slow", Action: "query", Input: `{"sql":"select pg_sleep(20)::text as x"}`, Slow: true},
	}
	t.Run("in process", func(t *testing.T) { sdktest.Run(t, open(t, in{"dsn": dsn}), cases...) })
	t.Run("real process", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "engine-agent-sql")
		if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
		p, err := plugin.Open(t.Context(), plugin.OpenOptions{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}()
		raw, err := json.Marshal(in{"dsn": dsn})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Configure(context.Background(), raw); err != nil {
			t.Fatal(err)
		}
		sdktest.RunTarget(t, p, cases...)
	})
}
