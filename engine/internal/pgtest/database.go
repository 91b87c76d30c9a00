package pgtest

import (
	"context"
	"crypto/rand"
	"database/sql"
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

// Main runs a package's tests with a server. It uses the server that ENGINE_TEST_DSN names,
// or else starts a cluster. It returns the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
func Main(m *testing.M) int {
	if os.Getenv(EnvDSN) != "" {
		return m.Run()
	}
	return WithCluster(context.Background(), func(context.Context) int { return m.Run() })
}

// WithCluster starts a cluster, sets ENGINE_TEST_DSN, calls fn and stops the cluster. It
// returns the result of fn. After an error it prints the error on stderr and returns 1. An
// interrupt ends fn's context. At most 10 s later WithCluster stops the cluster, even if fn
// has not returned.
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
	if err := os.Setenv(EnvDSN, c.DSN); err != nil {
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

// await calls fn and returns its exit code. If ctx ends and fn does not return within 10 s,
// await returns 1.
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

// DSN returns the DSN of a new, empty database, which is dropped at the end of the test.
// The test fails if there is no server.
func DSN(t testing.TB) string {
	t.Helper()
	server := os.Getenv(EnvDSN)
	if server == "" {
		t.Fatalf("%s is not set: call pgtest.Main from TestMain, or run under `pgtest run`", EnvDSN)
	}
	name := "t_" + strings.ToLower(rand.Text())
	admin(t, server, "CREATE DATABASE "+pq.QuoteIdentifier(name))
	t.Cleanup(func() { admin(t, server, "DROP DATABASE "+pq.QuoteIdentifier(name)+" WITH (FORCE)") })
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s is not a URL", EnvDSN)
	}
	u.Path = "/" + name
	return u.String()
}

func admin(t testing.TB, dsn, query string) {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatalf("%s: %v", EnvDSN, err)
	}
	defer db.Close()
	if _, err := db.ExecContext(context.WithoutCancel(t.Context()), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
