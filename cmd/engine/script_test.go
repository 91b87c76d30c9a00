package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lib/pq"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/saga-engine/engine/engine/store/postgres"
)

// Names of variables that the test binary hands to itself.
const (
	envServer = "ENGINE_TEST_DSN"    // a PostgreSQL server
	envAgents = "ENGINE_TEST_AGENTS" // a directory of built agents
)

// TestMain makes this binary the command `engine` in scripts, builds the
// agents, and sees to a PostgreSQL server.
func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){
		"engine": main,
	})
}

type suite struct{ m *testing.M }

// Run runs the tests. Without a server it runs this binary again under one.
func (s suite) Run() int {
	if os.Getenv(envServer) == "" {
		return rerun("go", append([]string{"run", "../../engine/internal/pgtest/cmd/pgtest", "run", "--", os.Args[0]}, os.Args[1:]...)...)
	}
	dir, err := os.MkdirTemp("", "engine-agents-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if code := rerun("go", "build", "-o", dir, "../../plugins/..."); code != 0 {
		return code
	}
	if err := errors.Join(os.Setenv(envAgents, dir), os.Chmod(dir, 0o755)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Scripts mostly wait: for leases to run out, for latencies.
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return s.m.Run()
}

func rerun(name string, args ...string) int {
	cmd := exec.Command(name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 0 {
			return exit.ExitCode()
		}
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestScript runs the scripts of every command and of bad input, on the
// embedded store where they need one.
func TestScript(t *testing.T) { scripts(t, "testdata/script", nil) }

// TestScriptSQLite runs what must hold on every store on the embedded one
// (S19 S22 S23 S25 S26).
func TestScriptSQLite(t *testing.T) {
	scripts(t, "testdata/both", func(t *testing.T, env *testscript.Env) {
		env.Setenv("ENGINE_DSN", "sqlite:"+filepath.Join(env.WorkDir, "state.db"))
	})
}

// TestScriptPostgres runs the same on PostgreSQL.
func TestScriptPostgres(t *testing.T) {
	scripts(t, "testdata/both", func(t *testing.T, env *testscript.Env) {
		dsn := database(t)
		env.Setenv("ENGINE_DSN", dsn)
		env.Setenv("ENGINE_ENCRYPTION_KEY", goldenKey)
		if _, _, err := postgres.Migrate(t.Context(), dsn); err != nil {
			t.Fatal(err)
		}
	})
}

// TestScriptDatabase runs what is about PostgreSQL only, on an empty database.
func TestScriptDatabase(t *testing.T) {
	scripts(t, "testdata/postgres", func(t *testing.T, env *testscript.Env) {
		env.Setenv("ENGINE_DSN", database(t))
	})
}

// goldenKey sealed the states in testdata/version/state.
const goldenKey = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

// TestStateOfVersion010 opens an embedded state and a database that version 0.1.0
// has left, with runs in many states (S22, S26).
func TestStateOfVersion010(t *testing.T) {
	open := func(t *testing.T, store string, dsn func(t *testing.T, dir string) (driver, source, dsn string)) {
		scripts(t, "testdata/version", func(t *testing.T, env *testscript.Env) {
			text, err := os.ReadFile(filepath.Join("testdata", "version", "state", store+"-0.1.0.sql"))
			if err != nil {
				t.Fatal(err)
			}
			driver, source, dsn := dsn(t, env.WorkDir)
			if err := execSQL(t.Context(), driver, source, string(text)); err != nil {
				t.Fatal(err)
			}
			if store == "postgres" {
				if _, _, err := postgres.Migrate(t.Context(), dsn); err != nil {
					t.Fatal(err)
				}
			}
			agents, err := filepath.Abs("testdata/version/agents")
			if err == nil { // the agent there starts this one
				err = os.Symlink(filepath.Join(os.Getenv(envAgents), "engine-agent-mock"), filepath.Join(env.WorkDir, "golden-agent"))
			}
			if err != nil {
				t.Fatal(err)
			}
			env.Setenv("ENGINE_PLUGIN_DIR", agents)
			env.Setenv("ENGINE_DSN", dsn)
			env.Setenv("ENGINE_ENCRYPTION_KEY", goldenKey)
		})
	}
	t.Run("sqlite", func(t *testing.T) {
		open(t, "sqlite", func(t *testing.T, dir string) (driver, source, dsn string) {
			file := filepath.Join(dir, "state.db")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return "sqlite", file, "sqlite:" + file
		})
	})
	t.Run("postgres", func(t *testing.T) {
		open(t, "postgres", func(t *testing.T, _ string) (driver, source, dsn string) {
			dsn = database(t)
			return "postgres", dsn, dsn
		})
	})
}

func scripts(t *testing.T, dir string, setup func(*testing.T, *testscript.Env)) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			agents := os.Getenv(envAgents)
			env.Setenv("ENGINE_PLUGIN_DIR", agents)
			env.Setenv("AGENTS", agents)
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("LEDGER", filepath.Join(env.WorkDir, "ledger"))
			addJobs(env)
			if setup != nil {
				setup(t, env)
			}
			return nil
		},
		Cmds: commands,
	})
}

// database makes an empty database that is dropped in the end.
func database(t *testing.T) string {
	t.Helper()
	server := os.Getenv(envServer)
	name := "cli_" + strings.ToLower(rand.Text())
	query(t, server, "CREATE DATABASE "+pq.QuoteIdentifier(name))
	t.Cleanup(func() { query(t, server, "DROP DATABASE "+pq.QuoteIdentifier(name)+" WITH (FORCE)") })
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s is not a URL", envServer)
	}
	u.Path = "/" + name
	return u.String()
}

func query(t *testing.T, dsn, text string) {
	t.Helper()
	if err := execSQL(context.WithoutCancel(t.Context()), "postgres", dsn, text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func execSQL(ctx context.Context, driver, dsn, text string) (err error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, text)
	return err
}
