package examples_test

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// envPrograms names the directory with the programs of the PostgreSQL that `pgtest run` has started.
const envPrograms = "ENGINE_TEST_PG_BIN"

// A shell runs a client program of another language against one database.
type shell struct {
	*testing.T
	dsn string
}

// output runs a program, and returns what it prints. The exit code must be the given one.
func (s shell) output(code int, stdin, name string, args ...string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdin = append(os.Environ(), "PSQLRC=/dev/null"), strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		s.Fatalf("%s: %v", name, err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		s.Fatalf("%s %q = %d, want %d\n%s", name, args, got, code, out)
	}
	return string(out)
}

// psql runs the psql of the PostgreSQL that the tests use. It reads statements from the text.
func (s shell) psql(code int, text string, args ...string) string {
	s.Helper()
	name := filepath.Join(os.Getenv(envPrograms), "psql")
	if os.Getenv(envPrograms) == "" { // the tests use a server that they did not start
		name = "psql"
	}
	return s.output(code, text, name, append([]string{s.dsn, "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1"}, args...)...)
}

// python returns a Python that can import a driver for PostgreSQL; "" = there is none here.
func python(t *testing.T) string {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		for _, driver := range []string{"psycopg2", "psycopg"} {
			out, err := exec.CommandContext(t.Context(), name, "-c", "import "+driver).CombinedOutput()
			if err == nil {
				return name
			}
			t.Logf("%s cannot import %s: %v %s", name, driver, err, out)
		}
	}
	return ""
}

// S54: clients in other languages submit runs in their own transactions: psql always, and Python if
// there is a driver for it.
func TestClientsOfOtherLanguages(t *testing.T) {
	t.Parallel()
	s := shell{t, postgresDSN(t)}
	if r := runCommand(t, "orders", "init", "--dsn", s.dsn); r.code != 0 {
		t.Fatal(r.stderr)
	}
	nowhere := "http://127.0.0.1:9" // no service answers, so the run cannot end before the test looks
	if r := engine(t, "publish", "order-processing", "--dsn", s.dsn, "--var", "shop_url="+nowhere, "--var", "orders_url="+nowhere); r.code != 0 {
		t.Fatal(r.stderr)
	}
	submit := []string{"-v", "order=o-7", "-v", "amount=1200", "-f", "order-processing/clients/submit.sql"}
	for range 2 { // the same transaction again changes nothing
		if out := s.psql(0, "", submit...); out != "order/o-7|waits|\n" {
			t.Errorf("submit.sql prints %q", out)
		}
	}
	if out := s.psql(0, `BEGIN; SELECT engine.submit('process_order', '{"order_id": "o-9"}', 'order/o-9'); ROLLBACK;`); out != "order/o-9\n" {
		t.Errorf("psql prints %q", out)
	}
	if out := s.psql(3, `SELECT engine.submit('process_order', '{"order_id": 9}', 'order/o-9')`); !strings.Contains(out, "order_id must be a string, and is a JSON number") {
		t.Errorf("psql prints %q", out)
	}
	// An order that fails in the middle of the script leaves neither a row nor a submission.
	s.psql(3, "", "-v", "order=o-6", "-v", "amount=0", "-f", "order-processing/clients/submit.sql")
	want := "order/o-7"
	if name := python(t); name == "" {
		t.Log("there is no Python with a driver, so submit.py is not run: install python3-psycopg2")
	} else {
		for range 2 {
			if out := s.output(0, "", name, "order-processing/clients/submit.py", s.dsn, "o-8", "1200"); out != "order/o-8\n" {
				t.Errorf("submit.py prints %q", out)
			}
		}
		s.output(1, "", name, "order-processing/clients/submit.py", s.dsn, "o-5", "0")
		want += " order/o-8"
	}
	for _, table := range []string{"engine.submissions", "app.orders"} {
		if out := s.psql(0, "SELECT string_agg(run, ' ' ORDER BY run) FROM "+table); out != want+"\n" {
			t.Errorf("%s: %q, want %q", table, out, want)
		}
	}
	serve(t, s.dsn)
	s.until("SELECT count(*) FROM engine.submissions", "0")
	s.until("SELECT string_agg(run, ' ' ORDER BY run) FROM engine.runs WHERE workflow = 'process_order'", want)
	if out := s.psql(0, "", submit...); !strings.Contains(out, "order/o-7|") || strings.Contains(out, "refused") {
		t.Errorf("after the run has started, submit.sql prints %q", out)
	}
}

// serve starts an engine, which ends with the test.
func serve(t *testing.T, dsn string) {
	t.Helper()
	cmd := command(t, "engine", "serve", "order-processing", "--dsn", dsn)
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("engine serve: %v\n%s", err, &log)
		}
	})
}

// until asks the database until the answer is the wanted one.
func (s shell) until(query, want string) {
	s.Helper()
	db, err := sql.Open("postgres", s.dsn)
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(patience); ; <-ticker.C {
		var got sql.NullString
		if err := db.QueryRowContext(s.Context(), query).Scan(&got); err != nil {
			s.Fatal(err)
		}
		if got.String == want {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("%s is %q, want %q", query, got.String, want)
		}
	}
}
