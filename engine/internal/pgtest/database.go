package pgtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lib/pq"
)

// Main runs the tests of a package with a server, and returns the exit code. It uses the server
// that ENGINE_TEST_DSN names. If ENGINE_TEST_DSN is empty, it starts a cluster for the tests:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
func Main(m *testing.M) int {
	if os.Getenv(EnvDSN) != "" {
		return runAndClean(m)
	}
	return WithCluster(context.Background(), func(context.Context) int { return runAndClean(m) })
}

// runAndClean runs the tests and then drops the templates. It returns the exit code.
func runAndClean(m *testing.M) int {
	code := m.Run()
	if err := DropTemplates(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	return code
}

// WithCluster starts a cluster, and sets ENGINE_TEST_DSN and ENGINE_TEST_PG_BIN. Then WithCluster
// calls `fn`, stops the cluster, and returns the result of `fn`. If the cluster cannot be started
// or stopped, WithCluster prints the error on stderr and returns 1. If this process gets SIGINT or
// SIGTERM, the context of `fn` ends. At most 10 s later, WithCluster stops the cluster, even if
// `fn` has not returned.
func WithCluster(ctx context.Context, fn func(ctx context.Context) int) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	starting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	c, err := Start(starting)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	code := 1
	if err := errors.Join(os.Setenv(EnvDSN, c.DSN), os.Setenv(EnvPrograms, c.bin)); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
	} else {
		code = await(ctx, fn)
	}
	if err := c.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	return code
}

// await calls fn and returns the result of fn. If ctx ends, and fn does not return in the 10 s
// after that, await returns 1.
func await(ctx context.Context, fn func(ctx context.Context) int) int {
	done := make(chan int, 1)
	go func() { done <- fn(ctx) }()
	select {
	case code := <-done:
		return code
	case <-ctx.Done():
	}
	select {
	case code := <-done:
		return code
	case <-time.After(10 * time.Second):
		return 1
	}
}

// DSN creates an empty database and returns the DSN. At the end of the test, the database is
// dropped. If there is no server, the test fails.
func DSN(t testing.TB) string {
	t.Helper()
	return create(t, "")
}

// create creates a database and returns the DSN. The parameter `template` is the name of the
// database that is copied; "" = the new database is empty. At the end of the test, the new database
// is dropped.
func create(t testing.TB, template string) string {
	t.Helper()
	server := os.Getenv(EnvDSN)
	if server == "" {
		t.Fatalf("%s is not set: call pgtest.Main from TestMain, or run under `pgtest run`", EnvDSN)
	}
	name := "t_" + strings.ToLower(rand.Text())
	query := "CREATE DATABASE " + pq.QuoteIdentifier(name)
	if template != "" {
		query += " TEMPLATE " + pq.QuoteIdentifier(template)
	}
	ctx := context.WithoutCancel(t.Context())
	if err := Exec(ctx, server, query); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Exec(ctx, server, "DROP DATABASE "+pq.QuoteIdentifier(name)+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	dsn, err := within(server, name)
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// within returns the DSN of the database with the given name. The parameter `server` is the DSN of
// any database on the same server.
func within(server, name string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("%s is not a URL", EnvDSN)
	}
	u.Path = "/" + name
	return u.String(), nil
}

// Exec opens a connection, runs one or several SQL statements, and closes the connection.
func Exec(ctx context.Context, dsn, query string) (err error) {
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return fmt.Errorf("open a database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, query); err != nil {
		return fmt.Errorf("%.100s: %w", query, err)
	}
	return nil
}
